"""What an append is refused for names the batch, the row or the column, and leaves the table as it was."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from harness.endpoint import Endpoint, Reply
from harness.eventually import eventually
from harness.ordered import PATH, Append, native, text, varint
from harness.raw_http import RawConnection, head
from harness.users import ANN, JOE

GOOD = native(a=[1, 2, 3])


@pytest.fixture
def unchanged(direct: Endpoint) -> Iterator[None]:
    """The table has its one row before and after, and nothing is left beside it."""
    direct.sql("CREATE TABLE t (a Int64, CONSTRAINT positive CHECK a >= 0) ENGINE = MergeTree ORDER BY tuple()")
    direct.sql("INSERT INTO t VALUES (7)")
    yield
    assert direct.sql("SELECT groupArray(a) FROM t") == "[7]"
    query = f"SELECT count() FROM system.tables WHERE database = '{direct.database}' AND name LIKE '%windrow%'"
    eventually(lambda: direct.sql(query) == "0", "the staging tables are gone")


def refusal(append: Append, payloads: list[bytes], **parameters: object) -> Reply:
    for number, payload in enumerate(payloads):
        reply = append.put(number, payload, **parameters)
        if reply.status != 200:
            return reply
    return append.commit(len(payloads))


@pytest.mark.usefixtures("unchanged")
def test_a_violated_constraint_names_batch_and_row(tested: Endpoint) -> None:
    append = Append(tested, "t")
    reply = refusal(append, [GOOD] * 37 + [native(a=[1, 2, -3, 4])] + [GOOD] * 5)
    assert reply.code == 469, reply.text
    assert "`positive`" in reply.text and "windrow_append" not in reply.text, reply.text
    assert (reply.headers["x-windrow-batch"], reply.headers["x-windrow-row"]) == ("37", "2")
    status = append.status()
    assert status["state"] == "failed"
    assert (status["error"]["code"], status["error"]["batch"], status["error"]["row"]) == (469, 37, 2)
    later = append.put(99, GOOD)
    assert later.code == 469, "every later request is told the first error"


@pytest.mark.usefixtures("unchanged")
def test_a_column_that_the_table_has_not_is_named(tested: Endpoint) -> None:
    reply = refusal(Append(tested, "t"), [native(a=[1], unheard=[2])])
    assert (reply.status, reply.code) == (400, 16), reply.text
    assert "unheard" in reply.text


@pytest.mark.usefixtures("unchanged")
def test_a_batch_without_a_length_is_refused(tested: Endpoint) -> None:
    """Else it would be one of no rows, and what comes behind its head lost."""
    append = Append(tested, "t")
    target = f"{PATH}/{append.id}/batches/0?table={tested.database}.t&format=Native"
    with RawConnection(tested) as connection:
        connection.send(head("POST", target, (("Host", "x"), ("Authorization", tested.basic_auth()))) + b'{"a":1}\n')
        connection.end_sending()
        reply = connection.read_reply()
        assert (reply.status, reply.code, connection.rest()) == (411, 381, b"")


@pytest.mark.usefixtures("unchanged")
def test_columns_are_those_that_were_announced(tested: Endpoint) -> None:
    assert refusal(Append(tested, "t"), [GOOD], columns="a,b").code == 16


@pytest.mark.parametrize(
    ("column_type", "sent_type", "value"),
    [
        ("UInt8", "Int64", struct.pack("<q", 300)),
        ("Int32", "Float64", struct.pack("<d", 1.5)),
        ("Date", "String", text("soon")),
        ("Int64", "Nullable(Int64)", b"\x01" + struct.pack("<q", 0)),
    ],
)
def test_values_that_would_be_changed_are_refused(
    tested: Endpoint, direct: Endpoint, column_type: str, sent_type: str, value: bytes
) -> None:
    direct.sql(f"CREATE TABLE t (a {column_type}) ENGINE = MergeTree ORDER BY tuple()")
    payload = varint(1) + varint(1) + text("a") + text(sent_type) + value
    reply = refusal(Append(tested, "t"), [payload])
    assert reply.status == 400, reply.text
    assert "olumn a" in reply.text
    assert direct.sql("SELECT count() FROM t") == "0"


@pytest.mark.usefixtures("unchanged")
def test_rubbish_is_refused(tested: Endpoint) -> None:
    for rubbish in (b"\xff" * 50, GOOD[:-1], GOOD + b"\x01"):
        reply = refusal(Append(tested, "t"), [rubbish])
        assert reply.status == 400, (rubbish, reply.status, reply.text)


def test_a_table_that_is_not_there(tested: Endpoint) -> None:
    reply = refusal(Append(tested, "nowhere"), [GOOD])
    assert (reply.status, reply.code) == (404, 60), reply.text


@pytest.mark.usefixtures("unchanged")
def test_who_may_not_insert_may_not_append(tested: Endpoint, direct: Endpoint) -> None:
    reply = refusal(Append(tested.as_user("joe", "j"), "t"), [GOOD])
    assert reply.code == 497, reply.text
    assert refusal(Append(tested.as_user("joe", "wrong"), "t"), [GOOD]).status == 403


@pytest.mark.usefixtures("unchanged")
@pytest.mark.parametrize("columns", [None, "a", "b", "a,a", "m"])
def test_who_may_not_insert_hears_nothing_of_tables(tested: Endpoint, direct: Endpoint, columns: str | None) -> None:
    """The answer is that to an INSERT into a table that exists, for one that does not as well."""
    joe, parameters = direct.as_user(JOE.name, JOE.password), {} if columns is None else {"columns": columns}
    direct.sql("ALTER TABLE t ADD COLUMN m Int64 MATERIALIZED 1")
    refused = joe.insert("INSERT INTO t (a) FORMAT Native", b"").text.strip()
    assert "Code: 497" in refused and "INSERT ON" in refused, refused
    for database, table in [(direct.database, "t"), (direct.database, "nowhere"), ("nowhere", "t")]:
        append = Append(tested.using(database).as_user(JOE.name, JOE.password), table)
        reply = refusal(append, [GOOD], **parameters)
        assert reply.text.strip() == refused.replace(f"{direct.database}.t", f"{database}.{table}"), reply.text
        assert (reply.status, reply.headers["x-clickhouse-exception-code"]) == (500, "497")
        opened = append.commit(0, table=f"{database}.{table}", **parameters)
        assert opened.text == reply.text


def test_who_may_only_insert_may_append(tested: Endpoint, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (a Int64) ENGINE = MergeTree ORDER BY tuple()")
    reply = refusal(Append(tested.as_user(ANN.name, ANN.password), "t"), [GOOD, GOOD])
    assert reply.status == 200, reply.text
    assert direct.sql("SELECT groupArray(a) FROM t", max_threads=1) == "[1,2,3,1,2,3]"


@pytest.mark.usefixtures("unchanged")
def test_a_table_that_is_replaced_meanwhile_gets_nothing(tested: Endpoint, direct: Endpoint) -> None:
    append = Append(tested, "t")
    assert append.put(0, GOOD).status == 200
    direct.sql("CREATE TABLE other AS t")
    direct.sql("INSERT INTO other VALUES (7)")
    direct.sql("EXCHANGE TABLES t AND other")
    reply = append.commit(1)
    assert reply.status != 200
    assert direct.sql("SELECT groupArray(a) FROM other") == "[7]"


@pytest.mark.parametrize("has_view", [False, True])
def test_a_column_that_has_another_type_by_then_gets_nothing(tested: Endpoint, direct: Endpoint, has_view: bool) -> None:
    """Its batches were read for the type that it had."""
    direct.sql("CREATE TABLE t (a Int64) ENGINE = MergeTree ORDER BY tuple()")
    if has_view:
        direct.sql("CREATE MATERIALIZED VIEW v ENGINE = MergeTree ORDER BY tuple() AS SELECT a FROM t")
    append = Append(tested, "t")
    assert append.put(0, native(a=[1, 2])).status == 200
    direct.sql("ALTER TABLE t MODIFY COLUMN a Float64")
    assert append.commit(1).status != 200
    assert direct.sql("SELECT count() FROM t") == "0"


@pytest.mark.parametrize("change", ["DROP COLUMN a", "MODIFY COLUMN a Float64", "MODIFY COLUMN a Int16"])
def test_a_table_that_is_altered_before_the_first_batch_gets_nothing(
    tested: Endpoint, direct: Endpoint, change: str
) -> None:
    """Batches are read for the types that the table had when the append was opened; its staging table comes later."""
    direct.sql("CREATE TABLE t (a Int64, b Int64) ENGINE = MergeTree ORDER BY tuple()")
    append = Append(tested, "t")
    assert append.open().status == 201
    direct.sql(f"ALTER TABLE t {change}")
    append.put(0, native(a=[2**53 + 1], b=[1]))
    reply = append.commit(1)
    assert (reply.status, reply.code) == (400, 53), reply.text
    assert "Column a of" in reply.text and "windrow_append" not in reply.text, reply.text
    assert direct.sql("SELECT count() FROM t") == "0"


def test_nothing_is_left_when_a_failure_is_told(tested: Endpoint, direct: Endpoint) -> None:
    """Whoever drops the database next must not meet a staging table that is just being made or dropped."""
    direct.sql("CREATE TABLE t (a Int64) ENGINE = MergeTree ORDER BY tuple()")
    staging = "SELECT count() FROM system.tables WHERE database = currentDatabase() AND name LIKE '%windrow_append%'"
    for round_number in range(12):
        append = Append(tested, "t")
        assert append.put(0, native(a=[1])).status == 200
        match round_number % 3:
            case 0:
                assert append.put(1, b"no batch").status == 400
            case 1:
                assert append.put(1, native(b=[1])).status in (200, 400)
                assert append.commit(2).status == 400
            case _:
                assert append.abort().status == 200
        assert direct.sql(staging) == "0", round_number


def test_another_source_does_not_go_on_with_an_append(tested: Endpoint, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (a Int64, b Int64) ENGINE = MergeTree ORDER BY tuple()")
    append, payload = Append(tested, "t"), native(a=[1])
    assert append.put(0, payload, source="a.csv 17 bytes").status == 200
    assert append.status()["source"] == "a.csv 17 bytes"
    for other in ({"source": "b.csv 18 bytes"}, {"columns": "a"}, {"ordered": 0}, {"table": f"{direct.database}.u"}):
        reply = append.put(1, payload, **other)
        assert (reply.status, reply.code) == (409, 36), reply.text
        assert f"with {next(iter(other))} " in reply.text, reply.text
    assert append.put(1, payload, source="é").status == 400
    assert append.put(1, payload).status == 200
    assert append.commit(2).status == 200
    table = f"{direct.database}.t"
    assert append.commit(2, table=table, source="a.csv 17 bytes").status == 200
    assert append.commit(2, table=table, source="b.csv 18 bytes").status == 409
    assert direct.sql("SELECT count() FROM t") == "2"
