"""Values keep their types on the way: from Arrow and from Python, into DuckDB and into ClickHouse, and back."""

from __future__ import annotations

import datetime
import uuid
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pyarrow
import pytest

import windrow
from append.backends import Backend


@dataclass
class Case:
    """Values of one type; `read` are the same as a query gives them, where that is something else."""

    arrow: pyarrow.DataType
    duckdb: str
    clickhouse: str
    values: list[Any]
    read: list[Any] | None = None
    # Whether ClickHouse has it as Nullable.
    has_null: bool = True


def integers(bits: int, signed: bool) -> list[int]:
    return [-(1 << bits - 1), -1, 0, (1 << bits - 1) - 1] if signed else [0, 1, (1 << bits) - 1]


DAY = datetime.date(2026, 2, 28)
MOMENT = datetime.datetime(2026, 2, 28, 23, 59, 59, 123456)
IDS = [uuid.UUID(int=0), uuid.UUID(int=1 << 127), uuid.uuid5(uuid.NAMESPACE_DNS, "windrow")]
TEXTS = ["", "a'b\\c\n", "größe 🌾", "x" * 300]
PAIRS = [{"a": 1, "b": "one"}, {"a": -5, "b": ""}]
CASES = {
    "bool": Case(pyarrow.bool_(), "BOOLEAN", "Bool", [True, False]),
    "int8": Case(pyarrow.int8(), "TINYINT", "Int8", integers(8, True)),
    "int16": Case(pyarrow.int16(), "SMALLINT", "Int16", integers(16, True)),
    "int32": Case(pyarrow.int32(), "INTEGER", "Int32", integers(32, True)),
    "int64": Case(pyarrow.int64(), "BIGINT", "Int64", integers(64, True)),
    "uint8": Case(pyarrow.uint8(), "UTINYINT", "UInt8", integers(8, False)),
    "uint16": Case(pyarrow.uint16(), "USMALLINT", "UInt16", integers(16, False)),
    "uint32": Case(pyarrow.uint32(), "UINTEGER", "UInt32", integers(32, False)),
    "uint64": Case(pyarrow.uint64(), "UBIGINT", "UInt64", integers(64, False)),
    "float32": Case(pyarrow.float32(), "FLOAT", "Float32", [0.5, -0.25, float("inf")]),
    "float64": Case(pyarrow.float64(), "DOUBLE", "Float64", [0.1, -1e300, float("-inf")]),
    "string": Case(pyarrow.string(), "VARCHAR", "String", TEXTS),
    "large_string": Case(pyarrow.large_string(), "VARCHAR", "String", TEXTS),
    "string_view": Case(pyarrow.string_view(), "VARCHAR", "String", TEXTS),
    "dictionary": Case(pyarrow.dictionary(pyarrow.int8(), pyarrow.string()), "VARCHAR", "String", [*TEXTS, *TEXTS]),
    "date": Case(pyarrow.date32(), "DATE", "Date32", [DAY, datetime.date(1970, 1, 1)]),
    "timestamp": Case(pyarrow.timestamp("us"), "TIMESTAMP", "DateTime64(6, 'UTC')", [MOMENT]),
    "decimal": Case(pyarrow.decimal128(18, 4), "DECIMAL(18, 4)", "Decimal(18, 4)", [Decimal("-12345678901234.5678")]),
    "list": Case(pyarrow.list_(pyarrow.int64()), "BIGINT[]", "Array(Int64)", [[], [1, -2], [3] * 100], has_null=False),
    "struct": Case(
        pyarrow.struct([("a", pyarrow.int64()), ("b", pyarrow.string())]),
        "STRUCT(a BIGINT, b VARCHAR)",
        "Tuple(a Int64, b String)",
        PAIRS,
        has_null=False,
    ),
    "uuid": Case(pyarrow.uuid(), "UUID", "UUID", IDS),
}


def column_type(backend: Backend, case: Case) -> str:
    if backend.is_duckdb:
        return case.duckdb
    return f"Nullable({case.clickhouse})" if case.has_null else case.clickhouse


def values(case: Case) -> list[Any]:
    return [*case.values, None] if case.has_null else case.values


def as_arrow(case: Case) -> pyarrow.Array:
    if case.arrow == pyarrow.uuid():
        stored = [None if value is None else value.bytes for value in values(case)]
        return pyarrow.ExtensionArray.from_storage(case.arrow, pyarrow.array(stored, pyarrow.binary(16)))
    return pyarrow.array(values(case), case.arrow)


@pytest.mark.parametrize("way", ["arrow", "rows"])
@pytest.mark.parametrize("name", CASES)
async def test_values_come_back(backend: Backend, name: str, way: str) -> None:
    case = CASES[name]
    async with await windrow.get_async_client(**backend.where) as client:
        number = "place BIGINT" if backend.is_duckdb else "place Int64"
        await client.command(backend.create("t", f"{number}, v {column_type(backend, case)}"))
        given = values(case)
        places = list(range(len(given)))
        if way == "arrow":
            await client.append("t", pyarrow.table({"place": places, "v": as_arrow(case)}))
        else:
            await client.append("t", [{"place": place, "v": value} for place, value in zip(places, given, strict=True)])
        result = await client.query("SELECT v FROM t ORDER BY place")
        assert [value for value, in result.result_rows] == given
