"""A backend, or what stands before it, that fails at one moment of one INSERT. What is acknowledged is stored, and once.

Faults at random moments under load are in chaos/test_backend.py; backends that have never answered, in test_strange_backend.py.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.endpoint import Endpoint, Reply
from harness.eventually import eventually
from harness.inserts import HELD, Background, ids, make_table, rows
from harness.kept_engine import KeptEngine
from harness.load import Load
from harness.middle import Closing, Fate, Middle
from harness.remote import RemoteGateway, backend_url
from harness.users import TESTER

WINDOW = "SETTINGS non_replicated_deduplication_window = 1000"
# Two inserts make a batch, so that both acknowledgements stand for the same INSERT.
TOGETHER = {**HELD, "async_insert_max_query_number": 2}
NOTHING_STORED = "nothing of it is or will be stored"
OPEN = "may or may not"


@dataclass
class Stage:
    kept: KeptEngine
    middle: Middle
    gateway: RemoteGateway

    @property
    def tested(self) -> Endpoint:
        return self.gateway.http.as_user(TESTER.name, TESTER.password)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("phases")
    kept = KeptEngine(folder / "engine")
    with Middle(kept.direct.port) as middle:
        gateway = RemoteGateway(folder / "gateway", backend_url(TESTER, middle.address), kept.direct)
        yield Stage(kept, middle, gateway)
        middle.release()
        assert gateway.stop() == 0, gateway.child.log()[-3000:]
    kept.stop()


def into(table: str) -> str:
    return f"INSERT INTO {table} FORMAT JSONEachRow"


@dataclass
class Outcome:
    waiting: Reply
    not_waiting: Reply
    there: list[int]


def meet(stage: Stage, table: str, fate: Fate, kill: bool = False) -> Outcome:
    """Row 1 is waited for and row 2 is not, in one batch; rows 0 and 3 are before and after it."""
    tested, direct = stage.tested, stage.kept.direct
    assert tested.insert(into(table), rows(0)).status == 200
    stage.middle.arm(table, fate)
    # Whoever waits for what stays silent is to hear so soon.
    patience = 1000 if fate.waits and not kill else 120_000
    with Background(tested) as background:
        waiting = background.insert(rows(1), into(table), **TOGETHER, wait_for_async_insert_timeout=patience / 1000)
        not_waiting = tested.insert(into(table), rows(2), **TOGETHER, wait_for_async_insert=0)
        assert stage.middle.reached.wait(60), "no batch came"
        if kill:
            stage.kept.kill()
        elif fate.waits:
            waiting.reply()
        stage.middle.release()
        answered = waiting.reply()
    # One writer's inserts are stored in order: when this is answered, the batch before it has come to its end.
    assert tested.insert(into(table), rows(3)).status == 200
    return Outcome(answered, not_waiting, ids(direct, table))


@pytest.mark.parametrize("fate", Fate, ids=lambda fate: fate.name.lower())
def test_an_insert_that_meets_with_it(stage: Stage, fate: Fate) -> None:
    table = f"with_window_{fate.name.lower()}"
    make_table(stage.kept.direct, name=table, settings=WINDOW)
    outcome = meet(stage, table, fate)
    assert outcome.not_waiting.status == 200, outcome.not_waiting.text
    assert outcome.there == [0, 1, 2, 3], "each is there once"
    if fate.waits:
        assert (outcome.waiting.status, outcome.waiting.code) == (408, 159), outcome.waiting.text
        assert NOTHING_STORED not in outcome.waiting.text
    else:
        assert outcome.waiting.status == 200, outcome.waiting.text


@pytest.mark.parametrize("fate", Fate, ids=lambda fate: fate.name.lower())
def test_a_table_without_a_window(stage: Stage, fate: Fate) -> None:
    """What is not waited for is stored at least once; who waits is told where it is not known."""
    table = f"without_{fate.name.lower()}"
    make_table(stage.kept.direct, name=table)
    outcome = meet(stage, table, fate)
    assert outcome.not_waiting.status == 200, outcome.not_waiting.text
    assert outcome.there.count(0) == outcome.there.count(3) == 1
    assert 1 <= outcome.there.count(2) <= 2, outcome.there
    print(fate, outcome.waiting.status, outcome.waiting.text, outcome.there)


RESTARTS = {
    "before the INSERT arrives": Fate.SILENT,
    "while it is read": Fate.SILENT_WHILE_READ,
    "before the answer": Fate.SILENT_AFTER,
}


@pytest.mark.parametrize("fate", RESTARTS.values(), ids=RESTARTS.keys())
def test_a_restart_of_clickhouse(stage: Stage, fate: Fate) -> None:
    table = f"restart_{fate.name.lower()}"
    make_table(stage.kept.direct, name=table, settings=WINDOW)
    outcome = meet(stage, table, fate, kill=True)
    assert (outcome.waiting.status, outcome.not_waiting.status) == (200, 200), outcome
    assert outcome.there == [0, 1, 2, 3]


@pytest.mark.parametrize("closing", Closing, ids=lambda closing: closing.name.lower())
def test_a_proxy_that_closes_after_some_requests(stage: Stage, closing: Closing) -> None:
    """Nobody hears of it, nothing is lost, and nothing is stored twice."""
    tested, direct = stage.tested, stage.kept.direct
    direct.sql("DROP TABLE IF EXISTS t SYNC")
    make_table(direct, settings=WINDOW)
    stage.middle.close_after(5, closing)
    try:
        loads = [Load(tested), Load(tested, first=1_000_000, wait_for_async_insert=0)]
        with loads[0], loads[1]:
            eventually(lambda: stage.middle.closed >= 20, "connections are closed")
            if closing is Closing.SAID:
                assert all(tested.sql(f"SELECT {number}") == str(number) for number in range(30)), "what is forwarded passes as well"
    finally:
        stage.middle.most_requests = None
    for load in loads:
        assert not load.written.refused and not load.written.uncertain, load.written
    acknowledged = sorted(number for load in loads for number in load.written.acknowledged)
    eventually(lambda: len(ids(direct)) >= len(acknowledged), "all are stored")
    assert ids(direct) == acknowledged
