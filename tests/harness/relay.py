"""A TCP relay between gateway and engine that misbehaves as told, with every fault drawn from a seed.

It knows no HTTP: a fault falls on a piece as it was received, so requests and answers break off anywhere.
"""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
from collections import Counter
from collections.abc import AsyncIterator
from enum import Enum

PIECE_BYTES = 1 << 14
# For those who read heads: ClickHouse takes a URL of a megabyte.
MOST_HEAD_BYTES = 2 << 20
# Closing with unsent data thrown away: the peer reads a reset.
RESET = struct.pack("ii", 1, 0)


class Fault(Enum):
    """What becomes of a piece and its connection."""

    BROKEN_REQUEST = "half of what the gateway sent arrives; the engine reads an end, the gateway a reset"
    LOST_ANSWER = "the engine got its request and answered; the gateway reads a reset"
    HALF_ANSWER = "half of the answer arrives, then the connection is closed in good order"
    STALLED_ANSWER = "half of the answer arrives, then nothing more until the relay is told to behave"


ON_THE_WAY_IN = (Fault.BROKEN_REQUEST,)
ON_THE_WAY_OUT = (Fault.LOST_ANSWER, Fault.HALF_ANSWER, Fault.STALLED_ANSWER)


class Relay:
    """Listens as long as it lives; `refuse` and `hang` concern all connections, `faults` single pieces."""

    def __init__(self, port: int, seed: int):
        self.backend_port, self.rng = port, random.Random(seed)
        self.chances: dict[Fault, float] = {}
        self.done: Counter[Fault] = Counter()
        self.refusing = False
        self.loop = asyncio.new_event_loop()
        self.flowing = asyncio.Event()
        self.flowing.set()
        self.behaving = asyncio.Event()
        self.writers: set[asyncio.StreamWriter] = set()
        started = threading.Event()
        self.thread = threading.Thread(target=self._run, args=(started,), daemon=True)
        self.thread.start()
        started.wait()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.port}"

    def __enter__(self) -> Relay:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()

    def misbehave(self, chances: dict[Fault, float]) -> None:
        self.chances = chances

    def behave(self) -> None:
        """No more faults; what hangs goes on, and what stalled is cut off."""
        self.chances = {}
        self.refusing = False
        self.loop.call_soon_threadsafe(self._release)

    def hang(self) -> None:
        """Connections are accepted, and bytes taken, but none goes on."""
        self.loop.call_soon_threadsafe(self.flowing.clear)

    def go_away(self) -> None:
        """Open connections are reset, and new ones as soon as they come."""
        self.refusing = True
        self.loop.call_soon_threadsafe(self._reset_all)

    def _run(self, started: threading.Event) -> None:
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0, limit=MOST_HEAD_BYTES))
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        self.loop.run_forever()
        server.close()
        left = asyncio.all_tasks(self.loop)
        for task in left:
            task.cancel()
        self.loop.run_until_complete(asyncio.gather(*left, return_exceptions=True))

    def _release(self) -> None:
        self.flowing.set()
        self.behaving.set()
        self.behaving = asyncio.Event()

    def _reset_all(self) -> None:
        for writer in list(self.writers):
            reset(writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refusing:
            reset(writer)
            return
        try:
            behind = await asyncio.open_connection("127.0.0.1", self.backend_port)
        except OSError:
            reset(writer)
            return
        both = (writer, behind[1])
        self.writers.update(both)
        ways = (self._pass(reader, behind[1], both, ON_THE_WAY_IN), self._pass(behind[0], writer, both, ON_THE_WAY_OUT))
        await asyncio.gather(*ways)
        for end in both:
            self.writers.discard(end)
            end.close()

    async def _pass(
        self,
        source: asyncio.StreamReader,
        sink: asyncio.StreamWriter,
        both: tuple[asyncio.StreamWriter, asyncio.StreamWriter],
        faults: tuple[Fault, ...],
    ) -> None:
        try:
            async for piece in self._pieces(source, faults):
                await self.flowing.wait()
                fault = self._drawn(faults)
                if fault is not None:
                    await self._commit(fault, piece, sink, both)
                    return
                sink.write(piece)
                await sink.drain()
        except OSError:
            # One side is gone; so is the other, then.
            pass
        sink.close()

    async def _pieces(self, source: asyncio.StreamReader, _: tuple[Fault, ...]) -> AsyncIterator[bytes]:
        while piece := await source.read(PIECE_BYTES):
            yield piece

    def _drawn(self, faults: tuple[Fault, ...]) -> Fault | None:
        return next((fault for fault in faults if self.rng.random() < self.chances.get(fault, 0)), None)

    async def _commit(
        self,
        fault: Fault,
        piece: bytes,
        sink: asyncio.StreamWriter,
        both: tuple[asyncio.StreamWriter, asyncio.StreamWriter],
    ) -> None:
        self.done[fault] += 1
        if fault is not Fault.LOST_ANSWER:
            sink.write(piece[: len(piece) // 2])
            await sink.drain()
        if fault is Fault.STALLED_ANSWER:
            await self.behaving.wait()
        gateway, engine = both
        if fault in (Fault.HALF_ANSWER, Fault.STALLED_ANSWER):
            gateway.close()
        else:
            reset(gateway)
        engine.close()


def reset(writer: asyncio.StreamWriter) -> None:
    connection: socket.socket = writer.get_extra_info("socket")
    if connection is not None and connection.fileno() >= 0:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    writer.transport.abort()
