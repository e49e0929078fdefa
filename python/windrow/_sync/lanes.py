"""Jobs side by side, of which the first failure ends all; see windrow/_async/lanes.py. Here on threads.

A thread can't be stopped from outside: after a failure no new job is started, and those under way are waited for. What they
wait for has to be ended by the one that failed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


class Lanes:
    """At most `most` jobs at a time. Whoever starts them waits for room, or for the end, and is told of a failure there."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._threads = ThreadPoolExecutor(most, "windrow-append")
        self._changed = threading.Condition()
        self._under_way = 0
        self.failure: Exception | None = None

    def start(self, job: Callable[[], None]) -> None:
        """Starts a job as soon as there is room for it. Raises what a job has failed with."""
        with self._changed:
            self._until(lambda: self._under_way < self._most)
            self._under_way += 1
        self._threads.submit(self._run, job)

    def ended(self) -> None:
        """Until every job is done. Raises what one has failed with."""
        with self._changed:
            self._until(lambda: not self._under_way)

    def beside(self, result: T) -> T:
        """What was worked out while the jobs went on. Raises what one has failed with."""
        with self._changed:
            if self.failure is not None:
                raise self.failure
        return result

    def failed(self, error: Exception) -> bool:
        """Whether a job that fails has to end what the others wait for: the first one has."""
        with self._changed:
            if self.failure is not None:
                return False
            self.failure = error
            self._changed.notify_all()
            return True

    def stop(self) -> None:
        """Waits for the jobs that are still under way."""
        self._threads.shutdown(wait=True)

    def _until(self, holds: Callable[[], bool]) -> None:
        self._changed.wait_for(lambda: self.failure is not None or holds())
        if self.failure is not None:
            raise self.failure

    def _run(self, job: Callable[[], None]) -> None:
        try:
            job()
        except Exception as error:
            self.failed(error)
        finally:
            with self._changed:
                self._under_way -= 1
                self._changed.notify_all()
