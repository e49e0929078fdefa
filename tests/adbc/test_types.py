"""Types both ways: each value that a column can hold goes in and comes out as it was, and what it can't hold is refused with its name."""

from __future__ import annotations

import json

import pytest

from harness.adbc import create
from harness.endpoint import Endpoint

UUID = "61f0c404-5cb3-11e7-907b-a6006ad3dba0"
# Types of PostgreSQL, what inserts are read as, and values as JSON has them, in and out.
POSTGRES = [
    ("boolean", "Bool", [True, False]),
    ("smallint", "Int16", [-32768, 32767]),
    ("integer", "Int32", [-(2**31), 2**31 - 1]),
    ("bigint", "Int64", [-(2**63), 2**63 - 1]),
    ("real", "Float32", [0, -1.5, 3.4028235e38]),
    ("double precision", "Float64", [0, -1.5, 1.7976931348623157e308, 5e-324]),
    ("numeric(18, 3)", "Decimal(18, 3)", ["0", "-999999999999999.999", "999999999999999.999"]),
    ("numeric(38, 0)", "Decimal(38, 0)", ["0", "99999999999999999999999999999999999999"]),
    ("numeric", "String", ["0", "-12345678901234567890123456789012345678901234567890.5"]),
    ("text", "String", ["", "ä\n\t'\"\\", "x" * 100_000]),
    ("varchar(3)", "String", ["", "äöü"]),
    ("bytea", "String", ["", "plain"]),
    ("date", "Date32", ["1900-01-01", "2299-12-31"]),
    ("time", "Time64(6)", ["00:00:00.000000", "23:59:59.999999"]),
    ("timestamp", "DateTime64(6)", ["1900-01-01 00:00:00.000000", "2262-04-11 23:47:16.854775"]),
    ("timestamptz", "DateTime64(6, 'UTC')", ["1900-01-01 00:00:00.000000", "2262-04-11 23:47:16.854775"]),
    ("uuid", "UUID", [UUID, "00000000-0000-0000-0000-000000000000", "ffffffff-ffff-ffff-ffff-ffffffffffff"]),
    ("json", "String", ["{}", '{"a": [1, null]}']),
    ("jsonb", "String", ["{}", '{"a": [1, null]}']),
    ("integer[]", "Array(Nullable(Int32))", [[], [1, None, -(2**31)]]),
    ("text[]", "Array(Nullable(String))", [[], ["a", None, ""]]),
    ("uuid[]", "Array(Nullable(UUID))", [[UUID]]),
    ("boolean[]", "Array(Nullable(Bool))", [[True, None]]),
    ("timestamptz[]", "Array(Nullable(DateTime64(6, 'UTC')))", [["1900-01-01 00:00:00.000000"]]),
]
# Those of which results have nothing but what a cast makes of them.
AS_TEXTS = [
    ("inet", ["10.0.0.1/32", "fe80::1/64"]),
    ("interval", ["1 day 02:00:00", "-3 mons"]),
    ("bit(3)", ["101"]),
    ("int4range", ["[1,5)", "empty"]),
    ("timetz", ["12:00:00+02"]),
    ("point", ["(1,2)"]),
    ("xml", ["<a/>"]),
    ("money", ["$1.50"]),
    ("numeric(40, 2)", ["12345678901234567890123456789012345678.25"]),
    ("inet[]", ["{10.0.0.1}"]),
]
SQLITE = [
    ("INTEGER", "Int64", [-(2**63), 2**63 - 1], None),
    ("REAL", "Float64", [0, -1.5, 1.7976931348623157e308], None),
    ("DECIMAL(10, 5)", "Float64", [1.5], None),
    ("TEXT", "String", ["", "ä\n\t'\"\\"], None),
    ("BLOB", "String", ["plain"], None),
    ("BOOLEAN", "Bool", [True, False], [1, 0]),
    ("DATE", "Date32", ["1900-01-01"], None),
    ("DATETIME", "DateTime64(6)", ["2020-01-02 03:04:05.123456"], ["2020-01-02T03:04:05.123456"]),
    ("", "String", ["anything"], None),
]


def typed(database: Endpoint, table: str) -> str:
    described = [json.loads(line) for line in database.sql(f"DESCRIBE {table} FORMAT JSONCompactEachRow").splitlines()]
    return dict((line[0], line[1]) for line in described)["v"]


def stored(database: Endpoint, table: str, values: list) -> None:
    rows = "\n".join(json.dumps({"n": number, "v": value}, ensure_ascii=False) for number, value in enumerate(values))
    reply = database.insert(f"INSERT INTO {table} FORMAT JSONEachRow", rows)
    assert reply.status == 200, reply.text


def found(database: Endpoint, table: str, value: str = "v") -> list:
    settings = {"output_format_json_quote_64bit_integers": 0, "output_format_json_quote_decimals": 1}
    rows = database.sql(f"SELECT {value} FROM {table} ORDER BY n FORMAT JSONCompactEachRow", **settings)
    return [json.loads(line)[0] for line in rows.splitlines()]


@pytest.mark.parametrize(("own", "kind", "values"), POSTGRES, ids=[own for own, _, _ in POSTGRES])
def test_postgresqls_values_come_out_as_they_went_in(own: str, kind: str, values: list, pg: Endpoint) -> None:
    table = create(pg, f"n bigint, v {own}")
    is_array = kind.startswith("Array")
    assert typed(pg, table) == (kind if is_array else f"Nullable({kind})")
    # Payloads have no NULL for an array, as in ClickHouse.
    values = values if is_array else [*values, None]
    stored(pg, table, values)
    assert found(pg, table) == values


@pytest.mark.parametrize(("own", "values"), AS_TEXTS, ids=[own for own, _ in AS_TEXTS])
def test_what_arrow_has_no_type_for_goes_in_as_a_text(own: str, values: list[str], pg: Endpoint) -> None:
    table = create(pg, f"n bigint, v {own}")
    assert typed(pg, table) == "Nullable(String)"
    stored(pg, table, [*values, None])
    assert found(pg, table, "v::text") == [*values, None]


def test_an_enum_has_its_names(pg: Endpoint) -> None:
    pg.sql("CREATE TYPE mood AS ENUM ('sad', 'it''s')")
    table = create(pg, "n bigint, v mood")
    stored(pg, table, ["sad", "it's", None])
    assert found(pg, table, "v::text") == ["sad", "it's", None]
    assert pg.insert(f"INSERT INTO {table} FORMAT JSONEachRow", '{"v": "glad"}').status == 400


@pytest.mark.parametrize(("own", "kind", "values", "out"), SQLITE, ids=[own for own, *_ in SQLITE])
def test_sqlites_values_come_out_as_they_went_in(own: str, kind: str, values: list, out: list | None, lite: Endpoint) -> None:
    table = create(lite, f"n INTEGER, v {own}")
    assert typed(lite, table) == f"Nullable({kind})"
    stored(lite, table, [*values, None])
    assert found(lite, table) == [*(out or values), None]


def test_sqlites_constraints_hold(lite: Endpoint) -> None:
    table = create(lite, "n INTEGER PRIMARY KEY, v TEXT NOT NULL CHECK (length(v) < 3)")
    for row, code in [('{"n": 1, "v": "abc"}', 469), ('{"v": null}', 349), ('{"n": 1, "v": "a"}', None), ('{"n": 1, "v": "b"}', 469)]:
        assert lite.insert(f"INSERT INTO {table} FORMAT JSONEachRow", row).code == code
    # Its number is SQLite's to give.
    assert lite.insert(f"INSERT INTO {table} (v) FORMAT CSV", "c\n").status == 200
    assert lite.sql(f"SELECT * FROM {table} ORDER BY n FORMAT CSV") == '1,"a"\n2,"c"'


def test_what_a_column_cannot_hold_is_refused_with_its_name(pg: Endpoint, lite: Endpoint) -> None:
    table = create(lite, "n INTEGER, height REAL")
    reply = lite.insert(f"INSERT INTO {table} FORMAT CSV", "1,nan\n")
    assert (reply.code, "Column `height`: SQLite has no NaN: (at row 1)" in reply.text) == (321, True), reply.text
    table = create(pg, "n bigint, label text")
    reply = pg.insert(f"INSERT INTO {table} FORMAT RowBinary", bytes(1) + (1).to_bytes(8, "little") + bytes([0, 2, 0xFF, 0xFE]))
    assert "Column `label`: the bytes are no UTF-8" in reply.text


def test_a_result_without_a_counterpart_is_refused_with_its_column(pg: Endpoint) -> None:
    reply = pg.request(None, b"SELECT 1 AS n, '10.0.0.1'::inet AS address FORMAT JSONEachRow")
    assert (reply.code, "address" in reply.text, "CAST(address AS VARCHAR)" in reply.text) == (48, True, True), reply.text
