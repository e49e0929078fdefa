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


PARTITION_COLUMNS = "a UInt64, n Int64, s LowCardinality(String), d Date, t DateTime, u DateTime64(3, 'America/New_York')"
# Keys, and a row whose partition changes with each number.
PARTITION_KEYS = [
    ("a", '{"a":%d}'),
    ("a % 97", '{"a":%d}'),
    ("intDiv(n, 10)", '{"n":-%d0}'),
    ("s", '{"s":"%d"}'),
    ("(s, toYYYYMM(d))", '{"s":"%d","d":"2024-01-05"}'),
    ("toYYYYMM(d)", '{"d":"2024-%02d-15"}'),
    ("toStartOfWeek(t)", '{"t":"2024-03-%02d 00:00:00"}'),
    ("toMonday(u)", '{"u":"2024-03-%02d 23:30:00"}'),
    ("toDate(u)", '{"u":"2024-03-%02d 00:30:00"}'),
]


@pytest.mark.parametrize(("key", "row"), PARTITION_KEYS)
def test_a_batch_of_many_partitions_is_cut(gateway: Gateway, tested: Endpoint, direct: Endpoint, key: str, row: str) -> None:
    """Each insert is within the limit, and their batch is not. The cuts are where they have to be, so nothing is refused."""
    direct.sql(f"CREATE TABLE t ({PARTITION_COLUMNS}) ENGINE = MergeTree PARTITION BY {key} ORDER BY tuple()")
    bodies = [row % n for n in range(1, 13)] * 2
    limit = {**HELD_NOT_WAITING, "max_partitions_per_insert_block": 2}
    for body in bodies:
        assert tested.insert(INTO_T, body, **limit).status == 200
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert direct.sql("SELECT count() FROM t") == "24"
    assert metric(gateway, "windrow_flush_narrowings", direct.database) == 0
    stores = set(tested.sql(f"SELECT flush_query_id FROM system.asynchronous_insert_log WHERE database = '{direct.database}'").split())
    assert len(stores) == fewest_stores(direct, bodies, 2), "no more cuts than are needed"


def fewest_stores(direct: Endpoint, bodies: list[str], limit: int) -> int:
    """As ClickHouse tells their partitions: inserts in their order, each store as long as the limit allows."""
    direct.sql("CREATE TABLE alone AS t")
    stores, current = 1, set()
    for body in bodies:
        direct.sql("TRUNCATE TABLE alone")
        assert direct.insert("INSERT INTO alone FORMAT JSONEachRow", body).status == 200
        current |= set(direct.sql("SELECT DISTINCT _partition_id FROM alone").split())
        if len(current) > limit:
            stores, current = stores + 1, set(direct.sql("SELECT DISTINCT _partition_id FROM alone").split())
    return stores


def test_a_key_that_is_not_understood_is_narrowed(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (a UInt64) ENGINE = MergeTree PARTITION BY cityHash64(a) ORDER BY tuple()")
    with Batch(tested, max_partitions_per_insert_block=3) as batch:
        replies = batch.add(*(rows(n) for n in range(16))).flush()
    assert verdicts(replies) == [None] * 16
    assert ids(direct) == list(range(16))


def test_an_insert_of_too_many_partitions_fails_alone(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (a UInt64) ENGINE = MergeTree PARTITION BY a ORDER BY tuple()")
    with Batch(tested, max_partitions_per_insert_block=3) as batch:
        replies = batch.add(rows(1), rows(1, 2, 3, 4), rows(5), rows(6)).flush()
    assert verdicts(replies) == [None, 252, None, None]
    assert replies[1].text == direct.insert(INTO_T, rows(1, 2, 3, 4), max_partitions_per_insert_block=3).text
    assert ids(direct) == [1, 5, 6]


def test_a_limit_that_only_warns_cuts_nothing(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (a UInt64) ENGINE = MergeTree PARTITION BY a ORDER BY tuple()")
    lenient = {"max_partitions_per_insert_block": 1, "throw_on_max_partitions_per_insert_block": 0}
    with Batch(tested, **lenient) as batch:
        assert verdicts(batch.add(rows(1), rows(2), rows(3)).flush()) == [None] * 3
    log = f"SELECT uniqExact(flush_query_id) FROM system.asynchronous_insert_log WHERE database = '{direct.database}'"
    assert tested.sql(log) == "1"


# What throws while a part is written, when those of other partitions are written already.
THROWS_IN_A_PART = [
    "ORDER BY intDiv(100, a)",
    "ORDER BY (p, intDiv(100, a)) PRIMARY KEY p",
    "ORDER BY p",
]


@pytest.mark.parametrize("order", THROWS_IN_A_PART)
@pytest.mark.parametrize("key", ["p", "p + 1"])
@pytest.mark.parametrize("statement", [INTO_T, "INSERT INTO t FORMAT TSV"])
def test_a_part_that_can_not_be_written_leaves_no_other(
    gateway: Gateway, tested: Endpoint, direct: Endpoint, order: str, key: str, statement: str
) -> None:
    """ClickHouse writes a part per partition. Were some of them kept, the rows would be there twice after narrowing."""
    projection = ", PROJECTION q (SELECT sum(intDiv(100, a)) GROUP BY p)" if order == "ORDER BY p" else ""
    direct.sql(f"CREATE TABLE t (p UInt8, a UInt8{projection}) ENGINE = MergeTree PARTITION BY {key} {order}")
    line = "%d\t%d\n" if statement.endswith("TSV") else '{"p":%d,"a":%d}\n'
    bodies = [line % (p, 1) for p in range(8)] + [line % (99, 0)]
    with Batch(tested, query=statement) as batch:
        replies = batch.add(*bodies).flush()
    assert verdicts(replies) == [None] * 8 + [153]
    assert replies[-1].text == direct.insert(statement, bodies[-1]).text
    assert direct.sql("SELECT p, count() FROM t GROUP BY p ORDER BY p").split() == [w for p in range(8) for w in (str(p), "1")]


def test_a_clients_bound_on_open_parts_does_not_hold_for_a_batch(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """With few of them open, some would be kept when another fails."""
    direct.sql("CREATE TABLE t (p UInt8, a UInt8) ENGINE = MergeTree PARTITION BY p ORDER BY intDiv(100, a)")
    bound = {"max_insert_delayed_streams_for_parallel_write": 1}
    with Batch(tested, **bound) as batch:
        replies = batch.add(*(f'{{"p":{p},"a":{int(p != 5)}}}' for p in range(6))).flush()
    assert verdicts(replies) == [None] * 5 + [153]
    assert direct.sql("SELECT count(), uniqExact(p) FROM t").split() == ["5", "5"]


def test_limits_of_blocks_do_not_cut_a_batch(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """A batch that ClickHouse took in blocks could be stored in part, and doubled by narrowing it down."""
    make_table(direct, "a UInt64, CONSTRAINT small CHECK a < 100")
    strict = {"use_strict_insert_block_limits": 1, "max_insert_block_size": 1, "min_insert_block_size_rows": 1}
    with Batch(tested, **strict) as batch:
        replies = batch.add(rows(1), rows(2), rows(500), rows(3)).flush()
    assert verdicts(replies) == [None, None, 469, None]
    assert (ids(direct), parts_made(direct)) == ([1, 2, 3], 1)
