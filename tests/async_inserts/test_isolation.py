"""An error hits the guilty insert of a batch and no other, and each sender hears ClickHouse's words for its own insert."""

from __future__ import annotations

import pytest

from harness.endpoint import Endpoint, Reply
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.gathered import Batch, metric
from harness.inserts import (
    HELD_NOT_WAITING, INTO_T, Background, ids, make_table, parts_made, rows, send_all_then_read,
)  # fmt: skip


def verdicts(replies: list[Reply]) -> list[int | None]:
    """The code of each answer's error; `None` for a success."""
    return [None if reply.status == 200 else reply.code for reply in replies]


def straight(direct: Endpoint, body: str) -> Reply:
    """What ClickHouse says to the same insert alone."""
    return direct.insert(INTO_T, body)


def test_one_of_three_violates_a_constraint(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, "a UInt64, CONSTRAINT small CHECK a < 100")
    with Batch(tested) as batch:
        first, guilty, last = batch.add(rows(1), rows(2, 3, 500), rows(4)).flush()
    assert (first.status, last.status) == (200, 200)
    alone = straight(direct, rows(2, 3, 500))
    assert (guilty.status, guilty.text) == (alone.status, alone.text)
    assert "is violated at row 3" in guilty.text, "the row is counted within its own insert"
    assert guilty.headers["x-clickhouse-exception-code"] == "469"
    assert ids(direct) == [1, 4]


def test_one_culprit_among_hundreds_costs_one_more_store(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, "a UInt64, CONSTRAINT small CHECK a < 1000")
    bodies = [rows(5000 if n == 333 else n).encode() for n in range(450)]
    together = {"async_insert_max_query_number": 450, "async_insert_use_adaptive_busy_timeout": 0}
    replies = send_all_then_read(tested, bodies, async_insert_busy_timeout_ms=3_600_000, **together)
    assert [n for n, reply in enumerate(replies) if reply.status != 200] == [333]
    assert replies[333].code == 469
    assert (ids(direct), parts_made(direct)) == ([n for n in range(450) if n != 333], 1)
    assert metric(gateway, "windrow_flush_narrowings", direct.database) == 1
    assert metric(gateway, "windrow_culprits", direct.database) == 1


def test_many_culprits_of_several_constraints(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, "a UInt64, s String, CONSTRAINT small CHECK a < 100, CONSTRAINT short CHECK length(s) < 4")
    bodies = [
        '{"a":%d,"s":"%s"}' % (500 if n % 3 == 0 else n, "too long" if n % 4 == 0 else "x") for n in range(24)
    ]  # fmt: skip
    with Batch(tested) as batch:
        replies = batch.add(*bodies).flush()
    for body, reply in zip(bodies, replies):
        guilty = "500" in body or "long" in body
        assert reply.text == (straight(direct, body).text if guilty else ""), body
    assert ids(direct) == [n for n in range(24) if n % 3 and n % 4]
    assert parts_made(direct) == 1


def test_a_default_that_throws(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """ClickHouse names no row here: the batch is halved."""
    make_table(direct, "a UInt64, b UInt8 DEFAULT throwIf(a = 500)")
    bodies = [rows(500 if n in (3, 11) else n) for n in range(16)]
    with Batch(tested) as batch:
        replies = batch.add(*bodies).flush()
    assert verdicts(replies) == [395 if n in (3, 11) else None for n in range(16)]
    # Behind this ClickHouse counts the columns of its own plan, which depend on the format.
    assert replies[3].text.split(": while executing")[0] == straight(direct, rows(500)).text.split(": while executing")[0]
    assert ids(direct) == [n for n in range(16) if n not in (3, 11)]


def test_who_does_not_wait_is_stored_too(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, "a UInt64, CONSTRAINT small CHECK a < 100")
    for n in (1, 2, 500, 3):
        assert tested.insert(INTO_T, rows(n), **HELD_NOT_WAITING, query_id=f"{direct.database}-{n}").status == 200
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert ids(direct) == [1, 2, 3]
    query = (
        "SELECT query_id, status, exception LIKE '%violated at row 1.%' FROM system.asynchronous_insert_log"
        f" WHERE database = '{direct.database}' ORDER BY query_id"
    )
    logged = [line.split("\t") for line in tested.sql(query).splitlines()]
    wanted = [(f"{direct.database}-{n}", "FlushError" if n == 500 else "Ok", "1" if n == 500 else "0") for n in (1, 2, 3, 500)]
    assert [tuple(line) for line in logged] == wanted


def test_the_log_leads_to_the_flush_that_stored(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, "a UInt64, CONSTRAINT small CHECK a < 100")
    with Batch(tested) as batch:
        batch.add(rows(1), rows(500), rows(2)).flush()
    query = (
        "SELECT status, uniqExact(flush_query_id), count() FROM system.asynchronous_insert_log"
        f" WHERE database = '{direct.database}' GROUP BY status ORDER BY status"
    )
    assert tested.sql(query) == "Ok\t1\t2\nFlushError\t1\t1"


@pytest.mark.parametrize("engine", ["MergeTree ORDER BY a", "Memory", "Log", "Null"])
@pytest.mark.parametrize("parallel", [0, 1])
def test_the_tables_own_refusal_reaches_no_view(
    gateway: Gateway, tested: Endpoint, direct: Endpoint, engine: str, parallel: int
) -> None:
    direct.sql(f"CREATE TABLE t (a UInt64, CONSTRAINT small CHECK a < 100) ENGINE = {engine}")
    direct.sql("CREATE TABLE u (a UInt64) ENGINE = MergeTree ORDER BY a")
    direct.sql("CREATE MATERIALIZED VIEW v TO u AS SELECT a FROM t")
    with Batch(tested, parallel_view_processing=parallel) as batch:
        replies = batch.add(rows(1), rows(2, 500), rows(3)).flush()
    assert verdicts(replies) == [None, 469, None]
    assert ids(direct, "u") == [1, 3]
    assert ids(direct) == ([] if engine == "Null" else [1, 3])


def test_a_view_that_throws_fails_the_batch_and_doubles_nothing(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """ClickHouse may have stored a part by then: nothing of it may be sent again."""
    make_table(direct)
    direct.sql("CREATE TABLE u (a UInt64) ENGINE = MergeTree ORDER BY a")
    direct.sql("CREATE MATERIALIZED VIEW v TO u AS SELECT a + throwIf(a = 500) AS a FROM t")
    with Batch(tested) as batch:
        replies = batch.add(rows(1), rows(500), rows(2)).flush()
    assert verdicts(replies) == [395] * 3
    assert {reply.text for reply in replies} == {straight(direct, rows(500)).text}
    for table in ("t", "u"):
        assert set(direct.sql(f"SELECT count() FROM {table} WHERE a < 500 GROUP BY a").split()) <= {"1"}


def test_too_many_parts_pass_with_views_too(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, settings="SETTINGS parts_to_throw_insert = 1, parts_to_delay_insert = 1, max_delay_to_insert = 0")
    direct.sql("CREATE TABLE u (a UInt64) ENGINE = MergeTree ORDER BY a")
    direct.sql("CREATE MATERIALIZED VIEW v TO u AS SELECT a FROM t")
    direct.sql("SYSTEM STOP MERGES t")
    assert tested.insert(INTO_T, rows(1)).status == 200
    with Background(tested) as background:
        waiting = background.insert(rows(2))
        eventually(lambda: metric(gateway, "windrow_flush_retries", direct.database) > 0, "it is tried again")
        direct.sql("TRUNCATE TABLE t")
        assert waiting.reply().status == 200
    assert (ids(direct), ids(direct, "u")) == ([2], [1, 2])
