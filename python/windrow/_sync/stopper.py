"""Stops queries at the server that nobody waits for any more; see windrow/_async/stopper.py. Here on short-lived
threads.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

TIMEOUT_S = 5.0
# So long a query that was left may hold its session, until the server has ended it.
HOLDS_SESSION_S = 10.0
MAX_AT_ONCE = 16
STATEMENT = "KILL QUERY WHERE query_id = '{query_id}' ASYNC"


class Stopper:
    """`send` executes one statement; it is called with the statement and a time limit in seconds."""

    def __init__(self, send: Callable[[str, float], object]) -> None:
        self._send = send
        self._threads: set[threading.Thread] = set()
        self._left_at_s: float | None = None

    def stop(self, query_id: str) -> None:
        """Begins to stop the query; returns at once."""
        self.left()
        self._threads = {thread for thread in self._threads if thread.is_alive()}
        if not query_id or len(self._threads) >= MAX_AT_ONCE:
            return
        thread = threading.Thread(target=self._stop, args=(query_id,), name="windrow-stopper", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the interpreter shuts down
            return
        self._threads.add(thread)

    def left(self) -> None:
        """A query was left to itself, which the server may still be busy with."""
        self._left_at_s = time.monotonic()

    def has_just_left(self) -> bool:
        """Whether a query that was left may still hold its session."""
        return self._left_at_s is not None and time.monotonic() - self._left_at_s < HOLDS_SESSION_S

    def _stop(self, query_id: str) -> None:
        try:
            self._send(STATEMENT.format(query_id=query_id.replace("\\", "\\\\").replace("'", "\\'")), TIMEOUT_S)
        except Exception:  # noqa: BLE001 - best effort; the caller has its own error already
            pass

    def close(self) -> None:
        """Waits for what is under way, within the time limit."""
        until_s = time.monotonic() + TIMEOUT_S
        for thread in list(self._threads):
            thread.join(max(0.0, until_s - time.monotonic()))
