"""Types and the values that clickhouse-connect inserts into them; one case is one column.

The values of a case are of one Python class, or of what clickhouse-connect takes beside the first value's class: it
judges a whole column by its first value.
"""

from __future__ import annotations

import datetime as dt
import ipaddress
import math
import uuid
from decimal import Decimal
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd

UTC = dt.timezone.utc
BERLIN = ZoneInfo("Europe/Berlin")
KOLKATA = dt.timezone(dt.timedelta(hours=5, minutes=30))
U = uuid.UUID("f47ac10b-58cc-4372-a567-0e02b2c3d479")
ENUM = "Enum8('a' = -1, 'b' = 0, 'it''s' = 5)"
ENUM16 = "Enum16('x' = -1000, 'y' = 0, 'z' = 3000)"


#: Types that have to be allowed before a table may have them.
TYPE_SETTINGS = {
    "allow_suspicious_low_cardinality_types": 1,
    "allow_suspicious_variant_types": 1,
    "allow_experimental_nullable_tuple_type": 1,
    "allow_experimental_qbit_type": 1,
    "enable_time_time64_type": 1,
    "flatten_nested": 0,
}


class Case(NamedTuple):
    type_name: str
    values: list[Any]


def _ints(bits: int) -> list[Case]:
    low, high = -(2 ** (bits - 1)), 2 ** (bits - 1) - 1
    return [
        Case(f"Int{bits}", [0, 1, -1, low, high, True]),
        Case(f"UInt{bits}", [0, 1, 2**bits - 1, high + 1, False]),
        Case(f"Nullable(Int{bits})", [None, low, None, high]),
    ]


CASES: list[Case] = [
    *(case for bits in (8, 16, 32, 64, 128, 256) for case in _ints(bits)),
    Case("Int32", [2.5, -2.5, math.nan, math.inf, 7]),
    Case("Int32", ["12", " 13 ", "1_000", "-5", 3, 4.5]),
    Case("Int32", [Decimal("4.7"), np.int64(5), np.float32(2.5), b"12"]),
    Case("Int64", [1, np.int64(4), np.uint8(3)]),
    Case("Nullable(Int32)", ["3", "", None]),
    Case("Nullable(Int32)", [2.5, math.nan, None]),
    Case("Int128", ["12345678901234567890123", "-1"]),
    Case("Nullable(UInt256)", [None, 2**255, 0]),
    Case("Float32", [1.5, 0.1, -0.0, 3.4e38, math.inf, math.nan]),
    Case("Float32", [1, 2.5, "1.5", True]),
    Case("Float64", [1.5, 1e300, 5e-324, -math.inf, 2, True]),
    Case("Float64", [np.float32(1.5), Decimal("1.25"), "nan", 2**70]),
    Case("Nullable(Float64)", [None, 1.5, math.nan, None]),
    Case("BFloat16", [1.5, 0.1, -3.0, 1e30]),
    Case("Nullable(BFloat16)", [None, 2.0]),
    Case("Bool", [True, False, 0, 1, "false", "", None, 2.5, [], [0], np.bool_(True)]),
    Case("Nullable(Bool)", [True, None, 0]),
    Case("String", ["a", "", "größer", "a\0b", "😀", np.str_("numpy"), "x" * 1000]),
    Case("String", [b"a", b"", b"\xff\x00", b"y" * 200]),
    Case("Nullable(String)", [None, "a", "", None]),
    Case("Nullable(String)", [b"a", None]),
    Case("LowCardinality(String)", ["a", "b", "a", ""]),
    Case("LowCardinality(Nullable(String))", [None, "b", "a", ""]),
    Case("LowCardinality(FixedString(3))", ["abc", "b"]),
    Case("LowCardinality(UInt16)", [1, 2, 1]),
    Case("LowCardinality(Date)", [dt.date(2020, 1, 1), dt.date(2020, 1, 1)]),
    Case("FixedString(4)", ["ab", "", "abcd", "ä"]),
    Case("FixedString(4)", [b"abcd", b"", b"\0\1\2\3"]),
    Case("Nullable(FixedString(4))", ["ab", None]),
    Case("Nullable(FixedString(4))", [None, b"abcd", b""]),
    Case(
        "Date",
        [
            dt.date(1970, 1, 1),
            dt.date(2149, 6, 6),
            dt.datetime(2020, 2, 29, 23, 59),
            pd.Timestamp("2021-03-04 05:06"),
        ],
    ),
    Case("Date", [0, 1, 65535]),
    Case("Nullable(Date)", [None, dt.date(2001, 2, 3)]),
    Case("Nullable(Date)", [None, 5, 0]),
    Case("Date32", [dt.date(1900, 1, 1), dt.date(2299, 12, 31), dt.date(1969, 12, 31), dt.date(2000, 2, 29)]),
    Case("Date32", [-25567, 0, 120529]),
    Case(
        "DateTime",
        [
            dt.datetime(2020, 1, 2, 3, 4, 5, tzinfo=UTC),
            dt.datetime(2020, 7, 2, 3, 4, 5, 999999, tzinfo=BERLIN),
        ],
    ),
    Case("DateTime", [dt.datetime(2020, 10, 25, 2, 30, tzinfo=BERLIN, fold=fold) for fold in (0, 1)]),
    Case("DateTime", [dt.datetime(2020, 1, 2, 3, 4, 5), dt.datetime(1970, 1, 2), dt.datetime(2106, 2, 7)]),
    Case("DateTime", [dt.datetime(2020, 1, 2, tzinfo=KOLKATA), pd.Timestamp("2021-03-04 05:06:07.5", tz="UTC")]),
    Case("DateTime('Europe/Berlin')", [dt.datetime(2020, 7, 2, 3, 4, 5), dt.datetime(2020, 7, 2, 3, 4, 5, tzinfo=UTC)]),
    Case("DateTime", [0, 1, 2**32 - 1]),
    Case("Nullable(DateTime)", [None, dt.datetime(2020, 1, 2, tzinfo=UTC)]),
    Case(
        "DateTime64(3)",
        [
            dt.datetime(2020, 1, 2, 3, 4, 5, 678999, tzinfo=UTC),
            dt.datetime(1960, 1, 2, 3, 4, 5, 678999, tzinfo=BERLIN),
        ],
    ),
    Case(
        "DateTime64(6)",
        [
            dt.datetime(2020, 1, 2, 3, 4, 5, 678901),
            dt.datetime(1930, 5, 5, 1, 1, 1, 1, tzinfo=KOLKATA),
        ],
    ),
    Case(
        "DateTime64(9, 'America/New_York')",
        [
            pd.Timestamp("2020-01-02 03:04:05.123456789", tz="UTC"),
            pd.Timestamp("1965-01-02 03:04:05.123456789"),
        ],
    ),
    Case("DateTime64(0)", [dt.datetime(2020, 1, 2, 3, 4, 5, 678999, tzinfo=UTC)]),
    Case("DateTime64(6)", ["2020-01-02T03:04:05.678901", "2020-01-02 03:04:05+05:30", "2020-01-02"]),
    Case("DateTime64(3)", [0, -1, 1577934245678]),
    Case("Nullable(DateTime64(3))", [None, dt.datetime(2020, 1, 2, tzinfo=UTC)]),
    Case("Nullable(DateTime64(3))", ["2020-01-02T03:04:05.678901", "", None]),
    Case(
        "Time",
        [
            dt.timedelta(hours=1, seconds=2, microseconds=999999),
            dt.timedelta(days=-2, microseconds=1),
            dt.timedelta(0),
        ],
    ),
    Case("Time", [dt.time(1, 2, 3, 4), dt.time(23, 59, 59, 999999)]),
    Case("Time", [0, -5, 3599999]),
    Case("Time", [1.9, -1.9]),
    Case("Time", ["1:02:03", "-999:59:59", "000:00:00.75"]),
    Case("Time", [np.timedelta64(1500, "ms"), np.timedelta64(-1500, "ms"), np.timedelta64(2, "h")]),
    Case("Time64(3)", [dt.timedelta(hours=1, microseconds=123999), dt.timedelta(seconds=-1, microseconds=-500)]),
    Case("Time64(6)", [dt.time(1, 2, 3, 4), dt.time(0)]),
    Case("Time64(1)", ["1:02:03.456", "-0:00:00.96", "999:59:59.9"]),
    Case("Nullable(Time)", [None, dt.timedelta(seconds=5)]),
    Case("Nullable(Time64(3))", [dt.timedelta(seconds=5), pd.NaT, np.timedelta64("NaT"), None]),
    Case("Decimal(9, 2)", [Decimal("1.23"), Decimal("-1.239"), Decimal("0"), Decimal("1E+3"), Decimal("9999999.99")]),
    Case("Decimal(9, 2)", [1, 2.5, "3.75", 1.1, -0.01, "1e-3", " 4.5 ", "1_0.5"]),
    Case("Decimal(9, 0)", [Decimal("1.99"), 5, -7.5]),
    Case("Decimal(18, 6)", [Decimal("123456789012.345678"), 0.1, 12]),
    Case("Decimal(38, 10)", [Decimal("-1234567890123456789012345678.0123456789"), 1.5, 10**20]),
    Case(
        "Decimal(76, 20)",
        [
            Decimal("12345678901234567890123456789012345678901234567890123456.01234567890123456789"),
            -1,
        ],
    ),
    Case("Decimal(9, 2)", [Decimal("123.45678949999999"), Decimal("123.999999999999"), Decimal("0.0000000000001")]),
    Case("Nullable(Decimal(9, 2))", [None, Decimal("1.5"), 0]),
    Case("UUID", [U, uuid.UUID(int=0), uuid.UUID(int=2**128 - 1), None]),
    Case("UUID", [str(U), U.hex, "", None]),
    Case("UUID", [U.int, 0, 5]),
    Case("UUID", [U.bytes, b""]),
    Case("Nullable(UUID)", [None, U]),
    Case("IPv4", [ipaddress.IPv4Address("1.2.3.4"), ipaddress.IPv4Address("255.255.255.255")]),
    Case("IPv4", ["1.2.3.4", "0.0.0.0"]),
    Case("Nullable(IPv4)", [None, "1.2.3.4"]),
    Case("IPv6", [ipaddress.IPv6Address("2001:db8::1"), ipaddress.IPv4Address("1.2.3.4"), None]),
    Case("IPv6", ["2001:db8::1", "::", "1.2.3.4", 5, 2**100, b"\x01\x02\x03\x04", bytes(range(16))]),
    Case("Nullable(IPv6)", [None, "::1"]),
    Case(ENUM, ["a", "b", "it's"]),
    Case(ENUM, [-1, 0, 5]),
    Case(f"Nullable({ENUM})", [None, "a"]),
    Case(ENUM16, ["x", "z"]),
    Case(f"LowCardinality({'Nullable(String)'})", ["x", None, "z"]),
    Case("IntervalDay", [1, -5]),
    Case("Array(Int32)", [[1, 2], [], [3], (4, 5), np.array([6, 7])]),
    Case("Array(String)", [["a", ""], [], ["ü"]]),
    Case("Array(Nullable(String))", [["a", None], [None], []]),
    Case("Array(LowCardinality(String))", [["a", "b"], ["a"], []]),
    Case("Array(Array(Array(UInt8)))", [[[[1], []], []], [], [[[1, 2, 3]]]]),
    Case("Array(Float64)", [np.array([1.5, 2.5]), [1.0]]),
    Case("Array(Date)", [[dt.date(2020, 1, 1)], []]),
    Case("Array(Bool)", [[True, 0], []]),
    Case("Tuple(Int32, String)", [(1, "a"), [2, "b"]]),
    Case("Tuple(a Int32, b Nullable(String))", [{"a": 1, "b": "x"}, {"a": 2}, {"a": 3, "b": None, "c": 5}]),
    Case("Tuple(a Int32, b Nullable(String))", [(1, "x"), (2, None)]),
    Case("Tuple(a Tuple(b Array(Int8), `c d` LowCardinality(String)))", [{"a": {"b": [1], "c d": "x"}}]),
    Case("Tuple()", [(), ()]),
    Case("Nullable(Tuple(Int32, String))", [(1, "a"), None]),
    Case("Array(Tuple(Int32, String))", [[(1, "a"), (2, "b")], []]),
    Case("Map(String, Int32)", [{"a": 1, "b": 2}, {}]),
    Case("Map(LowCardinality(String), Array(Nullable(Int32)))", [{"a": [1, None]}, {"b": []}, {}]),
    Case("Map(UInt32, Map(String, Float64))", [{1: {"a": 1.5}, 2: {}}, {}]),
    Case("Nested(a Int32, b String)", [[{"a": 1, "b": "x"}, {"a": 2, "b": "y"}], []]),
    Case("SimpleAggregateFunction(sum, UInt64)", [1, 2]),
    Case("SimpleAggregateFunction(max, Nullable(String))", ["a", None]),
    Case("Point", [(1.5, 2.5), (0, -1)]),
    Case("Ring", [[(0.0, 0.0), (1.0, 0.0), (1.0, 1.0)], []]),
    Case("Polygon", [[[(0.0, 0.0), (1.0, 0.0), (1.0, 1.0)]]]),
    Case("MultiPolygon", [[[[(0.0, 0.0), (1.0, 0.0), (1.0, 1.0)]]], []]),
    Case("LineString", [[(0.0, 0.0), (1.0, 0.0)]]),
    Case("MultiLineString", [[[(0.0, 0.0), (1.0, 0.0)]]]),
    Case("Variant(String, Int64, Array(String))", ["a", 5, None, ["x", "y"], 7]),
    Case(
        "Variant(Bool, Date, Float64, Map(String, String), UUID)",
        [
            True,
            dt.date(2020, 1, 1),
            1.5,
            {"a": "b"},
            U,
            None,
        ],
    ),
    Case("Array(Variant(String, UInt32))", [["a", 1, None], []]),
    Case("JSON", [{"a": 1, "b": {"c": [1, 2, {"d": "ü"}]}}, {}, {"x": 1.5, "y": None, "z": True}]),
    Case("JSON", ['{"a": 1}', "{}"]),
    Case("JSON(a UInt32, SKIP b)", [{"a": 1, "b": 2, "c": 3}]),
    Case("JSON(max_dynamic_paths=2)", [{"a": 1, "b": 2, "c": 3}]),
    Case("Nullable(JSON)", [{"a": 1}, None]),
    Case("Array(JSON)", [[{"a": 1}, {"b": [2]}], []]),
    Case("Dynamic", ["a", 5, 1.5, None, [1, 2], {"a": 1}, b"x"]),
    Case("Dynamic(max_types=5)", [1, "b"]),
    Case("Array(Dynamic)", [["a", 1], []]),
    Case("QBit(Float32, 5)", [[1.0, -2.5, 3.25, 0.0, 1e10], [0, 1, 2, 3, 4]]),
    Case("QBit(Float64, 9)", [[float(i) for i in range(9)], np.arange(9) / 3]),
    Case("QBit(BFloat16, 8)", [[1.5] * 8]),
]

#: Values that clickhouse-connect refuses, or stores something else of, and what is stored of them here.
BETTER: list[tuple[Case, list[str]]] = [
    (Case("Int32", [1, 2.5, "3", np.float64(4)]), ["1", "2", "3", "4"]),
    (Case("Nullable(Int32)", [1, pd.NA, None]), ["1", "\\N", "\\N"]),
    (Case("String", ["a", b"b", bytearray(b"c"), memoryview(b"d")]), ["a", "b", "c", "d"]),
    (Case("Nullable(String)", ["a", math.nan, pd.NA]), ["a", "\\N", "\\N"]),
    (Case("Date", ["2020-01-02", dt.date(2020, 1, 3), 18264, np.datetime64("2020-01-05")]),
     ["2020-01-02", "2020-01-03", "2020-01-03", "2020-01-05"]),
    (Case("DateTime('UTC')", ["2020-01-02T03:04:05+00:00", np.datetime64("2020-01-02T03:04:06.5"), 1577934247]),
     ["2020-01-02 03:04:05", "2020-01-02 03:04:06", "2020-01-02 03:04:07"]),
    (Case("Nullable(DateTime64(9, 'UTC'))", [pd.NaT, np.datetime64("NaT"), np.datetime64(5, "ns")]),
     ["\\N", "\\N", "1970-01-01 00:00:00.000000005"]),
    (Case("Time64(9)", [pd.Timedelta("1 days 00:00:00.123456789"), pd.Timedelta(-1, "ns")]),
     ["24:00:00.123456789", "-00:00:00.000000001"]),
    (Case("UUID", [U, str(U), U.int, U.bytes]), [str(U)] * 4),
    (Case("IPv4", ["1.2.3.4", ipaddress.IPv4Address("1.2.3.4"), 16909060]), ["1.2.3.4"] * 3),
    (Case(ENUM, ["a", 5, np.int8(0), 5.0]), ["a", "it\\'s", "b", "it\\'s"]),
    (Case("Nullable(Decimal(9, 2))", ["1.5", 2, 2.25, Decimal("-3.999"), pd.NA]), ["1.5", "2", "2.25", "-3.99", "\\N"]),
    (Case("Tuple(a Int32, b String)", [{"a": 1, "b": "x"}, (2, "y")]), ["(1,'x')", "(2,'y')"]),
    (Case("Variant(LowCardinality(String), UInt8)", ["a", 5, None]), ["a", "5", "\\N"]),
    (Case("Array(Variant(LowCardinality(String), UInt8))", [["a", 5, None, "a"], []]), ["['a',5,NULL,'a']", "[]"]),
]
