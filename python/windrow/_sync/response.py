"""An answer whose head is there and whose body is on its way."""

from __future__ import annotations

from typing import TYPE_CHECKING

from windrow._core import Body, BodyError, Exchange
from windrow._shared.errors import OperationalError
from windrow._shared.http_errors import broken_body

if TYPE_CHECKING:
    from windrow._sync.connection import Connection
    from windrow._sync.transport import SyncTransport


class Response:
    """Status, headers (names in lower case) and the body; the network is read when the body is.

    Whoever doesn't want the rest closes the response; one that is dropped closes itself.
    """

    __slots__ = ("_error", "_headers", "_released", "body", "connection", "exchange", "status", "transport")

    def __init__(self, transport: SyncTransport, connection: Connection, exchange: Exchange) -> None:
        self.transport = transport
        self.connection = connection
        self.exchange = exchange
        self.status = exchange.status
        self.body: Body = exchange.body
        self._headers: dict[str, str] | None = None
        self._released = False
        self._error: OperationalError | None = None
        if exchange.ended:
            self._release()

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

    def arrival(self) -> None:
        """Until more of the body is there, or it broke off, which its reader is told."""
        if self.body.ended:
            return
        try:
            self.connection.read()
        except OperationalError as error:
            self._error = error
            self._release()
        except BaseException:
            self.abandon()
            raise
        if self.exchange.ended:
            self._release()

    def read(self) -> bytes:
        """The whole body, decompressed."""
        while not self.body.ended:
            self.arrival()
        try:
            return self.body.read_all()
        except BodyError as error:
            raise self.explained(error) from error

    def read_some(self, max_bytes: int = 1 << 20) -> bytes:
        """The next part of the body, decompressed; b"" at its end."""
        while True:
            ended = self.body.ended
            try:
                data = self.body.read(max_bytes)
            except BodyError as error:
                self.abandon()
                raise self.explained(error) from error
            if data or ended:
                return data
            self.arrival()

    def explained(self, error: Exception) -> Exception:
        """The exception for what the body's reader met: ClickHouse's last words, or what happened to the connection."""
        if isinstance(error, BodyError) and self._error is not None:
            error = self._error
        return broken_body(error, self.body, self.transport.show_errors)

    def close(self) -> None:
        """Gives up what hasn't arrived: its connection is closed."""
        self.abandon()

    def abandon(self) -> None:
        """As `close`."""
        if not self._released:
            self.body.fail("the connection was closed")
            self.connection.close()
            self._release()

    def _release(self) -> None:
        if self._released:
            return
        self._released = True
        self.transport.done_with(self.connection, self.exchange)
