"""Arrow columns written as Native: ClickHouse stores of them what it stores when it is given the same table in its own Arrow format."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Iterator
from typing import Any

import pandas
import polars
import pyarrow as pa
import pytest
import windrow
from windrow import _core

SETTINGS = {"enable_time_time64_type": 1, "allow_suspicious_low_cardinality_types": 1}
UTC = datetime.timezone.utc
NOON = datetime.datetime(2024, 2, 29, 12, 30, 15, 123456, UTC)
EARLY = datetime.datetime(1969, 12, 31, 23, 59, 59, 500000, UTC)
LONG = "a text of more than twelve bytes"
LISTS = [[1, 2], [], [3], [4, 5, 6]]
SAME_AS_CLICKHOUSE = {
    "int64": (pa.array([1, -2, 3]), "Int64"),
    "narrowed": (pa.array([1, 200, 3]), "UInt8"),
    "widened": (pa.array([1, -2], pa.int8()), "Int64"),
    "widened to 128 bits": (pa.array([1, -2]), "Int128"),
    "nullable": (pa.array([1, None, 3], pa.int32()), "Nullable(Int32)"),
    "sliced": (pa.array([1, None, 3, 4, None], pa.int32()).slice(1, 3), "Nullable(Int32)"),
    "chunked": (pa.chunked_array([[1, None], [], [3]]), "Nullable(Int64)"),
    "floats": (pa.array([1.5, -0.0, 1e300]), "Float64"),
    "float to double": (pa.array([1.5, 0.1], pa.float32()), "Float64"),
    "integers as floats": (pa.array([1, 2]), "Float64"),
    "booleans": (pa.array([True, False, True]), "Bool"),
    "nullable booleans": (pa.array([True, None, False] * 5), "Nullable(Bool)"),
    "sliced booleans": (pa.array([True, False, True] * 5).slice(7, 5), "Bool"),
    "texts": (pa.array(["a", "", LONG, "\u00fc" * 200]), "String"),
    "sliced texts": (pa.array(["a", "bc", LONG, None]).slice(1), "Nullable(String)"),
    "large texts": (pa.array(["a", LONG], pa.large_string()), "String"),
    "views of texts": (pa.array(["a", LONG, None], pa.string_view()), "Nullable(String)"),
    "binaries": (pa.array([b"\xff\x00", b""]), "String"),
    "dictionary": (pa.array(["a", "b", None, "a"]).dictionary_encode(), "LowCardinality(Nullable(String))"),
    "plain into LowCardinality": (pa.array(["a", "b", "a"]), "LowCardinality(String)"),
    "fixed strings": (pa.array([b"abc", b"def"], pa.binary(3)), "FixedString(3)"),
    "dates": (pa.array([datetime.date(2024, 2, 29), datetime.date(1970, 1, 1)]), "Date"),
    "wide dates": (pa.array([datetime.date(1920, 1, 1)]), "Date32"),
    "milliseconds as dates": (pa.array([datetime.date(2024, 2, 29)], pa.date64()), "Date32"),
    "numbers as DateTime": (pa.array([0, 1700000000], pa.uint32()), "DateTime('UTC')"),
    "microseconds": (pa.array([NOON, EARLY], pa.timestamp("us", "UTC")), "DateTime64(6, 'UTC')"),
    "microseconds as milliseconds": (pa.array([NOON], pa.timestamp("us", "UTC")), "DateTime64(3, 'UTC')"),
    "seconds as nanoseconds": (pa.array([NOON.replace(microsecond=0)], pa.timestamp("s", "UTC")), "DateTime64(9, 'UTC')"),
    "fine times of day": (pa.array([datetime.time(1, 2, 3, 456000)], pa.time32("ms")), "Time64(3)"),
    "decimals": (pa.array([decimal.Decimal("-1.50"), decimal.Decimal("2.25")]), "Decimal(9, 2)"),
    "rescaled decimals": (pa.array([decimal.Decimal("-1.50")]), "Decimal(38, 10)"),
    "wide decimals": (pa.array([decimal.Decimal("-1.50")]), "Decimal(76, 10)"),
    "enum by number": (pa.array([-1, 2], pa.int8()), "Enum8('a' = -1, 'b' = 2)"),
    "addresses": (pa.array([2130706433], pa.uint32()), "IPv4"),
    "wide addresses": (pa.array([bytes(15) + b"\x01"], pa.binary(16)), "IPv6"),
    "lists": (pa.array(LISTS), "Array(UInt8)"),
    "sliced lists": (pa.array(LISTS).slice(1, 2), "Array(Int64)"),
    "lists with NULL": (pa.array([[1, None], [None]]), "Array(Nullable(Int64))"),
    "a list that is NULL": (pa.array([[1], None, [2]]), "Array(Int64)"),
    "large lists": (pa.array(LISTS, pa.large_list(pa.int64())), "Array(Int64)"),
    "lists of a fixed size": (pa.array([[1, 2], [3, 4]], pa.list_(pa.int64(), 2)), "Array(Int64)"),
    "lists of lists": (pa.array([[[1], []], [], [[2, 3]]]), "Array(Array(Int64))"),
    "lists of texts": (pa.array([["a", LONG], [], ["b"]]), "Array(String)"),
    "lists in chunks": (pa.chunked_array([pa.array(LISTS), pa.array(LISTS).slice(2)]), "Array(Int64)"),
    "maps": (pa.array([[("a", 1), ("b", 2)], []], pa.map_(pa.string(), pa.int64())), "Map(String, Int64)"),
    "structs": (pa.array([{"a": 1, "b": "x"}, {"a": 2, "b": "y"}]), "Tuple(a Int64, b String)"),
    "sliced structs": (pa.array([{"a": 1, "b": [1]}, {"a": 2, "b": []}]).slice(1), "Tuple(a Int64, b Array(UInt8))"),
    "structs by name": (pa.array([{"b": "x", "a": 1}]), "Tuple(a Int64, b String)"),
    "only NULL": (pa.nulls(3), "Nullable(String)"),
}  # fmt: skip
UNSUITED = {
    "too large": (pa.array([1, 300]), "UInt8"),
    "negative": (pa.array([-1]), "UInt64"),
    "NULL": (pa.array([1, None]), "Int64"),
    "NULL in a list": (pa.array([[1, None]]), "Array(Int64)"),
    "NULL in a dictionary": (pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array(["a", None])), "String"),
    "a fraction": (pa.array([1.5]), "Int64"),
    "lost digits": (pa.array([decimal.Decimal("1.25")]), "Decimal(9, 1)"),
    "too many digits": (pa.array([decimal.Decimal("12345678901")]), "Decimal(9, 0)"),
    "too long": (pa.array(["abcd"]), "FixedString(3)"),
    "no such name": (pa.array(["c"]), "Enum8('a' = 1)"),
    "a text as a number": (pa.array(["1"]), "Int64"),
    "no address": (pa.array(["1.2.3"]), "IPv4"),
    "a date too early": (pa.array([datetime.date(1920, 1, 1)]), "Date"),
    "missing element": (pa.array([{"a": 1}]), "Tuple(a Int64, b String)"),
    "documents": (pa.array(['{"a": 1}']), "JSON"),
    "union": (pa.array([1]), "Variant(Int64, String)"),
}  # fmt: skip


def sent_name(type_name: str) -> str:
    return type_name.removeprefix("LowCardinality(")[:-1] if type_name.startswith("LowCardinality(") else type_name


def varint(number: int) -> bytes:
    digits = [number & 0x7F]
    while number := number >> 7:
        digits[-1] |= 0x80
        digits.append(number & 0x7F)
    return bytes(digits)


def sized(text: str) -> bytes:
    return varint(len(text.encode())) + text.encode()


def stored(direct: Any, type_name: str, format_name: str, data: bytes) -> str:
    direct.sql("DROP TABLE IF EXISTS t")
    direct.sql(f"CREATE TABLE t (x {type_name}) ENGINE = Memory", **SETTINGS)
    reply = direct.insert(f"INSERT INTO t FORMAT {format_name}", data, **SETTINGS)
    assert reply.status == 200, reply.text
    return direct.sql("SELECT x FROM t FORMAT JSONCompactEachRow")


def stored_by_us(direct: Any, given: object, type_name: str) -> str:
    column = _core.ArrowColumns.of(given)
    assert column is not None
    data = column.data(type_name, 0, column.rows)
    assert data is not None
    head = varint(1) + varint(column.rows) + sized("x") + sized(sent_name(type_name))
    return stored(direct, type_name, "Native", head + data)


def stored_by_clickhouse(direct: Any, array: pa.Array, type_name: str) -> str:
    table = pa.table({"x": array})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return stored(direct, type_name, "ArrowStream", sink.getvalue().to_pybytes())


@pytest.mark.parametrize("name", SAME_AS_CLICKHOUSE)
def test_what_is_stored_is_what_clickhouse_reads_from_arrow(direct: Any, name: str) -> None:
    array, type_name = SAME_AS_CLICKHOUSE[name]
    assert stored_by_us(direct, array, type_name) == stored_by_clickhouse(direct, array, type_name)


@pytest.mark.parametrize("name", UNSUITED)
def test_what_does_not_surely_fit_is_left_to_others(name: str) -> None:
    array, type_name = UNSUITED[name]
    column = _core.ArrowColumns.of(array)
    assert column is not None
    assert column.data(type_name, 0, column.rows) is None


@pytest.mark.parametrize(
    ("given", "type_name", "expected"),
    [
        (pa.array(["61f0c404-5cb3-11e7-907b-a6006ad3dba0"]), "UUID", '["61f0c404-5cb3-11e7-907b-a6006ad3dba0"]'),
        (pa.array([bytes(range(16))], pa.uuid()), "UUID", '["00010203-0405-0607-0809-0a0b0c0d0e0f"]'),
        (pa.array(["1.2.3.4", None]), "Nullable(IPv4)", '["1.2.3.4"]\n[null]'),
        (pa.array(["2001:db8::1"]), "IPv6", '["2001:db8::1"]'),
        (pa.array(["b", "a"]).dictionary_encode(), "Enum8('a' = -1, 'b' = 2)", '["b"]\n["a"]'),
        (pa.array(["a", "abc"]), "FixedString(3)", '["a\\u0000\\u0000"]\n["abc"]'),
        (pa.array([datetime.time(1, 2, 3)], pa.time32("s")), "Time", '["01:02:03"]'),
        (pa.array([datetime.timedelta(hours=-1)], pa.duration("ms")), "Time64(3)", '["-01:00:00.000"]'),
        (pa.array([-5], pa.int64()), "IntervalDay", '["-5"]'),
        (pa.array([NOON, EARLY], pa.timestamp("ns")), "DateTime64(0, 'UTC')",
         '["2024-02-29 12:30:15"]\n["1969-12-31 23:59:59"]'),
        (pa.array([NOON], pa.timestamp("us")), "DateTime('UTC')", '["2024-02-29 12:30:15"]'),
        (polars.Series(["a", LONG, None]), "Nullable(String)", f'["a"]\n["{LONG}"]\n[null]'),
        (polars.Series([[1, 2], []]), "Array(Int64)", '[["1","2"]]\n[[]]'),
        (polars.Series(["a", "b"], dtype=polars.Categorical), "LowCardinality(String)", '["a"]\n["b"]'),
        (pandas.Series(["a", None, LONG], dtype="str"), "Nullable(String)", f'["a"]\n[null]\n["{LONG}"]'),
        (pandas.Series([1, None], dtype="Int64"), "Nullable(Int64)", '["1"]\n[null]'),
        (pandas.Series([NOON, NOON]), "DateTime64(6, 'UTC')", '["2024-02-29 12:30:15.123456"]\n' * 2),
    ],
)  # fmt: skip
def test_other_types_and_other_libraries(direct: Any, given: object, type_name: str, expected: str) -> None:
    settings = {"output_format_json_quote_64bit_integers": 1}
    stored_by_us(direct, given, type_name)
    assert direct.sql("SELECT x FROM t FORMAT JSONCompactEachRow", **settings) == expected.rstrip("\n")


def test_a_table_and_some_of_its_rows(direct: Any) -> None:
    table = pa.table({"n": pa.chunked_array([[1, 2], [3, 4]]), "s": pa.chunked_array([["a", "b"], ["c", "d"]])})
    for given in (table, table.to_reader(), polars.from_arrow(table), table.to_pandas()):
        columns = _core.ArrowColumns.of(given)
        assert columns is not None
        assert (columns.names, columns.rows) == (["n", "s"], 4)
        number, text = columns.column(0), columns.column(1)
        assert number is not None and text is not None
        assert number.data("UInt8", 1, 3) == b"\x02\x03"
        assert text.data("String", 1, 4) == b"\x01b\x01c\x01d"
        assert text.data("String", 1, 5) is None
        assert columns.column(2) is None


def test_what_is_no_arrow() -> None:
    assert _core.ArrowColumns.of([1, 2]) is None
    with pytest.raises(ValueError, match="no type"):
        _core.ArrowColumns.of(pa.array([1])).data("(", 0, 1)  # type: ignore[union-attr]

    class Pretender:
        def __arrow_c_array__(self, requested_schema: object | None = None) -> object:
            return (1, 2)

    with pytest.raises(TypeError):
        _core.ArrowColumns.of(Pretender())


@pytest.mark.parametrize(
    ("values", "type_name", "rows"),
    [
        # Its column of nothing but NULL has a buffer too many for Arrow's own library.
        (polars.Series([None, None]), "Nullable(String)", ["\\N", "\\N"]),
        (polars.Series([[], []]), "Array(String)", ["[]", "[]"]),
        # A type of its own.
        (polars.Series([1, -(2**100)], dtype=polars.Int128), "Int128", ["1", str(-(2**100))]),
        # A field is described by bytes that are no text.
        (pa.array([{"a": 1}], pa.struct([pa.field("a", pa.int64(), metadata={b"k": b"\xff"})])), "Tuple(a Int64)", ["(1)"]),
    ],
)
def test_what_arrows_own_library_refuses_is_inserted_by_value(
    direct: Any, values: Any, type_name: str, rows: list[str]
) -> None:
    direct.sql("DROP TABLE IF EXISTS t")
    direct.sql(f"CREATE TABLE t (x {type_name}) ENGINE = Memory")
    encoder = _core.Encoder(["x"], [type_name])
    reply = direct.insert("INSERT INTO t FORMAT Native", encoder.columns([values], 0, len(values)))
    assert reply.status == 200, reply.text
    assert direct.sql("SELECT x FROM t").split("\n") == rows


def test_arrow_that_was_taken_is_refused() -> None:
    class Same:
        def __init__(self, method: str) -> None:
            taken = getattr(pa.chunked_array([[1]]) if method.endswith("stream__") else pa.array(["a"]), method)()
            setattr(self, method, lambda requested_schema=None: taken)

    for method in ("__arrow_c_stream__", "__arrow_c_array__"):
        given = Same(method)
        assert _core.ArrowColumns.of(given) is not None
        with pytest.raises(ValueError, match="taken by somebody else"):
            _core.ArrowColumns.of(given)


def test_types_are_not_followed_for_ever() -> None:
    kind = pa.int64()
    for _ in range(70):
        kind = pa.list_(kind)
    assert _core.ArrowColumns.of(pa.array([], kind)) is None


def test_an_error_of_the_stream_is_told() -> None:
    def batches() -> Any:
        yield pa.record_batch({"n": [1]})
        raise ValueError("broken on the way")

    reader = pa.RecordBatchReader.from_batches(pa.schema({"n": pa.int64()}), batches())
    with pytest.raises(ValueError, match="broken on the way"):
        _core.ArrowColumns.of(reader)


@pytest.fixture
def client(where: dict[str, Any]) -> Iterator[windrow.Client]:
    made = windrow.get_client(**where)
    yield made
    made.close()


OUT_OF_RANGE = {
    "a year after 2106": (pa.array([datetime.datetime(2242, 3, 16)], pa.timestamp("s")), "DateTime('UTC')"),
    "a day after 2149": (pa.array([datetime.date(2242, 3, 16)]), "Date"),
    "a number in a text": (pa.array([5]), "String"),
    "an infinite float": (pa.array([1e300]), "Float32"),
}
NEVER_SENT = {**{name: case for name, case in UNSUITED.items() if name not in ("documents", "union")}, **OUT_OF_RANGE}


@pytest.mark.parametrize("name", NEVER_SENT)
def test_insert_arrow_stores_nothing_that_changes(client: Any, direct: Any, name: str) -> None:
    array, type_name = NEVER_SENT[name]
    direct.sql(f"CREATE TABLE t (n UInt8, x {type_name}) ORDER BY n", **SETTINGS)
    table = pa.table({"n": [7] * len(array), "x": array})
    with pytest.raises(windrow.exceptions.DataError, match="column `x`") as caught:
        client.insert_arrow("t", table, settings=SETTINGS)
    named = (caught.value.column, caught.value.type_name.replace("`", ""))  # type: ignore[attr-defined]
    assert named == ("x", type_name)
    assert direct.sql("SELECT count() FROM t") == "0"


@pytest.mark.parametrize("name", SAME_AS_CLICKHOUSE)
def test_insert_arrow_stores_what_clickhouse_reads(client: Any, direct: Any, name: str) -> None:
    array, type_name = SAME_AS_CLICKHOUSE[name]
    expected = stored_by_clickhouse(direct, array, type_name)
    direct.sql("TRUNCATE TABLE t")
    client.insert_arrow("t", pa.table({"x": array}), settings=SETTINGS)
    assert direct.sql("SELECT x FROM t FORMAT JSONCompactEachRow") == expected
    direct.sql("TRUNCATE TABLE t")
    client.insert_arrow("t", pa.table({"x": array}), settings=SETTINGS, convert=True)
    assert direct.sql("SELECT x FROM t FORMAT JSONCompactEachRow") == expected


def test_insert_arrow_converts_when_it_is_told_to(client: Any, direct: Any) -> None:
    direct.sql("CREATE TABLE t (a UInt8, b UInt8, c UInt8) ORDER BY a")
    table = pa.table({"a": [300], "b": [-1], "c": [1.5]})
    client.insert_arrow("t", table, convert=True)
    client.insert_df_arrow("t", polars.from_arrow(table), convert=True)
    assert direct.sql("SELECT * FROM t") == "44\t255\t1\n44\t255\t1"
    with pytest.raises(windrow.exceptions.DataError, match="`a` .*row 0.*300.*convert=True"):
        client.insert_df_arrow("t", polars.from_arrow(table))


def test_documents_and_variants_are_inserted_by_value(client: Any, direct: Any) -> None:
    direct.sql("CREATE TABLE t (d JSON, v Variant(Int64, String), m Map(String, UInt8)) ORDER BY tuple()")
    maps = pa.array([[("k", 3)]], pa.map_(pa.string(), pa.int64()))
    client.insert_arrow("t", pa.table({"d": ['{"a": 1}'], "v": [5], "m": maps}))
    assert direct.sql("SELECT * FROM t") == '{"a":1}\t5\t{\'k\':3}'
