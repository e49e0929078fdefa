"""Columns of blocks as NumPy arrays: what has values of a fixed width is taken over without an object per value.

A column is either an array or a list of Python objects for each block; which one follows from its type and the
query's options, never from the values, so that all blocks of a result agree. Objects are handled block by block: NumPy
holds the interpreter while it handles them, and an event loop in another thread must not wait for a whole result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from windrow._core import Block
from windrow._shared import extras
from windrow._shared.errors import ProgrammingError
from windrow.datatypes.base import ClickHouseType
from windrow.datatypes.registry import get_from_name

if TYPE_CHECKING:
    import numpy

_UNITS = {0: "s", 3: "ms", 6: "us", 9: "ns"}
_NUMBERS = {
    "Int8": "i1",
    "Int16": "<i2",
    "Int32": "<i4",
    "Int64": "<i8",
    "UInt8": "u1",
    "UInt16": "<u2",
    "UInt32": "<u4",
    "UInt64": "<u8",
    "Float32": "<f4",
    "Float64": "<f8",
}


@dataclass(frozen=True)
class Layout:
    """How the memory of a column is to be read.

    `kind`: "int", "float", "bfloat", "bool", "days", "time", "duration", "text" or "other"; `stored` is the dtype of
    its memory and `dtype` that of the values, both None for text and other.
    """

    kind: str
    stored: str | None = None
    dtype: str | None = None


def value_type(name: str) -> ClickHouseType:
    """The type of a column's values: what a SimpleAggregateFunction holds, else the type itself."""
    found = get_from_name(name)
    inner = found.element_type if found.base_type == "SimpleAggregateFunction" else None
    return found if inner is None else inner


def layout_of(found: ClickHouseType, read_format: str) -> Layout:
    """The layout of a type, wrapped or not. ProgrammingError where NumPy has no unit for its times."""
    base = found.base_type
    if base in _NUMBERS or base.startswith("Interval"):
        return _number_layout(base, read_format)
    if base == "BFloat16":
        return Layout("bfloat", "<u2", "<f4")
    if base == "Bool":
        return Layout("bool", "u1", "?")
    if base in ("Date", "Date32"):
        if read_format == "int" and base == "Date":
            return Layout("other")
        return Layout("days", "<u2" if base == "Date" else "<i4", "datetime64[D]")
    if base in ("DateTime", "DateTime64"):
        if read_format == "int":
            return Layout("other")
        stored = "<u4" if base == "DateTime" else "<i8"
        return Layout("time", stored, f"datetime64[{_unit(found, 0 if base == 'DateTime' else None)}]")
    if base in ("Time", "Time64"):
        stored = "<i4" if base == "Time" else "<i8"
        return Layout("duration", stored, f"timedelta64[{_unit(found, 0 if base == 'Time' else None)}]")
    return Layout("text" if base == "String" else "other")


def _number_layout(base: str, read_format: str) -> Layout:
    if read_format == "string":
        return Layout("other")
    stored = _NUMBERS.get(base, "<i8")
    if base == "UInt64" and read_format == "signed":
        stored = "<i8"
    return Layout("float" if base.startswith("Float") else "int", stored, stored)


def _unit(found: ClickHouseType, precision: int | None) -> str:
    digits = int(found.arguments[0]) if precision is None else precision
    unit = _UNITS.get(digits)
    if unit is None:
        raise ProgrammingError(
            f"Cannot use {found.name} as a numpy or Pandas datatype. Only milliseconds(3), microseconds(6), or "
            "nanoseconds(9) are supported for numpy based queries."
        )
    return unit


@dataclass
class Values:
    """The values of a column and, if it may hold NULL, where that is (True there)."""

    values: numpy.ndarray[Any, Any]
    nulls: numpy.ndarray[Any, Any] | None


def read_values(blocks: Sequence[Block], index: int, layout: Layout) -> Values:
    """A column of values of a fixed width, from all blocks, in memory of its own."""
    np = extras.numpy()
    values, nulls = [], []
    for block in blocks:
        parts = block.parts(index)
        found = np.asarray(parts.data).view(layout.stored)
        if parts.indices is not None:
            rows = np.asarray(parts.indices).view("<u4")
            found = found[rows]
            if parts.first_is_null:
                nulls.append(rows == 0)
        elif parts.nulls is not None:
            nulls.append(np.asarray(parts.nulls).view("?"))
        values.append(found)
    joined = np.concatenate(values) if len(values) != 1 else values[0].copy()
    return Values(_shown(joined, layout), np.concatenate(nulls) if nulls else None)


def _shown(stored: numpy.ndarray[Any, Any], layout: Layout) -> numpy.ndarray[Any, Any]:
    np = extras.numpy()
    shown = stored
    if layout.kind == "bfloat":
        shown = (stored.astype(np.uint32) << np.uint32(16)).view(np.float32)
    elif layout.kind == "bool":
        shown = stored.view("?")
    elif layout.kind in ("days", "time", "duration"):
        shown = stored.astype(np.int64, copy=False).view(layout.dtype)
    return shown


def read_objects(blocks: Sequence[Block], index: int) -> list[list[Any]]:
    """A column as Python objects, a list for each block."""
    return [block.column(index) for block in blocks]


def object_array(objects: Sequence[Any]) -> numpy.ndarray[Any, Any]:
    """An array that holds these very objects: lists and NumPy's scalars stay what they are."""
    array: numpy.ndarray[Any, Any] = extras.numpy().fromiter(objects, dtype=object, count=len(objects))
    return array


def fill(target: numpy.ndarray[Any, Any], parts: Sequence[Sequence[Any]]) -> None:
    """Puts the objects of all parts into an array of as many places."""
    start = 0
    for part in parts:
        target[start : start + len(part)] = object_array(part)
        start += len(part)


def boxed(
    values: numpy.ndarray[Any, Any], nulls: numpy.ndarray[Any, Any] | None, blocks: Sequence[Block]
) -> list[list[Any]]:
    """NumPy's scalars for the values, None where `nulls` says so, a list for each block."""
    np = extras.numpy()
    parts, start = [], 0
    for block in blocks:
        rows = slice(start, start + block.rows)
        part = list(values[rows])
        for row in np.flatnonzero(nulls[rows]).tolist() if nulls is not None else ():
            part[row] = None
        parts.append(part)
        start += block.rows
    return parts


def with_none(values: numpy.ndarray[Any, Any], nulls: numpy.ndarray[Any, Any]) -> numpy.ndarray[Any, Any]:
    """The values of a nullable Bool: objects if there is a NULL among them."""
    if not nulls.any():
        return values
    found: numpy.ndarray[Any, Any] = values.astype(object)
    found[nulls] = None
    return found
