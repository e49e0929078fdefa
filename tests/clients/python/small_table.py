"""A table that every way of inserting can fill, and its rows as each of these ways wants them."""

from __future__ import annotations

import datetime
from decimal import Decimal

import pandas
import pyarrow

COLUMNS = {
    "id": "UInt64",
    "s": "String",
    "maybe": "Nullable(Int32)",
    "kind": "LowCardinality(String)",
    "price": "Decimal(18, 4)",
    "at": "DateTime64(3, 'UTC')",
    "tags": "Array(String)",
}
NAMES = list(COLUMNS)
ARROW = pyarrow.schema(
    {
        "id": pyarrow.uint64(),
        "s": pyarrow.string(),
        "maybe": pyarrow.int32(),
        "kind": pyarrow.string(),
        "price": pyarrow.decimal128(18, 4),
        "at": pyarrow.timestamp("ms", "UTC"),
        "tags": pyarrow.list_(pyarrow.string()),
    }
)
ROWS = [
    [
        number,
        f"text {number} ‘quoted’ \\ \t \", it's\n",
        None if number % 2 else -number,
        f"kind {number % 3}",
        Decimal(number) + Decimal("0.1234"),
        datetime.datetime(2024, 2, 29, 12, 34, 56, 789_000, tzinfo=datetime.timezone.utc),
        [f"tag {n}" for n in range(number % 4)],
    ]
    for number in range(10)
]
# What ClickHouse reads and writes without a schema of its own. The payloads are its own output.
RAW_FORMATS = (
    "JSONEachRow JSONStringsEachRow JSONLines NDJSON JSON JSONCompact JSONColumns JSONColumnsWithMetadata JSONCompactColumns"
    " JSONObjectEachRow JSONCompactEachRow JSONCompactEachRowWithNames JSONCompactEachRowWithNamesAndTypes"
    " JSONCompactStringsEachRow JSONCompactStringsEachRowWithNames JSONCompactStringsEachRowWithNamesAndTypes"
    " CSV CSVWithNames CSVWithNamesAndTypes TabSeparated TSV TSVWithNames TSVWithNamesAndTypes CustomSeparated"
    " CustomSeparatedWithNames CustomSeparatedWithNamesAndTypes Values Native RowBinary RowBinaryWithNames"
    " RowBinaryWithNamesAndTypes MsgPack Arrow ArrowStream Parquet Avro ORC BSONEachRow"
).split()


def create(table: str) -> str:
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    return f"CREATE TABLE {table} ({columns}) ENGINE = MergeTree ORDER BY id"


def columns_of(rows: list[list[object]]) -> dict[str, list[object]]:
    return dict(zip(NAMES, map(list, zip(*rows))))


def frame() -> pandas.DataFrame:
    return pandas.DataFrame({**columns_of(ROWS), "maybe": pandas.array([row[2] for row in ROWS], dtype="Int32")})


def arrow_table() -> pyarrow.Table:
    return pyarrow.table(columns_of(ROWS), schema=ARROW)


def arrow_frame() -> pandas.DataFrame:
    return arrow_table().to_pandas(types_mapper=pandas.ArrowDtype)


def native_rows(rows: list[tuple[object, ...]]) -> list[list[object]]:
    """Rows as the client reads them, with the zone that it leaves out when it is its own."""
    zone = datetime.timezone.utc
    return [[value.replace(tzinfo=zone) if isinstance(value, datetime.datetime) else value for value in row] for row in rows]
