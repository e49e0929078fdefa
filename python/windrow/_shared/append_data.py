"""What was given to append: which objects are Arrow, which are rows, which are files."""

from __future__ import annotations

import ctypes
import glob
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from windrow import _core
from windrow._shared.errors import DataError, ProgrammingError
from windrow._shared.imports import needed

ROWS_AT_ONCE = 1000  # of rows whose size isn't known yet
MOMENT_S = 0.002
MOST_ROWS_AT_ONCE = 1 << 16
BLOCK_BYTES = 1 << 20
EXPLANATION = (
    "append takes Arrow tables, batches and readers, frames of pandas and polars, DuckDB relations, lists of rows, iterators "
    "over any of these, and paths of Parquet and CSV files"
)


def paths_of(data: Any) -> list[str] | None:
    """The paths, if it is one or a list of them. Patterns stand for the files that they match, in the order of names."""
    if is_path(data):
        return _matched(data)
    if isinstance(data, (list, tuple)) and data and all(map(is_path, data)):
        return [path for item in data for path in _matched(item)]
    return None


def is_path(item: Any) -> bool:
    """Whether it names a file."""
    return isinstance(item, (str, os.PathLike))


def _matched(path: Any) -> list[str]:
    """The files that a path stands for. One that is there stands for itself, whatever is in its name."""
    name = os.fspath(path)
    if not glob.has_magic(name) or os.path.exists(name):
        return [name]
    found = sorted(glob.glob(name, recursive=True))
    if not found:
        raise DataError(f"No file matches {name!r}")
    return found


def is_whole_arrow(data: Any) -> bool:
    """Whether it hands out all its rows as Arrow. A reader doesn't, though it could: it is asked batch by batch, so that
    what goes wrong in it is raised as it is.
    """
    return not hasattr(data, "read_next_batch") and is_arrow(data)


def is_arrow(item: Any) -> bool:
    """Whether it can be had as Arrow."""
    return hasattr(item, "__arrow_c_stream__") or hasattr(item, "__arrow_c_array__") or _is_pandas(item)


def is_in_memory(item: Any) -> bool:
    """Whether its rows are there already, so that taking all of them at once costs nothing."""
    return hasattr(item, "nbytes") or hasattr(item, "estimated_size") or _is_pandas(item)


def length_of(data: Any) -> str:
    """How long the data is, as part of what tells it from other data; empty if that is costly to find out, or unknown."""
    known = isinstance(data, (list, tuple)) or (is_in_memory(data) and hasattr(data, "__len__"))
    return f"length={len(data)} " if known else ""


def arrow_of(item: Any) -> Any:
    """The item as something that hands out Arrow. DataError if its values have no Arrow types."""
    if not _is_pandas(item):
        return item
    pyarrow = needed("pyarrow")
    try:
        return pyarrow.Table.from_pandas(item, preserve_index=False)
    except Exception as cause:
        raise DataError(f"The frame can't be had as Arrow: {cause}") from cause


def is_rows(data: Any) -> bool:
    """Whether it is a list of rows. A list of such lists isn't: a row that is a list begins with a value, not with a row."""
    if not isinstance(data, (list, tuple)):
        return False
    first = data[0] if data else ()
    return isinstance(first, (Mapping, tuple)) or (
        isinstance(first, list) and not (first and isinstance(first[0], (Mapping, tuple)))
    )


def rows_of(item: Any) -> Sequence[Any] | None:
    """The rows in an item of an iterator: a list of them, or the item itself; None if it holds something else."""
    if isinstance(item, (Mapping, tuple)):
        return [item]
    return item if isinstance(item, list) and is_rows(item) else None


def refuse(item: Any) -> ProgrammingError:
    """The exception for what can't be appended."""
    name = type(item).__name__
    hint = ""
    if name == "LazyFrame":
        hint = "; collect() it first"
    elif isinstance(item, Mapping):
        hint = "; pyarrow.table(...) or pandas.DataFrame(...) makes a table of columns"
    elif hasattr(item, "to_batches"):
        hint = "; append its to_batches()"
    elif hasattr(item, "__aiter__"):
        hint = "; asynchronous iterators need the asynchronous client"
    return ProgrammingError(f"A {name} can't be appended{hint}: {EXPLANATION}")


def within_a_moment(iterator: Iterator[Any]) -> list[Any]:
    """The next item, and those that come right after it."""
    until_s = time.monotonic() + MOMENT_S
    items: list[Any] = []
    for item in iterator:
        items.append(item)
        if len(items) >= ROWS_AT_ONCE or isinstance(item, list) or time.monotonic() > until_s:
            break
    return items


class NumberedRows(Sequence[Any]):
    """Rows of which the first has the given number in what is said of them."""

    def __init__(self, rows: Sequence[Any], first: int) -> None:
        self._rows = rows
        self._first = first

    def __len__(self) -> int:
        return self._first + len(self._rows)

    def __getitem__(self, wanted: Any) -> Any:
        if isinstance(wanted, slice):
            return self._rows[wanted.start - self._first : wanted.stop - self._first]
        return self._rows[wanted - self._first]


def chosen_columns(
    columns: Sequence[tuple[str, str]], names: Sequence[str] | None, first_row: Any
) -> tuple[list[str], list[str]]:
    """Names and types of the columns that rows are for: those that were named, those of the first row if it has names, or
    all. ProgrammingError for one that the table doesn't have.
    """
    types = dict(columns)
    if names is None:
        names = [str(name) for name in first_row] if isinstance(first_row, Mapping) else list(types)
    missing = [name for name in names if name not in types]
    if missing:
        raise ProgrammingError(f"The table has no column {missing[0]!r}: it has {', '.join(types)}")
    return list(names), [types[name] for name in names]


def bytes_of(encoded: _core.EncodedBatch) -> memoryview:
    """The bytes of a batch where they lie; nothing is copied, and they live as long as this does."""
    view = (ctypes.c_ubyte * len(encoded)).from_address(encoded.address)
    view.owner = encoded  # type: ignore[attr-defined]
    return memoryview(view).cast("B")


def _is_pandas(item: Any) -> bool:
    pandas = sys.modules.get("pandas")
    return pandas is not None and isinstance(item, pandas.DataFrame)
