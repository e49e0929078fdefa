"""Which inserts share a batch, and what seals one."""

from __future__ import annotations

import pytest

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.inserts import (
    HELD, HELD_NOT_WAITING, INTO_T, Background, ids, make_table, parts_made, queued, queued_inserts, rows,
)  # fmt: skip


def test_settings_that_do_not_change_rows_share(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    different = [
        {"log_comment": "one"},
        {"log_comment": "two", "query_id": "an-id"},
        {"max_execution_time": 7},
        {"send_progress_in_http_headers": 1},
        {"wait_end_of_query": 1},
        {"max_threads": 1},
        {},
    ]
    for number, settings in enumerate(different):
        assert tested.insert(INTO_T, rows(number), **HELD_NOT_WAITING, **settings).status == 200
    assert [batch["inserts"] for batch in queued(tested)] == [len(different)]
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert (ids(direct), parts_made(direct)) == (list(range(len(different))), 1)


def test_tables_may_be_named_by_query_parameters(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    direct.sql("CREATE TABLE other AS t")
    by_parameters = "INSERT INTO {d:Identifier}.{t:Identifier} FORMAT JSONEachRow"
    for number, table in enumerate(("t", "other", "t")):
        names = {"param_d": direct.database, "param_t": table}
        assert tested.insert(by_parameters, rows(number), **HELD_NOT_WAITING, **names).status == 200
    assert tested.insert(INTO_T, rows(3), **HELD_NOT_WAITING).status == 200
    assert [queued_inserts(tested, table) for table in ("t", "other")] == [3, 1]
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert (ids(direct), ids(direct, "other")) == ([0, 2, 3], [1])
    missing = tested.insert(by_parameters, rows(4), **HELD_NOT_WAITING, param_d=direct.database)
    assert (missing.status, missing.code) == (500, 456)


def test_waiting_and_not_waiting_share(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    with Background(tested) as background:
        waiting = [background.insert(rows(n), **HELD) for n in range(3)]
        assert tested.insert(INTO_T, rows(3), **HELD_NOT_WAITING).status == 200
        eventually(lambda: queued_inserts(tested) == 4, "all are queued")
        assert len(queued(tested)) == 1
        tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
        assert {insert.reply().status for insert in waiting} == {200}
    assert (ids(direct), parts_made(direct)) == ([0, 1, 2, 3], 1)


def test_formats_and_places_of_the_rows_share(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """Once parsed, rows are rows."""
    make_table(direct)
    database = direct.database
    assert tested.insert(INTO_T, rows(1), **HELD_NOT_WAITING).status == 200
    assert tested.insert(f"INSERT INTO {database}.t (a) FORMAT JSONEachRow", rows(2), **HELD_NOT_WAITING).status == 200
    assert tested.insert("INSERT INTO t VALUES", "(3)", **HELD_NOT_WAITING).status == 200
    assert tested.request(None, b"INSERT INTO `t` (`a`) VALUES (4)", HELD_NOT_WAITING).status == 200
    assert tested.request("INSERT INTO t VALUES (5),", b"(6)", HELD_NOT_WAITING).status == 200
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert (ids(direct), parts_made(direct)) == ([1, 2, 3, 4, 5, 6], 1)


def test_users_do_not_share(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    ann = tested.as_user("ann", "a")
    for number, endpoint in enumerate((tested, ann, tested, ann)):
        assert endpoint.insert(INTO_T, rows(number), **HELD_NOT_WAITING).status == 200
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert (ids(direct), parts_made(direct)) == ([0, 1, 2, 3], 2)


def test_settings_that_change_what_is_written_do_not_share(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (a UInt64, p UInt8) ENGINE = MergeTree PARTITION BY p ORDER BY a")
    assert tested.insert(INTO_T, '{"a":1}', **HELD_NOT_WAITING).status == 200
    limit = {"max_partitions_per_insert_block": 5}
    assert tested.insert(INTO_T, '{"a":2}', **HELD_NOT_WAITING, **limit).status == 200
    assert len(queued(tested)) == 2
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert ids(direct) == [1, 2]


def test_number_of_inserts_seals(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    limit = {"async_insert_max_query_number": 5}
    for number in range(12):
        assert tested.insert(INTO_T, rows(number), **HELD_NOT_WAITING, **limit).status == 200
    eventually(lambda: ids(direct) == list(range(10)), "two batches of five are stored")
    assert queued_inserts(tested) == 2
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert ids(direct) == list(range(12))


def test_size_seals(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, "a UInt64, s String")
    limit = {"async_insert_max_data_size": 10_000}
    row = '{"a":%d,"s":"' + "x" * 3000 + '"}'
    for number in range(3):
        assert tested.insert(INTO_T, row % number, **HELD_NOT_WAITING, **limit).status == 200
    assert ids(direct) == []
    assert tested.insert(INTO_T, row % 3, **HELD_NOT_WAITING, **limit).status == 200
    eventually(lambda: ids(direct) == [0, 1, 2, 3], "the fourth insert seals the batch")


def test_time_seals(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    soon = {**HELD, "async_insert_busy_timeout_ms": 300}
    with Background(tested) as background:
        inserts = [background.insert(rows(n), **soon) for n in range(10)]
        assert {insert.reply().status for insert in inserts} == {200}
    assert ids(direct) == list(range(10))


@pytest.mark.parametrize("settings", [{"async_insert": 0}, {"async_insert": 0, "wait_for_async_insert": 0}])
def test_switched_off_is_synchronous(
    gateway: Gateway, tested: Endpoint, direct: Endpoint, settings: dict[str, object]
) -> None:
    make_table(direct)
    for number in range(5):
        assert tested.insert(INTO_T, rows(number), **settings).status == 200
        assert ids(direct) == list(range(number + 1))
    assert parts_made(direct) == 5


def test_large_insert_is_forwarded(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """Beyond the size of a batch, rows go straight through: also when nobody waits, they are there at the answer."""
    make_table(direct)
    body = "".join(f'{{"a":{n}}}\n' for n in range(20_000))
    limit = {"async_insert_max_data_size": 100_000}
    reply = tested.insert(INTO_T, body, **HELD_NOT_WAITING, **limit)
    assert reply.status == 200, reply.text
    assert direct.sql("SELECT count(), sum(a) FROM t") == "20000\t199990000"


def test_huge_insert_is_forwarded(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """Longer than what the gateway reads into memory."""
    make_table(direct, "a UInt64, s String")
    body = "".join(f'{{"a":{n},"s":"{"x" * 1000}"}}\n' for n in range(15_000)).encode()
    reply = tested.insert(INTO_T, body)
    assert reply.status == 200, reply.text
    assert reply.summary["written_rows"] == "15000"
    assert direct.sql("SELECT count(), sum(a) FROM t") == "15000\t112492500"


def test_insert_select_is_forwarded(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    assert tested.request("INSERT INTO t SELECT number FROM numbers(10)", b"", HELD).status == 200
    assert ids(direct) == list(range(10))
