"""What an append is asked for with, and what it answers."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from windrow._shared.errors import ProgrammingError

AppendProgress = bool | Callable[[int, int], object] | None
Atomic = Literal["all", "partition", "block"]

DEFAULT_CONNECTIONS = 8
DEFAULT_WINDOW_BYTES = 64 << 20
DEFAULT_BATCH_BYTES = 4 << 20
MOST_CONNECTIONS = 256
LEAST_BATCH_BYTES = 1 << 10
MOST_BATCH_BYTES = 1 << 30
LONGEST_HOLD_S = 0.02


@dataclass(frozen=True)
class AppendResult:
    """An append that was committed.

    `rows` and `bytes` (of the batches, encoded) are what the server stored, `seconds` is how long the call took.
    `atomic` says what becomes visible at once: "all", or each "partition" or "block" by itself where ClickHouse allows
    no more.
    """

    id: str
    rows: int
    bytes: int
    batches: int
    seconds: float
    atomic: Atomic


@dataclass(frozen=True)
class AppendFaults:
    """Faults on purpose, for tests: what a bad network would do to the batches of an append, repeatable by `seed`.

    `drop`, `repeat` and `reorder` are probabilities: a request that breaks off in the middle of its body (and is sent
    again), a batch that is sent twice, a batch that is held back while later ones go. Each request waits up to
    `delay_ms` milliseconds.

    >>> AppendFaults(seed=1, drop=0.5).of_attempt(0, 0) == AppendFaults(seed=1, drop=0.5).of_attempt(0, 0)
    True
    """

    seed: int = 0
    delay_ms: float = 0.0
    drop: float = 0.0
    repeat: float = 0.0
    reorder: float = 0.0

    def of_attempt(self, number: int, attempt: int) -> Fault:
        """What happens to the given attempt (from 0) at a batch."""
        # The generator's seed is a text, so that neighbours have nothing in common.
        chance = random.Random(f"{self.seed}/{number}/{attempt}")
        delay_s = chance.random() * self.delay_ms / 1000
        drop, repeat, reorder = (chance.random() < odds for odds in (self.drop, self.repeat, self.reorder))
        if reorder and attempt == 0:
            delay_s += LONGEST_HOLD_S * chance.random()
        return Fault(delay_s, drop, repeat)


@dataclass(frozen=True)
class Fault:
    """What happens to one attempt: seconds that it waits, whether it breaks off, whether it is made twice."""

    delay_s: float = 0.0
    drops: bool = False
    repeats: bool = False


NO_FAULT = Fault()


@dataclass(frozen=True)
class AppendOptions:
    """The arguments of an append, checked."""

    connections: int
    window_bytes: int
    batch_bytes: int
    columns: tuple[str, ...] | None
    ordered: bool
    faults: AppendFaults | None

    @property
    def lanes(self) -> int:
        """How many batches there may be at once, encoded or on their way."""
        return max(1, min(self.connections, self.window_bytes // self.batch_bytes))

    def fault(self, number: int, attempt: int) -> Fault:
        """What is to go wrong on purpose."""
        return self.faults.of_attempt(number, attempt) if self.faults else NO_FAULT


def checked_options(
    connections: int,
    window_bytes: int,
    batch_bytes: int,
    columns: Sequence[str] | None,
    ordered: bool,
    faults: AppendFaults | None,
) -> AppendOptions:
    """The options; ProgrammingError names the one that can't be."""
    names = None
    if columns is not None:
        if isinstance(columns, str) or not all(isinstance(name, str) for name in columns) or not columns:
            raise ProgrammingError("columns is a list of names, or None for those that the data has")
        names = tuple(columns)
    return AppendOptions(
        _within("connections", connections, 1, MOST_CONNECTIONS),
        _within("window_bytes", window_bytes, LEAST_BATCH_BYTES, 1 << 40),
        _within("batch_bytes", batch_bytes, LEAST_BATCH_BYTES, MOST_BATCH_BYTES),
        names,
        bool(ordered),
        faults,
    )


def _within(name: str, value: Any, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise ProgrammingError(f"{name}={value!r} can't be: it is a whole number from {least} to {most}")
    return value
