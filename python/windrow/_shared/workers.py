"""The threads on which a client decodes and encodes what is too large for the event loop."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor

MOST_THREADS = 4


class Workers:
    """A few threads, started with the first job."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None
        self._lock = threading.Lock()

    @property
    def executor(self) -> ThreadPoolExecutor:
        """The threads; they are started by their first jobs."""
        executor = self._executor
        if executor is None:
            with self._lock:
                if self._executor is None:
                    count = min(MOST_THREADS, max(2, os.cpu_count() or 2))
                    self._executor = ThreadPoolExecutor(count, "windrow")
                executor = self._executor
        return executor

    def close(self) -> None:
        """Ends the threads as soon as their jobs are done; a later job starts new ones."""
        with self._lock:
            executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(wait=False)
