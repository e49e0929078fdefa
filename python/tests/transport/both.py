"""The two transports behind one synchronous face, so that each test of a fault runs on both."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from typing import Any

from harness.scripted import PATIENCE_SECONDS
from windrow._async import blocks as async_blocks
from windrow._async.transport import AsyncTransport
from windrow._shared.http_options import HttpOptions
from windrow._shared.http_request import Request
from windrow._sync import blocks as sync_blocks
from windrow._sync.transport import SyncTransport


@dataclass
class Whole:
    status: int
    headers: dict[str, str]
    body: bytes


class Chunks:
    """A decoder whose blocks are the bytes as they come, of at most 1 MiB."""

    def __init__(self, body: Any) -> None:
        self.body = body
        self.broken: Exception | None = None

    def header(self) -> str | None:
        return "header"

    def advance(self, form: int, max_rows: int) -> list[bytes]:
        if self.broken is not None:
            raise self.broken
        data = self.body.read(1 << 20)
        return [data] if data else []

    def finish(self) -> None:
        pass


class SyncFace:
    """The synchronous transport as it is."""

    def __init__(self, options: HttpOptions) -> None:
        self.transport = SyncTransport(options)

    def whole(self, request: Request) -> Whole:
        response = self.transport.send(request)
        return Whole(response.status, response.headers, response.read())

    def opened(self, request: Request) -> Any:
        return self.transport.send(request)

    def stream(self, request: Request) -> Any:
        response = self.transport.send(request)
        return sync_blocks.BlockStream(response, Chunks(response.body), 0)

    def source(self, jobs: list[Callable[[], bytes]], encoding: str | None = None) -> Any:
        return sync_blocks.BlockSource(self.transport, jobs, encoding)

    def do(self, call: Callable[..., Any], *arguments: Any) -> Any:
        return call(*arguments)

    def statistics(self) -> dict[str, int]:
        return self.transport.statistics()

    def expect_words_within(self, seconds: float) -> None:
        """From now on a server may be silent for so long, also in exchanges that are under way."""
        self.transport.options = replace(self.transport.options, send_receive_timeout_s=seconds)
        for connection in list(self.transport._pool._all):
            connection.options = self.transport.options

    def close(self) -> None:
        self.transport.close()


class AsyncFace:
    """The asynchronous transport on a loop in a thread of its own."""

    def __init__(self, options: HttpOptions) -> None:
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="loop")
        self.thread.start()
        self.transport = AsyncTransport(options)

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(PATIENCE_SECONDS)

    def whole(self, request: Request) -> Whole:
        async def whole() -> Whole:
            response = await self.transport.send(request)
            return Whole(response.status, response.headers, await response.read())

        return self.run(whole())

    def opened(self, request: Request) -> Any:
        return self.run(self.transport.send(request))

    def stream(self, request: Request) -> Any:
        async def stream() -> Any:
            response = await self.transport.send(request)
            return async_blocks.BlockStream(response, Chunks(response.body), 0)

        return self.run(stream())

    def source(self, jobs: list[Callable[[], bytes]], encoding: str | None = None) -> Any:
        async def source() -> Any:
            return async_blocks.BlockSource(self.transport, jobs, encoding)

        return self.run(source())

    def do(self, call: Callable[..., Any], *arguments: Any) -> Any:
        return self.run(call(*arguments))

    def statistics(self) -> dict[str, int]:
        async def statistics() -> dict[str, int]:
            return self.transport.statistics()

        return self.run(statistics())

    def expect_words_within(self, seconds: float) -> None:
        async def expect() -> None:
            silence_may_last(self.transport, seconds)

        self.run(expect())

    def close(self) -> None:
        async def close() -> set[asyncio.Task[Any]]:
            await self.transport.close()
            return asyncio.all_tasks() - {asyncio.current_task()}  # type: ignore[arg-type]

        try:
            left = self.run(close())
            assert not left, f"tasks that nobody ended: {left}"
        finally:
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join()
            self.loop.close()


def silence_may_last(transport: AsyncTransport, seconds: float) -> None:
    """From now on a server may be silent for so long, also in exchanges that are under way. Called on their loop."""
    transport.options = replace(transport.options, send_receive_timeout_s=seconds)
    for connection in list(transport._all):
        connection._arm(connection._limit(connection.loop.time()))


async def until(probe: Callable[[], object], what: str) -> None:
    """As `eventually`, for what happens on this loop."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not probe():
        assert time.monotonic() < end, what
        await asyncio.sleep(0.001)


FACES = {"async": AsyncFace, "sync": SyncFace}
EMPTY = {"open": 0, "idle": 0, "in_use": 0, "waiting": 0}
