"""kill -9 of the gateway, of the engine, and of both, at random moments under load."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaos.rounds import Rounds
from chaos.stage import Apart, Embedded, Stage

# Half of them with an embedded engine, half with one apart.
ROUNDS = int(os.environ.get("WINDROW_CHAOS_ROUNDS", "4"))
SEED = int(os.environ.get("WINDROW_CHAOS_SEED", "1"))


@pytest.fixture(params=[Embedded, Apart])
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    started: Callable[[Path], Stage] = request.param
    running = started(tmp_path / "stage")
    yield running
    running.stop()


def test_nothing_acknowledged_is_lost_or_doubled(stage: Stage) -> None:
    print(f"seed {SEED}, {ROUNDS // 2} rounds with {type(stage).__name__}")
    Rounds(stage, SEED).run(ROUNDS // 2)
