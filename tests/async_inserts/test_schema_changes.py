"""Tables that change while inserts are held: each insert ends as it would in ClickHouse's own queue, where an insert's columns
are settled when it comes and looked up by name when it is flushed."""

from __future__ import annotations

import json

import pytest

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
