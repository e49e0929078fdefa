"""Results in ClickHouse's formats: the bodies are ClickHouse's own for the same values, byte for byte."""

from __future__ import annotations

import io
import re
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.endpoint import Endpoint

# What DuckDB is asked, and what ClickHouse is asked for the same value.
PAIRS = [
    ("true", "true::Nullable(Bool)"),
    ("NULL::BOOLEAN", "NULL::Nullable(Bool)"),
    ("(-128)::TINYINT", "(-128)::Nullable(Int8)"),
    ("NULL::TINYINT", "NULL::Nullable(Int8)"),
    ("(-32768)::SMALLINT", "(-32768)::Nullable(Int16)"),
    ("(-2147483648)::INTEGER", "(-2147483648)::Nullable(Int32)"),
    ("'-9223372036854775808'::BIGINT", "'-9223372036854775808'::Nullable(Int64)"),
    ("255::UTINYINT", "255::Nullable(UInt8)"),
    ("65535::USMALLINT", "65535::Nullable(UInt16)"),
    ("4294967295::UINTEGER", "4294967295::Nullable(UInt32)"),
    ("18446744073709551615::UBIGINT", "18446744073709551615::Nullable(UInt64)"),
    (f"'{-(2**127)}'::HUGEINT", f"'{-(2**127)}'::Nullable(Int128)"),
    (f"'{2**128 - 1}'::UHUGEINT", f"'{2**128 - 1}'::Nullable(UInt128)"),
    ("NULL::HUGEINT", "NULL::Nullable(Int128)"),
    *((f"'{value}'::FLOAT", f"'{value}'::Nullable(Float32)") for value in ("0.1", "-0.0", "nan", "inf", "16777216")),
    *((f"'{value}'::DOUBLE", f"'{value}'::Nullable(Float64)")
      for value in ("0.1", "-0.0", "nan", "-inf", "1e100", "1e20", "1e21", "1e-6", "1.25e-7", "123456789012345680")),
    ("NULL::DOUBLE", "NULL::Nullable(Float64)"),
    ("1.5::DECIMAL(4,1)", "'1.5'::Nullable(Decimal(4, 1))"),
    ("(-0.05)::DECIMAL(9,3)", "'-0.05'::Nullable(Decimal(9, 3))"),
    ("12345678901.25::DECIMAL(18,4)", "'12345678901.25'::Nullable(Decimal(18, 4))"),
    ("'-9999999999999999999999999999.0000000001'::DECIMAL(38,10)",
     "'-9999999999999999999999999999.0000000001'::Nullable(Decimal(38, 10))"),
    ("NULL::DECIMAL(10,2)", "NULL::Nullable(Decimal(10, 2))"),
    ("E'a\"\\'\\\\ \\t\\n\\r/\\b\\f ,é€😀'", "'a\"\\'\\\\ \\t\\n\\r/\\b\\f ,é€😀'::Nullable(String)"),
    ("chr(1) || chr(127) || chr(31)", "'\\x01\\x7f\\x1f'::Nullable(String)"),
    ("chr(8232) || 'x' || chr(8233)", "'\u2028x\u2029'::Nullable(String)"),
    ("''", "''::Nullable(String)"),
    ("NULL::VARCHAR", "NULL::Nullable(String)"),
    ("'a\\x00\\xC3\\xA9b'::BLOB", "'a\\0éb'::Nullable(String)"),
    ("DATE '2020-02-29'", "'2020-02-29'::Nullable(Date32)"),
    ("DATE '1969-12-31'", "'1969-12-31'::Nullable(Date32)"),
    ("NULL::DATE", "NULL::Nullable(Date32)"),
    ("TIMESTAMP '1969-12-31 23:59:59.5'", "'1969-12-31 23:59:59.5'::Nullable(DateTime64(6))"),
    ("TIMESTAMP_S '2020-01-01 01:02:03'", "'2020-01-01 01:02:03'::Nullable(DateTime64(0))"),
    ("TIMESTAMP_MS '2020-01-01 01:02:03.004'", "'2020-01-01 01:02:03.004'::Nullable(DateTime64(3))"),
    ("TIMESTAMP_NS '2020-01-01 01:02:03.123456789'", "'2020-01-01 01:02:03.123456789'::Nullable(DateTime64(9))"),
    ("TIMESTAMPTZ '2020-01-01 01:02:03.5+01'", "'2020-01-01 00:02:03.5'::Nullable(DateTime64(6, 'UTC'))"),
    ("NULL::TIMESTAMP", "NULL::Nullable(DateTime64(6))"),
    ("TIME '01:02:03.5'", "'01:02:03.5'::Nullable(Time64(6))"),
    ("UUID '61f0c404-5cb3-11e7-907b-a6006ad3dba0'", "'61f0c404-5cb3-11e7-907b-a6006ad3dba0'::Nullable(UUID)"),
    ("NULL::UUID", "NULL::Nullable(UUID)"),
    ("'b'::ENUM('a', 'b', 'it''s')", "'b'::Nullable(Enum8('a' = 1, 'b' = 2, 'it\\'s' = 3))"),
    ("'{\"a\": [1, null]}'::JSON", "'{\"a\": [1, null]}'::Nullable(String)"),
    ("[1, NULL, 3]::INTEGER[]", "[1, NULL, 3]::Array(Nullable(Int32))"),
    ("[]::INTEGER[]", "[]::Array(Nullable(Int32))"),
    ("[1, 2]::INTEGER[2]", "[1, 2]::Array(Nullable(Int32))"),
    ("['a''\"\\', NULL, E'\\t']", "['a\\'\"\\\\', NULL, '\\t']::Array(Nullable(String))"),
    ("[[1], [], [NULL]]::BIGINT[][]", "[[1], [], [NULL]]::Array(Array(Nullable(Int64)))"),
    ("[DATE '2020-01-01']", "['2020-01-01']::Array(Nullable(Date32))"),
    ("[TIMESTAMP '2020-01-01 00:00:00']", "['2020-01-01 00:00:00']::Array(Nullable(DateTime64(6)))"),
    ("[UUID '61f0c404-5cb3-11e7-907b-a6006ad3dba0']",
     "['61f0c404-5cb3-11e7-907b-a6006ad3dba0']::Array(Nullable(UUID))"),
    ("['nan'::DOUBLE, -0.0::DOUBLE, 1.5]", "[nan, -0.0, 1.5]::Array(Nullable(Float64))"),
    ("[true, false]", "[true, false]::Array(Nullable(Bool))"),
    ("[1.50::DECIMAL(9,2)]", "['1.50']::Array(Nullable(Decimal(9, 2)))"),
    ("['a'::ENUM('a')]", "['a']::Array(Nullable(Enum8('a' = 1)))"),
    ("{'a': 1::INTEGER, 'b': 'y'}", "(1, 'y')::Tuple(a Nullable(Int32), b Nullable(String))"),
    ("{'a': NULL::INTEGER, 'b': {'c': [1::TINYINT]}}",
     "(NULL, tuple([1]))::Tuple(a Nullable(Int32), b Tuple(c Array(Nullable(Int8))))"),
    ("row(1::INTEGER, 'z')", "(1, 'z')::Tuple(Nullable(Int32), Nullable(String))"),
    ("[{'a': 1::TINYINT}]", "[tuple(1)]::Array(Tuple(a Nullable(Int8)))"),
    ("MAP {'k''\"': 1::INTEGER, 'b': NULL}", "map('k\\'\"', 1, 'b', NULL)::Map(String, Nullable(Int32))"),
    ("MAP {1::INTEGER: [DATE '2020-01-01']}", "map(1, ['2020-01-01'])::Map(Int32, Array(Nullable(Date32)))"),
    ("MAP {}::MAP(VARCHAR, INTEGER)", "map()::Map(String, Nullable(Int32))"),
    ("[MAP {'a': 1::TINYINT}]", "[map('a', 1)]::Array(Map(String, Nullable(Int8)))"),
]  # fmt: skip

TEXTS = ["TSV", "TSVWithNames", "TabSeparatedWithNamesAndTypes", "TSVRaw", "TSVRawWithNamesAndTypes", "CSV",
         "CSVWithNames", "CSVWithNamesAndTypes", "JSONEachRow", "JSONCompactEachRow", "JSONCompactEachRowWithNames",
         "JSONCompactEachRowWithNamesAndTypes", "JSON", "JSONCompact", "Values"]  # fmt: skip
BINARIES = ["RowBinary", "RowBinaryWithNames", "RowBinaryWithNamesAndTypes", "Native"]


Pairs = list[tuple[str, str]]


def select(side: int, format_name: str, pairs: Pairs) -> str:
    values = [pair[0] if side == 0 else "CAST({} AS {})".format(*pair[1].rsplit("::", 1)) for pair in pairs]
    columns = ", ".join(f"{value} AS c{number}" for number, value in enumerate(values))
    return f"SELECT {columns} FORMAT {format_name}"


def without_statistics(body: bytes) -> bytes:
    return re.sub(rb'"statistics":.*', b"", body, flags=re.DOTALL)


def bodies(duck: Endpoint, oracle: Endpoint, format_name: str, pairs: Pairs, **settings: object) -> list[bytes]:
    """DuckDB's through the gateway, and ClickHouse's."""
    ours = duck.request(None, select(0, format_name, pairs).encode(), settings)
    theirs = oracle.request(None, select(1, format_name, pairs).encode(), {**settings, "enable_time_time64_type": 1})
    assert (ours.status, theirs.status) == (200, 200), (ours.text, theirs.text)
    assert ours.headers["content-type"] == theirs.headers["content-type"]
    assert ours.headers["x-clickhouse-format"] == theirs.headers["x-clickhouse-format"]
    return [without_statistics(ours.body), without_statistics(theirs.body)]


def the_same(duck: Endpoint, oracle: Endpoint, format_name: str, pairs: Pairs, **settings: object) -> None:
    """One request for all; pair by pair only to say which differs."""
    ours, theirs = bodies(duck, oracle, format_name, pairs, **settings)
    if ours != theirs:
        for pair in pairs:
            one, other = bodies(duck, oracle, format_name, [pair], **settings)
            assert one == other, pair
    assert ours == theirs


@pytest.mark.parametrize("format_name", TEXTS + BINARIES)
def test_every_type_is_written_as_clickhouse_writes_it(duck: Endpoint, oracle: Endpoint, format_name: str) -> None:
    the_same(duck, oracle, format_name, PAIRS)


@pytest.mark.parametrize("revision", [54405, 54460, 54483])
def test_native_is_what_a_client_of_its_revision_expects(duck: Endpoint, oracle: Endpoint, revision: int) -> None:
    the_same(duck, oracle, "Native", PAIRS, client_protocol_version=revision)


JSON_SETTINGS = [
    "output_format_json_quote_64bit_integers",
    "output_format_json_quote_denormals",
    "output_format_json_quote_decimals",
    "output_format_json_escape_forward_slashes",
    "output_format_json_named_tuples_as_objects",
]


@pytest.mark.parametrize("setting", JSON_SETTINGS)
@pytest.mark.parametrize("value", [0, 1])
def test_settings_of_json_are_heeded(duck: Endpoint, oracle: Endpoint, setting: str, value: int) -> None:
    for format_name in ("JSONEachRow", "JSON", "JSONCompact"):
        the_same(duck, oracle, format_name, PAIRS, **{setting: value})


@pytest.mark.parametrize("format_name", TEXTS + BINARIES)
@pytest.mark.parametrize("rows", [0, 1, 3, 5000])
def test_any_number_of_rows(duck: Endpoint, oracle: Endpoint, format_name: str, rows: int) -> None:
    ours = duck.request(None, (
        f"SELECT range::BIGINT AS a, CASE WHEN range % 3 > 0 THEN repeat('x', (range % 20)::INT) END AS b, "
        f"[range::BIGINT, NULL] AS c FROM range({rows}) ORDER BY range FORMAT {format_name}"
    ).encode())  # fmt: skip
    theirs = oracle.request(None, (
        f"SELECT number::Nullable(Int64) AS a, if(number % 3 > 0, repeat('x', number % 20), NULL) AS b, "
        f"[number, NULL]::Array(Nullable(Int64)) AS c FROM numbers({rows}) ORDER BY number "
        f"SETTINGS max_block_size = 65536 FORMAT {format_name}"
    ).encode())  # fmt: skip
    assert (ours.status, theirs.status) == (200, 200), (ours.text, theirs.text)
    assert without_statistics(ours.body) == without_statistics(theirs.body)


def test_what_only_duckdb_has_is_its_text(duck: Endpoint) -> None:
    query = (
        "SELECT INTERVAL '1 year 2 months 3 days -01:02:03.5', TIMETZ '01:02:03.5+01:30', '10111'::BIT, "
        "INTERVAL '100 hours', [INTERVAL '1 day'], '-5:30:00'::INTERVAL"
    )
    assert duck.sql(query) == (
        "1 year 2 months 3 days -01:02:03.5\t01:02:03.5+01:30\t10111\t100:00:00\t['1 day']\t-05:30:00"
    )


@pytest.mark.parametrize("expression", ["123::BIGNUM", "union_value(k := 1)"])
def test_what_no_format_holds_is_refused_by_name(duck: Endpoint, expression: str) -> None:
    reply = duck.request(None, f"SELECT {expression} AS odd FORMAT JSONEachRow".encode())
    assert (reply.status, reply.code) == (501, 48), reply.text
    assert "Column odd" in reply.text and "VARCHAR" in reply.text


@pytest.mark.parametrize("rows", [0, 1, 200_000])
def test_arrow_is_read_by_arrow(duck: Endpoint, rows: int) -> None:
    query = f"SELECT range AS a, 'x' || range AS b, {{'c': [range]}} AS d FROM range({rows}) FORMAT "
    streamed = pa.ipc.open_stream(duck.request(None, f"{query}ArrowStream".encode()).body).read_all()
    filed = pa.ipc.open_file(duck.request(None, f"{query}Arrow".encode()).body).read_all()
    assert streamed.num_rows == filed.num_rows == rows
    assert streamed.equals(filed)
    assert streamed.column("a").to_pylist()[-3:] == list(range(rows))[-3:]
    assert streamed.schema.names == ["a", "b", "d"]


# What DuckDB's COPY writes in a way of its own.
FOR_PARQUET = [
    *(pair[0] for pair in PAIRS),
    "TIMETZ '01:02:03.5+01:30'",
    "NULL::TIMETZ",
    "'10111'::BIT",
    "INTERVAL '1 year 2 months 3 days 01:02:03.5'",
    "NULL::INTERVAL",
    "NULL",
    "[1::HUGEINT, NULL]",
    "{'a': UUID '61f0c404-5cb3-11e7-907b-a6006ad3dba0', 'b': NULL::HUGEINT}",
    "MAP {1::HUGEINT: INTERVAL '1 day'}",
    "[TIMETZ '01:02:03-15:59']",
    "[NULL, 'b'::ENUM('a', 'b')]",
    "[{'a': '101'::BIT}, NULL]",
    "{'a': TIMESTAMP_S '2020-01-01 01:02:03', 'b': ['{}'::JSON]}",
    "[[true, NULL], NULL]::BOOLEAN[2][]",
    "'infinity'::TIMESTAMP",
    "NULL::STRUCT(a INTERVAL, b INTEGER[])",
]


def leaves(file: pq.ParquetFile) -> list[tuple[str, str, str, int, int]]:
    """INT32 and INT64 are signed numbers of so many bits whether this is said or not."""
    columns = [file.schema.column(number) for number in range(len(file.schema))]
    unsaid = [f"Int(bitWidth={bits}, isSigned=true)" for bits in (32, 64)]

    def logical(column: pq.ColumnSchema) -> str:
        # This one has a converted type alone.
        name = "INTERVAL" if column.converted_type == "INTERVAL" else str(column.logical_type)
        return "None" if name in unsaid else name

    return [
        (column.path, column.physical_type, logical(column), column.max_definition_level, column.max_repetition_level)
        for column in columns
    ]


def test_parquet_is_what_duckdb_itself_writes(duck: Endpoint, tmp_path: Path) -> None:
    columns = ", ".join(f"{value} AS c{number}" for number, value in enumerate(FOR_PARQUET))
    empty = ", ".join(f"NULL AS c{number}" for number in range(len(FOR_PARQUET)))
    query = f"SELECT {columns} UNION ALL SELECT {empty} UNION ALL SELECT {columns}"
    ours, theirs = tmp_path / "ours.parquet", tmp_path / "theirs.parquet"
    reply = duck.request(None, f"{query} FORMAT Parquet".encode())
    assert reply.status == 200, reply.text
    assert (reply.summary["result_rows"], reply.headers["content-length"]) == ("3", str(len(reply.body)))
    ours.write_bytes(reply.body)
    with duckdb.connect() as client:
        client.execute("SET TimeZone = 'UTC'")
        client.execute(f"COPY ({query}) TO '{theirs}'")
        for one, other in zip(leaves(pq.ParquetFile(ours)), leaves(pq.ParquetFile(theirs)), strict=True):
            assert one == other
        shown = ", ".join(f"typeof(c{number}), c{number}::VARCHAR" for number in range(len(FOR_PARQUET)))
        rows = [client.sql(f"SELECT {shown} FROM '{path}'").fetchall() for path in (ours, theirs)]
        assert len(rows[0]) == 3
        for one, other in zip(*rows, strict=True):
            for number, value in enumerate(FOR_PARQUET):
                assert one[2 * number : 2 * number + 2] == other[2 * number : 2 * number + 2], value


def test_columns_with_one_name_get_names_of_their_own(duck: Endpoint, tmp_path: Path) -> None:
    query, theirs = 'SELECT 1 AS a, 2 AS "A", 3 AS a_1, 4 AS a, 5 AS "x.y"', tmp_path / "theirs.parquet"
    with duckdb.connect() as client:
        client.execute(f"COPY ({query}) TO '{theirs}'")
    ours = pq.read_schema(io.BytesIO(duck.request(None, f"{query} FORMAT Parquet".encode()).body))
    assert ours.names == pq.read_schema(theirs).names


def test_parquet_comes_whole_or_in_parts(duck: Endpoint) -> None:
    query = "SELECT range AS a, 'x' || range AS b FROM range(300000) ORDER BY a FORMAT Parquet"
    reply = duck.request(None, query.encode())
    assert reply.status == 200 and int(reply.headers["content-length"]) == len(reply.body)
    file = pq.ParquetFile(io.BytesIO(reply.body))
    assert [file.metadata.row_group(number).num_rows for number in range(3)] == [122_880, 122_880, 54_240]
    table = file.read()
    assert table.column("a").to_pylist() == list(range(300_000)) and table.column("b").to_pylist()[-1] == "x299999"
    # Parts are of one file, the one that HEAD told of.
    length = int(duck.request(query, method="HEAD").headers["content-length"])
    middle, parts = length // 2, []
    for field in (f"0-{middle - 1}", f"{middle}-", "-4"):
        part = duck.request(None, query.encode(), headers={"Range": f"bytes={field}"})
        assert part.status == 206 and part.headers["content-range"].endswith(f"/{length}"), field
        parts.append(part.body)
    assert len(parts[0]) + len(parts[1]) == length and parts[2] == b"PAR1"
    assert pq.read_table(io.BytesIO(parts[0] + parts[1])).equals(table)
    nothing = duck.request(None, b"SELECT 1 AS a WHERE false FORMAT Parquet").body
    assert pq.read_table(io.BytesIO(nothing)).num_rows == 0


@pytest.mark.parametrize(
    ("query", "code", "told"),
    [
        ("SELECT 123::BIGNUM AS odd", 48, "Column odd"),
        ("SELECT union_value(k := 1) AS odd", 48, "Column odd"),
        ("SELECT INTERVAL '-1 day' AS odd", 49, "CAST(odd AS VARCHAR)"),
        ("SELECT error('at ' || range) FROM range(3)", 36, "at 0"),
        ("SELECT range FROM range(100000) SETTINGS max_result_rows = 10", 396, "max rows: 10"),
    ],
)
def test_an_error_has_a_status_of_its_own_in_parquet(duck: Endpoint, query: str, code: int, told: str) -> None:
    assert duck.request(f"{query} FORMAT Parquet", method="HEAD").status >= 400
    reply = duck.request(None, f"{query} FORMAT Parquet".encode())
    assert reply.code == code and told in reply.text, reply.text


def test_questions_about_tables_are_answered_in_parquet(duck: Endpoint) -> None:
    duck.sql("CREATE OR REPLACE TABLE asked_about (a INT, b VARCHAR)")
    body = duck.request(None, b"DESCRIBE TABLE asked_about FORMAT Parquet").body
    assert pq.read_table(io.BytesIO(body)).column("name").to_pylist() == ["a", "b"]
