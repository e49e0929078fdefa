"""A wall clock that is set forward and back under load, and is another one after each start."""

from __future__ import annotations

import os
from collections.abc import Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest

from chaos.count import drained
from chaos.load import Load, create_tables
from chaos.preload import Clock
from chaos.stage import Apart
from harness.eventually import eventually

SEED = int(os.environ.get("WINDROW_CHAOS_SEED", "1"))
# No step forward is longer than an hour, for which tokens are remembered.
JUMPS_SECONDS = (50 * 60, -2 * 3600, -3 * 3600 // 2)


@pytest.fixture
def clock(tmp_path: Path) -> Clock:
    return Clock(tmp_path / "preloaded")


@pytest.fixture
def stage(tmp_path: Path, clock: Clock) -> Iterator[Apart]:
    started = Apart(tmp_path / "stage", environment=clock.environment)
    create_tables(started.direct, started.language)
    yield started
    started.stop()


def test_a_clock_that_jumps(stage: Apart, clock: Clock) -> None:
    with Load(stage.where, SEED) as load:
        for seconds in JUMPS_SECONDS:
            eventually(load.every_writer_more(2), "every writer is served")
            clock.set(seconds)
            eventually(load.every_writer_more(2), "every writer is served after a jump")
            stage.kill_gateway()
            stage.start_gateway()
            assert abs(gateways_clock(stage) - seconds) < 60, "the gateway does not see the clock that was set for it"
        eventually(load.every_writer_more(2), "every writer is served in the end")
    counted = drained(stage, load)
    print(f"clock set to {', '.join(map(str, JUMPS_SECONDS))} s; {load.figures()}; {counted.line()}")
    counted.check()


def gateways_clock(stage: Apart) -> float:
    """How far the gateway's wall clock is from ours, by its latest log line."""
    said = datetime.fromisoformat(stage.gateway.log_events()[-1]["timestamp"])
    return (said - datetime.now(timezone.utc)).total_seconds()
