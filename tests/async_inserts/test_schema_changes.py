"""Tables that change while inserts are held: each insert ends as it would in ClickHouse's own queue, where an insert's columns
are settled when it comes and looked up by name when it is flushed."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations

import pytest

from harness.dead_letters import DeadLetters
from harness.endpoint import Endpoint, Reply
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.gathered import Batch
from harness.inserts import HELD_NOT_WAITING, INTO_T, ids, make_table, rows
from harness.users import TESTER

NAMING_A = "INSERT INTO t (a) FORMAT JSONEachRow"
NAMING_BOTH = "INSERT INTO t (a, b) FORMAT JSONEachRow"
COLUMNS = "a UInt64, b String"


def both_columns(number: int, b: str | None = None) -> str:
    return json.dumps({"a": number, "b": f"b{number}" if b is None else b})


def statuses(replies: list[Reply]) -> list[int]:
    return [reply.status for reply in replies]


@pytest.fixture(params=["through the gateway", "directly"])
def ddl(request: pytest.FixtureRequest, gateway: Gateway, tested: Endpoint, direct: Endpoint) -> Endpoint:
    """Who changes the table."""
    return tested if request.param == "through the gateway" else direct


def test_a_dropped_column_fails_those_who_named_it(tested: Endpoint, direct: Endpoint, ddl: Endpoint) -> None:
    make_table(direct, COLUMNS)
    with Batch(tested) as batch:
        for n in range(0, 99, 3):
            batch.add(both_columns(n), query=NAMING_BOTH).add(both_columns(n + 1)).add(rows(n + 2), query=NAMING_A)
        batch.add(rows(99), query=NAMING_A)
        ddl.sql("ALTER TABLE t DROP COLUMN b")
        replies = batch.flush()
    assert len(replies) == 100
    expected = direct.insert(NAMING_BOTH, both_columns(1))
    for n, reply in enumerate(replies):
        # A statement without a list means all columns that there were.
        lost = n < 99 and n % 3 < 2
        assert (reply.status, reply.text) == ((expected.status, expected.text) if lost else (200, "")), n
    assert expected.code == 16
    assert ids(direct) == [*range(2, 99, 3), 99]


def test_an_added_column_is_filled_in(tested: Endpoint, direct: Endpoint, ddl: Endpoint) -> None:
    make_table(direct, COLUMNS)
    with Batch(tested) as batch:
        batch.add(both_columns(1)).add(rows(2), query=NAMING_A)
        ddl.sql("ALTER TABLE t ADD COLUMN c UInt64 DEFAULT a + 40 FIRST")
        assert statuses(batch.flush()) == [200, 200]
    assert direct.sql("SELECT a, b, c FROM t ORDER BY a") == "1\tb1\t41\n2\t\t42"


def test_a_modified_column_takes_converted_values(tested: Endpoint, direct: Endpoint, ddl: Endpoint) -> None:
    make_table(direct, "a UInt64, b UInt32")
    with Batch(tested) as batch:
        batch.add('{"a":1,"b":7}', '{"a":2,"b":4000000000}')
        ddl.sql("ALTER TABLE t MODIFY COLUMN b String")
        assert statuses(batch.flush()) == [200, 200]
    assert direct.sql("SELECT a, b FROM t ORDER BY a") == "1\t7\n2\t4000000000"


def test_values_that_do_not_convert_fail_their_own_insert(tested: Endpoint, direct: Endpoint, ddl: Endpoint) -> None:
    make_table(direct, COLUMNS)
    with Batch(tested) as batch:
        batch.add(both_columns(1, "10"), both_columns(2, "ten"), both_columns(3, "30"))
        ddl.sql("ALTER TABLE t MODIFY COLUMN b UInt32")
        replies = batch.flush()
    assert statuses(replies) == [200, 400, 200]
    assert replies[1].code in (6, 27, 72), replies[1].text
    assert direct.sql("SELECT a, b FROM t ORDER BY a") == "1\t10\n3\t30"


def test_a_renamed_column_is_missed_by_those_who_named_it(tested: Endpoint, direct: Endpoint, ddl: Endpoint) -> None:
    make_table(direct, COLUMNS)
    with Batch(tested) as batch:
        batch.add(both_columns(1)).add(both_columns(2), query=NAMING_BOTH).add(rows(3), query=NAMING_A)
        ddl.sql("ALTER TABLE t RENAME COLUMN b TO c")
        replies = batch.flush()
    assert [reply.code for reply in replies[:2]] == [16, 16]
    assert replies[2].status == 200
    assert direct.sql("SELECT a, c FROM t") == "3\t"


def test_columns_that_swap_their_names_keep_their_values(tested: Endpoint, direct: Endpoint, ddl: Endpoint) -> None:
    """By name: a value never lands in the column that took another's place."""
    make_table(direct, "a UInt64, b String, c String")
    with Batch(tested) as batch:
        batch.add('{"a":1,"b":"to b","c":"to c"}')
        for old, new in (("b", "x"), ("c", "b"), ("x", "c")):
            ddl.sql(f"ALTER TABLE t RENAME COLUMN {old} TO {new}")
        assert statuses(batch.flush()) == [200]
    assert direct.sql("SELECT b, c FROM t") == "to b\tto c"


def test_a_renamed_table_is_not_there(tested: Endpoint, direct: Endpoint, ddl: Endpoint) -> None:
    make_table(direct, COLUMNS)
    with Batch(tested) as batch:
        batch.add(both_columns(1), both_columns(2))
        ddl.sql("RENAME TABLE t TO elsewhere")
        replies = batch.flush()
    expected = direct.insert(INTO_T, both_columns(1))
    assert [(reply.status, reply.code) for reply in replies] == [(404, 60)] * 2 == [(expected.status, expected.code)] * 2
    assert direct.sql("SELECT count() FROM elsewhere") == "0"


def test_exchanged_tables_are_found_by_their_names(tested: Endpoint, direct: Endpoint, ddl: Endpoint) -> None:
    make_table(direct, COLUMNS)
    make_table(direct, "b String, a UInt64", name="other")
    with Batch(tested) as batch:
        batch.add(both_columns(1), both_columns(2))
        ddl.sql("EXCHANGE TABLES t AND other")
        assert statuses(batch.flush()) == [200, 200]
    assert direct.sql("SELECT a, b FROM t ORDER BY a") == "1\tb1\n2\tb2"
    assert direct.sql("SELECT count() FROM other") == "0"


def test_a_dropped_table_is_not_there(tested: Endpoint, direct: Endpoint, ddl: Endpoint) -> None:
    make_table(direct, COLUMNS)
    with Batch(tested) as batch:
        batch.add(both_columns(1)).add(rows(2), query=NAMING_A)
        ddl.sql("DROP TABLE t SYNC")
        replies = batch.flush()
    assert [(reply.status, reply.code) for reply in replies] == [(404, 60)] * 2


@pytest.mark.parametrize(("columns", "left"), [(COLUMNS, "1\n2"), ("a UInt64, z String", "2")])
def test_a_table_made_anew_takes_what_fits(
    tested: Endpoint, direct: Endpoint, ddl: Endpoint, columns: str, left: str
) -> None:
    make_table(direct, COLUMNS)
    with Batch(tested) as batch:
        batch.add(both_columns(1)).add(rows(2), query=NAMING_A)
        ddl.sql("DROP TABLE t SYNC")
        ddl.sql(f"CREATE TABLE t ({columns}) ENGINE = MergeTree ORDER BY a")
        replies = batch.flush()
    assert [reply.code for reply in replies] == ([None, None] if columns == COLUMNS else [16, None])
    assert direct.sql("SELECT a FROM t ORDER BY a") == left


def test_a_column_left_to_its_default_may_be_dropped(tested: Endpoint, direct: Endpoint, ddl: Endpoint) -> None:
    """Its rows bring nothing for it: they are stored, as they would be a moment later."""
    make_table(direct, "a UInt64, b String DEFAULT 'x'")
    with Batch(tested) as batch:
        batch.add(rows(1)).add(both_columns(2))
        ddl.sql("ALTER TABLE t DROP COLUMN b")
        replies = batch.flush()
    assert [reply.code for reply in replies] == [None, 16]
    assert ids(direct) == [1]


def test_who_does_not_wait_finds_the_error_in_the_log(tested: Endpoint, direct: Endpoint, ddl: Endpoint) -> None:
    make_table(direct, COLUMNS)
    for number, query in enumerate((NAMING_A, NAMING_BOTH, INTO_T)):
        body = rows(number) if query == NAMING_A else both_columns(number)
        assert tested.insert(query, body, **HELD_NOT_WAITING).status == 200
    ddl.sql("ALTER TABLE t DROP COLUMN b")
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    log = f"SELECT status, exception LIKE 'Code: 16.%' FROM system.asynchronous_insert_log WHERE database = '{tested.database}'"
    assert sorted(tested.sql(log).splitlines()) == ["FlushError\t1", "FlushError\t1", "Ok\t0"]
    assert ids(direct) == [0]


@pytest.mark.parametrize("change", [
    "ALTER TABLE t ADD COLUMN c UInt64",
    "ALTER TABLE t DROP COLUMN b",
    "ALTER TABLE t RENAME COLUMN b TO d",
    "ALTER TABLE t MODIFY COLUMN b UInt64",
])  # fmt: skip
def test_inserts_after_the_change_see_it(tested: Endpoint, direct: Endpoint, ddl: Endpoint, change: str) -> None:
    """What was prepared before the change is not used after it, or fails and is prepared anew."""
    make_table(direct, COLUMNS)
    make_table(direct, COLUMNS, name="straight")
    assert tested.insert(INTO_T, both_columns(1, "5")).status == 200
    ddl.sql(change)
    direct.sql(change.replace(" t ", " straight "))
    tested.insert(INTO_T, '{"a":2}')
    reply = tested.insert(INTO_T, '{"a":3,"b":"7"}')
    expected = direct.insert("INSERT INTO straight FORMAT JSONEachRow", '{"a":3,"b":"7"}')
    assert (reply.status, reply.code) == (expected.status, expected.code)
    assert direct.sql("SELECT * FROM t WHERE a = 3") == direct.sql("SELECT * FROM straight WHERE a = 3")


def test_values_of_a_column_added_elsewhere_are_kept(start_gateway) -> None:
    """A field that no column had is asked about again, though what is known of the table is still believed."""
    gateway: Gateway = start_gateway("[gather]\nschema_ttl_ms = 3_600_000\nadmission_ttl_ms = 3_600_000\n")
    tested, direct = gateway.http.as_user(TESTER.name, TESTER.password), gateway.direct
    make_table(direct)
    assert tested.insert(INTO_T, '{"a":1,"later":"lost"}').status == 200
    direct.sql("ALTER TABLE t ADD COLUMN later String")
    assert tested.insert(INTO_T, '{"a":2}').status == 200

    def is_kept() -> bool:
        assert tested.insert(INTO_T, '{"a":3,"later":"kept"}').status == 200
        return direct.sql("SELECT count() FROM t WHERE later = 'kept'") != "0"

    eventually(is_kept, "the value of the new column is kept")
    assert direct.sql("SELECT DISTINCT later FROM t WHERE a < 3") == ""


NUMBERS = [
    "Int8", "Int64", "UInt8", "UInt256", "Float32", "Float64", "Bool", "Decimal(18, 3)", "Decimal(18, 6)", "String",
    "Nullable(Float64)",
]  # fmt: skip
TIMES = ["Date", "Date32", "DateTime", "DateTime64(3)", "DateTime64(6)", "String", "Nullable(DateTime)"]
TEXTS = [
    "String", "FixedString(1)", "FixedString(3)", "LowCardinality(String)", "Nullable(String)",
    "Enum8('a' = 1, 'b' = 2)", "Enum8('b' = 1, 'a' = 2)", "Enum16('a' = 1, 'b' = 2)",
]  # fmt: skip
INNER = ["Int32", "Float32", "Float64", "Decimal(18, 3)"]
#: Old and new type, and a value as JSON that a cast might change.
CHANGES = [
    *((*pair, value) for pair in permutations(NUMBERS, 2) for value in ("3.141592", "1")),
    *((*pair, '"2024-03-04 05:06:07.891234"') for pair in permutations(TIMES, 2)),
    *((*pair, '"a"') for pair in permutations(TEXTS, 2)),
    *((f"Array({was})", f"Array({now})", "[0.1, 3]") for was, now in permutations(INNER, 2)),
    *((f"Map(String, {was})", f"Map(String, {now})", '{"k": 0.1}') for was, now in permutations(INNER, 2)),
    *((f"Tuple(a {was}, b {now})", f"Tuple(b {was}, a {now})", '{"a": 3, "b": 4}') for was, now in permutations(INNER, 2)),
]  # fmt: skip
FOREVER = "[gather]\nschema_ttl_ms = 3_600_000\nadmission_ttl_ms = 3_600_000\n"


def test_values_are_never_cast_in_silence(start_gateway: Callable[..., Gateway]) -> None:
    """What the gateway reads for the type that a column had is stored as ClickHouse reads it for the one that it has, or
    refused to whoever waits for it."""
    gateway = start_gateway(FOREVER)
    tested, direct = gateway.http.as_user(TESTER.name, TESTER.password), gateway.direct
    create = "CREATE OR REPLACE TABLE {} (id UInt8, v {}) ENGINE = Memory"
    with ThreadPoolExecutor(8) as pool:

        def change(number: int) -> tuple[dict[str, str], Reply]:
            was, now, value = CHANGES[number]
            name = f"t{number}"
            query = f"INSERT INTO {name} FORMAT JSONEachRow"
            direct.sql(create.format(name, was))
            tested.insert(query, '{"id":0}', async_insert=1)
            direct.sql(create.format(name, now))
            body = '{{"id":{},"v":{}}}'.format
            reply = tested.insert(query, body(1, value), async_insert=1)
            direct.insert(query, body(2, value))
            rows = direct.sql(f"SELECT id, tuple(v) FROM {name} WHERE id > 0").splitlines()
            return dict(row.split("\t", 1) for row in rows), reply

        found = list(pool.map(change, range(len(CHANGES))))
    wrong = {
        CHANGES[number]: stored for number, (stored, _) in enumerate(found) if "1" in stored and stored["1"] != stored.get("2")
    }
    assert wrong == {}
    for number, (stored, reply) in enumerate(found):
        assert (reply.status == 200) == ("1" in stored), (CHANGES[number], reply)
    assert sum("1" in stored for stored, _ in found) > len(found) / 4


@pytest.mark.parametrize(("was", "now", "value", "stored"), [
    ("Int32", "Float64", "3", "3"),
    ("Int32", "String", "3", "3"),
    ("String", "Int32", '"3"', "3"),
    ("Decimal(18, 3)", "Decimal(18, 6)", "3.141592", "3.141"),
    ("Date", "DateTime", '"2024-03-04"', "2024-03-04 00:00:00"),
    ("DateTime", "DateTime64(3)", '"2024-03-04 05:06:07"', "2024-03-04 05:06:07.000"),
    ("Float32", "Float64", "0.5", "0.5"),
    ("Int32", "Nullable(Int32)", "0", "0"),
    ("Nullable(Int32)", "Int32", "7", "7"),
    ("Nullable(Int32)", "Int32", "null", None),
    ("Decimal(18, 6)", "Decimal(18, 3)", "3.141592", None),
    ("DateTime64(3)", "DateTime", '"2024-03-04 05:06:07.891"', None),
    ("DateTime", "Date", '"2024-03-04 05:06:07"', None),
    ("Int64", "Float64", "9007199254740993", None),
    ("Int32", "UInt8", "300", None),
    ("Date32", "Date", '"1950-01-02"', None),
    ("Float64", "Float32", "0.1", None),
    ("Array(Float64)", "Array(Int32)", "[0.5]", None),
    ("Enum8('a' = 1, 'b' = 2)", "Enum8('b' = 1, 'a' = 2)", '"a"', None),
    ("Tuple(a Int32, b Int32)", "Tuple(b Int32, a Int32)", '{"a":3,"b":4}', "(4,3)"),
])  # fmt: skip
def test_what_was_acknowledged_is_cast_where_that_loses_nothing(
    gateway: Gateway, tested: Endpoint, direct: Endpoint, was: str, now: str, value: str, stored: str | None
) -> None:
    """Its rows exist nowhere else any more. What a cast would change is a dead letter, which has all of it."""
    letters = DeadLetters(gateway, direct.database)
    create = "CREATE OR REPLACE TABLE t (v {}) ENGINE = MergeTree ORDER BY tuple()"
    direct.sql(create.format(was))
    for ack in ("disk", "memory"):
        assert tested.insert(INTO_T, f'{{"v":{value}}}', windrow_ack=ack, **HELD_NOT_WAITING).status == 200
    direct.sql(create.format(now))
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert direct.sql("SELECT v FROM t").splitlines() == ([] if stored is None else [stored] * 2)
    assert letters.all() == [] if stored is not None else letters.come(2)
