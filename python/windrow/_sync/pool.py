"""Which connections there are, and whose turn it is: shared by all threads that use one client.

As in the asynchronous transport: idle connections are used last in, first out; when all are busy, threads wait in line, and
what becomes free goes to the first of them and nowhere else.

The pool holds idle connections only. A busy one belongs to whoever uses it: if it is dropped without a word (an answer that
nobody read to its end, an interrupt at the wrong moment), its finaliser gives its place back. Finalisers run anywhere, also
within the pool's own lock, so they leave a note, which is read by whoever lets go of the lock next.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable

from windrow._shared.http_errors import network_error, timed_out
from windrow._shared.http_options import HttpOptions
from windrow._sync.connection import Connection

# A connection that was idle for less is not asked whether it still lives.
TRUSTED_IDLE_S = 1.0


class Turn:
    """A place in the line; what it is given is a connection, or a place for a new one."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.connection: Connection | None = None
        self.refused: Exception | None = None


class Guard:
    """A lock whose release looks at what finalisers left."""

    def __init__(self, clean: Callable[[], None]) -> None:
        self._lock = threading.Lock()
        self._clean = clean

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()
        self._clean()

    def try_enter(self) -> bool:
        """Without waiting."""
        return self._lock.acquire(blocking=False)

    def leave(self) -> None:
        """After `try_enter`; without a look."""
        self._lock.release()


class Pool:
    """The connections of one transport."""

    def __init__(self, options: HttpOptions) -> None:
        self.options = options
        self.show_errors: bool | str = True
        self._begin()
        _pools.add(self)

    def _begin(self) -> None:
        self._lock = Guard(self._clean)
        self._notes: deque[None] = deque()
        self._all: weakref.WeakSet[Connection] = weakref.WeakSet()
        self._idle: list[Connection] = []
        self._line: deque[Turn] = deque()
        self._places = 0
        self._generation_began = 0.0

    def statistics(self) -> dict[str, int]:
        """Connections by what they do, and how many requests wait for one."""
        with self._lock:
            idle, waiting = len(self._idle), len(self._line)
            return {"open": len(self._all), "idle": idle, "in_use": self._places - idle, "waiting": waiting}

    def take(self, deadline: float | None) -> Connection | None:
        """A connection, or None: a place for a new one, which has to be added or given back."""
        while True:
            with self._lock:
                self._close_old_ones()
                if self._idle:
                    return self._idle.pop()
                if self._places < self.options.most_connections and not self._line:
                    self._places += 1
                    return None
                turn = Turn()
                self._line.append(turn)
            connection = self._wait(turn, deadline)
            if connection is None or not connection.gone:
                return connection

    def _wait(self, turn: Turn, deadline: float | None) -> Connection | None:
        try:
            left_s = None if deadline is None else max(0.0, deadline - time.monotonic())
            turn.event.wait(left_s)
        except BaseException:
            self._leave_line(turn)
            raise
        with self._lock:
            if not turn.event.is_set():
                self._line.remove(turn)
                turn.refused = timed_out("no connection became free in time", None, show=self.show_errors)
        if turn.refused is not None:
            raise turn.refused
        return turn.connection

    def _leave_line(self, turn: Turn) -> None:
        """Interrupted: what was given meanwhile goes to the next."""
        with self._lock:
            if not turn.event.is_set():
                self._line.remove(turn)
            elif turn.connection is not None and not turn.connection.gone:
                self._offer(turn.connection)
            elif turn.connection is None and turn.refused is None:
                self._places -= 1
                self._offer_place()

    def add(self, connection: Connection) -> None:
        """A new connection on a place that was taken."""
        with self._lock:
            connection.on_dropped = self._dropped
            self._all.add(connection)

    def _dropped(self) -> None:
        """From a finaliser: the place of a connection that nobody has any more."""
        self._notes.append(None)
        self._clean()

    def _clean(self) -> None:
        while self._notes and self._lock.try_enter():
            try:
                while self._notes:
                    self._notes.popleft()
                    self._places -= 1
                    self._offer_place()
            finally:
                self._lock.leave()

    def give_back_place(self) -> None:
        """The place that was taken isn't needed."""
        with self._lock:
            self._places -= 1
            self._offer_place()

    def release(self, connection: Connection, server_keeps_s: int | None) -> None:
        """The connection's answer is whole: others may use it."""
        now = time.monotonic()
        age_s = self.options.max_connection_age_s
        if connection.born < self._generation_began or (age_s and now - connection.born > age_s):
            connection.close()
            self.forget(connection)
            return
        idle_s = self.options.keepalive_timeout_s
        if server_keeps_s is not None:
            # Not up to the last second: its end and the next request would cross on their ways.
            idle_s = min(idle_s, max(server_keeps_s - 1, 0.5))
        connection.idle_since, connection.idle_until = now, now + idle_s
        with self._lock:
            if connection.on_dropped is not None:
                self._offer(connection)

    def forget(self, connection: Connection) -> None:
        """The connection is gone."""
        with self._lock:
            self._forget(connection)

    def _forget(self, connection: Connection) -> None:
        if connection.on_dropped is not None:
            connection.on_dropped = None
            self._all.discard(connection)
            if connection in self._idle:
                self._idle.remove(connection)
            self._places -= 1
            self._offer_place()

    def _close_old_ones(self) -> None:
        """There is no timer here: those that were idle for too long are closed when somebody comes by."""
        now = time.monotonic()
        while self._idle and self._idle[0].idle_until <= now:
            connection = self._idle[0]
            connection.close()
            self._forget(connection)

    def _offer(self, connection: Connection) -> None:
        if self._line:
            turn = self._line.popleft()
            turn.connection = connection
            turn.event.set()
        else:
            self._idle.append(connection)

    def _offer_place(self) -> None:
        if self._line and self._places < self.options.most_connections:
            self._places += 1
            self._line.popleft().event.set()

    def close_idle(self) -> None:
        """New requests get new connections; those under way end as they would."""
        with self._lock:
            self._generation_began = time.monotonic()
            for connection in list(self._idle):
                connection.close()
                self._forget(connection)

    def close_all(self) -> None:
        """Idle connections are closed, those who wait are refused; requests under way in other threads end as they would."""
        with self._lock:
            while self._line:
                turn = self._line.popleft()
                turn.refused = network_error(ConnectionError("the client was closed"), "connect", self.show_errors)
                turn.event.set()
        self.close_idle()

    def _after_fork(self) -> None:
        """The sockets are the parent's: closing these copies of them sends nothing (TLS is not shut down)."""
        for connection in list(self._all):
            connection.on_dropped = None
            connection.close()
        self._begin()


_pools: weakref.WeakSet[Pool] = weakref.WeakSet()


def _after_fork() -> None:
    for pool in list(_pools):
        pool._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
