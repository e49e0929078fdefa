"""Appends into tables of every kind: partitions, views, engines without parts, columns that are computed."""

from __future__ import annotations

import json
import random

import pytest

from harness.endpoint import Endpoint
from harness.ordered import Append, native

BATCHES = [native(a=range(b * 10, b * 10 + 10)) for b in range(5)]
IN_ORDER = "[" + ",".join(str(a) for a in range(50)) + "]"


def append(tested: Endpoint, payloads: list[bytes], **parameters: object) -> dict:
    sent = Append(tested, "t")
    for number, payload in enumerate(payloads):
        reply = sent.put(number, payload, **parameters)
        assert reply.status == 200, reply.text
    reply = sent.commit(len(payloads))
    assert reply.status == 200, reply.text
    return json.loads(reply.body)


def all_of(direct: Endpoint, table: str = "t") -> str:
    return direct.sql(f"SELECT groupArray(a) FROM {table}", max_threads=1)


@pytest.mark.parametrize(
    ("definition", "atomic"),
    [
        ("ENGINE = MergeTree ORDER BY tuple()", "all"),
        ("ENGINE = MergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = 100", "all"),
        ("ENGINE = ReplacingMergeTree ORDER BY a", "all"),
        ("ENGINE = SummingMergeTree ORDER BY a", "all"),
        ("ENGINE = Memory", "block"),
        ("ENGINE = Log", "block"),
        ("ENGINE = TinyLog", "block"),
    ],
)
def test_engines(tested: Endpoint, direct: Endpoint, definition: str, atomic: str) -> None:
    direct.sql(f"CREATE TABLE t (a Int64, CONSTRAINT small CHECK a < 1000) {definition}")
    assert append(tested, BATCHES)["atomic"] == atomic
    assert all_of(direct) == IN_ORDER


def test_keys_indices_projections_and_codecs_move_along(tested: Endpoint, direct: Endpoint) -> None:
    direct.sql(
        "CREATE TABLE t (a Int64 CODEC(Delta, ZSTD), s LowCardinality(String) DEFAULT 'x' COMMENT 'c', "
        "d DateTime DEFAULT '2026-01-01 00:00:00' TTL d + INTERVAL 40 YEAR, INDEX i a TYPE minmax, "
        "PROJECTION p (SELECT s, count() GROUP BY s), CONSTRAINT small CHECK a < 1000) ENGINE = MergeTree "
        "PARTITION BY (a % 3, s) ORDER BY (s, a) TTL d + INTERVAL 50 YEAR SETTINGS min_bytes_for_wide_part = 0, "
        "index_granularity = 128"
    )
    assert append(tested, BATCHES)["atomic"] == "all"
    assert direct.sql("SELECT count(), sum(a), any(s) FROM t") == f"50\t{sum(range(50))}\tx"
    assert direct.sql("CHECK TABLE t", check_query_single_value_result=1) == "1"


def test_rows_whose_time_is_over_are_taken_too(tested: Endpoint, direct: Endpoint) -> None:
    """The table drops them when it likes; the append is whole."""
    direct.sql("CREATE TABLE t (a Int64, d DateTime DEFAULT '2001-01-01 00:00:00') ENGINE = MergeTree "
               "PARTITION BY a % 2 ORDER BY a TTL d + INTERVAL 1 DAY")
    for _ in range(5):
        assert append(tested, BATCHES)["rows"] == 50


def test_views_see_the_rows_once(tested: Endpoint, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (a Int64) ENGINE = MergeTree ORDER BY tuple()")
    direct.sql("CREATE TABLE seen (a Int64) ENGINE = MergeTree ORDER BY tuple()")
    direct.sql("CREATE MATERIALIZED VIEW v TO seen AS SELECT a FROM t WHERE a % 2 = 0")
    assert append(tested, BATCHES)["atomic"] == "block"
    assert all_of(direct) == IN_ORDER
    assert direct.sql("SELECT count(), sum(a) FROM seen") == f"25\t{sum(range(0, 50, 2))}"


def test_a_distributed_table_passes_rows_on(tested: Endpoint, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE shard (a Int64) ENGINE = MergeTree ORDER BY tuple()")
    direct.sql(f"CREATE TABLE t AS shard ENGINE = Buffer({direct.database}, shard, 1, 0, 0, 1, 1, 1, 1)")
    assert append(tested, BATCHES)["atomic"] == "block"
    direct.sql("OPTIMIZE TABLE t")
    assert all_of(direct, "shard") == IN_ORDER


def test_defaults_are_computed_and_columns_are_told_by_their_names(tested: Endpoint, direct: Endpoint) -> None:
    direct.sql(
        "CREATE TABLE t (z Int64 DEFAULT a * 2, a Int64, e Int64 EPHEMERAL 3, f Int64 DEFAULT e + 1, "
        "m Int64 MATERIALIZED a + 1, l Int64 ALIAS a + 7) ENGINE = MergeTree ORDER BY tuple()"
    )
    append(tested, [native(a=[1, 2])])
    append(tested, [native(e=[10], a=[3])])
    append(tested, [native(a=[4], z=[0])], columns="z,a")
    found = direct.sql("SELECT a, z, f, m, l FROM t ORDER BY a")
    assert found.splitlines() == ["1\t2\t4\t2\t8", "2\t4\t4\t3\t9", "3\t6\t11\t4\t10", "4\t0\t4\t5\t11"]


def test_the_same_with_views(tested: Endpoint, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (a Int64, e Int64 EPHEMERAL 3, f Int64 DEFAULT e + a, m Int64 MATERIALIZED a + 1) "
               "ENGINE = MergeTree ORDER BY tuple()")
    direct.sql("CREATE MATERIALIZED VIEW v ENGINE = Memory AS SELECT a, f FROM t")
    append(tested, [native(a=[1, 2]), native(a=[3])])
    append(tested, [native(a=[4], e=[10])])
    assert direct.sql("SELECT a, f, m FROM t ORDER BY a").splitlines() == ["1\t4\t2", "2\t5\t3", "3\t6\t4", "4\t14\t5"]
    assert direct.sql("SELECT groupArray((a, f)) FROM (SELECT * FROM v ORDER BY a)") == "[(1,4),(2,5),(3,6),(4,14)]"


def test_merges_keep_the_order(tested: Endpoint, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (a Int64) ENGINE = MergeTree ORDER BY tuple()")
    for start in (0, 10, 20, 30, 40):
        append(tested, [native(a=range(start, start + 10))])
    direct.sql("OPTIMIZE TABLE t FINAL")
    assert all_of(direct) == IN_ORDER


def test_unordered_appends_land_whole(tested: Endpoint, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (a Int64) ENGINE = MergeTree ORDER BY a")
    sent = Append(tested, "t")
    for number in random.Random(3).sample(range(5), 5):
        assert sent.put(number, BATCHES[number], ordered=0).status == 200
    assert sent.commit(5).status == 200
    assert all_of(direct) == IN_ORDER
