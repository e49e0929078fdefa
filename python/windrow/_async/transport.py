"""The asynchronous transport: requests over a pool of connections.

A connection is used again as soon as its answer has arrived as a whole, also when nobody has read it yet. Idle ones are used
last in, first out, so that those which aren't needed grow old and close. When all are busy, callers wait in line: a connection
that becomes free goes to the first in line and nowhere else, and whoever is cancelled while it is handed over hands it on.
`_places` counts what may exist: connections, and attempts at them.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypeVar

from windrow._async.connection import Connection
from windrow._async.dialing import dial, within
from windrow._async.response import Response
from windrow._async.sending import send_made, send_pieces
from windrow._core import Exchange
from windrow._shared.errors import OperationalError, ProgrammingError
from windrow._shared.http_errors import network_error, timed_out
from windrow._shared.http_options import HttpOptions
from windrow._shared.http_request import HeadMaker, Request, byte_count, compressed, pieces_of
from windrow._shared.workers import Workers

T = TypeVar("T")

INLINE_COMPRESSION_BYTES = 32 << 10
ONE_WRITE_BYTES = 64 << 10
# A connection that was idle for less is not asked whether it still lives.
TRUSTED_IDLE_S = 1.0
CLOSED_ELSEWHERE = "This client is used by another event loop. Close it there first, or make one client per loop"


class AsyncTransport:
    """Sends requests to one server; belongs to the event loop that uses it first."""

    def __init__(self, options: HttpOptions) -> None:
        self.options = options
        self.workers = Workers()
        self.show_errors: bool | str = True
        self._proxy = options.proxy()
        self._context = options.ssl_context()
        self._heads = HeadMaker(options, self._proxy)
        self._headers: list[tuple[str, str]] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._process = os.getpid()
        self._all: set[Connection] = set()
        self._idle: list[Connection] = []
        self._line: deque[asyncio.Future[Connection | None]] = deque()
        self._places = 0
        self._generation_began = 0.0

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
        idle = len(self._idle)
        waiting = sum(not waiter.done() for waiter in self._line)
        return {"open": len(self._all), "idle": idle, "in_use": self._places - idle, "waiting": waiting}

    # Requests

    async def send(self, request: Request) -> Response:
        """The answer, as soon as its head is there. Errors are OperationalErrors with a `phase`."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._move_to(loop)
        deadline = None if request.timeout_s is None else loop.time() + request.timeout_s
        pieces = pieces_of(request.body)
        if pieces and request.encoding:
            pieces = await self._compressed(pieces, request.encoding)
        length = None if pieces is None else byte_count(pieces)
        head = self._heads.head(request, length)
        while True:
            connection = await self._connection(deadline, request)
            reused = connection.reused
            exchange = Exchange(self.options.high_water_bytes, request.on_progress)
            try:
                connection.begin(exchange, deadline)
                if length is not None and length <= ONE_WRITE_BYTES:
                    connection.transport.write(b"".join((head, *pieces)) if pieces else head)
                    connection.request_sent()
                elif pieces is not None:
                    await send_pieces(connection, exchange, head, pieces)
                else:
                    await send_made(connection, exchange, head, request, self.workers)
                while not exchange.status and not connection.gone:
                    await connection.wait()
            except BaseException:
                connection.give_up(exchange)
                raise
            if exchange.status:
                if not exchange.ended:
                    connection.opening = False
                return Response(self, connection, exchange)
            error = connection.error or network_error(ConnectionError("the client was closed"), "sent", self.show_errors)
            again = reused and request.may_repeat and pieces is not None and not exchange.received
            if not again or getattr(error, "phase", "") == "timeout":
                raise error

    async def _compressed(self, pieces: list[Any], encoding: str) -> list[Any]:
        if byte_count(pieces) <= INLINE_COMPRESSION_BYTES:
            return compressed(pieces, encoding)
        return await self.run(partial(compressed, pieces, encoding))

    async def run(self, job: Callable[[], T]) -> T:
        """The job's result, from a worker thread; which has then nothing left of it to free."""
        results: list[T] = []
        await asyncio.get_running_loop().run_in_executor(self.workers.executor, lambda: results.append(job()))
        return results.pop()

    # The pool

    async def _connection(self, deadline: float | None, request: Request) -> Connection:
        while True:
            if self._idle:
                connection = self._idle.pop()
            elif self._places < self.options.most_connections and not self._line:
                self._places += 1
                return await self._dialed(deadline)
            else:
                given = await self._in_line(deadline)
                if given is None:
                    return await self._dialed(deadline)
                connection = given
            if self._is_usable(connection, request):
                return connection

    def _is_usable(self, connection: Connection, request: Request) -> bool:
        if connection.gone:
            return False
        idle_s = connection.loop.time() - connection.idle_since
        if idle_s > TRUSTED_IDLE_S and not request.may_repeat and connection.lost_while_idle():
            connection.abort()
            return False
        return True

    async def _in_line(self, deadline: float | None) -> Connection | None:
        """A connection, or None: a place for a new one."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Connection | None] = loop.create_future()
        self._line.append(waiter)
        timer = None
        if deadline is not None:
            timer = loop.call_at(deadline, self._give_up, waiter)
        try:
            return await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled() and waiter.exception() is None:
                self._hand_on(waiter.result())
            raise
        finally:
            if timer is not None:
                timer.cancel()
            if waiter in self._line:
                self._line.remove(waiter)

    def _give_up(self, waiter: asyncio.Future[Connection | None]) -> None:
        if not waiter.done():
            waiter.set_exception(timed_out("no connection became free in time", None, show=self.show_errors))

    def _hand_on(self, connection: Connection | None) -> None:
        if connection is None:
            self._places -= 1
            self._offer_place()
        elif not connection.gone:
            self._offer(connection)

    async def _dialed(self, deadline: float | None) -> Connection:
        """A new connection on a place that the caller has taken."""
        loop = asyncio.get_running_loop()
        patience_s = self.options.connect_timeout_s or None
        if deadline is not None:
            left_s = max(0.0, deadline - loop.time())
            patience_s = left_s if patience_s is None else min(patience_s, left_s)
        made: list[Connection] = []

        def make() -> Connection:
            made.append(Connection(self, loop))
            return made[-1]

        try:
            connection = await within(dial(make, self.options, self._proxy, self._context), patience_s)
        except BaseException as error:
            # An attempt has one place, however many addresses it tried.
            for attempt in made:
                attempt.gone = True
                if attempt.transport is not None:
                    attempt.transport.abort()
            self._places -= 1
            self._offer_place()
            if isinstance(error, (OSError, asyncio.TimeoutError, EOFError, OperationalError)):
                raise network_error(error, "connect", self.show_errors, self.options.way(self._proxy)) from error
            raise
        if connection.gone:
            self._places -= 1
            self._offer_place()
            closed = ConnectionError("the server closed the connection")
            raise network_error(closed, "connect", self.show_errors, self.options.way(self._proxy))
        self._all.add(connection)
        return connection

    def release(self, connection: Connection, server_keeps_s: int | None) -> None:
        """The connection's answer is whole: others may use it."""
        now = connection.loop.time()
        age_s = self.options.max_connection_age_s
        if connection.born < self._generation_began or (age_s and now - connection.born > age_s):
            connection.abort()
            return
        connection.idle_since = now
        idle_s = self.options.keepalive_timeout_s
        if server_keeps_s is not None:
            # Not up to the last second: its end and the next request would cross on their ways.
            idle_s = min(idle_s, max(server_keeps_s - 1, 0.5))
        connection.await_reuse(idle_s)
        self._offer(connection)

    def _offer(self, connection: Connection) -> None:
        while self._line:
            waiter = self._line.popleft()
            if not waiter.done():
                waiter.set_result(connection)
                return
        self._idle.append(connection)

    def forget(self, connection: Connection) -> None:
        """The connection is gone."""
        if connection not in self._all:
            return
        self._all.discard(connection)
        if connection in self._idle:
            self._idle.remove(connection)
        self._places -= 1
        self._offer_place()

    def _offer_place(self) -> None:
        while self._line and self._places < self.options.most_connections:
            waiter = self._line.popleft()
            if not waiter.done():
                self._places += 1
                waiter.set_result(None)

    # The end

    async def close_connections(self) -> None:
        """New requests get new connections; those under way end as they would."""
        self._generation_began = asyncio.get_running_loop().time()
        for connection in list(self._idle):
            connection.abort()
        await asyncio.sleep(0)

    async def close(self) -> None:
        """Closes everything; requests under way fail. A later request opens connections anew."""
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._move_to(loop)
        lost = network_error(ConnectionError("the client was closed"), "connect", self.show_errors)
        while self._line:
            waiter = self._line.popleft()
            if not waiter.done():
                waiter.set_exception(lost)
        for connection in list(self._all):
            connection.fail(network_error(ConnectionError("the client was closed"), "sent", self.show_errors))
        self.workers.close()
        # The sockets themselves are closed by the loop's next turns.
        for _ in range(3):
            await asyncio.sleep(0)

    def force_close(self) -> None:
        """As `close`, for where nothing can be awaited."""
        for connection in list(self._all):
            connection.abort()
        self.workers.close()

    def _move_to(self, loop: asyncio.AbstractEventLoop) -> None:
        old = self._loop
        if old is not None and not old.is_closed() and self._process == os.getpid() and (self._all or self._places):
            raise ProgrammingError(CLOSED_ELSEWHERE)
        if self._process == os.getpid():
            for connection in self._all:
                connection.hang_up()
        self._all.clear()
        self._idle.clear()
        self._line.clear()
        self._places = 0
        self._process = os.getpid()
        self._loop = loop
