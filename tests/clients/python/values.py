"""One table with the common types, and three rows for it."""

from __future__ import annotations

import datetime
import ipaddress
import uuid
from decimal import Decimal

COLUMNS = {
    "id": "UInt64",
    "i8": "Int8",
    "i64": "Int64",
    "f32": "Float32",
    "f64": "Float64",
    "flag": "Bool",
    "s": "String",
    "fixed": "FixedString(4)",
    "lc": "LowCardinality(String)",
    "maybe": "Nullable(Int32)",
    "maybe_text": "Nullable(String)",
    "numbers": "Array(Int32)",
    "texts": "Array(Nullable(String))",
    "attributes": "Map(String, UInt64)",
    "pair": "Tuple(Int32, String)",
    "day": "Date",
    "far_day": "Date32",
    "moment": "DateTime('UTC')",
    "instant": "DateTime64(3, 'UTC')",
    "price": "Decimal(18, 4)",
    "key": "UUID",
    "ip4": "IPv4",
    "ip6": "IPv6",
    "colour": "Enum8('red' = 1, 'green' = 2)",
}
UTC = datetime.timezone.utc


def row(number: int) -> list[object]:
    return [
        number,
        -number,
        -(2**62) - number,
        number + 0.5,
        number / 3,
        number % 2 == 0,
        f"text {number} ‘quoted’ \\ \t \"",
        b"ab%02d" % (number % 100),
        f"kind {number % 3}",
        None if number % 2 else number,
        f"maybe {number}" if number % 2 else None,
        list(range(number % 5)),
        ["a", None, f"{number}"],
        {"a": number, "b": 2 * number},
        (number, f"p{number}"),
        datetime.date(2024, 2, 28 + number % 2),
        datetime.date(1950, 1, 1 + number % 9),
        datetime.datetime(2024, 2, 29, 12, number % 60, 7, tzinfo=UTC),
        datetime.datetime(2024, 2, 29, 12, 34, 56, 1000 * (number % 1000), tzinfo=UTC),
        Decimal(number) + Decimal("0.1234"),
        uuid.UUID(int=number),
        ipaddress.IPv4Address(number),
        ipaddress.IPv6Address(number + 1),
        "red" if number % 2 else "green",
    ]


def create(table: str) -> str:
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    return f"CREATE TABLE {table} ({columns}) ENGINE = MergeTree ORDER BY id"


def aware(line: tuple[object, ...]) -> list[object]:
    """The client gives times of a UTC column without a zone when its own is UTC."""
    return [value.replace(tzinfo=UTC) if isinstance(value, datetime.datetime) else value for value in line]
