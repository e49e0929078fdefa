"""How far a query or an insert is: what a `progress` callback gets, and the line that `progress=True` shows."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, TextIO


@dataclass
class Progress:
    """Counters so far. What is read and written is ClickHouse's word; what is sent and received is this client's."""

    read_rows: int = 0
    read_bytes: int = 0
    total_rows_to_read: int = 0
    written_rows: int = 0
    written_bytes: int = 0
    elapsed_ns: int = 0
    received_rows: int = 0
    sent_rows: int = 0
    finished: bool = False


ProgressOption = bool | Callable[[Progress], object] | None
_COUNTERS = frozenset(field.name for field in fields(Progress)) - {"finished", "received_rows", "sent_rows"}


class ProgressReport:
    """Gathers the counters of one call and hands them on.

    A callback that raises ends the query with that error, since it is raised where the answer is read.
    """

    def __init__(self, option: ProgressOption) -> None:
        self.progress = Progress()
        self._show: Callable[[Progress], object] = option if callable(option) else ProgressLine()

    def on_header(self, text: str) -> None:
        """One X-ClickHouse-Progress."""
        try:
            counters = json.loads(text)
        except ValueError:
            return
        if isinstance(counters, dict):
            self._take(counters)
            self._show(self.progress)

    def on_rows(self, received: int = 0, sent: int = 0) -> None:
        """Rows that came in or went out."""
        self.progress.received_rows += received
        self.progress.sent_rows += sent
        self._show(self.progress)

    def finish(self, summary: dict[str, Any]) -> None:
        """The call has ended well."""
        self._take(summary)
        self.progress.finished = True
        self._show(self.progress)

    def _take(self, counters: dict[str, Any]) -> None:
        for name in _COUNTERS & counters.keys():
            value = str(counters[name])
            if value.isdecimal() and len(value) < 20:
                setattr(self.progress, name, int(value))


class ProgressLine:
    """One line on the error output, written again at most ten times a second."""

    INTERVAL_S = 0.1

    def __init__(self, out: TextIO | None = None) -> None:
        self._out = out or sys.stderr
        self._shown_at_s = 0.0

    def __call__(self, progress: Progress) -> None:
        now_s = time.monotonic()
        if not progress.finished and now_s - self._shown_at_s < self.INTERVAL_S:
            return
        self._shown_at_s = now_s
        words = [f"{progress.read_rows:,} rows read"]
        if progress.total_rows_to_read:
            words[0] += f" of {progress.total_rows_to_read:,}"
        for name, word in (("received_rows", "received"), ("sent_rows", "sent"), ("written_rows", "written")):
            count = getattr(progress, name)
            if count:
                words.append(f"{count:,} {word}")
        self._out.write("\r" + ", ".join(words) + ("\n" if progress.finished else ""))
        self._out.flush()


def report_for(option: ProgressOption) -> ProgressReport | None:
    """The report for a `progress` argument; None when none is wanted."""
    return ProgressReport(option) if option else None
