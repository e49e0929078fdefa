"""Queries, and every form that a result comes in."""

from __future__ import annotations

from typing import Any

from compat.program import Run, program, program_for

MIXED = (
    "SELECT number AS id, toInt32(number) - 2 AS i, number / 4 AS f, toString(number) AS s, number % 2 = 0 AS even, "
    "toDate('2024-02-28') + number AS d, toDateTime('2024-03-30 23:30:00', 'UTC') + number * 3600 AS at, "
    "toDecimal64(number / 3, 4) AS price, [number, number + 1] AS several, map('k', number) AS m, "
    "(number, toString(number)) AS pair, if(number % 3 = 0, NULL, number) AS maybe, "
    "toLowCardinality(concat('c', toString(number % 3))) AS c FROM numbers(7)"
)

# One column of each kind, with its ends and a NULL where it may have one.
TYPES = {
    "ints": "SELECT toInt8(-128) a, toInt16(-32768) b, toInt32(-2147483648) c, toInt64('-9223372036854775808') d, toUInt8(255) e, "
    "toUInt16(65535) f, toUInt32(4294967295) g, toUInt64('18446744073709551615') h",
    "big_ints": "SELECT toInt128('-170141183460469231731687303715884105728') a, toUInt128('340282366920938463463374607431768211455') b, "
    "toInt256('-1') c, toUInt256('115792089237316195423570985008687907853269984665640564039457584007913129639935') d",
    "floats": "SELECT toFloat32(1.1) a, toFloat64(1.1) b, nan c, inf d, -inf e, toFloat32('nan') f, -0.0 g",
    "bfloat": "SELECT toBFloat16(1.5) a, [toBFloat16(2)] b",
    "decimals": "SELECT toDecimal32('-1.23', 2) a, toDecimal64('123456789.123456789', 9) b, toDecimal128('1', 20) c, "
    "toDecimal256('-5.5', 30) d, toDecimal32('7', 0) e, toNullable(toDecimal64('0.10', 2)) f",
    "bools": "SELECT true a, false b, toNullable(true) c, CAST(NULL, 'Nullable(Bool)') d, [true, false] e",
    "strings": "SELECT '' a, 'Grüße ✓' b, toFixedString('ab', 4) c, CAST(NULL, 'Nullable(String)') d, toNullable('x') e, repeat('x', 300) f",
    "invalid_utf8": "SELECT unhex('ff00fe') a, 'x' b",
    "dates": "SELECT toDate('1970-01-01') a, toDate('2149-06-06') b, toDate32('1900-01-01') c, toDate32('2299-12-31') d, "
    "CAST(NULL, 'Nullable(Date)') e",
    "date_times": "SELECT toDateTime('2024-07-01 12:00:00', 'UTC') a, toDateTime('2024-07-01 12:00:00', 'America/New_York') b, "
    "toDateTime('2024-07-01 12:00:00') c, toDateTime(0, 'UTC') d, CAST(NULL, 'Nullable(DateTime(\\'UTC\\'))') e",
    "date_time64s": "SELECT toDateTime64('2024-07-01 12:00:00.123', 3, 'UTC') a, toDateTime64('2024-07-01 12:00:00.123456', 6) b, "
    "toDateTime64('1950-01-01 00:00:00.5', 3, 'Europe/Berlin') c, toDateTime64('2024-07-01 12:00:00.123456789', 9, 'UTC') d, "
    "CAST(NULL, 'Nullable(DateTime64(3))') e",
    "date_time64s_of_odd_scale": "SELECT toDateTime64('1950-01-01 00:00:00.5', 1, 'Europe/Berlin') a, toDateTime64('2024-07-01 12:00:00', 0, 'UTC') b",
    "uuids": "SELECT toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0') a, CAST(NULL, 'Nullable(UUID)') b, [toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0')] c",
    "addresses": "SELECT toIPv4('10.1.2.3') a, toIPv6('2001:db8::1') b, toIPv6('::ffff:1.2.3.4') c, CAST(NULL, 'Nullable(IPv4)') d",
    "enums": "SELECT CAST('b', 'Enum8(\\'a\\' = -1, \\'b\\' = 2)') a, CAST('x', 'Enum16(\\'x\\' = 1000)') b, "
    "CAST(NULL, 'Nullable(Enum8(\\'a\\' = 1))') c",
    "low_cardinality": "SELECT toLowCardinality('a') a, toLowCardinality(CAST(NULL, 'Nullable(String)')) b, [toLowCardinality('q')] c, "
    "CAST('5', 'LowCardinality(Nullable(String))') d, [toLowCardinality('a'), toLowCardinality('b')] e",
    "arrays": "SELECT [1, 2, 3] a, [[1], [], [2, 3]] b, CAST([], 'Array(String)') c, ['x', NULL] d, [(1, 'a'), (2, 'b')] e",
    "tuples": "SELECT (1, 'a') a, CAST((1, 'x'), 'Tuple(n Int32, s String)') b, CAST((2, NULL), 'Tuple(a UInt8, b Nullable(String))') c, "
    "((1, 2), 3) d, tuple(5) e",
    "maps": "SELECT map('a', 1, 'b', 2) a, map(1, ['x']) b, CAST(map(), 'Map(String, UInt8)') c, map('k', map('l', 1)) d, [map('a', 1)] e",
    "nested": "SELECT CAST([(1, 'a'), (2, 'b')], 'Nested(n UInt8, s String)') a",
    "geometry": "SELECT CAST((1, 2), 'Point') a, CAST([(0, 0), (1, 1)], 'Ring') b, CAST([[(0, 0), (1, 1)]], 'Polygon') c, "
    "CAST([[[(0, 0), (1, 1)]]], 'MultiPolygon') d, CAST([(0, 0), (2, 2)], 'LineString') e",
    "nothing": "SELECT NULL a, [] b, [NULL] c",
    "intervals": "SELECT toIntervalDay(3) a, toIntervalSecond(-1) b",
    "simple_aggregate": "SELECT CAST(7, 'SimpleAggregateFunction(sum, UInt64)') a, CAST('x', 'SimpleAggregateFunction(any, String)') b",
    "times": "SELECT CAST('12:34:56', 'Time') a, CAST('-01:00:00', 'Time') b, CAST('12:34:56.789', 'Time64(3)') c, CAST('01:02:03.123456', 'Time64(6)') d "
    "SETTINGS enable_time_time64_type = 1",
}
NEW_TYPES = {
    "json": """SELECT '{"a": 1, "b": {"c": "x"}, "d": [1, 2], "e": null, "f": 1.5, "g": true}'::JSON a, '{}'::JSON b""",
    "json_typed": """SELECT '{"a": 1, "x": {"y": 5}}'::JSON(a UInt8, x.y Float32) a""",
    "json_rows": """SELECT arrayJoin(['{"a": 1}', '{"a": "s"}', '{"b": [{"c": 1}]}'])::JSON a""",
    "variant": "SELECT arrayJoin([1::Variant(UInt64, String, Array(UInt8)), 'x'::Variant(UInt64, String, Array(UInt8)), "
    "NULL::Variant(UInt64, String, Array(UInt8)), [1,2]::Array(UInt8)::Variant(UInt64, String, Array(UInt8))]) a",
    "dynamic": "SELECT arrayJoin([1::Dynamic, 'x'::Dynamic, NULL::Dynamic, [1, 2]::Dynamic]) a",
}
# In arrays and frames they are numpy.datetime64 there, dates and times as in rows here.
TIMES_WITHOUT_A_TYPE = {
    "json_dates": """SELECT '{"a": 1, "x": {"y": "2024-01-01"}}'::JSON(a UInt8, x.y Date) a""",
    "dynamic_dates": "SELECT arrayJoin([toDate('2024-01-01')::Dynamic, toDateTime('2024-01-01 12:00:00', 'UTC')::Dynamic]) a",
}


@program
async def rows(run: Run) -> Any:
    return await run.client.query(MIXED)


@program
async def columns(run: Run) -> Any:
    result = await run.client.query(MIXED, column_oriented=True)
    return result, result.result_columns, result.result_rows


@program
async def rows_and_columns_of_one_result(run: Run) -> Any:
    result = await run.client.query(MIXED)
    return result.result_rows, result.result_columns, list(result.named_results()), result.first_item, result.first_row


@program
async def no_rows(run: Run) -> Any:
    result = await run.client.query("SELECT number AS a, 'x' AS b FROM numbers(10) WHERE number > 100")
    return result, result.result_columns, list(result.named_results())


@program
async def one_value(run: Run) -> Any:
    return (await run.client.query("SELECT 42")).first_row[0]


@program
async def many_rows(run: Run) -> Any:
    result = await run.client.query("SELECT number, toString(number) FROM numbers(200000)")
    return result.row_count, result.result_rows[:3], result.result_rows[-3:], sum(row[0] for row in result.result_rows)


@program
async def a_limit_of_the_client(run: Run) -> Any:
    client = await run.connect(query_limit=3)
    return await client.query("SELECT number FROM numbers(10)"), await client.query("SELECT number FROM numbers(10) LIMIT 5")


@program
async def a_command_by_query(run: Run) -> Any:
    created = await run.client.query("CREATE TABLE t (a UInt8) ENGINE Memory")
    return created.column_names[:1], (await run.client.query("EXISTS TABLE t")).result_rows, (await run.client.query("SHOW TABLES")).result_rows


@program
async def describe_and_explain(run: Run) -> Any:
    await run.table("a UInt8, b Nullable(String) DEFAULT 'x' COMMENT 'c'")
    described = await run.client.query("DESCRIBE TABLE t")
    return described.result_rows, described.column_names, (await run.client.query("EXPLAIN SELECT 1")).result_rows


@program
async def with_and_format_and_semicolon(run: Run) -> Any:
    first = await run.client.query("WITH 5 AS x SELECT x + 1 AS y;")
    second = await run.client.query("-- a comment; with a semicolon\nSELECT /* ; */ 'a;b' AS s ;  ")
    return first, second


@program
async def duplicate_names(run: Run) -> Any:
    result = await run.client.query("SELECT 1 AS a, 2 AS a_1, (SELECT 3) AS b")
    return result, list(result.named_results())


@program_for(**TYPES, **NEW_TYPES, **TIMES_WITHOUT_A_TYPE)
async def values_of_type(run: Run, query: str) -> Any:
    return await run.client.query(query)


@program_for(**TYPES)
async def columns_of_type(run: Run, query: str) -> Any:
    return await run.client.query(query, column_oriented=True)


@program_for(**TYPES, **NEW_TYPES)
async def numpy_of_type(run: Run, query: str) -> Any:
    try:
        return await run.client.query_np(query)
    except run.module("driver.exceptions").Error as error:
        return error


@program_for(**TYPES, **NEW_TYPES)
async def frame_of_type(run: Run, query: str) -> Any:
    try:
        return await run.client.query_df(query)
    except run.module("driver.exceptions").Error as error:
        return error


@program_for(mixed=MIXED, **TYPES)
async def arrow_of_type(run: Run, query: str) -> Any:
    try:
        return await run.client.query_arrow(query, use_strings="ff00" not in query), await run.client.query_arrow(query, use_strings=False)
    except run.module("driver.exceptions").Error as error:
        return error


@program
async def numpy_forms(run: Run) -> Any:
    same = await run.client.query_np("SELECT number, number * 2 AS b FROM numbers(5)")
    mixed = await run.client.query_np(MIXED)
    short = await run.client.query_np("SELECT toString(number) AS s, number FROM numbers(3)", max_str_len=4)
    none = await run.client.query_np("SELECT number FROM numbers(5) WHERE number > 7")
    return same, mixed, short, none


@program
async def frame_forms(run: Run) -> Any:
    return (
        await run.client.query_df(MIXED),
        await run.client.query_df(MIXED, use_extended_dtypes=False),
        await run.client.query_df(MIXED, use_na_values=False),
        await run.client.query_df(MIXED, use_none=False),
        await run.client.query_df("SELECT number, 'x' AS s FROM numbers(5) WHERE number > 7"),
    )


@program
async def frame_of_nulls(run: Run) -> Any:
    query = (
        "SELECT if(number = 1, NULL, toInt32(number)) i, if(number = 1, NULL, number / 2) f, if(number = 1, NULL, toString(number)) s, "
        "if(number = 1, NULL, toDateTime('2024-01-01', 'UTC') + number) t, if(number = 1, NULL, toDate('2024-01-01')) d, "
        "if(number = 1, NULL, number = 2) b, if(number = 1, NULL, toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0')) u, "
        "toLowCardinality(if(number = 1, NULL, toString(number))) l, if(number = 1, NULL, toDecimal32(1, 2)) p FROM numbers(3)"
    )
    extended, plain = await run.client.query_df(query), await run.client.query_df(query, use_extended_dtypes=False)
    return extended, plain, await run.client.query_df(query, use_none=False)


@program
async def arrow_frames(run: Run) -> Any:
    query = "SELECT number, toString(number) AS s, number / 3 AS f, if(number = 1, NULL, number) AS n FROM numbers(4)"
    return await run.client.query_df_arrow(query), await run.client.query_df_arrow(query, dataframe_library="polars")


@program
async def an_unknown_frame_library(run: Run) -> Any:
    return await run.raises(run.client.query_df_arrow("SELECT 1", dataframe_library="dask"))


@program
async def use_numpy_in_query(run: Run) -> Any:
    result = await run.client.query("SELECT number, toString(number) AS s FROM numbers(3)", use_numpy=True)
    return result.np_result if hasattr(result, "np_result") else result.result_rows


@program
async def ids_and_summaries(run: Run) -> Any:
    own = f"own_query_id_of_{run.folder.name}"
    result = await run.client.query("SELECT number FROM numbers(10)", settings={"query_id": own})
    return result.query_id == own, sorted(result.summary), result.summary.get("read_rows"), result.summary.get("result_rows")
