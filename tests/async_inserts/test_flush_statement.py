"""SYSTEM FLUSH ASYNC INSERT QUEUE, for all tables or for some."""

from __future__ import annotations

import pytest

from harness.endpoint import ClickHouseError, Endpoint
from harness.gateway import Gateway
from harness.inserts import HELD_NOT_WAITING, ids, make_table, queued_inserts, rows
from harness.users import JOE


@pytest.fixture
def three_queues(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> Endpoint:
    for name in ("t", "u", "`odd name`"):
        make_table(direct, name=name)
        assert tested.insert(f"INSERT INTO {name} FORMAT JSONEachRow", rows(1), **HELD_NOT_WAITING).status == 200
    return tested


def stored(direct: Endpoint) -> list[str]:
    return [name for name in ("t", "u", "`odd name`") if ids(direct, name)]


def test_everything(three_queues: Endpoint, direct: Endpoint) -> None:
    three_queues.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert stored(direct) == ["t", "u", "`odd name`"]


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("SYSTEM FLUSH ASYNC INSERT QUEUE t", ["t"]),
        ("SYSTEM FLUSH ASYNC INSERT QUEUE {database}.u", ["u"]),
        ("system flush async insert queue t, {database}.u;", ["t", "u"]),
        ("SYSTEM FLUSH ASYNC INSERT QUEUE `odd name` -- a comment", ["`odd name`"]),
        ("/* first */ SYSTEM FLUSH ASYNC INSERT QUEUE u, `t`", ["t", "u"]),
        ("SYSTEM FLUSH ASYNC INSERT QUEUE nowhere", []),
    ],
)
def test_some_tables(three_queues: Endpoint, direct: Endpoint, statement: str, expected: list[str]) -> None:
    three_queues.sql(statement.format(database=direct.database))
    assert stored(direct) == expected


def test_by_get_and_in_the_url(three_queues: Endpoint, direct: Endpoint) -> None:
    assert three_queues.request("SYSTEM FLUSH ASYNC INSERT QUEUE").status == 200
    assert stored(direct) == ["t", "u", "`odd name`"]


def test_nothing_to_flush(gateway: Gateway, tested: Endpoint) -> None:
    assert tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE") == ""


def test_needs_the_privilege(three_queues: Endpoint, direct: Endpoint) -> None:
    joe = three_queues.as_user(JOE.name, JOE.password)
    with pytest.raises(ClickHouseError) as refused:
        joe.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert refused.value.code == 497
    assert stored(direct) == []


def test_errors_of_the_flushed_are_not_the_flushers(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, "a UInt64, CONSTRAINT small CHECK a < 10")
    assert tested.insert("INSERT INTO t FORMAT JSONEachRow", rows(100), **HELD_NOT_WAITING).status == 200
    assert tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE") == ""
    assert (ids(direct), queued_inserts(tested)) == ([], 0)
