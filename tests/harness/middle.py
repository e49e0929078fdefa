"""Something between gateway and engine that knows where requests begin and end, and fails at the moment that a test names.

`relay.py` knows no HTTP, and draws its faults from a seed.
"""

from __future__ import annotations

import asyncio
import re
import threading
from enum import Enum

from harness import strange
from harness.disguise import END_OF_HEAD, body
from harness.relay import Relay, reset

BYTE_PAUSE_SECONDS = 1
# The INSERT of no rows, by which a gateway asks whether it may, has an empty token.
IS_BATCH = re.compile(rb"insert_deduplication_token=[0-9a-f]")


class Fate(Enum):
    """What becomes of an INSERT. Where it waits, it does until the test releases it."""

    SILENT = "it is taken, and waits; then the connection is closed"
    SILENT_WHILE_READ = "half of it reaches the engine, and it waits; then both connections are closed"
    SILENT_AFTER = "the engine has answered, and the answer waits; then the connection is reset"
    CUT = "the connection is closed before anything is read"
    CUT_WHILE_READ = "half of it reaches the engine, then both connections are closed"
    CUT_AFTER = "the engine has answered, and the connection is reset"
    HALF_ANSWER = "the engine has answered, and half of that arrives"
    BYTE_BY_BYTE = "the engine has answered, and a byte a second of that arrives, until it is released"
    RUBBISH = "it never reaches the engine, and is answered with rubbish"
    RUBBISH_AFTER = "the engine has answered, and rubbish arrives"
    BAD_GATEWAY = "it never reaches the engine, and nginx says so"
    BAD_GATEWAY_AFTER = "the engine has answered, and nginx says that it has not"
    WELCOME = "it never reaches the engine; somebody answers everything with status 200"
    ANOTHER = "it never reaches the engine, but another kind of database"

    @property
    def waits(self) -> bool:
        return self.name.startswith("SILENT") or self is Fate.BYTE_BY_BYTE


ANSWERS = {
    Fate.RUBBISH: strange.RUBBISH,
    Fate.RUBBISH_AFTER: strange.RUBBISH,
    Fate.BAD_GATEWAY: strange.NGINX,
    Fate.BAD_GATEWAY_AFTER: strange.NGINX,
    Fate.WELCOME: strange.WELCOME,
    Fate.ANOTHER: strange.ELASTIC,
}
PASSED_ON = (Fate.SILENT_AFTER, Fate.CUT_AFTER, Fate.HALF_ANSWER, Fate.BYTE_BY_BYTE, Fate.RUBBISH_AFTER, Fate.BAD_GATEWAY_AFTER)


class Closing(Enum):
    """How a connection ends that has had its number of requests."""

    SAID = "its last answer says that it is closed"
    UNSAID = "it is closed behind its last answer"
    AT_THE_NEXT = "it is closed when the next request has come"


class Middle(Relay):
    def __init__(self, port: int):
        self.armed: dict[str, Fate] = {}
        self.reached = threading.Event()
        self.released = threading.Event()
        #: Requests whose head has this are cut.
        self.cuts: bytes | None = None
        #: Batches that hold one of these are refused with its code, and never reach the engine.
        self.refused: dict[bytes, int] = {}
        #: Of those the ones that have come.
        self.met: set[bytes] = set()
        #: What has come, once a test has put a list here.
        self.seen: list[bytes] | None = None
        self.most_requests: int | None = None
        self.closing = Closing.SAID
        self.closed = 0
        super().__init__(port, seed=0)

    def arm(self, table: str, fate: Fate) -> None:
        """The next batch for the table meets with it."""
        self.reached.clear()
        self.released.clear()
        self.armed[table] = fate

    def release(self) -> None:
        self.released.set()

    def close_after(self, requests: int, closing: Closing) -> None:
        """From now on, every connection is closed after so many."""
        self.closing, self.closed, self.most_requests = closing, 0, requests

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        behind: asyncio.StreamWriter | None = None
        if self.refusing:
            return reset(writer)
        self.writers.add(writer)
        try:
            source, behind = await asyncio.open_connection("127.0.0.1", self.backend_port, limit=1 << 20)
            served = 0
            while True:
                head = await reader.readuntil(END_OF_HEAD)
                if self.closing is Closing.AT_THE_NEXT and self._is_spent(served):
                    return
                fate = self._fate_of(head)
                if fate is Fate.CUT:
                    self.reached.set()
                    return
                request = head + b"".join([piece async for piece in body(head, reader)])
                if self.seen is not None:
                    self.seen.append(request)
                if fate is not None:
                    return await self._meet(fate, request, source, behind, writer)
                answer = self._refusal(request)
                if answer is None:
                    behind.write(request)
                    answer = await whole_answer(source)
                served += 1
                is_last = self.closing is not Closing.AT_THE_NEXT and self._is_spent(served)
                if is_last and self.closing is Closing.SAID:
                    answer = answer.replace(b"Connection: Keep-Alive", b"Connection: Close", 1)
                writer.write(answer)
                await writer.drain()
                if is_last:
                    return
        except (OSError, asyncio.IncompleteReadError):
            # One side is gone; so is the other, then.
            pass
        finally:
            self.writers.discard(writer)
            writer.close()
            if behind is not None:
                behind.close()

    def _is_spent(self, served: int) -> bool:
        """Whether a connection with so many requests is to be closed, which counts."""
        is_spent = self.most_requests is not None and served >= self.most_requests
        self.closed += is_spent
        return is_spent

    def _fate_of(self, head: bytes) -> Fate | None:
        if self.cuts is not None and self.cuts in head:
            return Fate.CUT
        if not IS_BATCH.search(head):
            return None
        table = next((table for table in self.armed if b"%60" + table.encode() + b"%60" in head), None)
        return None if table is None else self.armed.pop(table)

    def _refusal(self, request: bytes) -> bytes | None:
        if not self.refused or not IS_BATCH.search(request, 0, request.index(END_OF_HEAD)):
            return None
        found = next(((marker, code) for marker, code in self.refused.items() if marker in request), None)
        if found is None:
            return None
        marker, code = found
        self.met.add(marker)
        text = f"Code: {code}. DB::Exception: Injected. (INJECTED) (version 26.7.2.1)\n".encode()
        fields = f"X-ClickHouse-Exception-Code: {code}\r\nContent-Type: text/plain; charset=UTF-8\r\nContent-Length: {len(text)}"
        return f"HTTP/1.1 500 Internal Server Error\r\nConnection: Keep-Alive\r\n{fields}\r\n\r\n".encode() + text

    async def _meet(
        self, fate: Fate, request: bytes, source: asyncio.StreamReader, behind: asyncio.StreamWriter, writer: asyncio.StreamWriter
    ) -> None:
        answer = ANSWERS.get(fate, b"")
        if fate in (Fate.CUT_WHILE_READ, Fate.SILENT_WHILE_READ):
            behind.write(request[: len(request) - 10])
            await behind.drain()
        if fate in PASSED_ON:
            behind.write(request)
            engines = await whole_answer(source)
            assert engines.startswith(b"HTTP/1.1 200"), engines
            answer = answer or engines
        self.reached.set()
        if fate is Fate.BYTE_BY_BYTE:
            return await self._drip(answer, writer)
        if fate.waits:
            await self._release_of_the_test()
        if fate in (Fate.CUT_AFTER, Fate.SILENT_AFTER):
            return reset(writer)
        writer.write(answer[: len(answer) // 2] if fate is Fate.HALF_ANSWER else answer)
        await writer.drain()

    async def _drip(self, answer: bytes, writer: asyncio.StreamWriter) -> None:
        for at in range(len(answer)):
            if self.released.is_set():
                writer.write(answer[at:])
                return await writer.drain()
            writer.write(answer[at : at + 1])
            await writer.drain()
            waiting = asyncio.create_task(self._release_of_the_test())
            await asyncio.wait([waiting], timeout=BYTE_PAUSE_SECONDS)

    async def _release_of_the_test(self) -> None:
        await asyncio.to_thread(self.released.wait, 120)


async def whole_answer(source: asyncio.StreamReader) -> bytes:
    head = await source.readuntil(END_OF_HEAD)
    return head + b"".join([piece async for piece in body(head, source)])
