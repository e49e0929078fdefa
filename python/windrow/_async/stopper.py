"""Stops queries at the server that nobody waits for any more: KILL QUERY, off the caller's path, bounded in time and
number.

Closing the connection is not enough: ClickHouse notices that only when it writes. What fails here fails in silence; the
query then ends by itself.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

TIMEOUT_S = 5.0
# So long a query that was left may hold its session, until the server has ended it.
HOLDS_SESSION_S = 10.0
MAX_AT_ONCE = 16
STATEMENT = "KILL QUERY WHERE query_id = '{query_id}' ASYNC"


class Stopper:
    """`send` executes one statement; it is called with the statement and a time limit in seconds."""

    def __init__(self, send: Callable[[str, float], Awaitable[object]]) -> None:
        self._send = send
        self._tasks: set[asyncio.Task[object]] = set()
        self._left_at_s: float | None = None

    def stop(self, query_id: str) -> None:
        """Begins to stop the query; returns at once."""
        self.left()
        if not query_id or len(self._tasks) >= MAX_AT_ONCE:
            return
        self.begin(self._stop(query_id))

    def left(self) -> None:
        """A query was left to itself, which the server may still be busy with."""
        self._left_at_s = time.monotonic()

    def has_just_left(self) -> bool:
        """Whether a query that was left may still hold its session."""
        return self._left_at_s is not None and time.monotonic() - self._left_at_s < HOLDS_SESSION_S

    def begin(self, work: Coroutine[Any, Any, object]) -> None:
        """Begins what has to be done beside a caller that doesn't wait; it fails in silence and limits its own time."""
        try:
            task = asyncio.get_running_loop().create_task(work)
        except RuntimeError:  # the loop has ended
            work.close()
            return
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _stop(self, query_id: str) -> None:
        try:
            await self._send(STATEMENT.format(query_id=query_id.replace("\\", "\\\\").replace("'", "\\'")), TIMEOUT_S)
        except Exception:  # noqa: BLE001 - best effort; the caller has its own error already
            pass

    async def close(self) -> None:
        """Waits for what is under way, within the time limit."""
        tasks = [task for task in self._tasks if not task.done()]
        if not tasks:
            return
        await asyncio.wait(tasks, timeout=TIMEOUT_S)
        for task in tasks:
            task.cancel()
