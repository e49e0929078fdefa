"""Inserts of pandas and polars frames, NumPy arrays and Arrow tables."""

from __future__ import annotations

import datetime
import decimal
from typing import Any

import numpy
import pandas
import polars
import pyarrow
from compat.program import Run, program, program_for

UTC = datetime.timezone.utc


@program
async def a_frame(run: Run) -> Any:
    await run.table("a UInt32, f Float64, s String, at DateTime64(3, 'UTC'), ok Bool")
    times = pandas.to_datetime(["2024-07-01 12:00:00.123", "2024-07-02"], format="ISO8601", utc=True)
    frame = pandas.DataFrame({"a": [1, 2], "f": [1.5, 2.5], "s": ["x", "ü"], "at": times, "ok": [True, False]})
    summary = await run.client.insert_df("t", frame)
    return summary, await run.stored()


@program
async def a_frame_with_column_names(run: Run) -> Any:
    await run.table("a UInt32, b String")
    frame = pandas.DataFrame({"x": [1, 2], "y": ["p", "q"]})
    await run.client.insert_df("t", frame, column_names=["a", "b"])
    await run.client.insert_df("t", frame.rename(columns={"x": "a"})[["a"]])
    return await run.stored()


@program
async def a_frame_in_another_order(run: Run) -> Any:
    await run.table("a UInt32, b String, c UInt8 DEFAULT 7")
    await run.client.insert_df("t", pandas.DataFrame({"b": ["p", "q"], "a": [1, 2]}))
    return await run.stored()


@program
async def a_frame_with_types(run: Run) -> Any:
    await run.table("a UInt32, b Nullable(String)")
    frame = pandas.DataFrame({"a": [1, 2], "b": ["x", None]})
    await run.client.insert_df("t", frame, column_type_names=["UInt32", "Nullable(String)"], database=run.where["database"])
    return await run.stored()


NOW = pandas.Timestamp("2024-07-01 12:00:00.123456")
# The column's type, and what the frame holds.
SERIES: dict[str, tuple[str, Any]] = {
    "int64": ("Int64", pandas.Series([1, -2], dtype="int64")),
    "uint8_from_int64": ("UInt8", pandas.Series([1, 255], dtype="int64")),
    "int_from_float": ("Int32", pandas.Series([1.0, 2.0])),
    "nullable_int": ("Nullable(Int32)", pandas.Series([1, None], dtype="Int32")),
    "nullable_int_from_float": ("Nullable(Int64)", pandas.Series([1.0, numpy.nan])),
    "nullable_bool": ("Nullable(Bool)", pandas.Series([True, None], dtype="boolean")),
    "float32": ("Float32", pandas.Series([1.5, 2.5], dtype="float32")),
    "float_nan": ("Float64", pandas.Series([1.5, numpy.nan])),
    "nullable_float_nan": ("Nullable(Float64)", pandas.Series([1.5, numpy.nan])),
    "string": ("String", pandas.Series(["a", "ü✓"])),
    "string_object": ("String", pandas.Series(["a", "b"], dtype=object)),
    "string_extension": ("Nullable(String)", pandas.Series(["a", None], dtype="string")),
    "nullable_string": ("Nullable(String)", pandas.Series(["a", None])),
    "nullable_string_object": ("Nullable(String)", pandas.Series(["a", None], dtype=object)),
    "category": ("LowCardinality(String)", pandas.Series(["a", "b", "a"], dtype="category")),
    "bytes": ("String", pandas.Series([b"a", b"\xff"], dtype=object)),
    "date_time": ("DateTime('UTC')", pandas.Series([NOW, NOW])),
    "date_time_aware": ("DateTime('UTC')", pandas.Series([NOW.tz_localize("Asia/Tokyo")])),
    "date_time64_micro": ("DateTime64(6, 'UTC')", pandas.Series([NOW])),
    "date_time64_nano": ("DateTime64(9, 'UTC')", pandas.Series([NOW], dtype="datetime64[ns]")),
    "date_time64_milli": ("DateTime64(3, 'UTC')", pandas.Series([NOW], dtype="datetime64[ns]")),
    "nullable_date_time": ("Nullable(DateTime64(3, 'UTC'))", pandas.Series([NOW, pandas.NaT])),
    "date_from_times": ("Date", pandas.Series([NOW, NOW])),
    "date_objects": ("Date", pandas.Series([datetime.date(2024, 7, 1)], dtype=object)),
    "nullable_dates": ("Nullable(Date)", pandas.Series([datetime.date(2024, 7, 1), None], dtype=object)),
    "date32": ("Date32", pandas.Series([datetime.date(1920, 7, 1)], dtype=object)),
    "arrays": ("Array(Int32)", pandas.Series([[1, 2], []], dtype=object)),
    "arrays_of_numpy": ("Array(Int32)", pandas.Series([numpy.array([1, 2]), numpy.array([], dtype="int64")], dtype=object)),
    "maps": ("Map(String, Int32)", pandas.Series([{"a": 1}, {}], dtype=object)),
    "enum": ("Enum8('a' = 1, 'b' = 2)", pandas.Series(["a", "b"])),
    "arrow_string": ("String", pandas.Series(["a", "b"], dtype=pandas.ArrowDtype(pyarrow.string()))),
    "arrow_int": ("Nullable(Int64)", pandas.Series([1, None], dtype=pandas.ArrowDtype(pyarrow.int64()))),
    "uuid": ("UUID", pandas.Series(["61f0c404-5cb3-11e7-907b-a6006ad3dba0"])),
    "bool": ("Bool", pandas.Series([True, False])),
    "time64": ("Time64(6)", pandas.Series(pandas.to_timedelta(["01:02:03.5", "00:00:01"]))),
}


@program_for(**SERIES)
async def a_series(run: Run, case: tuple[str, Any]) -> Any:
    kind, series = case
    await run.client.command(f"CREATE TABLE t (v {kind}) ENGINE Memory", settings={"enable_time_time64_type": 1})
    await run.client.insert_df("t", pandas.DataFrame({"v": series}))
    return await run.stored("SELECT * FROM t")


ARRAYS: dict[str, tuple[str, Any]] = {
    "ints": ("a Int64, b Int64", numpy.arange(6).reshape(3, 2)),
    "floats": ("a Float64, b Float64", numpy.arange(6).reshape(3, 2) / 4),
    "ints_for_floats": ("a Float64, b Float64", numpy.arange(6).reshape(3, 2)),
    "small_ints": ("a Int64, b UInt8", numpy.arange(6, dtype="uint8").reshape(3, 2)),
    "objects": ("a Int64, b String", numpy.array([[1, "x"], [2, "y"]], dtype=object)),
    "strings": ("a String, b String", numpy.array([["p", "x"], ["q", "y"]])),
    "structured": ("a Int32, b Float64", numpy.array([(1, 1.5), (2, 2.5)], dtype=[("a", "i4"), ("b", "f8")])),
    "structured_in_order": ("a Int32, b String", numpy.array([(1, "x"), (2, "y")], dtype=[("p", "i4"), ("q", "U4")])),
    "times": ("a DateTime('UTC'), b DateTime('UTC')", numpy.array([["2024-07-01T12:00:00", "1970-01-01"]], dtype="datetime64[s]")),
    "structured_times": (
        "a DateTime64(3, 'UTC'), b Int32",
        numpy.array([("2024-07-01T12:00:00.123", 5)], dtype=[("a", "datetime64[ms]"), ("b", "i4")]),
    ),
}


@program_for(**ARRAYS)
async def an_array(run: Run, case: tuple[str, Any]) -> Any:
    columns, values = case
    await run.table(columns)
    await run.client.insert("t", values)
    return await run.stored()


@program
async def an_arrow_table(run: Run) -> Any:
    await run.table("a Int32, s String, l Array(Int64), at DateTime64(6, 'UTC'), n Nullable(Float64)")
    table = pyarrow.table(
        {
            "a": pyarrow.array([1, 2], pyarrow.int32()),
            "s": ["x", "ü"],
            "l": [[1, 2], []],
            "at": pyarrow.array([NOW.to_pydatetime()] * 2, pyarrow.timestamp("us", "UTC")),
            "n": [1.5, None],
        }
    )
    summary = await run.client.insert_arrow("t", table)
    return summary, await run.stored()


@program
async def an_arrow_table_of_fewer_columns(run: Run) -> Any:
    await run.table("a Int32, s String DEFAULT 'none', c Int64")
    await run.client.insert_arrow("t", pyarrow.table({"c": [1, 2], "a": [3, 4]}), database=run.where["database"])
    await run.client.insert_arrow("t", pyarrow.table({"c": [5], "a": [6]}), settings={"insert_null_as_default": 1})
    return await run.stored()


@program
async def an_arrow_table_that_does_not_fit(run: Run) -> Any:
    await run.table("a Int32")
    unknown = await run.raises(run.client.insert_arrow("t", pyarrow.table({"b": [1]})))
    wrong = await run.raises(run.client.insert_arrow("t", pyarrow.table({"a": ["x"]})))
    # Found here before anything is sent, and by ClickHouse there.
    of_database = run.module("driver.exceptions").DatabaseError
    return [isinstance(error, of_database) for error in (unknown, wrong)], await run.stored()


@program
async def arrow_kinds(run: Run) -> Any:
    await run.table(
        "i8 Int8, u64 UInt64, f32 Float32, b Bool, bin String, ls String, d Date32, ts DateTime64(9, 'UTC'), dec Decimal(18, 4), "
        "dict LowCardinality(String), st Tuple(x Int32, y String), m Map(String, Int32), fs FixedString(3), big Nullable(Int64)"
    )
    table = pyarrow.table(
        {
            "i8": pyarrow.array([1, -1], pyarrow.int8()),
            "u64": pyarrow.array([1, 2**64 - 1], pyarrow.uint64()),
            "f32": pyarrow.array([1.5, -1.5], pyarrow.float32()),
            "b": [True, False],
            "bin": pyarrow.array([b"\xff", b""], pyarrow.binary()),
            "ls": pyarrow.array(["x", "y"], pyarrow.large_string()),
            "d": pyarrow.array([datetime.date(2024, 7, 1), datetime.date(1950, 1, 1)], pyarrow.date32()),
            "ts": pyarrow.array([1720000000123456789, 0], pyarrow.timestamp("ns", "UTC")),
            "dec": pyarrow.array([decimal.Decimal("1.2345"), decimal.Decimal(-2)], pyarrow.decimal128(18, 4)),
            "dict": pyarrow.array(["p", "q"]).dictionary_encode(),
            "st": pyarrow.array([{"x": 1, "y": "a"}, {"x": 2, "y": "b"}]),
            "m": pyarrow.array([[("k", 1)], []], pyarrow.map_(pyarrow.string(), pyarrow.int32())),
            "fs": pyarrow.array([b"abc", b"def"], pyarrow.binary(3)),
            "big": pyarrow.chunked_array([[1], [None]], pyarrow.int64()),
        }
    )
    await run.client.insert_arrow("t", table)
    return await run.stored()


@program
async def arrow_frames(run: Run) -> Any:
    await run.table("a Int64, s String, at DateTime64(3, 'UTC')")
    of_pandas = pandas.DataFrame({"a": [1], "s": ["x"], "at": [NOW.tz_localize("UTC")]}).convert_dtypes(dtype_backend="pyarrow")
    of_polars = polars.DataFrame({"a": [2], "s": ["y"], "at": [datetime.datetime(2024, 7, 1, tzinfo=UTC)]})
    await run.client.insert_df_arrow("t", of_pandas)
    await run.client.insert_df_arrow("t", of_polars, database=run.where["database"])
    plain = await run.raises(run.client.insert_df_arrow("t", pandas.DataFrame({"a": [1], "s": ["x"]})))
    neither = await run.raises(run.client.insert_df_arrow("t", [[1]]))
    return plain, neither, await run.stored()


@program
async def there_and_back(run: Run) -> Any:
    """What a query gave goes into another table."""
    await run.client.command(
        "CREATE TABLE t ENGINE Memory AS SELECT number AS n, toString(number) AS s, toDateTime('2024-01-01', 'UTC') + number AS at, "
        "if(number = 1, NULL, number) AS maybe, toLowCardinality('c') AS c FROM numbers(3)"
    )
    for number in range(4):
        await run.client.command(f"CREATE TABLE copy_{number} AS t")
    await run.client.insert_df("copy_0", await run.client.query_df("SELECT * FROM t"))
    await run.client.insert_arrow("copy_1", await run.client.query_arrow("SELECT * FROM t"))
    await run.client.insert("copy_2", (await run.client.query("SELECT * FROM t")).result_rows)
    await run.client.insert_df_arrow("copy_3", await run.client.query_df_arrow("SELECT * FROM t"))
    return [await run.stored(f"SELECT * FROM copy_{number} ORDER BY n") for number in range(4)]
