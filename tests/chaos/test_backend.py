"""A backend that hangs, resets, answers half, or is away: nobody's insert is lost, and none is stored twice."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.count import drained
from chaos.kinds import KINDS
from chaos.load import Load
from harness.relay import Fault, Relay
from chaos.stage import Behind
from harness.eventually import eventually

SEED = int(os.environ.get("WINDROW_CHAOS_SEED", "1"))
# `make chaos` takes the two minutes that are promised.
AWAY_SECONDS = float(os.environ.get("WINDROW_CHAOS_AWAY_SECONDS", "3"))
NOT_WAITED_FOR = tuple(kind for kind in KINDS if kind.name.startswith("disk"))


@pytest.fixture
def behind(tmp_path: Path) -> Iterator[Behind]:
    started = Behind(tmp_path, SEED)
    with started.relay:
        yield started
        started.relay.behave()
        started.stop()


# A stalled answer holds up its table, so there won't be many.
FAULTS = {Fault.BROKEN_REQUEST: 3, Fault.LOST_ANSWER: 5, Fault.HALF_ANSWER: 5, Fault.STALLED_ANSWER: 1}
CHANCES = {
    "broken requests": {Fault.BROKEN_REQUEST: 0.1},
    "lost answers": {Fault.LOST_ANSWER: 0.2},
    "half answers": {Fault.HALF_ANSWER: 0.2},
    "stalled answers": {Fault.STALLED_ANSWER: 0.2},
    "everything": {Fault.BROKEN_REQUEST: 0.05, Fault.LOST_ANSWER: 0.1, Fault.HALF_ANSWER: 0.1},
}


@pytest.mark.parametrize("chances", CHANCES.values(), ids=CHANCES.keys())
def test_connections_that_break(behind: Behind, chances: dict[Fault, float]) -> None:
    relay = behind.relay
    with Load(behind.where, SEED) as load:
        eventually(load.every_writer_more(1), "every writer is served")
        relay.misbehave(chances)
        eventually(lambda: all(relay.done[fault] >= FAULTS[fault] for fault in chances), "there are faults of every sort")
        relay.behave()
        eventually(load.every_writer_more(1), "every writer is served again")
    counted = drained(behind, load)
    print(f"{ {fault.name: times for fault, times in relay.done.items()} }, engine fell {behind.falls} times; {load.figures()}; {counted.line()}")
    counted.check()


def test_a_backend_that_hangs(behind: Behind) -> None:
    """Who can be acknowledged without it is, and what was under way is stored once when it goes on."""
    with Load(behind.where, SEED) as load:
        eventually(load.every_writer_more(2), "every writer is served")
        behind.relay.hang()
        without_it = [writer for writer in load.writers if writer.kind in NOT_WAITED_FOR]
        before = {writer: len(writer.promises.acknowledged) for writer in without_it}
        served = lambda: all(len(writer.promises.acknowledged) >= before[writer] + 20 for writer in without_it)
        eventually(served, "inserts that need no backend are acknowledged")
        behind.relay.behave()
        eventually(load.every_writer_more(2), "every writer is served again")
    counted = drained(behind, load)
    print(f"{load.figures()}; {counted.line()}")
    counted.check()


def test_a_backend_that_is_away_under_load(behind: Behind) -> None:
    """Ack level disk goes on without it: no error to any writer, and all is stored after, once, in each writer's order."""
    sound = tuple(kind for kind in NOT_WAITED_FOR if "poison" not in kind.name)
    with Load(behind.where, SEED, kinds=sound, per_kind=8) as load:
        eventually(load.every_writer_more(5), "every writer is served")
        behind.relay.go_away()
        away_until = time.monotonic() + AWAY_SECONDS
        eventually(lambda: time.monotonic() > away_until, "the time without a backend is over", AWAY_SECONDS + 60)
        eventually(load.every_writer_more(5), "every writer is served without a backend")
        behind.relay.behave()
        eventually(load.every_writer_more(5), "every writer is served again")
    assert not load.errors(), load.errors()[:5]
    counted = drained(behind, load)
    print(f"away for {AWAY_SECONDS:.0f} s; {load.figures()}; {counted.line()}")
    counted.check()
