"""Blocks of a result as a NumPy array or a pandas data frame, with clickhouse-connect's shapes and dtypes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from windrow._core import Block
from windrow._shared import extras
from windrow._shared.arrays import Layout, boxed, fill, layout_of, read_objects, read_values, value_type, with_none
from windrow._shared.series import SeriesMaker
from windrow.datatypes.base import ClickHouseType

if TYPE_CHECKING:
    import numpy
    import pandas


class NumpyFrames:
    """Makes arrays of a result's blocks.

    If all columns have one dtype, an array has two dimensions, rows and columns. Otherwise it is a structured array with
    a field for each column.
    `names` are the columns' names as shown; `max_str_len` > 0 makes `<U` arrays of texts, which are cut at that length.
    """

    def __init__(
        self,
        names: Sequence[str],
        type_names: Sequence[str],
        *,
        use_none: bool = True,
        max_str_len: int = 0,
    ) -> None:
        extras.numpy()
        self._names = tuple(names)
        self._types = tuple(value_type(name) for name in type_names)
        self._use_none = use_none
        self._max_str_len = max_str_len

    def block(self, block: Block) -> numpy.ndarray[Any, Any]:
        """One block's rows."""
        return self.whole([block])

    def whole(self, blocks: Sequence[Block]) -> numpy.ndarray[Any, Any]:
        """The rows of all blocks. The conversion takes long for large results: run it off an event loop."""
        np = extras.numpy()
        if not blocks:
            nothing: numpy.ndarray[Any, Any] = np.empty((0,))
            return nothing
        columns = [self._column(blocks, index, found) for index, found in enumerate(self._types)]
        return self._table(columns, sum(block.rows for block in blocks))

    def _table(self, columns: list[Any], rows: int) -> numpy.ndarray[Any, Any]:
        np = extras.numpy()
        dtypes = [np.dtype(object) if isinstance(column, list) else column.dtype for column in columns]
        if all(dtype == dtypes[0] for dtype in dtypes) and (isinstance(columns[0], list) or dtypes[0] != object):
            table: numpy.ndarray[Any, Any] = np.empty((len(columns), rows), dtype=dtypes[0]).T
            places = [table[:, index] for index in range(len(columns))]
        else:
            # Not empty(): NumPy then takes ten times as long to put None into every field of objects.
            table = np.zeros(rows, dtype=list(zip(self._names, dtypes, strict=True)))
            places = [table[name] for name in self._names]
        for place, column in zip(places, columns, strict=True):
            if isinstance(column, list):
                fill(place, column)
            else:
                place[:] = column
        return table

    def _column(
        self, blocks: Sequence[Block], index: int, found: ClickHouseType
    ) -> numpy.ndarray[Any, Any] | list[list[Any]]:
        """An array, or for each block a list of objects."""
        np = extras.numpy()
        layout = layout_of(found, blocks[0].format(index, found.base_type))
        boxes_numbers = layout.kind in ("int", "float") and self._use_none and found.nullable
        if layout.stored is None or boxes_numbers:
            parts = read_objects(blocks, index)
            if layout.kind == "text" and self._max_str_len:
                texts: numpy.ndarray[Any, Any]
                texts = np.concatenate([np.array(part, dtype=f"<U{self._max_str_len}") for part in parts])
                return texts
            return parts
        read = read_values(blocks, index, layout)
        if read.nulls is None:
            is_boxed = found.low_card and layout.kind in ("days", "time")
            return boxed(read.values, None, blocks) if is_boxed else read.values
        return self._nullable_column(read.values, read.nulls, layout, blocks)

    def _nullable_column(
        self,
        values: numpy.ndarray[Any, Any],
        nulls: numpy.ndarray[Any, Any],
        layout: Layout,
        blocks: Sequence[Block],
    ) -> numpy.ndarray[Any, Any] | list[list[Any]]:
        np = extras.numpy()
        if layout.kind in ("bfloat", "float"):
            values[nulls] = np.nan
            return values
        if layout.kind == "bool":
            return with_none(values, nulls)
        if layout.kind == "int":
            values[nulls] = 0
            return values
        if self._use_none:
            return boxed(values, nulls, blocks)
        values[nulls] = np.array("NaT" if layout.kind == "duration" else 0, values.dtype)
        return values if layout.kind == "days" else boxed(values, None, blocks)


class PandasFrames:
    """Makes data frames of a result's blocks.

    With `use_extended_dtypes` NULL is `pandas.NA` or `NaT` in dtypes such as Int64 and string; without, pandas finds a
    dtype for the values, with None for NULL (or the type's empty value, if not `use_none`).
    """

    def __init__(
        self,
        names: Sequence[str],
        type_names: Sequence[str],
        *,
        use_none: bool = True,
        use_extended_dtypes: bool = True,
        max_str_len: int = 0,
    ) -> None:
        extras.pandas()
        self._names = tuple(names)
        self._makers = [
            SeriesMaker(
                index,
                value_type(name),
                use_none=use_none,
                use_extended_dtypes=use_extended_dtypes,
                max_str_len=max_str_len,
            )
            for index, name in enumerate(type_names)
        ]

    def block(self, block: Block) -> pandas.DataFrame:
        """One block's rows."""
        return self.whole([block])

    def whole(self, blocks: Sequence[Block]) -> pandas.DataFrame:
        """The rows of all blocks. The conversion takes long for large results: run it off an event loop."""
        pd = extras.pandas()
        if not blocks:
            return pd.DataFrame()
        # Nobody else holds the columns: the frame takes them over as they are.
        columns = zip(self._names, self._makers, strict=True)
        return pd.DataFrame({name: maker.column(blocks) for name, maker in columns}, copy=False)
