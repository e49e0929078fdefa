"""kill -9 of the gateway, of the engine, and of both, at random moments under load."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from chaos.kinds import KINDS, SPREAD_KINDS, TEXT_FORMATS
from chaos.language import Spread
from chaos.rounds import Rounds
from chaos.stage import Apart, BehindAdbc, Embedded, InProcess, Stage

# A quarter of them with an embedded engine, one with an engine apart, one with DuckDB, one with PostgreSQL; or all with one of them.
ROUNDS = int(os.environ.get("WINDROW_CHAOS_ROUNDS", "8"))
BACKEND = os.environ.get("WINDROW_CHAOS_BACKEND", "")
STAGES = {"embedded": Embedded, "apart": Apart, "duckdb": InProcess, "postgresql": BehindAdbc}
CHOSEN = [STAGES[BACKEND]] if BACKEND else list(STAGES.values())
SEED = int(os.environ.get("WINDROW_CHAOS_SEED", "1"))


@pytest.fixture(params=CHOSEN)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    started: Callable[[Path], Stage] = request.param
    running = started(tmp_path / "stage")
    yield running
    running.stop()


# Its integers have other widths than the load's.
TEXT_KINDS = tuple(replace(kind, formats=TEXT_FORMATS) for kind in KINDS)


def test_nothing_acknowledged_is_lost_or_doubled(stage: Stage) -> None:
    rounds = max(1, ROUNDS // len(CHOSEN))
    print(f"seed {SEED}, {rounds} rounds with {type(stage).__name__}")
    kinds = TEXT_KINDS if isinstance(stage, BehindAdbc) else KINDS
    Rounds(stage, SEED, kinds).run(rounds)


# With twenty writers, enough for every table to have been inserted into.
INTO_ALL = 15
SPREAD = [stage for stage in CHOSEN if stage not in (InProcess, BehindAdbc)]


@pytest.mark.parametrize("stage", SPREAD, indirect=True)
def test_nothing_is_lost_or_doubled_in_hundreds_of_tables(stage: Stage) -> None:
    """Each insert goes into another table than the one before it, so that at any kill there is something of every table under way."""
    stage.language = Spread()
    rounds = max(1, ROUNDS // (3 * len(CHOSEN)))
    print(f"seed {SEED}, {rounds} rounds with {type(stage).__name__}")
    Rounds(stage, SEED, SPREAD_KINDS, INTO_ALL).run(rounds)
