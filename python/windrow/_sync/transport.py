"""The synchronous transport: requests over blocking sockets; one transport serves any number of threads."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterable, Iterator
from typing import Any

from windrow._core import Compressor, Exchange
from windrow._shared.errors import ProgrammingError
from windrow._shared.http_errors import network_error
from windrow._shared.http_options import HttpOptions
from windrow._shared.http_request import Bytes, HeadMaker, Request, byte_count, compressed, pieces_of
from windrow._shared.workers import Workers
from windrow._sync.connection import Connection, dial
from windrow._sync.pool import TRUSTED_IDLE_S, Pool
from windrow._sync.response import Response

ONE_WRITE_BYTES = 64 << 10
PIECE_BYTES = 256 << 10


class SyncTransport:
    """Sends requests to one server."""

    def __init__(self, options: HttpOptions) -> None:
        self.options = options
        self.workers = Workers()
        self._proxy = options.proxy()
        self._context = options.ssl_context()
        self._heads = HeadMaker(options, self._proxy)
        self._headers: list[tuple[str, str]] = []
        self._pool = Pool(options)

    @property
    def show_errors(self) -> bool | str:
        """How much exceptions tell: True, False or "scrub"."""
        return self._pool.show_errors

    @show_errors.setter
    def show_errors(self, show: bool | str) -> None:
        self._pool.show_errors = show

    @property
    def headers(self) -> list[tuple[str, str]]:
        """The fields that every request has; assign a new list to change them."""
        return self._headers

    @headers.setter
    def headers(self, headers: Iterable[tuple[str, str]]) -> None:
        kept = list(headers)
        self._heads.set_headers(kept)
        self._headers = kept

    def statistics(self) -> dict[str, int]:
        """Connections by what they do, and how many requests wait for one."""
        return self._pool.statistics()

    def send(self, request: Request) -> Response:
        """The answer, as soon as its head is there. Errors are OperationalErrors with a `phase`."""
        deadline = None if request.timeout_s is None else time.monotonic() + request.timeout_s
        pieces = pieces_of(request.body)
        if pieces and request.encoding:
            pieces = compressed(pieces, request.encoding)
        length = None if pieces is None else byte_count(pieces)
        head = self._heads.head(request, length)
        while True:
            connection = self._connection(deadline, request)
            reused = connection.reused
            exchange = Exchange(self.options.high_water_bytes, request.on_progress)
            try:
                connection.begin(exchange, deadline)
                self._exchange(connection, exchange, head, pieces, request)
            except BaseException as error:
                self._drop(connection)
                again = reused and request.may_repeat and pieces is not None and not exchange.received
                if again and getattr(error, "phase", "") == "sent":
                    continue
                raise
            return Response(self, connection, exchange)

    def _exchange(
        self, connection: Connection, exchange: Exchange, head: bytes, pieces: list[Any] | None, request: Request
    ) -> None:
        """Sends the request and reads up to the end of the answer's head."""
        try:
            if pieces is None:
                send_made(connection, exchange, head, request)
            else:
                send_pieces(connection, exchange, head, pieces)
        except OSError as error:
            # A server that refuses a body answers and closes; the answer is in the socket when writing fails.
            if isinstance(error, TimeoutError) or not answer_is_there(connection, exchange):
                raise connection.explained(error) from error
        while not exchange.status:
            connection.read()

    def done_with(self, connection: Connection, exchange: Exchange) -> None:
        """The answer is whole, or given up."""
        connection.exchange = None
        connection.reused = True
        if exchange.keep_alive and connection.sent and not connection.gone:
            self._pool.release(connection, exchange.keep_alive_s)
        else:
            self._drop(connection)

    def _drop(self, connection: Connection) -> None:
        connection.close()
        self._pool.forget(connection)

    def _connection(self, deadline: float | None, request: Request) -> Connection:
        while True:
            connection = self._pool.take(deadline)
            if connection is None:
                return self._dialed(deadline)
            try:
                idle_s = time.monotonic() - connection.idle_since
                if idle_s <= TRUSTED_IDLE_S or request.may_repeat or not connection.lost_while_idle():
                    return connection
            except BaseException:
                self._drop(connection)
                raise
            self._drop(connection)

    def _dialed(self, deadline: float | None) -> Connection:
        patience_s = self.options.connect_timeout_s or None
        if deadline is not None:
            left_s = max(0.001, deadline - time.monotonic())
            patience_s = left_s if patience_s is None else min(patience_s, left_s)
        try:
            connection = dial(self.options, self._proxy, self._context, patience_s, self.show_errors)
        except BaseException as error:
            self._pool.give_back_place()
            if isinstance(error, (OSError, EOFError)):
                raise network_error(error, "connect", self.show_errors, self.options.way(self._proxy)) from error
            raise
        self._pool.add(connection)
        return connection

    def close_connections(self) -> None:
        """New requests get new connections; those under way end as they would."""
        self._pool.close_idle()

    def close(self) -> None:
        """Closes what is idle; a later request opens connections anew."""
        self._pool.close_all()
        self.workers.close()

    def force_close(self) -> None:
        """As `close`."""
        self.close()


def send_pieces(connection: Connection, exchange: Exchange, head: bytes, pieces: list[Any]) -> None:
    """Sends a body that is there."""
    if byte_count(pieces) <= ONE_WRITE_BYTES:
        connection.write(b"".join((head, *pieces)) if pieces else head)
        connection.sent = True
        return
    connection.write(head)
    for piece in pieces:
        with memoryview(piece) as whole, whole.cast("B") as view:
            for start in range(0, len(view), PIECE_BYTES):
                if refused(connection, exchange):
                    return
                connection.write(view[start : start + PIECE_BYTES])
    connection.sent = True


def send_made(connection: Connection, exchange: Exchange, head: bytes, request: Request) -> None:
    """Sends a body while it is made; an exception of its maker ends the request."""
    body: Any = request.body
    if hasattr(body, "__aiter__"):
        raise ProgrammingError("An asynchronous iterator needs the asynchronous client")
    maker = iter(body)
    if request.encoding and getattr(body, "encoding", None) != request.encoding:
        maker = compressed_while_made(maker, request.encoding)
    try:
        connection.write(head)
        for piece in maker:
            if refused(connection, exchange):
                return
            if len(piece):
                size = piece.nbytes if isinstance(piece, memoryview) else len(piece)
                connection.write(b"".join((b"%x\r\n" % size, piece, b"\r\n")))
        connection.write(b"0\r\n\r\n")
        connection.sent = True
    finally:
        close = getattr(maker, "close", None)
        if close is not None:
            close()


def refused(connection: Connection, exchange: Exchange) -> bool:
    """Whether the server has answered already, which is an error as a rule: the rest isn't sent then."""
    if not connection.secure and something_to_read(connection.socket):
        connection.read()
    return exchange.ended or exchange.status >= 400


def something_to_read(plain: socket.socket) -> bool:
    """Without taking it."""
    timeout_s = plain.gettimeout()
    try:
        plain.settimeout(0)
        plain.recv(1, socket.MSG_PEEK)
    except BlockingIOError:
        return False
    finally:
        plain.settimeout(timeout_s)
    return True


def answer_is_there(connection: Connection, exchange: Exchange) -> bool:
    """Reads what the server said before it stopped listening."""
    try:
        while not exchange.status:
            connection.read()
    except Exception:
        return False
    return True


def compressed_while_made(maker: Iterator[Bytes], encoding: str) -> Iterator[bytes]:
    """The same body, compressed."""
    compressor = Compressor(encoding)
    for piece in maker:
        yield compressor.step(piece if isinstance(piece, bytes) else bytes(piece))
    yield compressor.finish()
