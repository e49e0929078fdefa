"""Arrays and frames: what is stored of a column of every dtype is what clickhouse-connect stores of it."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import clickhouse_connect
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from clickhouse_connect.driver.client import Client
from harness.endpoint import Endpoint
from harness.engine import Engine
from write.cases import ENUM, TYPE_SETTINGS

from windrow import _core, exceptions

NUMBERS = ["Int32", "Nullable(Int32)", "UInt8", "Float64", "Nullable(Float64)", "Nullable(Decimal(9, 2))"]
DATES = ["Date", "Nullable(Date)", "Date32", "DateTime", "Nullable(DateTime)", "DateTime64(3)"]
DATES += ["Nullable(DateTime64(9))", "DateTime64(6, 'Europe/Berlin')"]
TIMES = ["Time", "Nullable(Time)", "Time64(3)", "Nullable(Time64(9))", "Time64(4)"]
MOMENTS = pd.to_datetime(["2020-01-02 03:04:05.678901234", "2021-07-01 23:59:59.000000001"])


def series(values: Any, dtype: Any = None) -> pd.Series:
    return pd.Series(values, dtype=dtype)


#: Types, and columns of pandas that clickhouse-connect takes for them.
PANDAS: list[tuple[list[str], list[pd.Series]]] = [
    (
        NUMBERS,
        [
            series([1, 2, 3]),
            series([1.5, 2.5, 3.0]),
            series([1, 2, 3], "int8"),
            series([1, 2], "int64[pyarrow]"),
            series(["1", "2", "1"], "category"),
        ],
    ),
    (["Int32", "Nullable(Int32)", "Float64", "Nullable(Float64)"], [series([1.5, np.nan, -2.5])]),
    (["Nullable(Int32)", "Nullable(Float64)"], [series([True, None, False], "boolean"), series(["1", None], "str")]),
    (
        ["Int32", "Nullable(Int32)", "UInt8", "Float64", "Nullable(Float64)"],
        [series([1, None, 3], "Int64"), series([2.5, None], "Float64"), series([True, False])],
    ),
    (["Nullable(Int32)", "Nullable(Float64)"], [series([1, None, np.nan], object), series(["1", None, 3], object)]),
    (["UInt64", "Float64"], [series([2**63], "uint64")]),
    (["Float32", "BFloat16"], [series([0.1], "float32"), series([0.5])]),
    (["Float32"], [series([0.5, 1e30])]),
    (["Bool"], [series([True, False]), series([0, 2]), series([0.0, 2.5])]),
    (["Nullable(Bool)"], [series([True, None], "boolean")]),
    (["String", "Nullable(String)"], [series(["ä", "", "x"]), series(["a", "b", "a"], "category")]),
    (["String"], [series([b"\x00a", b"b"]), series(["a"], "string[python]")]),
    (
        ["Nullable(String)", "LowCardinality(Nullable(String))"],
        [
            series(["a", None]),
            series(["a", None], "category"),
            series(["a", None, np.nan], object),
            series(["a", None], pd.ArrowDtype(pa.string())),
            series(["a", None], pd.ArrowDtype(pa.large_string())),
        ],
    ),
    (DATES, [series(MOMENTS), series(MOMENTS.tz_localize("America/New_York")), series(MOMENTS[:1].as_unit("s"))]),
    ([name for name in DATES if "Nullable" in name], [series([MOMENTS[0], pd.NaT])]),
    (["Date", "Date32", "Nullable(Date)"], [series([dt.date(2020, 1, 2), dt.date(2021, 1, 1)])]),
    (["DateTime64(3)", "Nullable(DateTime64(9))"], [series(["2020-01-02", "2021-01-02T03:04:05.5"])]),
    (["DateTime64(3)", "DateTime64(9)"], [series(pd.to_datetime(["1960-01-02 03:04:05.5"]))]),
    (TIMES, [series(pd.to_timedelta(["1h", "-1.5s"])), series(["1:00:00", "2:00:00"]), series([5, 6])]),
    (["Nullable(Time)", "Nullable(Time64(9))"], [series(pd.to_timedelta(["1h", None]))]),
    ([ENUM, f"Nullable({ENUM})"], [series(["a", "b"]), series([-1, 0]), series(["a", "b"], "category")]),
    ([f"Nullable({ENUM})"], [series(["a", None]), series([5.0, np.nan]), series([5, None], "Int8")]),
    (["Nullable(UUID)"], [series([uuid.UUID(int=5), None]), series([str(uuid.UUID(int=6))])]),
    (["IPv4", "Nullable(IPv4)"], [series(["1.2.3.4", "2.3.4.5"])]),
    (["FixedString(3)"], [series(["abc", "d"])]),
    (["Array(Int32)"], [series([[1, 2], []])]),
    (["Array(Float32)"], [series([np.array([1.5, 2.5], "float32")])]),
    (["Map(String, Int32)"], [series([{"a": 1}, {}])]),
    (["Tuple(Int32, String)"], [series([(1, "a")])]),
    (["JSON"], [series([{"a": 1}, {}])]),
    (["Int128", "Nullable(UInt256)"], [series([1, 2])]),
    (["Decimal(38, 5)"], [series([Decimal("1.5")])]),
]
#: The same of NumPy.
NUMPY: list[tuple[list[str], list[np.ndarray]]] = [
    (
        ["Int32", "Nullable(Int32)", "Float64", "Nullable(Float64)"],
        [
            np.array([1, 2, 3]),
            np.arange(10, dtype="int16")[::-3],
            np.array([1.5, np.nan, -2.5]),
            np.array([True, False]),
            np.array([1.5], "float16"),
            np.array([7, 8], ">i4"),
        ],
    ),
    (["UInt8", "Int8"], [np.array([1, 127], "uint8"), np.array([3], "int64")]),
    (["Nullable(Int32)", "Nullable(Float64)"], [np.array([1, None], object)]),
    (["String"], [np.array(["a", "xyz"]), np.array([b"a", b"xyz"])]),
    (["Date", "Date32"], [np.array(["2020-01-02", "2021-01-02"], "M8[D]")]),
    (["Array(Int32)"], [np.array([[1, 2], [3, 4]])]),
]

PANDAS_CASES = [(type_name, column) for type_names, columns in PANDAS for type_name in type_names for column in columns]
NUMPY_CASES = [(type_name, array) for type_names, arrays in NUMPY for type_name in type_names for array in arrays]


def label(case: tuple[str, Any]) -> str:
    return f"{case[0]}-{case[1].dtype}"


@pytest.fixture(scope="module")
def table(engine: Engine) -> Iterator[Endpoint]:
    engine.direct.sql("CREATE DATABASE write_frames")
    yield engine.direct.using("write_frames")
    engine.direct.sql("DROP DATABASE write_frames")


@pytest.fixture(scope="module")
def peer(table: Endpoint) -> Iterator[Client]:
    client = clickhouse_connect.get_client(
        host=table.host, port=table.port, username=table.user, password=table.password, database=table.database
    )
    yield client
    client.close()


def new_table(table: Endpoint, type_name: str) -> None:
    table.sql("DROP TABLE IF EXISTS t")
    table.sql(f"CREATE TABLE t (i UInt32, v {type_name}) ENGINE = Memory", **TYPE_SETTINGS)


def stored(table: Endpoint) -> bytes:
    return table.request("SELECT v FROM t ORDER BY i FORMAT TSV").body


def insert(table: Endpoint, body: bytes) -> None:
    table.sql("TRUNCATE TABLE t")
    reply = table.insert("INSERT INTO t FORMAT Native", body)
    assert reply.status == 200, reply.text


def frame_of(column: pd.Series) -> pd.DataFrame:
    return pd.DataFrame({"i": np.arange(len(column)), "v": column})


@pytest.mark.parametrize(("type_name", "column"), PANDAS_CASES, ids=[label(case) for case in PANDAS_CASES])
def test_a_frame_is_stored_as_by_clickhouse_connect(
    table: Endpoint, peer: Client, type_name: str, column: pd.Series
) -> None:
    new_table(table, type_name)
    peer.insert_df("t", frame_of(column))
    expected = stored(table)
    assert expected
    encoder = _core.Encoder(["i", "v"], ["UInt32", type_name])
    insert(table, encoder.frame(frame_of(column), 0, len(column)))
    assert stored(table) == expected
    # Cut out of the middle of a frame with an index of its own.
    framed = frame_of(pd.concat([column[:1], column, column[-1:]], ignore_index=True))
    framed = framed.set_index(framed.i * 10 + 7)
    insert(table, encoder.frame(framed, 1, 1 + len(column)))
    assert stored(table) == expected
    insert(table, encoder.columns([range(len(column)), column.array], 0, len(column)))
    assert stored(table) == expected


@pytest.mark.parametrize(("type_name", "array"), NUMPY_CASES, ids=[label(case) for case in NUMPY_CASES])
def test_an_array_is_stored_as_by_clickhouse_connect(
    table: Endpoint, peer: Client, type_name: str, array: np.ndarray
) -> None:
    new_table(table, type_name)
    peer.insert("t", [list(range(len(array))), array], column_names=["i", "v"], column_oriented=True)
    expected = stored(table)
    assert expected
    encoder = _core.Encoder(["i", "v"], ["UInt32", type_name])
    insert(table, encoder.columns([np.arange(len(array)), array], 0, len(array)))
    assert stored(table) == expected
    rows = np.concatenate([array[:1], array])
    insert(table, encoder.columns([np.arange(len(rows)), rows], 1, len(rows)))
    assert stored(table) == expected


ARROW: list[tuple[str, pa.Array, list[str]]] = [
    ("Int64", pa.array([1, -2]), ["1", "-2"]),
    ("Nullable(Int16)", pa.array([1, None], pa.int32()), ["1", "\\N"]),
    ("UInt8", pa.array([1, 255], pa.uint8()), ["1", "255"]),
    ("Float32", pa.array([1.5, 2]), ["1.5", "2"]),
    ("Nullable(Float64)", pa.array([1.5, None]), ["1.5", "\\N"]),
    ("Bool", pa.array([True, False]), ["true", "false"]),
    ("Nullable(Bool)", pa.array([True, None]), ["true", "\\N"]),
    ("String", pa.array(["a", "", "ä" * 50]), ["a", "", "ä" * 50]),
    ("Nullable(String)", pa.array(["a", None], pa.large_string()), ["a", "\\N"]),
    ("Nullable(String)", pa.array(["x", "a", None, "b"]).slice(1, 2), ["a", "\\N"]),
    ("LowCardinality(Nullable(String))", pa.array(["a", None, "a"]).dictionary_encode(), ["a", "\\N", "a"]),
    ("String", pa.array([b"a", b"\x01"]), ["a", "\x01"]),
    ("Date", pa.array([dt.date(2020, 1, 2)]), ["2020-01-02"]),
    ("Nullable(Date32)", pa.array([dt.date(1960, 1, 2), None]), ["1960-01-02", "\\N"]),
    ("DateTime('UTC')", pa.array([dt.datetime(2020, 1, 2, 3)], pa.timestamp("s")), ["2020-01-02 03:00:00"]),
    ("Nullable(DateTime64(6, 'UTC'))", pa.array([5, None], pa.timestamp("ns")), ["1970-01-01 00:00:00.000000", "\\N"]),
    ("Time64(3)", pa.array([1500], pa.duration("ms")), ["00:00:01.500"]),
    ("Decimal(18, 3)", pa.array([Decimal("1.5")]), ["1.5"]),
    ("Array(Nullable(Int32))", pa.array([[1, None], []]), ["[1,NULL]", "[]"]),
    ("Tuple(a Int32, b String)", pa.array([{"a": 1, "b": "x"}]), ["(1,'x')"]),
    ("Map(String, Int32)", pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int32())), ["{'a':1}", "{}"]),
    ("UUID", pa.array([str(uuid.UUID(int=7))]), [str(uuid.UUID(int=7))]),
    ("FixedString(2)", pa.array(["ab", "c"]), ["ab", "c\\0"]),
    (ENUM, pa.array(["a", "b"]), ["a", "b"]),
]


@pytest.mark.parametrize(("type_name", "array", "expected"), ARROW, ids=[f"{case[0]}-{case[1].type}" for case in ARROW])
def test_arrow_and_polars_are_stored(table: Endpoint, type_name: str, array: pa.Array, expected: list[str]) -> None:
    new_table(table, type_name)
    encoder = _core.Encoder(["i", "v"], ["UInt32", type_name])
    numbers = pa.array(range(len(array)), pa.uint32())
    tables: list[Any] = [pa.table({"i": numbers, "v": array})]
    half = len(array) // 2
    tables.append(pa.table({"i": numbers, "v": pa.chunked_array([array[:half], array[half:]])}))
    if not pa.types.is_map(array.type):
        tables.append(pl.DataFrame({"i": pl.Series(numbers), "v": pl.from_arrow(array)}))
    for given in tables:
        insert(table, encoder.frame(given, 0, len(array)))
        assert stored(table).decode().splitlines() == expected, type(given)


def test_a_structured_array_is_taken_by_names_or_by_order(table: Endpoint) -> None:
    new_table(table, "Float64")
    encoder = _core.Encoder(["i", "v"], ["UInt32", "Float64"])
    by_name = np.array([(1.5, 0), (2.5, 1)], dtype=[("v", "f8"), ("i", "i4")])
    by_order = np.array([(0, 1.5), (1, 2.5)], dtype=[("a", "i4"), ("b", "f8")])
    plain = np.array([[0, 1.5], [1, 2.5]])
    for rows in (by_name, by_order, plain):
        insert(table, encoder.frame(rows, 0, 2))
        assert stored(table) == b"1.5\n2.5\n"


@pytest.mark.parametrize(
    ("type_name", "column", "row", "value"),
    [
        ("UInt8", series([1, 300]), 1, "300"),
        ("UInt64", series([5, 6, -1]), 2, "-1"),
        ("Float32", series([1.0, 1e300]), 1, "1e+300"),
        ("Date", series([MOMENTS[0], pd.NaT]), 1, "NaT"),
        ("Date", series(pd.to_datetime(["2020-01-01", "1950-01-01"])), 1, "Timestamp('1950-01-01 00:00:00')"),
        ("String", series(["a", None]), 1, "None"),
        ("String", series([1, 2]), 0, "1"),
        ("Int32", series(["1", "x"]), 1, "'x'"),
        ("Int32", np.array([1, 2**40]), 1, "1099511627776"),
        ("String", pa.array(["a", None]), 1, "None"),
        (ENUM, series(["a", "z"], "category"), 1, "'z'"),
    ],
)
def test_what_does_not_fit_is_named(type_name: str, column: Any, row: int, value: str) -> None:
    encoder = _core.Encoder(["c"], [type_name])
    with pytest.raises(exceptions.DataError) as caught:
        encoder.columns([column], 0, len(column))
    error = caught.value
    assert (error.column, error.type_name, error.row) == ("c", type_name, row)
    assert error.value is not None and value in error.value


def test_a_frame_with_other_columns_is_refused() -> None:
    encoder = _core.Encoder(["a", "b"], ["Int32", "Int32"])
    for frame in (pd.DataFrame({"a": [1]}), pa.table({"a": [1]}), pl.DataFrame({"a": [1]}), np.zeros((1, 3))):
        with pytest.raises(exceptions.DataError, match="columns"):
            encoder.frame(frame, 0, 1)
    with pytest.raises(exceptions.DataError, match="is no frame"):
        encoder.frame(object(), 0, 1)


def test_a_column_that_is_too_short_is_refused() -> None:
    encoder = _core.Encoder(["a"], ["Int32"])
    for column in ([1], np.array([1]), pd.Series([1]), pd.Series([1], dtype="Int64"), pa.array([1]), range(1)):
        with pytest.raises(exceptions.DataError, match="1 values for 2 rows"):
            encoder.columns([column], 0, 2)


class SpeaksArrow:
    """What isn't of a package that is known by name."""

    def __init__(self, table: Any) -> None:
        self.table = table

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.table.__arrow_c_stream__(requested_schema)


def test_anything_that_speaks_arrow_is_a_frame(table: Endpoint) -> None:
    new_table(table, "Nullable(String)")
    encoder = _core.Encoder(["i", "v"], ["UInt32", "Nullable(String)"])
    insert(table, encoder.frame(SpeaksArrow(pa.table({"i": [0, 1, 2], "v": ["x", None, "y"]})), 1, 3))
    assert stored(table) == b"\\N\ny\n"
    with pytest.raises(exceptions.DataError, match="1 columns"):
        encoder.frame(SpeaksArrow(pa.table({"i": [0]})), 0, 1)
