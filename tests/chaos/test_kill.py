"""kill -9 of the gateway, of the engine, and of both, at random moments under load."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaos.kinds import SPREAD_KINDS
from chaos.language import Spread
from chaos.rounds import Rounds
from chaos.stage import Apart, Embedded, InProcess, Stage

# A third of them with an embedded engine, one with an engine apart, one with DuckDB; or all with one of them.
ROUNDS = int(os.environ.get("WINDROW_CHAOS_ROUNDS", "6"))
BACKEND = os.environ.get("WINDROW_CHAOS_BACKEND", "")
STAGES = {"embedded": Embedded, "apart": Apart, "duckdb": InProcess}
CHOSEN = [STAGES[BACKEND]] if BACKEND else list(STAGES.values())
SEED = int(os.environ.get("WINDROW_CHAOS_SEED", "1"))


@pytest.fixture(params=CHOSEN)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    started: Callable[[Path], Stage] = request.param
    running = started(tmp_path / "stage")
    yield running
    running.stop()


def test_nothing_acknowledged_is_lost_or_doubled(stage: Stage) -> None:
    rounds = max(1, ROUNDS // len(CHOSEN))
    print(f"seed {SEED}, {rounds} rounds with {type(stage).__name__}")
    Rounds(stage, SEED).run(rounds)


# With twenty writers, enough for every table to have been inserted into.
INTO_ALL = 15
SPREAD = [stage for stage in CHOSEN if stage is not InProcess]


@pytest.mark.parametrize("stage", SPREAD, indirect=True)
def test_nothing_is_lost_or_doubled_in_hundreds_of_tables(stage: Stage) -> None:
    """Each insert goes into another table than the one before it, so that at any kill there is something of every table under way."""
    stage.language = Spread()
    rounds = max(1, ROUNDS // (3 * len(CHOSEN)))
    print(f"seed {SEED}, {rounds} rounds with {type(stage).__name__}")
    Rounds(stage, SEED, SPREAD_KINDS, INTO_ALL).run(rounds)
