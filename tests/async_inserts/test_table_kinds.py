"""Tables of every kind: gathered or forwarded as their engine allows, with the rows and errors of a direct insert."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from harness.endpoint import Endpoint, Reply
from harness.gateway import Gateway
from harness.gathered import Batch

BODIES = ['{"a":1,"v":10}', '{"a":2,"v":20}\n{"a":1,"v":5}', '{"a":3}', '{"a":2,"v":1}']
COLUMNS = "a UInt64, v UInt64"


@dataclass(frozen=True)
class Kind:
    """`{t}` is the table's name; the statements are run in order."""

    name: str
    create: tuple[str, ...]
    gathered: bool
    # What the rows have become, where the table itself doesn't show them.
    read: str = "SELECT a, v FROM {t} ORDER BY ALL"


def merge_tree(engine: str, columns: str = COLUMNS, read: str = "SELECT a, v FROM {t} FINAL ORDER BY ALL") -> Kind:
    return Kind(engine, (f"CREATE TABLE {{t}} ({columns}) ENGINE = {engine} ORDER BY a",), True, read)


def plain(engine: str, gathered: bool, read: str = "SELECT a, v FROM {t} ORDER BY ALL") -> Kind:
    return Kind(engine, (f"CREATE TABLE {{t}} ({COLUMNS}) ENGINE = {engine}",), gathered, read)


BASE = f"CREATE TABLE {{t}}_base ({COLUMNS}) ENGINE = MergeTree ORDER BY a"
FROM_BASE = "SELECT a, v FROM {t}_base ORDER BY ALL"
KINDS = [
    merge_tree("MergeTree", read="SELECT a, v FROM {t} ORDER BY ALL"),
    merge_tree("ReplacingMergeTree(v)"),
    merge_tree("SummingMergeTree"),
    merge_tree("AggregatingMergeTree", "a UInt64, v SimpleAggregateFunction(sum, UInt64)"),
    merge_tree("CollapsingMergeTree(sign)", f"{COLUMNS}, sign Int8 DEFAULT 1"),
    merge_tree("VersionedCollapsingMergeTree(sign, v)", f"{COLUMNS}, sign Int8 DEFAULT 1"),
    merge_tree("CoalescingMergeTree", "a UInt64, v Nullable(UInt64)"),
    plain("Memory", True),
    plain("Log", True),
    plain("TinyLog", True),
    plain("StripeLog", True),
    plain("Null", True),
    Kind(
        "Buffer",
        (BASE, f"CREATE TABLE {{t}} ({COLUMNS}) ENGINE = Buffer(currentDatabase(), '{{t}}_base', 1, 10, 100, 1, 1000, 1, 100000)"),
        True,
    ),
    plain("Join(ANY, LEFT, a)", False),
    plain("Set", False, "SELECT 1 IN (SELECT 1)"),
    plain("EmbeddedRocksDB PRIMARY KEY a", False),
    plain("File(JSONEachRow)", False),
    Kind("View", (BASE, "CREATE VIEW {t} AS SELECT a, v FROM {t}_base"), False, FROM_BASE),
    Kind("Merge", (BASE, f"CREATE TABLE {{t}} ({COLUMNS}) ENGINE = Merge(currentDatabase(), '^{{t}}_base$')"), False, FROM_BASE),
    Kind("Alias", (BASE, "CREATE TABLE {t} ENGINE = Alias(currentDatabase(), '{t}_base')"), False),
    Kind(
        "materialized view with a table of its own",
        (BASE, "CREATE MATERIALIZED VIEW {t} ENGINE = MergeTree ORDER BY a AS SELECT a, v FROM {t}_base"),
        False,
    ),
    Kind(
        "materialized view into another table",
        (BASE, f"CREATE TABLE {{t}}_to ({COLUMNS}) ENGINE = MergeTree ORDER BY a", "CREATE MATERIALIZED VIEW {t} TO {t}_to AS SELECT a, v FROM {t}_base"),
        False,
        "SELECT a, v FROM {t}_to ORDER BY ALL",
    ),
    Kind(
        "table with a chain of views behind it",
        (
            f"CREATE TABLE {{t}} ({COLUMNS}) ENGINE = Null",
            f"CREATE TABLE {{t}}_sums ({COLUMNS}) ENGINE = SummingMergeTree ORDER BY a",
            f"CREATE TABLE {{t}}_last ({COLUMNS}) ENGINE = MergeTree ORDER BY a",
            "CREATE MATERIALIZED VIEW {t}_v TO {t}_sums AS SELECT a, sum(v) AS v FROM {t} GROUP BY a",
            "CREATE MATERIALIZED VIEW {t}_w TO {t}_last AS SELECT a, v + 1000 AS v FROM {t}",
        ),
        True,
        "SELECT * FROM (SELECT 's', a, v FROM {t}_sums FINAL UNION ALL SELECT 'l', a, v FROM {t}_last) ORDER BY ALL",
    ),
]  # fmt: skip


def create(direct: Endpoint, kind: Kind, table: str) -> None:
    for statement in kind.create:
        direct.sql(statement.replace("{t}", table))


def insert_in_order(tested: Endpoint, table: str, together: bool) -> list[Reply]:
    """What some engines make of rows depends on their order."""
    query = f"INSERT INTO {table} FORMAT JSONEachRow"
    if not together:
        return [tested.insert(query, body) for body in BODIES]
    with Batch(tested, table, query) as batch:
        return batch.add(*BODIES).flush()


def was_gathered(tested: Endpoint, table: str) -> bool:
    log = f"SELECT count() FROM system.asynchronous_insert_log WHERE database = '{tested.database}' AND table = '{table}'"
    return tested.sql(log) != "0"


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_rows_are_those_of_direct_inserts(gateway: Gateway, tested: Endpoint, direct: Endpoint, kind: Kind) -> None:
    create(direct, kind, "one")
    create(direct, kind, "two")
    straight = [direct.insert("INSERT INTO two FORMAT JSONEachRow", body) for body in BODIES]
    replies = insert_in_order(tested, "one", kind.gathered)
    assert [(reply.status, reply.text) for reply in replies] == [(reply.status, reply.text) for reply in straight]
    assert direct.sql(kind.read.replace("{t}", "one")) == direct.sql(kind.read.replace("{t}", "two"))
    assert was_gathered(tested, "one") == kind.gathered


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_errors_are_those_of_direct_inserts(gateway: Gateway, tested: Endpoint, direct: Endpoint, kind: Kind) -> None:
    create(direct, kind, "t")
    for query, body in [
        ("INSERT INTO t FORMAT JSONEachRow", '{"a":"x"}'),
        ("INSERT INTO t (a, zork) FORMAT JSONEachRow", '{"a":1}'),
        ("INSERT INTO t (a, a) FORMAT JSONEachRow", '{"a":1}'),
    ]:
        assert tested.insert(query, body).text == direct.insert(query, body).text, query


# What collapses rows by a mark, with a good payload, bad ones, and the columns of one that leaves the mark out.
MARKED = [
    ("CollapsingMergeTree(s)", "a UInt64, s Int8", '{"a":1,"s":-1}', ['{"a":1,"s":0}', '{"a":1,"s":1}{"a":2,"s":2}', '{"a":1}']),
    ("ReplacingMergeTree(a, `d e`)", "a UInt64, `d e` UInt8", '{"a":1}{"a":2,"d e":1}', ['{"a":1,"d e":2}', '{"a":1,"d e":255}']),
]  # fmt: skip


@pytest.mark.parametrize(("engine", "columns", "good", "bad"), MARKED, ids=["Sign", "is_deleted"])
@pytest.mark.parametrize("ack", ["disk", "memory"])
def test_a_wrong_mark_is_refused_before_it_is_acknowledged(
    gateway: Gateway, tested: Endpoint, direct: Endpoint, engine: str, columns: str, good: str, bad: list[str], ack: str
) -> None:
    direct.sql(f"CREATE TABLE t ({columns}) ENGINE = {engine} ORDER BY a")
    into, log = "INSERT INTO t FORMAT JSONEachRow", f"FROM system.asynchronous_insert_log WHERE database = '{direct.database}'"
    for body in bad:
        reply = tested.insert(into, body, windrow_ack=ack)
        assert (reply.code, reply.text) == (117, direct.insert(into, body).text)
        # Where ClickHouse doesn't look at them, they are stored.
        assert tested.insert(into, body, windrow_ack=ack, optimize_on_insert=0).status == 200
    assert tested.sql(f"SELECT status, count() {log} GROUP BY status") == f"FlushError\t{len(bad)}"
    assert tested.insert(into, good, windrow_ack=ack).status == 200
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert tested.sql(f"SELECT count() {log} AND status = 'Ok'") == "1", "a good one is gathered"
    assert tested.sql(f"SELECT count() FROM system.windrow_dead_letters WHERE database = '{direct.database}'") == "0"


def test_a_mark_that_is_left_out_is_as_good_as_its_default(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (a UInt64, s Int8 DEFAULT 1) ENGINE = CollapsingMergeTree(s) ORDER BY a")
    assert tested.insert("INSERT INTO t FORMAT JSONEachRow", '{"a":1}', wait_for_async_insert=0).status == 200
    assert tested.insert("INSERT INTO t (a) FORMAT CSV", "2\n", wait_for_async_insert=0).status == 200
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    log = f"SELECT count() FROM system.asynchronous_insert_log WHERE database = '{direct.database}' AND status = 'Ok'"
    assert tested.sql(log) == "2"
    assert direct.sql("SELECT sum(s) FROM t") == "2"


@pytest.mark.parametrize("engine", ["Atomic", "Memory"])
def test_databases_of_every_kind(gateway: Gateway, tested: Endpoint, direct: Endpoint, engine: str) -> None:
    other = f"{direct.database}_{engine}".lower()
    direct.sql(f"CREATE DATABASE {other} ENGINE = {engine}")
    try:
        for table in ("one", "two"):
            direct.sql(f"CREATE TABLE {other}.{table} ({COLUMNS}) ENGINE = Memory")
        there, straight = tested.using(other), direct.using(other)
        replies = insert_in_order(there, "one", together=True)
        assert {reply.status for reply in replies} == {200}
        for body in BODIES:
            straight.insert("INSERT INTO two FORMAT JSONEachRow", body)
        assert straight.sql("SELECT * FROM one ORDER BY ALL") == straight.sql("SELECT * FROM two ORDER BY ALL")
        assert was_gathered(there, "one")
    finally:
        direct.sql(f"DROP DATABASE {other}")


def test_a_temporary_table_is_its_sessions_own(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """An ordinary table of the same name gets nothing of it."""
    direct.sql(f"CREATE TABLE t ({COLUMNS}) ENGINE = MergeTree ORDER BY a")
    session = {"session_id": direct.database}
    tested.sql(f"CREATE TEMPORARY TABLE t ({COLUMNS})", **session)
    assert tested.insert("INSERT INTO t FORMAT JSONEachRow", BODIES[0], **session).status == 200
    assert tested.sql("SELECT a, v FROM t", **session) == "1\t10"
    assert direct.sql("SELECT count() FROM t") == "0"
