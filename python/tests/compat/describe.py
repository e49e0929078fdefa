"""What came out of a program, taken apart so that two outcomes can be compared: every value with its type, frames and arrays
with their dtypes, Arrow tables with their schemas, errors with class and code, and the text where it is ClickHouse's.
"""

from __future__ import annotations

import array
import datetime
from collections.abc import Mapping
from typing import Any

import numpy
import pandas
import polars
import pyarrow

# They differ from run to run.
VOLATILE = {"elapsed_ns", "query_id", "memory_usage", "real_time_microseconds", "server_version"}
PACKAGES = ("clickhouse_connect", "windrow")


def described(value: Any) -> Any:
    if isinstance(value, pandas.DataFrame):
        return frame(value)
    if isinstance(value, pandas.Series):
        return ("Series", str(value.dtype), [described(item) for item in value.tolist()])
    if isinstance(value, numpy.ndarray):
        return numbers(value)
    if isinstance(value, pyarrow.Table | pyarrow.RecordBatch):
        schema = [(column.name, str(column.type), column.nullable) for column in value.schema]
        return (type(value).__name__, schema, described(value.to_pydict()))
    if isinstance(value, polars.DataFrame):
        return ("polars", [(name, str(kind)) for name, kind in value.schema.items()], described(value.rows()))
    if isinstance(value, BaseException):
        return error(value)
    if isinstance(value, array.array):
        # What blocks of columns hold there; lists here, which are taken apart the same way.
        return described(value.tolist())
    if isinstance(value, numpy.number | numpy.bool_):
        # Numbers inside of arrays, tuples and maps are NumPy's own there, Python's here.
        return described(value.item())
    if type(value) in (list, tuple, dict):
        # NULL inside of a frame's cell is None here.
        value = without_na(value)
    if isinstance(value, datetime.datetime) and not isinstance(value, pandas.Timestamp):
        return (type(value).__name__, value.isoformat(), str(value.tzinfo))
    return described_plain(value)


def without_na(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: None if item is pandas.NA else item for key, item in value.items()}
    return type(value)([None if item is pandas.NA else item for item in value])


def described_plain(value: Any) -> Any:
    kind = type(value).__name__
    if isinstance(value, Mapping):
        return (kind, [(described(key), described(item)) for key, item in value.items()])
    if isinstance(value, list | tuple):
        return (kind, [described(item) for item in value])
    if isinstance(value, set | frozenset):
        return (kind, sorted(repr(described(item)) for item in value))
    if hasattr(value, "result_set"):
        return result(value)
    if hasattr(value, "written_rows"):
        return summary(value)
    if type(value).__module__.startswith(PACKAGES):
        # A type of a column; anything else of a package's own is not a value to compare.
        return ("ClickHouseType", value.name)
    return (kind, repr(value))


def frame(value: pandas.DataFrame) -> Any:
    columns = [
        (described(name), str(value.dtypes.iloc[place]), [described(item) for item in value.iloc[:, place].tolist()])
        for place, name in enumerate(value.columns)
    ]
    return ("DataFrame", value.shape, str(value.index), columns)


def numbers(value: numpy.ndarray) -> Any:
    return ("ndarray", str(value.dtype), value.shape, described(value.tolist()))


def error(value: BaseException) -> Any:
    family = [parent.__name__ for parent in type(value).__mro__[:-2]]
    code, name = getattr(value, "code", "none"), getattr(value, "name", "none")
    # What ClickHouse said is told by both; advice on a mistake in the program is worded by each for itself.
    said = str(value).replace(PACKAGES[0], PACKAGES[1]) if isinstance(code, int) else bool(str(value))
    return ("error", family, code, name, said)


def result(value: Any) -> Any:
    return (
        type(value).__name__,
        described(value.column_names),
        described([kind.name for kind in value.column_types]),
        described(value.result_set),
        value.row_count,
        described(value.first_row),
        described(value.first_item),
        value.column_oriented,
    )


def summary(value: Any) -> Any:
    steady = {key: item for key, item in value.summary.items() if key not in VOLATILE}
    return (type(value).__name__, value.written_rows, value.written_bytes(), described(steady), bool(value.query_id()))


def differences(theirs: Any, ours: Any, path: str = "") -> list[str]:
    """Where two descriptions differ, at most a few places."""
    if isinstance(theirs, list | tuple) and type(theirs) is type(ours) and len(theirs) == len(ours):
        found = []
        for place, (left, right) in enumerate(zip(theirs, ours)):
            found += differences(left, right, f"{path}.{place}")
            if len(found) > 8:
                return found
        return found
    if theirs == ours:
        return []
    return [f"{path or 'all'}:\n    clickhouse-connect: {cut(theirs)}\n    windrow:            {cut(ours)}"]


def cut(value: Any) -> str:
    text = repr(value)
    return text if len(text) < 1500 else f"{text[:1500]}... ({len(text)} characters)"
