"""A backend, or what stands before it, that fails at one moment of one INSERT. What is acknowledged is stored, and once.

Faults at random moments under load are in chaos/test_backend.py; backends that have never answered, in test_strange_backend.py.
"""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.endpoint import Endpoint, Reply
from harness.eventually import eventually
from harness.gateway import flat
from harness.inserts import HELD, Background, ids, make_table, rows
from harness.engine import Engine
from harness.kept_engine import KeptEngine
from harness.load import Load
from harness.middle import PASSED_ON, Closing, Fate, Middle
from harness.remote import RemoteGateway, backend_url
from harness.users import TESTER

WINDOW = "SETTINGS non_replicated_deduplication_window = 1000"
# Two inserts make a batch, so that both acknowledgements stand for the same INSERT.
TOGETHER = {**HELD, "async_insert_max_query_number": 2}
IN_FLIGHT = "The insert is in flight: it may still be stored"
UNKNOWN = "It may or may not be stored"


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
    kept = KeptEngine(Engine(folder / "engine"))
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
    there: list[int]


def meet(stage: Stage, table: str, fate: Fate, settings: str = "", kill: bool = False) -> Outcome:
    """Row 1 is waited for and row 2 is not, in one batch; rows 0 and 3 are before and after it."""
    # ClickHouse 26.7 may fall when a connection breaks, also some time after; it is started again.
    eventually(stage.kept.direct.answers, "the engine is there")
    make_table(stage.kept.direct, name=table, settings=settings)
    return meet_with(stage, stage.tested, table, fate, kill)


def meet_with(stage: Stage, tested: Endpoint, table: str, fate: Fate, kill: bool = False, **more: object) -> Outcome:
    """The same for a table that is there, and inserts that say more."""
    direct, together = stage.kept.direct, {**TOGETHER, **more}
    stored = lambda number: eventually(lambda: tested.insert(into(table), rows(number), **more).status == 200, f"row {number} is stored")
    stored(0)
    stage.middle.arm(table, fate)
    # Whoever waits for what stays silent is to hear so soon.
    patience_seconds = 1 if fate.waits and not kill else 120
    with Background(tested) as background:
        waiting = background.insert(rows(1), into(table), **together, wait_for_async_insert_timeout=patience_seconds)
        not_waiting = tested.insert(into(table), rows(2), **together, wait_for_async_insert=0)
        assert stage.middle.reached.wait(60), "no batch came"
        if kill:
            stage.kept.kill()
        elif fate.waits:
            waiting.reply()
        stage.middle.release()
        answered = waiting.reply()
    assert not_waiting.status == 200, not_waiting.text
    # Inserts of one shape are stored in order: when this is answered, the batch before it has come to its end.
    stored(3)
    eventually(direct.answers, "the engine is there")
    return Outcome(answered, ids(direct, table))


@pytest.mark.parametrize("fate", Fate, ids=lambda fate: fate.name.lower())
def test_a_table_with_a_window(stage: Stage, fate: Fate) -> None:
    outcome = meet(stage, f"with_window_{fate.name.lower()}", fate, WINDOW)
    if fate.waits:
        assert (outcome.waiting.status, outcome.waiting.code) == (408, 159) and IN_FLIGHT in outcome.waiting.text, outcome
        assert outcome.there in ([0, 2, 3], [0, 1, 2, 3]), outcome
    else:
        assert outcome.waiting.status == 200, outcome
        assert outcome.there == [0, 1, 2, 3], outcome


@pytest.mark.parametrize("fate", Fate, ids=lambda fate: fate.name.lower())
def test_a_table_without_a_window(stage: Stage, fate: Fate) -> None:
    """What is not waited for is sent again, and twice there if it had been stored; who waits is told that nobody knows."""
    outcome = meet(stage, f"without_{fate.name.lower()}", fate)
    had_been_stored = fate in PASSED_ON
    if fate.waits:
        assert (outcome.waiting.status, outcome.waiting.code) == (408, 159) and IN_FLIGHT in outcome.waiting.text, outcome
    else:
        assert (outcome.waiting.status, outcome.waiting.code) == (503, 210) and UNKNOWN in outcome.waiting.text, outcome
        assert "retry-after" not in outcome.waiting.headers
    # A drip comes to its end, and nothing is sent again.
    assert outcome.there.count(2) == (2 if had_been_stored and fate is not Fate.BYTE_BY_BYTE else 1), outcome
    assert outcome.there.count(1) == (1 if had_been_stored else 0), outcome


MERGE_TREE = "ENGINE = MergeTree ORDER BY a"
# What hangs on a table `t`, and ends in `t_u`. None of its tables has a window.
BEHIND = {
    "a table": (f"CREATE TABLE {{t}}_u (a UInt64) {MERGE_TREE}", "CREATE MATERIALIZED VIEW {t}_v TO {t}_u AS SELECT a FROM {t}"),
    "a table of its own": (f"CREATE MATERIALIZED VIEW {{t}}_u (a UInt64) {MERGE_TREE} AS SELECT a FROM {{t}}",),
    "a rollup": (
        "CREATE TABLE {t}_u (a UInt64, n UInt64) ENGINE = SummingMergeTree ORDER BY a",
        "CREATE MATERIALIZED VIEW {t}_v TO {t}_u AS SELECT a, count() AS n FROM {t} GROUP BY a",
    ),
    "a view on a view's table": (
        f"CREATE TABLE {{t}}_m (a UInt64) {MERGE_TREE}",
        f"CREATE TABLE {{t}}_u (a UInt64) {MERGE_TREE}",
        "CREATE MATERIALIZED VIEW {t}_v TO {t}_m AS SELECT a FROM {t}",
        "CREATE MATERIALIZED VIEW {t}_w TO {t}_u AS SELECT a FROM {t}_m",
    ),
}


@pytest.fixture(scope="module")
def managed(stage: Stage, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """A second gateway, which gives tables their windows."""
    url = backend_url(TESTER, stage.middle.address)
    gateway = RemoteGateway(tmp_path_factory.mktemp("managed"), url, stage.kept.direct, "manage_deduplication_window = true\n")
    yield gateway.http.as_user(TESTER.name, TESTER.password)
    assert gateway.stop() == 0, gateway.child.log()[-3000:]


@pytest.mark.parametrize("said", [{}, {"deduplicate_blocks_in_dependent_materialized_views": 0}], ids=["", "switched off"])
@pytest.mark.parametrize("behind", BEHIND)
def test_what_views_fill_has_a_batch_once(stage: Stage, managed: Endpoint, behind: str, said: dict) -> None:
    table = f"viewed_{list(BEHIND).index(behind)}_{len(said)}"
    eventually(stage.kept.direct.answers, "the engine is there")
    make_table(stage.kept.direct, name=table)
    for statement in BEHIND[behind]:
        stage.kept.direct.sql(statement.format(t=table))
    outcome = meet_with(stage, managed, table, Fate.CUT_AFTER, **said)
    assert outcome.waiting.status == 200 and outcome.there == [0, 1, 2, 3], outcome
    assert ids(stage.kept.direct, f"{table}_u") == [0, 1, 2, 3]


def test_a_table_that_keeps_nothing_is_as_good_as_what_views_fill(stage: Stage, managed: Endpoint) -> None:
    direct = stage.kept.direct
    eventually(direct.answers, "the engine is there")
    direct.sql("CREATE TABLE nothing (a UInt64) ENGINE = Null")
    for statement in BEHIND["a table"]:
        direct.sql(statement.format(t="nothing"))
    outcome = meet_with(stage, managed, "nothing", Fate.CUT_AFTER)
    assert outcome.waiting.status == 200, outcome
    assert ids(direct, "nothing_u") == [0, 1, 2, 3]


def test_what_a_view_fills_without_a_window_is_named(stage: Stage) -> None:
    """In the log, by /readyz and for the dashboard; until its owner gives it one."""
    direct, gateway = stage.kept.direct, stage.gateway
    eventually(direct.answers, "the engine is there")
    make_table(direct, name="named", settings=WINDOW)
    for statement in BEHIND["a table"]:
        direct.sql(statement.format(t="named"))
    name, view = f"{direct.database}.named_u", f"{direct.database}.named_v"
    unprotected = lambda: [table for table in status(gateway)["unprotected_tables"] if table["table"] == "named_u"]
    stored = lambda: stage.tested.insert(into("named"), rows(1)).status == 200
    eventually(stored, "it is stored")
    told = [flat(event) for event in gateway.log_events() if flat(event).get("table") == "named_u"]
    assert [event["view"] for event in told] == [view] and "non_replicated_deduplication_window" in told[0]["message"]
    assert f"{name}, which the view {view} fills: it has no window" in gateway.ready().text
    assert [table["view"] for table in unprotected()] == [view]
    direct.sql(f"ALTER TABLE named_u MODIFY SETTING non_replicated_deduplication_window = 100")
    eventually(lambda: stored() and not unprotected(), "it is not named any more")
    assert name not in gateway.ready().text


def status(gateway: RemoteGateway) -> dict:
    with urllib.request.urlopen(f"http://{gateway.admin.host}:{gateway.admin.port}/api/v1/status", timeout=60) as answer:
        return json.load(answer)


RESTARTS = {
    "before the INSERT arrives": Fate.SILENT,
    "while it is read": Fate.SILENT_WHILE_READ,
    "before the answer": Fate.SILENT_AFTER,
}


@pytest.mark.parametrize("fate", RESTARTS.values(), ids=RESTARTS.keys())
def test_a_restart_of_clickhouse(stage: Stage, fate: Fate) -> None:
    outcome = meet(stage, f"restart_{fate.name.lower()}", fate, WINDOW, kill=True)
    assert outcome.waiting.status == 200 and outcome.there == [0, 1, 2, 3]


# Proxies allow a hundred or a thousand; with few, each of a run's connections is closed, and often.
REQUESTS, CLOSED = 4, 12


@pytest.mark.parametrize("closing", Closing, ids=lambda closing: closing.name.lower())
def test_a_proxy_that_closes_after_some_requests(stage: Stage, closing: Closing) -> None:
    """Nobody hears of it, nothing is lost, and nothing is stored twice."""
    tested, direct = stage.tested, stage.kept.direct
    eventually(direct.answers, "the engine is there")
    direct.sql("DROP TABLE IF EXISTS t SYNC")
    make_table(direct, settings=WINDOW)
    stage.middle.close_after(REQUESTS, closing)
    try:
        loads = [Load(tested), Load(tested, first=1_000_000, wait_for_async_insert=0)]
        with loads[0], loads[1]:
            eventually(lambda: stage.middle.closed >= CLOSED, "connections are closed")
            if closing is Closing.SAID:
                assert all(tested.sql(f"SELECT {number}") == str(number) for number in range(30)), "what is forwarded passes as well"
    finally:
        stage.middle.most_requests = None
    for load in loads:
        assert not load.written.refused and not load.written.uncertain, load.written
    acknowledged = sorted(number for load in loads for number in load.written.acknowledged)
    eventually(lambda: len(ids(direct)) >= len(acknowledged), "all are stored")
    assert ids(direct) == acknowledged


@pytest.mark.parametrize("fate", [Fate.BAD_GATEWAY, Fate.WELCOME], ids=lambda fate: fate.name.lower())
def test_a_token_is_not_settled_by_an_answer_of_somebody_else(stage: Stage, fate: Fate) -> None:
    """An INSERT that is sent on never reaches the engine. It is new when it comes again."""
    table = f"sent_on_{fate.name.lower()}"
    make_table(stage.kept.direct, name=table, settings=WINDOW)
    stage.middle.arm(table, fate)
    replies = [stage.tested.request(f"INSERT INTO `{table}` SELECT 7", b"", {"insert_deduplication_token": "abc"}) for _ in range(3)]
    assert stage.middle.reached.is_set()
    assert [reply.status for reply in replies[1:]] == [200, 200]
    assert ids(stage.kept.direct, table) == [7]
