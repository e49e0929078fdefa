"""Jobs side by side, of which the first failure ends all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


class Lanes:
    """At most `most` jobs at a time. Whoever starts them waits for room, or for the end, and is told of a failure there."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._tasks: set[asyncio.Task[None]] = set()
        self.failure: Exception | None = None
        self._waiter: asyncio.Future[None] | None = None

    async def start(self, job: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Starts a job as soon as there is room for it. Raises what a job has failed with."""
        await self._until(lambda: len(self._tasks) < self._most)
        task = asyncio.get_running_loop().create_task(job())
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    async def ended(self) -> None:
        """Until every job is done. Raises what one has failed with."""
        await self._until(lambda: not self._tasks)

    async def beside(self, work: Awaitable[T]) -> T:
        """The work's result, unless a job fails before: then the work is cancelled, and that failure raised."""
        task = asyncio.ensure_future(work)
        task.add_done_callback(self._wake)
        try:
            await self._until(task.done)
            return task.result()
        finally:
            await _cancelled([task])

    def failed(self, error: Exception) -> bool:
        """Whether a job that fails has to end what the others wait for: not here, where they are cancelled."""
        return False

    async def stop(self) -> None:
        """Ends the jobs that are still under way, whatever they do."""
        await _cancelled(list(self._tasks))

    async def _until(self, holds: Callable[[], bool]) -> None:
        while self.failure is None and not holds():
            self._waiter = asyncio.get_running_loop().create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        if self.failure is not None:
            raise self.failure

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if isinstance(error, Exception) and self.failure is None:
            self.failure = error
        self._wake(task)

    def _wake(self, _: object) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


async def _cancelled(tasks: list[Any]) -> None:
    """Cancels what isn't done, and waits for its end."""
    unfinished = [task for task in tasks if not task.done()]
    for task in unfinished:
        task.cancel()
    if unfinished:
        await asyncio.wait(unfinished)
    for task in tasks:
        # What it failed with has been told by another, and must not be reported as if nobody had asked.
        if task.done() and not task.cancelled():
            task.exception()
