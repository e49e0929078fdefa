"""Waiting for a condition instead of sleeping for a guess."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")
POLL_SECONDS = 0.02


def eventually(probe: Callable[[], T], what: str, deadline_seconds: float = 180.0) -> T:
    """Calls `probe` until it answers something true, and returns that; fails with its last answer otherwise.

    The deadline only bounds a failure: a passing test never depends on its length.
    """
    end = time.monotonic() + deadline_seconds
    while True:
        last = probe()
        if last:
            return last
        if time.monotonic() > end:
            raise AssertionError(f"waited {deadline_seconds:.0f} s in vain: {what}; last seen: {last!r}")
        time.sleep(POLL_SECONDS)
