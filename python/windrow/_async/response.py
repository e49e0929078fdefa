"""An answer whose head is there and whose body is on its way."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from windrow._core import Body, BodyError, Exchange
from windrow._shared.http_errors import broken_body

if TYPE_CHECKING:
    from windrow._async.connection import Connection
    from windrow._async.transport import AsyncTransport

INLINE_BYTES = 32 << 10


class Response:
    """Status, headers (names in lower case) and the body, which waits in a bounded queue until it is read.

    Whoever doesn't want the rest closes the response; one that is dropped closes itself.
    """

    __slots__ = ("_headers", "body", "connection", "exchange", "status", "transport")

    def __init__(self, transport: AsyncTransport, connection: Connection, exchange: Exchange) -> None:
        self.transport = transport
        self.connection = connection
        self.exchange = exchange
        self.status = exchange.status
        self.body: Body = exchange.body
        self._headers: dict[str, str] | None = None

    @property
    def headers(self) -> dict[str, str]:
        """All header fields."""
        if self._headers is None:
            self._headers = self.exchange.headers
        return self._headers

    @property
    def ended(self) -> bool:
        """Whether the body has arrived as a whole, or never will."""
        return self.body.ended

    async def arrival(self) -> None:
        """Until more of the body is there."""
        body = self.body
        if not body.ended:
            await self.connection.wait()

    async def read(self) -> bytes:
        """The whole body, decompressed."""
        body = self.body
        if not body.ended:
            body.unbound()
            self.connection.read_on(self.exchange)
            self.connection.until_end = True
            try:
                while not body.ended:
                    await self.connection.wait()
            except BaseException:
                self.abandon()
                raise
        try:
            if body.compressed and body.buffered > INLINE_BYTES:
                loop = asyncio.get_running_loop()
                return await loop.run_in_executor(self.transport.workers.executor, body.read_all)
            return body.read_all()
        except BodyError as error:
            raise self.explained(error) from error

    async def read_some(self, max_bytes: int = 1 << 20) -> bytes:
        """The next part of the body, decompressed; b"" at its end."""
        body = self.body
        while True:
            ended = body.ended
            try:
                if body.compressed and body.buffered > INLINE_BYTES:
                    loop = asyncio.get_running_loop()
                    data = await loop.run_in_executor(self.transport.workers.executor, body.read, max_bytes)
                else:
                    data = body.read(max_bytes)
            except BodyError as error:
                self.abandon()
                raise self.explained(error) from error
            except BaseException:
                self.abandon()
                raise
            if data or ended:
                return data
            try:
                await self.arrival()
            except BaseException:
                self.abandon()
                raise

    def explained(self, error: Exception) -> Exception:
        """The exception for what the body's reader met: ClickHouse's last words, or what happened to the connection."""
        if isinstance(error, BodyError) and not self.exchange.ended and self.connection.error is not None:
            error = self.connection.error
        return broken_body(error, self.body, self.transport.show_errors)

    async def close(self) -> None:
        """Gives up what hasn't arrived: its connection is closed."""
        self.abandon()

    def abandon(self) -> None:
        """As `close`."""
        self.connection.give_up(self.exchange)

    def __del__(self) -> None:
        if not self.exchange.ended and not self.connection.gone:
            try:
                self.connection.loop.call_soon_threadsafe(self.connection.give_up, self.exchange)
            except RuntimeError:
                # The loop is closed, and the connection with it.
                pass
