"""SQL expressions, at least one for every type that a result can have; `number` counts from 0."""

from __future__ import annotations

# Whatever stands here may also be made nullable by `if(number = 1, NULL, ...)`.
SCALARS = [
    *(f"to{sign}{width}(number)" for sign in ("Int", "UInt") for width in (8, 16, 32, 64, 128, 256)),
    "toInt8(-128)",
    "toUInt64(18446744073709551615)",
    "toUInt128('340282366920938463463374607431768211455')",
    "toInt128('-170141183460469231731687303715884105728')",
    "toInt256('-57896044618658097711785492504343953926634992332820282019728792003956564819968')",
    "toUInt256('115792089237316195423570985008687907853269984665640564039457584007913129639935')",
    "toInt256(-5)",
    "toUInt128(18446744073709551616)",
    "toFloat32(0.1) + number",
    "number / 3",
    "-0.0",
    "nan",
    "inf",
    "toBFloat16(number + 0.5)",
    "number = 1",
    "CAST(number = 1, 'Bool')",
    "toString(number)",
    "''",
    "'ä日本'",
    "unhex('61ff00')",
    "toFixedString(toString(number), 3)",
    "toFixedString(unhex('ff00'), 3)",
    "toDate('2020-01-01') + number",
    "toDate(65535)",
    "toDate32('1950-01-01') + number",
    "toDate32('2299-12-31')",
    "toDateTime('2020-01-01 00:00:00') + number",
    "toDateTime(number * 10000000, 'America/New_York')",
    "toDateTime(number * 1000, 'Asia/Kolkata')",
    "toDateTime(number * 1000, 'Etc/UTC')",
    "toDateTime(number * 1000, 'GMT')",
    "toDateTime('2024-03-30 23:00:00', 'Europe/Berlin') + number * 1800",
    "toDateTime('2024-10-26 23:00:00', 'Europe/Berlin') + number * 1800",
    "toDateTime64('2024-10-26 23:00:00.123456', 6, 'Europe/Berlin') + number * 1800",
    *(f"toDateTime64('2020-01-01 00:00:00.987654321', {precision}) + number" for precision in (0, 1, 3, 6, 8, 9)),
    "toDateTime64('1950-01-01 00:00:00.678', 3)",
    "toDateTime64('1900-01-02 03:04:05.678', 3, 'Europe/Amsterdam') + number * 34560000",
    "toDateTime64('2299-01-01 00:00:00.678', 3, 'Europe/Amsterdam')",
    "toTime('01:02:03')",
    "toTime64('01:02:03.5', 3)",
    "toTime64('00:00:01.5', 9)",
    "toIntervalDay(number)",
    "toIntervalMonth(3)",
    "toDecimal32('-1.05', 2)",
    "toDecimal32(5, 0)",
    "toDecimal64('0.000001', 6)",
    "toDecimal128('-0.00000001', 10)",
    "toDecimal256('12345678901234567890123456789012345678901234567890.5', 1)",
    "toDecimal256(-7, 0)",
    "toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0')",
    "toUUID('00000000-0000-0000-0000-000000000000')",
    "toIPv4('1.2.3.4')",
    "toIPv4('255.255.255.255')",
    *(f"toIPv6('{address}')" for address in ("::", "::1", "2001:db8::1", "::ffff:1.2.3.4", "::1.2.3.4")),
    "CAST(number, 'Enum8(\\'a\\' = 0, \\'b\\' = 1, \\'c\\' = 2)')",
    "CAST(1000, 'Enum16(\\'x\\' = 1000)')",
]

LOW_CARDINALITY = [
    "toLowCardinality(toString(number))",
    "toLowCardinality(if(number = 1, NULL, toString(number)))",
    "toLowCardinality(number)",
    "toLowCardinality(if(number = 1, NULL, number))",
    "toLowCardinality(toDate('2020-01-01') + number)",
    "toLowCardinality(if(number = 1, NULL, toDate('2020-01-01') + number))",
    "toLowCardinality(toDateTime('2020-01-01 00:00:00', 'Europe/Berlin'))",
    "toLowCardinality(toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0'))",
    "toLowCardinality(toFixedString('ab', 3))",
    "toLowCardinality(number / 2)",
]

CONTAINERS = [
    "[]",
    "[toUInt8(number)]",
    "[[1, 2], [3]]",
    "[NULL, 1]",
    "[toString(number), 'x']",
    "[toDate('2020-01-01'), toDate('2021-01-01')]",
    "[toUUID('61f0c404-5cb3-11e7-907b-a6006ad3dba0')]",
    "[toDateTime('2020-01-01 00:00:00', 'Asia/Tokyo')]",
    "[toLowCardinality('a'), toLowCardinality('b')]",
    "[[toLowCardinality(toNullable('k')), NULL]]",
    "range(number)",
    "tuple()",
    "tuple(1)",
    "(number, 'a')",
    "(1, (2, 'x'))",
    "[(1, 'a'), (2, 'b')]",
    "tuple(toLowCardinality('k'))",
    "CAST((number, 'a'), 'Tuple(a UInt8, b String)')",
    "CAST((1, 'b'), 'Tuple(`a b` UInt8, c String)')",
    "map('a', number)",
    "map('a', [1, 2], 'b', [])",
    "map(1, toDateTime('2020-01-01 00:00:00'))",
    "map(toLowCardinality('k'), 1)",
    "map('a', NULL::Nullable(UInt8))",
    "CAST([(1, 'x'), (2, 'y')], 'Nested(a UInt8, b String)')",
    "(1., 2.)::Point",
    "[(0., 0.), (1., 1.)]::Ring",
    "[[(0., 0.), (1., 1.)]]::Polygon",
    "[[[(0., 0.)]]]::MultiPolygon",
    "[(0., 0.)]::LineString",
    "CAST(1, 'SimpleAggregateFunction(sum, UInt64)')",
]

OF_MANY_TYPES = [
    "CAST(number, 'Variant(UInt64, String)')",
    "if(number = 1, NULL, CAST(number, 'Variant(UInt64, String)'))",
    "multiIf(number = 0, 'a'::Variant(String, UInt8, Array(String)),"
    " number = 1, ['x']::Variant(String, UInt8, Array(String)), 5::Variant(String, UInt8, Array(String)))",
    "[1.5::Variant(Float64, String)]",
    "CAST(number, 'Dynamic')",
    "multiIf(number = 0, 'a'::Dynamic, number = 1, [1, 2]::Dynamic, toDate('2020-01-01')::Dynamic)",
]

# As text, clickhouse-connect can't write all of these.
DOCUMENTS = [
    "'{}'::JSON",
    '\'{"a": 1, "b": "2020-01-01", "x.y": 5}\'::JSON(a UInt32, z String)',
    """multiIf(number = 0, '{"a": {"b": 1, "c": [1, "x"]}}'::JSON, number = 1, '{"a": {"b": "str"}}'::JSON,"""
    """ '{"d": [{"e": 1}, {"e": null}]}'::JSON)""",
    """if(number = 1, NULL, '{"t": "2020-01-01 00:00:00", "f": 1.5, "n": null, "y": true}'::JSON)""",
]

VECTORS = ["[1, 2, 3]::QBit(Float32, 3)"]

NOTHING = ["NULL"]


def nullable(expression: str) -> str:
    return f"if(number = 1, NULL, {expression})"
