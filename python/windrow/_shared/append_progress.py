"""How far an append is: the line that `progress=True` shows, or the caller's function."""

from __future__ import annotations

import sys
import threading
import time
from typing import TextIO

from windrow._shared.append_types import AppendProgress, AppendResult

INTERVAL_S = 0.1


class AppendReport:
    """Hands the sums on, one call at a time; `finish` when all is stored."""

    def __call__(self, rows: int, encoded_bytes: int) -> None:
        """The server has taken so much."""

    def finish(self, result: AppendResult) -> None:
        """All is stored."""


class AppendLine(AppendReport):
    """One line on a terminal, written again at most ten times a second."""

    def __init__(self, out: TextIO) -> None:
        self._out = out
        self._began_s = self._shown_at_s = time.monotonic()
        self._lock = threading.Lock()

    def __call__(self, rows: int, encoded_bytes: int) -> None:
        """See AppendReport."""
        now_s = time.monotonic()
        with self._lock:
            if now_s - self._shown_at_s < INTERVAL_S:
                return
            self._shown_at_s = now_s
        self._show(f"{rows:,} rows, {_size(encoded_bytes)}, {_size(encoded_bytes / (now_s - self._began_s))}/s")

    def finish(self, result: AppendResult) -> None:
        """See AppendReport."""
        self._show(f"{result.rows:,} rows, {_size(result.bytes)}, stored in {result.seconds:.2f} s\n")

    def _show(self, text: str) -> None:
        # Erases what a longer line left.
        self._out.write(f"\r\x1b[K{text}")
        self._out.flush()


class AppendCallback(AppendReport):
    """The caller's function, called by one thread at a time and never with less than before."""

    def __init__(self, function: object) -> None:
        self._function = function
        self._lock = threading.Lock()
        self._most_rows = 0

    def __call__(self, rows: int, encoded_bytes: int) -> None:
        """See AppendReport."""
        with self._lock:
            if rows >= self._most_rows:
                self._most_rows = rows
                self._function(rows, encoded_bytes)  # type: ignore[operator]


def reporter(progress: AppendProgress) -> AppendReport | None:
    """What reports; None when nothing is wanted, or a line was and there is no terminal."""
    if callable(progress):
        return AppendCallback(progress)
    return AppendLine(sys.stderr) if progress and sys.stderr.isatty() else None


def _size(count: float) -> str:
    for unit in ("B", "KB", "MB"):
        if count < 1000:
            return f"{count:.0f} {unit}"
        count /= 1000
    return f"{count:.2f} GB"
