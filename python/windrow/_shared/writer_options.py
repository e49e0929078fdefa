"""Options of a writer, its retries, and what a buffer of one's own has to do.

Everything here is for both writers, the asynchronous and the synchronous one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True)
class Retry:
    """When a batch that failed is sent again: after `first` seconds, then twice as long each time, up to `longest`.

    `attempts` and `total` (seconds since the first failure) say when the writer gives a batch up and hands its rows
    over
    with the error. By default rows in memory are tried for five minutes, rows that survive the process for ever. What
    ClickHouse refuses for good (a row that violates a constraint, say) is not tried again.
    """

    first: float = 0.1
    longest: float = 10.0
    attempts: int | None = None
    total: float | None = None

    def __post_init__(self) -> None:
        if self.first < 0 or self.longest < self.first:
            raise ValueError("Retry: first is not negative, and longest not less than first (both in seconds)")
        if self.attempts is not None and self.attempts < 1:
            raise ValueError("Retry: attempts is at least 1")


@runtime_checkable
class RetryPolicy(Protocol):
    """A policy of one's own, given as `retry=`."""

    def again_after(
        self, code: int | None, message: str, attempts: int, elapsed: float, survives: bool
    ) -> float | None:
        """Seconds until the batch is sent again; None gives it up.

        `code` is ClickHouse's (None: no answer came), `attempts` how many have failed, `elapsed` the seconds since the
        first failure, `survives` whether the buffer does. If it raises, the usual policy decides.
        """
        ...


@runtime_checkable
class Buffer(Protocol):
    """A buffer of one's own, given as `buffer=`: rows wait in it until ClickHouse has stored them.

    It keeps bytes: `rows` is the encoding of some rows, one after the other, and `lengths` the length of each. All
    calls
    come one at a time for `append`, and one at a time for the others, but from any thread. What raises did
    nothing.

    - A batch consists of the `appends` oldest appends that were in no batch yet, and of the same rows for ever.
    - Nothing is forgotten before `done`.
    - What survives the process comes back by `left_overs` at the next start, batches under the same names. Batches are
      bound to the columns that they were written for: keep one buffer for each table and list of columns.
    """

    #: Whether rows survive the end of the process.
    survives: bool

    def append(self, rows: bytes, lengths: list[int]) -> bool:
        """Keeps all of the rows, or answers False: no room now."""
        ...

    def seal(self, batch_id: str, appends: int) -> None:
        """Makes a batch of the oldest appends, and records it before it returns."""
        ...

    def load(self, batch_id: str) -> tuple[bytes, list[int]]:
        """The batch's rows and their lengths."""
        ...

    def split(self, batch_id: str, pieces: list[tuple[str, int]]) -> None:
        """Replaces a batch by new ones: the name of each, and how many of its rows, in order."""
        ...

    def done(self, batch_id: str) -> None:
        """Forgets a batch: its rows are stored, or were handed over with their error."""
        ...

    def left_overs(self) -> list[tuple[str, int]]:
        """Batches of former processes, each told once: name and number of rows. What was in none becomes a new one."""
        ...

    def close(self) -> None:
        """The writer is closed."""
        ...


@dataclass(frozen=True)
class WriterStatistics:
    """What a writer has done since it was opened, and what it holds now."""

    rows_written: int
    rows_stored: int
    #: Rows that were handed over with an error.
    rows_failed: int
    #: Rows that were found of processes that have died.
    rows_left_over: int
    rows_waiting: int
    rows_in_flight: int
    #: What counts for `max_bytes`.
    bytes_held: int
    batches_stored: int
    batches_in_flight: int
    retries: int
    #: Batches that were cut to find the rows that ClickHouse refuses.
    batches_split: int
    #: Errors that nobody took, and for which there was no room any more.
    errors_dropped: int
    damaged_bytes: int
    last_error: str | None


@dataclass(frozen=True)
class WriterOptions:
    """The options of `client.writer(...)`, checked."""

    batch_rows: int = 5000
    batch_bytes: int = 16 * 1024 * 1024
    flush_interval: float = 1.0
    buffer: str | Buffer = field(default="memory", repr=False)  # the address of a Redis holds a password
    max_bytes: int = 256 * 1024 * 1024
    max_in_flight: int = 4
    ordered: bool = False
    wait: bool = False
    retry: Retry | RetryPolicy = field(default_factory=Retry)
    max_errors: int = 1000
    sync: str = "never"
    sync_interval: float = 1.0
    max_disk_bytes: int = 1024 * 1024 * 1024
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("batch_rows", "batch_bytes", "max_bytes", "max_in_flight", "max_errors", "max_disk_bytes"):
            if getattr(self, name) < 1:
                raise ValueError(f"writer: {name} is at least 1")
        if self.flush_interval < 0 or self.sync_interval <= 0:
            raise ValueError("writer: flush_interval and sync_interval are seconds, and not negative")
        if not isinstance(self.buffer, str) and not isinstance(self.buffer, Buffer):
            raise TypeError("writer: buffer is a string or an object with the methods of windrow.Buffer")
        if not isinstance(self.retry, (Retry, RetryPolicy)):
            raise TypeError("writer: retry is a windrow.Retry or an object with a method again_after")

    def for_core(self) -> dict[str, Any]:
        """As the compiled part takes them: in milliseconds, None for its own defaults."""
        options: dict[str, Any] = {
            "batch_rows": self.batch_rows,
            "batch_bytes": self.batch_bytes,
            "flush_interval_ms": round(self.flush_interval * 1000),
            "max_bytes": self.max_bytes,
            "max_in_flight": self.max_in_flight,
            "ordered": self.ordered,
            "wait": self.wait,
            "max_errors": self.max_errors,
            "sync": self.sync,
            "sync_interval_ms": max(1, round(self.sync_interval * 1000)),
            "max_disk_bytes": self.max_disk_bytes,
        }
        if isinstance(self.retry, Retry):
            options["retry_first_ms"] = round(self.retry.first * 1000)
            options["retry_max_ms"] = round(self.retry.longest * 1000)
            options["retry_max_attempts"] = self.retry.attempts
            options["retry_max_elapsed_ms"] = None if self.retry.total is None else round(self.retry.total * 1000)
        else:
            options["retry_policy"] = self.retry
        return options


def column_names(columns: str | Sequence[str] | None) -> list[str] | None:
    """The columns as they were named: a list, or one string with commas; None or `*` for all that take values."""
    if columns is None or (isinstance(columns, str) and columns == "*"):
        return None
    names = [name.strip() for name in columns.split(",")] if isinstance(columns, str) else list(columns)
    if not names or not all(isinstance(name, str) and name for name in names):
        raise ValueError("writer: columns is a list of names, or None for all")
    if len(set(names)) != len(names):
        raise ValueError("writer: a column is named twice")
    return names
