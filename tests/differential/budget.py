"""How many cases a test makes, and from which seed."""

from __future__ import annotations

import os
import random

SEED = int(os.environ.get("WINDROW_DIFFERENTIAL_SEED", "20261"))
# Multiplies the number of cases of every test.
CASES = float(os.environ.get("WINDROW_DIFFERENTIAL_CASES", "1"))


def generator(*names: str) -> random.Random:
    """Of each test its own, so that a test repeats whichever others run."""
    return random.Random(":".join((str(SEED), *names)))


def scaled(cases: int) -> int:
    return max(1, round(cases * CASES))
