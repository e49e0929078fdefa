"""system.asynchronous_inserts and system.asynchronous_insert_log, in any SELECT."""

from __future__ import annotations

import gzip
import json

import pytest

from harness.endpoint import Endpoint
from harness.gateway import Gateway
from harness.inserts import HELD_NOT_WAITING, INTO_T, make_table, rows
from harness.users import ANN

QUEUE_TYPES = {
    "query": "String",
    "database": "String",
    "table": "String",
    "format": "String",
    "first_update": "DateTime64(6)",
    "total_bytes": "UInt64",
    "entries.query_id": "Array(String)",
    "entries.bytes": "Array(UInt64)",
}
LOG_TYPES = {
    "hostname": "LowCardinality(String)",
    "event_date": "Date",
    "event_time": "DateTime",
    "event_time_microseconds": "DateTime64(6)",
    "query": "String",
    "database": "LowCardinality(String)",
    "table": "LowCardinality(String)",
    "format": "LowCardinality(String)",
    "query_id": "String",
    "bytes": "UInt64",
    "rows": "UInt64",
    "exception": "String",
    "status": "Enum8('Ok' = 0, 'ParsingError' = 1, 'FlushError' = 2)",
    "data_kind": "Enum8('Parsed' = 0, 'Preprocessed' = 1)",
    "flush_time": "DateTime",
    "flush_time_microseconds": "DateTime64(6)",
    "flush_query_id": "String",
    "timeout_milliseconds": "UInt64",
}


def lines(tested: Endpoint, query: str) -> list[dict]:
    answer = tested.sql(query + " FORMAT JSONEachRow", output_format_json_quote_64bit_integers=0)
    return [json.loads(line) for line in answer.splitlines()]


@pytest.mark.parametrize(
    ("table", "types"), [("asynchronous_inserts", QUEUE_TYPES), ("asynchronous_insert_log", LOG_TYPES)]
)
def test_columns_and_types(gateway: Gateway, tested: Endpoint, table: str, types: dict[str, str]) -> None:
    answer = tested.sql(f"SELECT * FROM system.{table} LIMIT 0 FORMAT TSVWithNamesAndTypes").splitlines()
    assert dict(zip(answer[0].split("\t"), answer[1].replace("\\'", "'").split("\t"))) == types


@pytest.fixture
def held(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> Endpoint:
    make_table(direct)
    for number in (1, 2):
        reply = tested.insert(INTO_T, rows(number), **HELD_NOT_WAITING, query_id=f"held-{number}-{direct.database}")
        assert reply.status == 200
    return tested


def test_live_queue(held: Endpoint) -> None:
    [batch] = lines(held, f"SELECT * FROM system.asynchronous_inserts WHERE database = '{held.database}'")
    assert (batch["database"], batch["table"], batch["format"]) == (held.database, "t", "JSONEachRow")
    assert batch["entries.query_id"] == [f"held-{number}-{held.database}" for number in (1, 2)]
    assert batch["total_bytes"] == sum(batch["entries.bytes"]) > 0
    assert "INSERT INTO" in batch["query"]
    held.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert lines(held, f"SELECT * FROM system.asynchronous_inserts WHERE database = '{held.database}'") == []


@pytest.mark.parametrize(
    "query",
    [
        "SELECT count() FROM system.asynchronous_inserts WHERE database = '{d}'",
        "SELECT count() FROM system . asynchronous_inserts WHERE database = '{d}'",
        "SELECT count() FROM `system`.`asynchronous_inserts` WHERE database = '{d}'",
        'SELECT count() FROM "system"."asynchronous_inserts" AS q WHERE q.database = \'{d}\'',
        "SELECT count() FROM (SELECT * FROM system.asynchronous_inserts) WHERE database = '{d}'",
        "WITH q AS (SELECT * FROM system.asynchronous_inserts) SELECT count() FROM q WHERE database = '{d}'",
        "SELECT count() FROM system.tables AS t JOIN system.asynchronous_inserts AS q ON q.database = t.database AND q.table = t.name WHERE t.database = '{d}'",
        "SELECT count() FROM system.one WHERE '{d}' IN (SELECT database FROM system.asynchronous_inserts)",
        "SELECT countIf(system.asynchronous_inserts.database = '{d}') FROM system.asynchronous_inserts",
        "SELECT count() FROM system.asynchronous_inserts WHERE database = '{d}' -- system.asynchronous_insert_log",
        "SELECT count() /* 'system.asynchronous_inserts' */ FROM system.asynchronous_inserts WHERE database = '{d}';",
    ],
)  # fmt: skip
def test_queue_in_many_selects(held: Endpoint, query: str) -> None:
    assert held.sql(query.format(d=held.database)) == "1"


def test_queue_from_the_database_system(held: Endpoint) -> None:
    query = f"SELECT count() FROM asynchronous_inserts WHERE database = '{held.database}'"
    assert held.using("system").sql(query) == "1"


def test_names_in_strings_are_left_alone(gateway: Gateway, tested: Endpoint) -> None:
    text = "system.asynchronous_inserts"
    assert tested.sql(f"SELECT '{text}'") == text


def test_queue_with_parameters_and_external_tables(held: Endpoint) -> None:
    query = "SELECT count() FROM system.asynchronous_inserts WHERE database = {d:String}"
    assert held.sql(query, param_d=held.database) == "1"


def test_a_table_of_the_same_name_elsewhere(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, name="asynchronous_inserts")
    direct.sql("INSERT INTO asynchronous_inserts VALUES (7)")
    assert tested.sql("SELECT a FROM asynchronous_inserts") == "7"
    assert tested.sql(f"SELECT a FROM {direct.database}.asynchronous_inserts") == "7"


def test_log_of_what_was_stored(held: Endpoint) -> None:
    held.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    where = f"FROM system.asynchronous_insert_log WHERE database = '{held.database}' ORDER BY query_id"
    first, second = lines(held, f"SELECT * {where}")
    assert first["query_id"] == f"held-1-{held.database}"
    assert (first["status"], first["rows"], first["table"], first["exception"]) == ("Ok", 1, "t", "")
    assert first["bytes"] > 0
    assert first["flush_query_id"] == second["flush_query_id"] != ""
    assert held.sql(f"SELECT countIf(flush_time >= event_time AND flush_time_microseconds > 0) {where.split(' ORDER')[0]}") == "2"


def test_log_of_what_failed(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, "a UInt64, CONSTRAINT small CHECK a < 10")
    assert tested.insert(INTO_T, '{"a":"x"}').code == 27
    assert tested.insert(INTO_T, rows(100)).code == 469
    where = f"FROM system.asynchronous_insert_log WHERE database = '{direct.database}'"
    failed = {line["status"]: line for line in lines(tested, f"SELECT * {where}")}
    assert set(failed) == {"ParsingError", "FlushError"}
    assert "Code: 27." in failed["ParsingError"]["exception"]
    assert failed["ParsingError"]["rows"] == 0
    assert "Code: 469." in failed["FlushError"]["exception"]


def test_log_of_what_clickhouse_refused_at_once(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """An expression is ClickHouse's to read: it says at once what else is wrong, which is no error of parsing."""
    make_table(direct, "a UInt64, CONSTRAINT small CHECK a < 10")
    assert tested.insert("INSERT INTO t VALUES", "(10 + 10)").code == 469
    assert tested.insert("INSERT INTO t VALUES", "(nosuch(1))").code == 46
    log = f"SELECT * FROM system.asynchronous_insert_log WHERE database = '{direct.database}' ORDER BY event_time_microseconds"
    violated, unknown = lines(tested, log)
    assert (violated["status"], violated["bytes"]) == ("FlushError", len("(10 + 10)"))
    assert violated["flush_time"] >= violated["event_time"]
    assert (unknown["status"], unknown["flush_time"][:4]) == ("ParsingError", "1970")


@pytest.mark.parametrize("payload", ["", "[]", " \n "], ids=["nothing", "array", "blanks"])
@pytest.mark.parametrize("wait", [0, 1])
def test_log_of_what_has_no_rows(tested: Endpoint, gateway: Gateway, direct: Endpoint, payload: str, wait: int) -> None:
    make_table(direct)
    assert tested.insert(INTO_T, payload, wait_for_async_insert=wait, query_id=f"empty-{direct.database}").status == 200
    [row] = lines(tested, f"SELECT * FROM system.asynchronous_insert_log WHERE database = '{direct.database}'")
    assert (row["status"], row["rows"], row["bytes"], row["exception"]) == ("Ok", 0, len(payload), "")
    assert row["query_id"] == f"empty-{direct.database}" and row["flush_time"] >= row["event_time"]


@pytest.mark.parametrize("into", ["INSERT INTO t FORMAT CSV\n", "INSERT INTO t VALUES ", "INSERT INTO t FORMAT JSONEachRow\n"])
@pytest.mark.parametrize("packed", [False, True])
def test_log_of_the_size_of_what_nobody_could_read(
    tested: Endpoint, gateway: Gateway, direct: Endpoint, into: str, packed: bool
) -> None:
    """That of the payload: without the statement before it, and unpacked."""
    make_table(direct)
    payload, headers = "('x')" * 20, {"Content-Encoding": "gzip"} if packed else {}
    body = (into + payload).encode()
    assert tested.request(None, gzip.compress(body) if packed else body, headers=headers).status == 400
    [row] = lines(tested, f"SELECT * FROM system.asynchronous_insert_log WHERE database = '{direct.database}'")
    assert (row["status"], row["bytes"]) == ("ParsingError", len(payload))


# As `formatQuerySingleLine` of ClickHouse writes them, with the database and all columns named.
SPELLINGS = [
    ("INSERT INTO t FORMAT JSONEachRow", "{t} (a, `b c`, `values`, n.x, D) FORMAT JSONEachRow"),
    ("insert /* c */ into table `t` -- c\n format jsoneachrow", "{t} (a, `b c`, `values`, n.x, D) FORMAT jsoneachrow"),
    ("INSERT INTO t(`D`,a) FORMAT JSONEachRow", "{t} (D, a) FORMAT JSONEachRow"),
    ("INSERT INTO {d}.t (`b c`) SETTINGS async_insert=1,  date_time_input_format = 'basic' FORMAT JSONEachRow",
     "{t} (`b c`) SETTINGS async_insert = 1, date_time_input_format = 'basic' FORMAT JSONEachRow"),
    ("INSERT INTO t VALUES", "{t} (a, `b c`, `values`, n.x, D) FORMAT Values"),
    ("INSERT INTO t SETTINGS max_threads=1 VALUES", "{t} (a, `b c`, `values`, n.x, D) SETTINGS max_threads = 1 FORMAT Values"),
]  # fmt: skip


def test_log_of_statements_however_they_are_written(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, "a UInt64, `b c` UInt8, `values` UInt8, m UInt8 MATERIALIZED 1, n Nested(x UInt8), D UInt8 DEFAULT 7")
    for number, (statement, expected) in enumerate(SPELLINGS):
        query_id = f"spelt-{number}-{direct.database}"
        payload = "(1, 2, 3, [4], 5)" if statement.endswith("VALUES") else "{}"
        assert tested.insert(statement.format(d=direct.database), payload, query_id=query_id).status == 200
        log = f"SELECT query FROM system.asynchronous_insert_log WHERE query_id = '{query_id}' FORMAT TSVRaw"
        expected = expected.format(t=f"INSERT INTO {direct.database}.t")
        assert tested.sql(log) == expected.replace("n.x", "`n.x`")
        assert direct.sql("SELECT formatQuerySingleLine({q:String}) FORMAT TSVRaw", param_q=expected).strip() == expected


def test_everybody_sees_his_own(held: Endpoint, direct: Endpoint) -> None:
    """ann may not SHOW USERS, tester may."""
    ann = held.as_user(ANN.name, ANN.password)
    assert ann.insert(INTO_T, rows(3), **HELD_NOT_WAITING, query_id=f"anns-{direct.database}").status == 200
    query = f"SELECT arrayJoin(entries.query_id) AS id FROM system.asynchronous_inserts WHERE database = '{direct.database}' ORDER BY id"
    assert ann.sql(query) == f"anns-{direct.database}"
    assert len(held.sql(query).splitlines()) == 3
    held.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    log = f"SELECT query_id FROM system.asynchronous_insert_log WHERE database = '{direct.database}' ORDER BY query_id"
    assert ann.sql(log) == f"anns-{direct.database}"
    assert len(held.sql(log).splitlines()) == 3
