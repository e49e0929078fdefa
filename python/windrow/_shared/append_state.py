"""How far an append is, and how long it is worth going on: told of what happens, it says what to do.

Threads of the synchronous client share it, so what is counted is counted under a lock; nothing is called under it.
"""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass

# A network that loses a third of all requests loses one of them so often in a row once in forty million times.
MOST_LOSSES = 16
# A server that has no room for the lowest missing batch, or any other, for so long is not going to find it.
PATIENCE_S = 120.0
FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 1.0
LONGEST_ASKED_PAUSE_S = 10.0


@dataclass(frozen=True)
class Acknowledged:
    """Sums of what the server holds."""

    rows: int
    encoded_bytes: int


class AppendState:
    """Counters of one append."""

    def __init__(self) -> None:
        # No further attempt is made at anything.
        self.over = False
        self._lock = threading.Lock()
        self._rows = 0
        self._bytes = 0
        self._last_progress_s = time.monotonic()

    def acknowledged(self, rows: int, encoded_bytes: int) -> Acknowledged:
        """The server holds a batch; the sums so far."""
        with self._lock:
            self._rows += rows
            self._bytes += encoded_bytes
            self._last_progress_s = time.monotonic()
            return Acknowledged(self._rows, self._bytes)

    def pause_after_loss(self, losses: int, reached: bool) -> float | None:
        """Seconds until the next attempt after `losses` answers that didn't come; None to give up.

        `reached`: whether the server has ever answered this append. One that can't even be reached is not waited for.
        """
        if losses >= MOST_LOSSES or not reached:
            return None
        return pause_s(losses)

    def pause_after_refusal(self, refusals: int, retry_after: str | None) -> float | None:
        """The same after an answer that says "not now", which may say when to come back."""
        with self._lock:
            silent_s = time.monotonic() - self._last_progress_s
        if silent_s > PATIENCE_S:
            return None
        if retry_after and retry_after.isdecimal() and len(retry_after) < 6:
            return min(float(retry_after), LONGEST_ASKED_PAUSE_S)
        return pause_s(refusals)


def pause_s(attempts: int) -> float:
    """Longer from attempt to attempt, and not the same for those who failed together."""
    longest_s = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(attempts, 10))
    return longest_s * random.uniform(0.5, 1.0)


class CommitPlaces:
    """How many commits of one client may wait for batches that are still on their way.

    Such a commit occupies a connection. If they took all of them, the batches that they wait for would have none.
    """

    def __init__(self, most_connections: int) -> None:
        self._lock = threading.Lock()
        self._left = most_connections // 2

    def take(self) -> bool:
        """Whether there was a place; it has to be given back."""
        with self._lock:
            if not self._left:
                return False
            self._left -= 1
            return True

    def give_back(self) -> None:
        """After `take`."""
        with self._lock:
            self._left += 1
