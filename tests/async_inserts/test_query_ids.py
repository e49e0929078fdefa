"""An id that is in use is refused, also where ClickHouse sees nothing of the insert that has it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from harness.compare import Request, differences, normalised
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.inserts import HELD, HELD_NOT_WAITING, INTO_T, Background, Waiting, ids, make_table, queued_inserts, rows
from harness.users import ANN, TESTER

FLUSH = "SYSTEM FLUSH ASYNC INSERT QUEUE"
SLOW = "SELECT sleepEachRow(0.05) FROM system.numbers FORMAT Null SETTINGS max_block_size = 1, function_sleep_max_microseconds_per_block = 0"
REPLACING = {"replace_running_query": 1, "replace_running_query_max_wait_ms": 30_000}


@contextmanager
def held(tested: Endpoint, background: Background, query_id: str, row: int = 1) -> Iterator[Waiting]:
    """An insert of this id that waits until it is flushed."""
    waiting = background.insert(rows(row), query_id=query_id, **HELD)
    eventually(lambda: queued_inserts(tested) == 1, "the insert waits in its buffer")
    yield waiting
    tested.sql(FLUSH)
    assert waiting.reply().status == 200


@contextmanager
def running(endpoint: Endpoint, direct: Endpoint, background: Background, query_id: str) -> Iterator[None]:
    """A query of this id that runs until it is killed."""
    query = background.threads.submit(endpoint.request, SLOW, b"", {"query_id": query_id})
    listed = f"SELECT count() FROM system.processes WHERE query_id = '{query_id}'"
    eventually(lambda: direct.sql(listed) == "1", "the query runs")
    yield
    direct.sql(f"KILL QUERY WHERE query_id = '{query_id}' SYNC")
    query.result(60)


@pytest.mark.parametrize(("user", "refused"), [
    (TESTER, "INSERT INTO t FORMAT JSONEachRow"),
    (ANN, "INSERT INTO t FORMAT JSONEachRow"),
    (TESTER, "INSERT INTO nowhere FORMAT JSONEachRow"),
    (TESTER, "INSERT INTO t FORMAT CSV"),
    (TESTER, "INSERT INTO t SELECT 1"),
    (TESTER, "SELECT 1"),
    (ANN, "SELECT 1"),
])  # fmt: skip
def test_refused_as_clickhouse_refuses_it(
    gateway: Gateway, tested: Endpoint, direct: Endpoint, user: object, refused: str
) -> None:
    make_table(direct)
    body = b'{"a":2}' if "FORMAT" in refused else b""
    request = Request(parameters=(("database", direct.database), ("query", refused), ("query_id", "twice")), body=body)
    with Background(tested) as background:
        with running(direct, direct, background, "twice"):
            expected = normalised(request.send_to(direct.as_user(user.name, user.password)), (), "twice")
        with held(tested, background, "twice"):
            got = normalised(request.send_to(tested.as_user(user.name, user.password)), (), "twice")
            found = differences(expected, got)
            assert not found, "\n".join(found)
            assert b"Query with id = twice is already running" in got.body
    assert ids(direct) == [1]


@pytest.mark.parametrize("refused", [INTO_T, "SELECT 1"])
def test_whoever_is_not_known_hears_nothing_of_ids(gateway: Gateway, tested: Endpoint, direct: Endpoint, refused: str) -> None:
    make_table(direct)
    stranger = tested.as_user("tester", "wrong")
    with Background(tested) as background, held(tested, background, "mine"):
        reply = stranger.insert(refused, rows(2), query_id="mine")
        assert reply.code in (194, 516), reply.text


def test_an_id_is_free_again_with_its_answer(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """One after the other, as a client does that retries under one id."""
    make_table(direct)
    for number in range(50):
        assert tested.insert(INTO_T, rows(number), query_id="again", wait_for_async_insert=1).status == 200
    assert ids(direct) == list(range(50))


def test_who_does_not_wait_keeps_no_id(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """In ClickHouse the query has ended when its insert is in the queue."""
    make_table(direct)
    for number in range(3):
        assert tested.insert(INTO_T, rows(number), query_id="mine", **HELD_NOT_WAITING).status == 200
    assert queued_inserts(tested) == 3
    assert tested.request("SELECT 1", b"", {"query_id": "mine"}).text == "1\n"
    tested.sql(FLUSH)
    assert ids(direct) == [0, 1, 2]


def test_an_insert_with_the_id_of_a_running_query_is_clickhouses(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    with Background(tested) as background, running(tested, direct, background, "busy"):
        reply = tested.insert(INTO_T, rows(1), query_id="busy")
        assert (reply.status, reply.code) == (500, 216), reply.text
        assert tested.insert(INTO_T, rows(2), query_id="idle").status == 200
    assert ids(direct) == [2]


def test_ids_by_header_and_empty_ones(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    by_header = {"X-ClickHouse-Query-Id": "mine"}
    with Background(tested) as background, held(tested, background, "mine"):
        reply = tested.request(INTO_T, rows(2).encode(), headers=by_header)
        assert (reply.status, reply.code) == (500, 216)
        assert reply.headers["x-clickhouse-query-id"] == "mine"
        assert tested.request("SELECT 1", b"", {"query_id": ""}).status == 200
    with Background(tested) as background:
        one, two = (background.insert(rows(n), query_id="", **HELD) for n in (3, 4))
        eventually(lambda: queued_inserts(tested) == 2, "both wait: no id is no id")
        tested.sql(FLUSH)
        assert (one.reply().status, two.reply().status) == (200, 200)


@pytest.mark.parametrize("query", [INTO_T, "SELECT 1"])
def test_replacing_waits_for_the_insert(gateway: Gateway, tested: Endpoint, direct: Endpoint, query: str) -> None:
    """What is gathered can't be stopped, but it ends."""
    make_table(direct)
    with Background(tested) as background:
        with held(tested, background, "mine"):
            impatient = {**REPLACING, "replace_running_query_max_wait_ms": 10, "query_id": "mine"}
            reply = tested.insert(query, rows(2), **impatient)
            assert reply.code == 216 and "is already running and can't be stopped" in reply.text
            foreign = tested.as_user(ANN.name, ANN.password).insert(query, rows(2), query_id="mine", **REPLACING)
            assert foreign.code == 216 and f"is already running by user {TESTER.name}" in foreign.text
            patient = background.insert(rows(3) if query == INTO_T else "", query, query_id="mine", **REPLACING)
        assert patient.reply().status == 200
    assert ids(direct) == ([1, 3] if query == INTO_T else [1])
