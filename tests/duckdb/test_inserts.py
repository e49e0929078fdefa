"""Inserts into DuckDB: every format, every ack level, and what is refused with which words."""

from __future__ import annotations

import gzip
import json
import uuid

import pytest

from harness.duckdb import READER, DuckDbGateway
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.every_format import FORMATS, expect_the_rows_of, source_of_everything
from harness.dead_letters import DeadLetters

# Columns in ClickHouse, in DuckDB, and expressions of a number in ClickHouse's SQL.
COLUMNS = [
    ("n", "UInt32", "UINTEGER NOT NULL", "toUInt32(number)"),
    ("i", "Nullable(Int64)", "BIGINT", "if(number % 7 = 3, NULL, toInt64(number) * -9007199254740993)"),
    ("f", "Nullable(Float64)", "DOUBLE", "if(number % 5 = 4, NULL, number / 7)"),
    ("d", "Nullable(Decimal(18, 4))", "DECIMAL(18, 4)", "toDecimal64(number, 4) / 8"),
    ("b", "Nullable(Bool)", "BOOLEAN", "number % 2 = 0"),
    ("s", "Nullable(String)", "VARCHAR", "if(number % 11 = 5, NULL, concat('ä\\'\"\\\\\\t,;', toString(number)))"),
    ("day", "Nullable(Date32)", "DATE", "toDate32('1955-03-01') + number"),
    ("moment", "Nullable(DateTime64(6))", "TIMESTAMP", "toDateTime64('2020-01-01 00:00:00.123456', 6) + 3601 * number"),
    ("u", "Nullable(UUID)", "UUID", "toUUID(concat('61f0c404-5cb3-11e7-907b-a6006ad3d', toString(100 + number)))"),
    ("l", "Array(Nullable(Int32))", "INTEGER[]", "[toInt32(number), NULL, -1]"),
]


@pytest.fixture(scope="session")
def source(oracle: Endpoint) -> Endpoint:
    return source_of_everything(oracle, COLUMNS)


def create(duck: Endpoint, columns: str) -> str:
    name = f"t_{uuid.uuid4().hex[:12]}"
    duck.sql(f"CREATE TABLE {name} ({columns})")
    return name


def counted(duck: Endpoint, table: str) -> int:
    return int(duck.sql(f"SELECT count(*) FROM {table}"))


@pytest.mark.parametrize("form", FORMATS)
def test_rows_of_every_format_are_those_that_clickhouse_has(form: str, duck: Endpoint, source: Endpoint) -> None:
    table = create(duck, ", ".join(f"{name} {kind}" for name, _, kind, _ in COLUMNS))
    expect_the_rows_of(source, form, duck, table)


@pytest.mark.parametrize(
    "settings",
    [
        {"wait_for_async_insert": 1},
        {"async_insert": 0},
        {"async_insert": 0, "insert_deduplication_token": "one"},
        {"windrow_ack": "stored", "wait_for_async_insert": 0},
    ],
    ids=str,
)
def test_stored_means_that_a_query_sees_it(settings: dict, duck: Endpoint) -> None:
    table = create(duck, "a BIGINT")
    for number in range(1, 4):
        token = {"insert_deduplication_token": f"{number}"} if "insert_deduplication_token" in settings else {}
        assert duck.insert(f"INSERT INTO {table} FORMAT CSV", f"{number}\n", **{**settings, **token}).status == 200
        assert counted(duck, table) == number


@pytest.mark.parametrize("settings", [{"wait_for_async_insert": 0}, {"windrow_ack": "memory"}], ids=str)
def test_what_is_acknowledged_before_it_is_stored_comes(settings: dict, duck: Endpoint) -> None:
    table = create(duck, "a BIGINT")
    for number in range(20):
        assert duck.insert(f"INSERT INTO {table} FORMAT CSV", f"{number}\n", **settings).status == 200
    duck.sql(f"SYSTEM FLUSH ASYNC INSERT QUEUE {table}")
    assert duck.sql(f"SELECT count(*), sum(a) FROM {table}") == "20\t190"


@pytest.mark.parametrize("settings", [{}, {"wait_for_async_insert": 0}, {"async_insert": 0}], ids=str)
def test_a_token_is_stored_once(settings: dict, duck: Endpoint) -> None:
    table = create(duck, "a BIGINT")
    for _ in range(3):
        reply = duck.insert(f"INSERT INTO {table} FORMAT CSV", "1\n2\n", **settings, insert_deduplication_token="same")
        assert reply.status == 200, reply.text
    duck.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert counted(duck, table) == 2
    for _ in range(2):
        assert duck.insert(f"INSERT INTO {table} FORMAT CSV", "1\n2\n").status == 200
    assert counted(duck, table) == 6, "rows without a token are never taken for repeats"


REFUSED = [
    ("JSONEachRow", '{"a":1}\n{"a":"x"}\n', 400, 27, ["(at row 2)", '{"a":"x"}', "JSONEachRow"]),
    ("JSONEachRow", '{"a":1', 400, 27, ["(at row 1)"]),
    ("CSV", "1\n2\nzz\n", 400, 27, ["(at row 3)", "'zz'"]),
    ("CSVWithNames", "a\n1\nzz\n", 400, 27, ["(at row 2)", "'zz'"]),
    ("TSV", "99999999999999999999\n", 400, 27, ["(at row 1)"]),
    ("Native", "rubbish", 400, 27, ["Native"]),
    ("NoSuchFormat", "1\n", 404, 73, ["Unknown format NoSuchFormat"]),
]


@pytest.mark.parametrize("form, payload, status, code, words", REFUSED, ids=lambda value: str(value)[:30])
def test_what_cannot_be_read_is_refused_at_once(
    form: str, payload: str, status: int, code: int, words: list[str], duck: Endpoint
) -> None:
    table = create(duck, "a BIGINT")
    for wait in (0, 1):
        reply = duck.insert(f"INSERT INTO {table} FORMAT {form}", payload, wait_for_async_insert=wait)
        assert (reply.status, reply.code) == (status, code), reply.text
        assert reply.headers["x-clickhouse-exception-code"] == str(code)
        assert all(word in reply.text for word in words), reply.text
        assert reply.text.rstrip().endswith(")") and "(DuckDB v" in reply.text
    duck.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert counted(duck, table) == 0


def test_tables_columns_and_users_that_are_not_there(duck: Endpoint) -> None:
    table = create(duck, "a BIGINT")
    row = "1\n"
    missing = duck.insert("INSERT INTO no_such_table FORMAT CSV", row)
    assert (missing.status, missing.code) == (404, 60), missing.text
    assert "default.no_such_table does not exist" in missing.text
    column = duck.insert(f"INSERT INTO {table} (a, zz) FORMAT CSV", "1,2\n")
    assert column.code == 16 and "zz" in column.text, column.text
    nobody = duck.as_user("nobody", "x").insert(f"INSERT INTO {table} FORMAT CSV", row)
    assert (nobody.status, nobody.code) == (403, 516), nobody.text
    wrong = duck.as_user("default", "x").insert(f"INSERT INTO {table} FORMAT CSV", row)
    assert (wrong.status, wrong.code) == (403, 516), wrong.text
    reader = duck.as_user(*READER)
    refused = reader.insert(f"INSERT INTO {table} FORMAT CSV", row)
    assert refused.code == 164, refused.text
    assert reader.request("SYSTEM FLUSH ASYNC INSERT QUEUE").code == 164
    assert counted(reader, table) == 0


def test_columns_that_are_not_given_take_their_defaults(duck: Endpoint) -> None:
    table = create(duck, "a BIGINT NOT NULL, b INTEGER DEFAULT 42, c VARCHAR, l INTEGER[]")
    assert duck.insert(f"INSERT INTO {table} FORMAT JSONEachRow", '{"a":1}\n{"a":2}\n').status == 200
    assert duck.insert(f"INSERT INTO {table} (a, c) FORMAT CSV", "3,x\n").status == 200
    assert duck.insert(f"INSERT INTO {table} FORMAT JSONEachRow", '{"a":4,"b":null}\n').status == 200
    rows = duck.sql(f"SELECT * FROM {table} ORDER BY a FORMAT JSONCompactEachRow").splitlines()
    assert rows == ["[1, 42, null, null]", "[2, 42, null, null]", '[3, 42, "x", null]', "[4, null, null, null]"]
    mandatory = duck.insert(f"INSERT INTO {table} FORMAT JSONEachRow", '{"b":1}\n')
    assert (mandatory.code, "NOT NULL" in mandatory.text) == (349, True), mandatory.text
    null = duck.insert(f"INSERT INTO {table} FORMAT JSONEachRow", '{"a":null}\n')
    assert null.code == 349, null.text
    assert counted(duck, table) == 4


def test_expressions_in_values_are_duckdbs_sql(duck: Endpoint) -> None:
    table = create(duck, "a BIGINT, s VARCHAR")
    assert duck.request(None, f"INSERT INTO {table} VALUES (1 + 1, upper('x')), (3, 'y')".encode()).status == 200
    assert duck.request(None, f"INSERT INTO {table} SELECT range, 'z' FROM range(5)".encode()).status == 200
    assert duck.sql(f"SELECT count(*), sum(a) FROM {table}") == "7\t15"


@pytest.mark.parametrize("beside", ["1", "1 + 1", "length('a')"])
def test_a_backslash_in_values_is_duckdbs(duck: Endpoint, beside: str) -> None:
    """Whatever stands beside it. Behind FORMAT Values it is ClickHouse's, as in every format of it."""
    table = create(duck, "n INTEGER, s VARCHAR, b BLOB")
    for statement in (f"INSERT INTO {table} VALUES", f"INSERT INTO {table} (n, s, b) VALUES"):
        assert duck.request(None, f"{statement} ({beside}, 'C:\\temp\\new', '\\xAA')".encode()).status == 200
        assert duck.insert(statement, f"({beside}, 'it''s \\', 'x'), ({beside}, '\\'' \\\\', 'y')").status == 200
    assert duck.insert(f"INSERT INTO {table} FORMAT Values", "(9, 'a\\tb\\'', '\\xAA')").status == 200
    rows = duck.sql(f"SELECT s, hex(b) FROM {table} ORDER BY ALL FORMAT TabSeparatedRaw").splitlines()
    assert rows == sorted(["C:\\temp\\new\tAA", "it's \\\t78", "\\' \\\\\t79"] * 2 + ["a\tb'\tAA"])


def test_guilty_inserts_alone_become_dead_letters(duck_server: DuckDbGateway, duck: Endpoint) -> None:
    table = create(duck, "a BIGINT, CHECK (a % 10 != 7)")
    for number in range(50):
        assert duck.insert(f"INSERT INTO {table} FORMAT CSV", f"{number}\n", wait_for_async_insert=0).status == 200
    letters = DeadLetters(duck_server, "default")
    dead = letters.come(5, table=f"default.{table}")
    assert all("CHECK constraint" in letter["error"] and letter["code"] == 469 for letter in dead), dead
    assert [letters.rows(letter) for letter in dead] == [[{"a": number}] for number in (7, 17, 27, 37, 47)]
    eventually(lambda: counted(duck, table) == 45, "all others are stored")
    waiting = duck.insert(f"INSERT INTO {table} FORMAT CSV", "7\n")
    assert (waiting.code, "CHECK constraint" in waiting.text) == (469, True), waiting.text
    duck.sql(f"DROP TABLE {table}")
    duck.sql(f"CREATE TABLE {table} (a BIGINT)")
    assert letters.retry(table=f"default.{table}")["retried"] == 5
    eventually(lambda: counted(duck, table) == 5, "the retried are stored")


def test_large_inserts_go_in_as_one(duck: Endpoint) -> None:
    table = create(duck, "a BIGINT, s VARCHAR")
    rows = "".join(f"{number},{'x' * 50}\n" for number in range(400_000)).encode()
    assert len(rows) > 20 << 20
    assert duck.insert(f"INSERT INTO {table} FORMAT CSV", rows).status == 200
    encoding = {"Content-Encoding": "gzip"}
    packed = duck.request(f"INSERT INTO {table} FORMAT CSV", gzip.compress(rows, 1), headers=encoding)
    assert packed.status == 200, packed.text
    assert duck.sql(f"SELECT count(*), sum(a) FROM {table}") == "800000\t159999600000"
    torn = duck.insert(f"INSERT INTO {table} FORMAT CSV", rows + b"zz,1\n")
    assert (torn.code, "(at row 400001)" in torn.text) == (27, True), torn.text
    assert counted(duck, table) == 800_000


def test_tables_that_change_are_known_anew(duck: Endpoint) -> None:
    table = create(duck, "a BIGINT")
    query, token = f"INSERT INTO {table} FORMAT JSONEachRow", {"insert_deduplication_token": "t"}
    insert = lambda: duck.insert(query, '{"a":1,"b":2}\n', **token)
    assert insert().status == 200
    duck.sql(f"ALTER TABLE {table} ADD COLUMN b BIGINT")
    assert duck.insert(f"INSERT INTO {table} FORMAT JSONEachRow", '{"a":2,"b":3}\n').status == 200
    assert duck.sql(f"SELECT * FROM {table} ORDER BY a FORMAT CSV") == '1,\\N\n2,3'
    duck.sql(f"DROP TABLE {table}")
    assert insert().code == 60
    duck.sql(f"CREATE TABLE {table} (a BIGINT, b BIGINT)")
    assert insert().status == 200
    assert duck.sql(f"SELECT * FROM {table} FORMAT CSV") == "1,2", "a token of the rows that are gone is forgotten"


def test_a_schema_is_a_database(duck: Endpoint) -> None:
    duck.sql("CREATE SCHEMA IF NOT EXISTS other")
    duck.sql("CREATE OR REPLACE TABLE other.t (a BIGINT)")
    assert duck.insert("INSERT INTO other.t FORMAT CSV", "1\n").status == 200
    assert duck.using("other").insert("INSERT INTO t FORMAT CSV", "2\n").status == 200
    assert duck.using("other").sql("SELECT sum(a) FROM t") == "3"
    table = create(duck, "a BIGINT")
    assert duck.insert(f"INSERT INTO main.{table} FORMAT CSV", "1\n").status == 200
    assert duck.insert(f"INSERT INTO default.{table} FORMAT CSV", "1\n").status == 200
    assert counted(duck, table) == 2


# Values of every type, as DuckDB's SQL.
VALUES = {
    "BOOLEAN": ["true", "false"],
    "TINYINT": ["-128", "127"],
    "SMALLINT": ["-32768", "32767"],
    "INTEGER": ["-2147483648", "2147483647"],
    "BIGINT": ["-9223372036854775808", "9223372036854775807"],
    "HUGEINT": ["-170141183460469231731687303715884105727", "170141183460469231731687303715884105727", "7"],
    "UTINYINT": ["0", "255"],
    "USMALLINT": ["65535"],
    "UINTEGER": ["4294967295"],
    "UBIGINT": ["18446744073709551615"],
    "UHUGEINT": ["340282366920938463463374607431768211455", "0"],
    "FLOAT": ["1.5", "-0.1", "'nan'", "'inf'"],
    "DOUBLE": ["1.5", "0.1", "-1e300", "'nan'", "'-inf'"],
    "DECIMAL(4,1)": ["-123.4"],
    "DECIMAL(9,3)": ["123456.789"],
    "DECIMAL(18,3)": ["-123456789012345.678"],
    "DECIMAL(38,10)": ["1234567890123456789012345678.0123456789"],
    "VARCHAR": ["''", "'a'", "'C:\\temp\\new'", "'it''s'", "'ü\t\n'"],
    "BLOB": ["'a'", "'\\x00\\xFF'"],
    "JSON": ["'{\"a\": [1, null]}'", "'null'", "'\"\\n\"'"],
    "UUID": ["'61f0c404-5cb3-11e7-907b-a6006ad3dba0'"],
    "DATE": ["'1600-01-01'", "'1900-01-01'", "'1969-12-31'", "'2024-02-29'", "'2299-12-31'"],
    "TIME": ["'00:00:00'", "'12:34:56.789012'", "'24:00:00'"],
    "TIME_NS": ["'12:34:56.789012345'"],
    "TIMESTAMP": ["'1600-01-01 01:02:03'", "'1969-12-31 23:59:59.999999'", "'2024-02-29 01:02:03.456789'"],
    "TIMESTAMP_S": ["'2024-02-29 01:02:03'"],
    "TIMESTAMP_MS": ["'2024-02-29 01:02:03.456'"],
    "TIMESTAMP_NS": ["'2024-02-29 01:02:03.456789012'"],
    "TIMESTAMP WITH TIME ZONE": ["'2024-02-29 01:02:03.456789+02'"],
    "ENUM('a', 'b', 'it''s')": ["'a'", "'b'", "'it''s'"],
    "INTERVAL": ["'1 month 2 days 03:04:05'"],
    "TIME WITH TIME ZONE": ["'12:34:56+02'"],
    "BIT": ["'0101'"],
    "INTEGER[]": ["[1, NULL, 3]", "[]"],
    "VARCHAR[][]": ["[['a\\b', NULL], []]"],
    "ENUM('a', 'b')[]": ["['b', 'a', NULL]"],
    "INTEGER[2]": ["[1, 2]"],
    "STRUCT(a INTEGER, b VARCHAR)": ["{'a': 1, 'b': 'x'}", "{'a': NULL, 'b': NULL}"],
    "STRUCT(e ENUM('a', 'b'), l DATE[])": ["{'e': 'b', 'l': ['2024-02-29']}"],
    "MAP(VARCHAR, INTEGER)": ["MAP {'a': 1, 'b': NULL}", "MAP {}"],
    "MAP(INTEGER, ENUM('a', 'b'))": ["MAP {1: 'b'}"],
}
BACK = ["RowBinary", "RowBinaryWithNames", "RowBinaryWithNamesAndTypes", "Native", "Arrow", "ArrowStream", "Parquet"]
BACK += ["JSONEachRow", "JSONCompactEachRowWithNamesAndTypes", "CSV", "TabSeparatedWithNamesAndTypes", "Values"]
# What a format has no form for (docs/duckdb.md): refused, or told as something else.
NOT_BACK = {
    "Arrow": {"INTERVAL", "TIME WITH TIME ZONE", "BIT"},
    "ArrowStream": {"INTERVAL", "TIME WITH TIME ZONE", "BIT"},
    "Parquet": {"HUGEINT", "UHUGEINT", "INTERVAL", "TIME WITH TIME ZONE"},
    "JSONEachRow": {"FLOAT", "DOUBLE"},
    "JSONCompactEachRowWithNamesAndTypes": {"FLOAT", "DOUBLE"},
    "CSV": {"STRUCT(a INTEGER, b VARCHAR)"},
    "Values": {"FLOAT", "DOUBLE"},
}


@pytest.mark.parametrize("form", BACK)
def test_values_of_every_type_come_back_as_they_went(form: str, duck: Endpoint) -> None:
    """What a result says, an insert of the same format stores: with values, with NULL, and with no rows at all."""
    wrong: dict[str, list[str]] = {}
    for kind, values in VALUES.items():
        first, second = create(duck, f"v {kind}"), create(duck, f"v {kind}")
        # ClickHouse's formats have no NULL in place of a list and its like.
        nulls = [] if kind.endswith("]") or kind.startswith(("STRUCT", "MAP")) else ["NULL"]
        duck.sql(f"INSERT INTO {first} VALUES {', '.join(f'(({value})::{kind})' for value in values + nulls)}")
        for rows in ("WHERE false", ""):
            told = duck.request(None, f"SELECT v FROM {first} {rows} FORMAT {form}".encode())
            stored = duck.insert(f"INSERT INTO {second} FORMAT {form}", told.body) if told.status == 200 else told
            if stored.status != 200:
                wrong.setdefault(kind, []).append(stored.text)
        same = f"SELECT (SELECT count(*) FROM {first}), count(*) FROM (FROM {first} INTERSECT ALL FROM {second})"
        left, kept = duck.sql(same).split("\t")
        if left != kept:
            wrong.setdefault(kind, []).append(duck.sql(f"SELECT list(v::VARCHAR) FROM {second}"))
    unlike = {kind: wrong.get(kind) for kind in set(wrong) ^ NOT_BACK.get(form, set())}
    assert unlike == {}


@pytest.mark.parametrize("form", ["JSONEachRow", "TabSeparated", "Values"])
def test_null_in_place_of_a_list_is_the_empty_one(form: str, duck: Endpoint) -> None:
    table = create(duck, "n INTEGER, l INTEGER[], m MAP(VARCHAR, INTEGER), s STRUCT(a INTEGER), ll INTEGER[][]")
    rows = {
        "JSONEachRow": '{"n": 1, "l": null, "m": null, "s": null, "ll": [null]}\n{"n": 2, "l": [1], "m": {"a": 1}, "s": {"a": 1}, "ll": []}',
        "TabSeparated": "1\t\\N\t\\N\t\\N\t[NULL]\n2\t[1]\t{'a':1}\t(1)\t[]",
        "Values": "(1, NULL, NULL, NULL, [NULL]), (2, [1], {'a': 1}, (1), [])",
    }[form]
    reply = duck.insert(f"INSERT INTO {table} FORMAT {form}", rows)
    assert reply.status == 200, reply.text
    found = duck.sql(f"SELECT l::VARCHAR, m::VARCHAR, s::VARCHAR FROM {table} ORDER BY n FORMAT JSONCompactEachRow").splitlines()
    assert [json.loads(row) for row in found] == [["[]", "{}", "{'a': NULL}"], ["[1]", "{a=1}", "{'a': 1}"]]
