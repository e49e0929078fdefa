"""One connection on an event loop: bytes go straight from the socket into the parser of the answer.

There is no task per request: whoever sends or reads waits on the connection's one future, or is called back. One timer per
connection serves every limit (silence, the whole exchange, idleness): it is armed for the earliest one and looks, when it
fires, how long there really is to wait. Setting and cancelling a timer for each request would cost more than parsing it.
"""

from __future__ import annotations

import asyncio
import os
import select
import socket
from typing import TYPE_CHECKING, Any, cast

from windrow._core import Exchange
from windrow._shared.http_errors import network_error, timed_out

if TYPE_CHECKING:
    from collections.abc import Callable
    from weakref import WeakMethod

    from windrow._async.transport import AsyncTransport

HEAD, END, FULL = 1, 4, 8
SMALL_BYTES = 32 << 10
MOMENT_S = 0.002
FIRST_BUFFER_BYTES = 64 << 10
LARGE_BUFFER_BYTES = 256 << 10


class Connection(asyncio.BufferedProtocol):
    """A connection and the exchange that it is busy with, if any."""

    __slots__ = (
        "_buffer",
        "_deadline",
        "_last_heard",
        "_moment",
        "_reading_paused",
        "_spoiled",
        "_timer",
        "_timer_at",
        "_view",
        "_waiter",
        "_writing_paused",
        "born",
        "error",
        "exchange",
        "gone",
        "idle_since",
        "idle_until",
        "listener",
        "loop",
        "opening",
        "owner",
        "patient",
        "reused",
        "secure",
        "sent",
        "transport",
        "until_end",
    )

    def __init__(self, owner: AsyncTransport, loop: asyncio.AbstractEventLoop) -> None:
        self.owner = owner
        self.loop = loop
        self.transport: Any = None
        self.exchange: Exchange | None = None
        self.sent = False
        self.error: Exception | None = None
        self.gone = False
        self.reused = False
        self.secure = False
        self.patient = False
        self.until_end = False
        self.opening = False
        self._moment: asyncio.TimerHandle | None = None
        self.born = loop.time()
        self.idle_since = self.born
        self.idle_until = 0.0
        self.listener: WeakMethod[Callable[[], None]] | None = None
        self._buffer = bytearray(FIRST_BUFFER_BYTES)
        self._view = memoryview(self._buffer)
        self._waiter: asyncio.Future[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._timer_at = 0.0
        self._deadline: float | None = None
        self._last_heard = 0.0
        self._reading_paused = False
        self._writing_paused = False
        self._spoiled = False

    # The exchange

    def begin(self, exchange: Exchange, deadline: float | None) -> None:
        """Takes up an exchange; `deadline` is for all of it, on the loop's clock."""
        self.exchange = exchange
        self.sent = False
        self.patient = False
        self.until_end = False
        self.opening = True
        self._deadline = deadline
        self._last_heard = now = self.loop.time()
        self._arm(self._limit(now))

    def request_sent(self) -> None:
        """The request is out as a whole: the connection is free when the answer is whole."""
        self.sent = True
        if self.exchange is not None and self.exchange.ended:
            self._finish()

    def sending_stopped(self) -> None:
        """The answer came before the request was out: after it, there is half a request in the connection."""
        self._spoiled = True
        self.request_sent()

    def heard(self) -> None:
        """Something moved: the silence begins anew."""
        self._last_heard = self.loop.time()

    async def wait(self) -> None:
        """Until something happens: more of the answer, room for writing, or the end of the connection.

        When the answer is whole, the connection may belong to somebody else by the time that the caller runs again: what the
        caller looks at then is its exchange.
        """
        waiter = self._waiter = self.loop.create_future()
        try:
            await waiter
        finally:
            if self._waiter is waiter:
                self._waiter = None

    async def writable(self) -> None:
        """Until there is room for writing, or an answer, or the connection is gone."""
        exchange = self.exchange
        while self._writing_paused and not self.gone and exchange is not None and not exchange.status:
            await self.wait()

    def abort(self) -> None:
        """Closes at once; what was going on is lost."""
        if self.exchange is not None and self.exchange.status:
            self.exchange.body.fail("the connection was closed")
        self._leave()
        if self.transport is not None:
            self.transport.abort()

    def give_up(self, exchange: Exchange) -> None:
        """Closes at once, unless this exchange is over: then the connection may be somebody else's already."""
        if self.exchange is exchange:
            self.abort()

    def fail(self, error: Exception) -> None:
        """Closes at once, for a reason that those who wait are told."""
        if self.error is None:
            self.error = error
        if self.exchange is not None and self.exchange.status:
            self.exchange.body.fail(str(error.__cause__ or error))
        self.abort()
        wake(self._waiter, self.listener)

    def hang_up(self) -> None:
        """Tells the server of the end when the loop is closed, and can't: its transport is closed when it is collected."""
        try:
            with socket.socket(fileno=os.dup(self.transport.get_extra_info("socket").fileno())) as copy:
                copy.shutdown(socket.SHUT_RDWR)
        except OSError:
            # The server was first, or the loop has closed it.
            pass

    def _finish(self) -> None:
        exchange, self.exchange = self.exchange, None
        if exchange is None:
            return
        self.reused = True
        self.opening = False
        self._deadline = None
        if self._moment is not None:
            self._moment.cancel()
            self._moment = None
        self.listener = None
        if exchange.keep_alive and not self.gone and not self._spoiled:
            self.owner.release(self, exchange.keep_alive_s)
        else:
            self.abort()

    def _leave(self) -> None:
        if self.gone:
            return
        self.gone = True
        for timer in (self._timer, self._moment):
            if timer is not None:
                timer.cancel()
        self._timer = self._moment = None
        self.owner.forget(self)

    # What the event loop calls

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        if self.gone:
            self.transport.abort()

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._view

    def buffer_updated(self, nbytes: int) -> None:
        exchange = self.exchange
        if exchange is None or self.gone:
            # Nobody asked: the connection can't be trusted with a question any more.
            self.abort()
            return
        self._last_heard = self.loop.time()
        try:
            flags = exchange.feed_from(self._buffer, nbytes)
        except Exception as error:
            self.fail(network_error(error, "sent", self.owner.show_errors, self.owner.options.authority))
            return
        if not flags:
            return
        if self.sent and not flags & (END | FULL) and self._may_wait(flags, exchange):
            return
        waiter, listener = self._waiter, self.listener
        if flags & END:
            if self.sent:
                self._finish()
        elif flags & FULL:
            self._pause_reading(exchange)
        if nbytes == FIRST_BUFFER_BYTES:
            self._buffer = bytearray(LARGE_BUFFER_BYTES)
            self._view = memoryview(self._buffer)
        wake(waiter, listener)

    def _may_wait(self, flags: int, exchange: Exchange) -> bool:
        """Servers send small answers in several pieces, and who is woken for each pays for each.

        The head alone wakes nobody, nor do the first bytes behind it for a moment, in which the rest comes as a rule.
        """
        if flags == HEAD or self.until_end:
            return True
        if not self.opening or exchange.body.buffered > SMALL_BYTES:
            return False
        if self._moment is None:
            self._moment = self.loop.call_later(MOMENT_S, self._moment_passed)
        return True

    def _moment_passed(self) -> None:
        self._moment = None
        if self.opening:
            wake(self._waiter, self.listener)

    def eof_received(self) -> bool | None:
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        exchange = self.exchange
        self._leave()
        if exchange is not None and not exchange.ended and self.error is None:
            if exc is not None and not self.secure:
                self._read_what_is_left(exchange)
            if not exchange.ended:
                self._end_of_connection(exchange, exc)
        self._writing_paused = False
        wake(self._waiter, self.listener)

    def pause_writing(self) -> None:
        self._writing_paused = True

    def resume_writing(self) -> None:
        self._writing_paused = False
        self.heard()
        if not self.sent:
            wake(self._waiter, self.listener)

    def _read_what_is_left(self, exchange: Exchange) -> None:
        """A server that refuses a body answers and closes; the answer is in the socket when writing fails."""
        try:
            descriptor = self.transport.get_extra_info("socket").fileno()
            while not exchange.ended:
                data = os.read(descriptor, FIRST_BUFFER_BYTES)
                if not data:
                    return
                exchange.feed(data)
        except Exception:
            # There is nothing left, or it is no answer: the connection's own error tells more.
            return

    def _end_of_connection(self, exchange: Exchange, exc: Exception | None) -> None:
        try:
            exchange.eof()
        except Exception as error:
            cause = exc if exc is not None and not exchange.received else error
            self.error = network_error(cause, "sent", self.owner.show_errors, self.owner.options.authority)

    # Back-pressure of the reader

    def _pause_reading(self, exchange: Exchange) -> None:
        if not self._reading_paused:
            self._reading_paused = True
            self.transport.pause_reading()
            exchange.body.on_drained(self._drained)

    def read_on(self, exchange: Exchange) -> None:
        """The body may grow as it likes from now on: if it was too large already, nobody takes anything out of it."""
        if self.exchange is exchange:
            self._resume_reading()

    def _drained(self) -> None:
        try:
            self.loop.call_soon_threadsafe(self._resume_reading)
        except RuntimeError:
            # The loop was closed while a worker still read: there is nothing to resume.
            pass

    def _resume_reading(self) -> None:
        if self._reading_paused:
            self._reading_paused = False
            self.heard()
            if not self.gone:
                self.transport.resume_reading()

    # Limits of time

    def await_reuse(self, idle_s: float) -> None:
        """The connection has nothing to do from now on, and closes after this time."""
        self.idle_until = self.loop.time() + idle_s
        self._arm(self.idle_until)

    def _limit(self, now: float) -> float | None:
        """When the exchange has taken too long, if nothing is heard from now on."""
        limit = self._deadline
        silence_s = self.owner.options.send_receive_timeout_s
        if silence_s:
            waits_for_us = self._reading_paused or self.patient
            silent = (now if waits_for_us else self._last_heard) + silence_s
            limit = silent if limit is None else min(limit, silent)
        return limit

    def _arm(self, when: float | None) -> None:
        if when is None or self.gone:
            return
        if self._timer is not None:
            if self._timer_at <= when:
                return
            self._timer.cancel()
        self._timer_at = when
        self._timer = self.loop.call_at(when, self._look_at_clock)

    def _look_at_clock(self) -> None:
        self._timer = None
        now = self.loop.time()
        if self.exchange is None:
            if self.idle_until <= now:
                self.abort()
            else:
                self._arm(self.idle_until)
            return
        limit = self._limit(now)
        if limit is None or now < limit:
            self._arm(limit)
            return
        silent = self._deadline is None or now < self._deadline
        what = "the server sent nothing" if silent else "the answer was not there"
        patience_s = self.owner.options.send_receive_timeout_s if silent else None
        server = self.owner.options.authority
        self.fail(timed_out(what, patience_s, show=self.owner.show_errors, server=server))

    def lost_while_idle(self) -> bool:
        """Whether a connection that nobody listened to for a while was closed; costs a system call."""
        plain = self.transport.get_extra_info("socket")
        if plain is None or self.transport.is_closing():
            return True
        return is_readable(cast(int, plain.fileno()))


def wake(waiter: asyncio.Future[None] | None, listener: WeakMethod[Callable[[], None]] | None) -> None:
    """Tells whoever waits that something happened."""
    if waiter is not None:
        if not waiter.done():
            waiter.set_result(None)
    elif listener is not None:
        callback = listener()
        if callback is not None:
            callback()


def is_readable(descriptor: int) -> bool:
    """An idle connection has nothing to say: if there is something to read, it is its end."""
    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        return bool(poll.poll(0))
    return bool(select.select([descriptor], [], [], 0)[0])
