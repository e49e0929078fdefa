"""One column of a result for a pandas data frame."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from windrow._core import Block
from windrow._shared import extras
from windrow._shared.arrays import Layout, Values, layout_of, object_array, read_objects, read_values, with_none
from windrow.datatypes.base import ClickHouseType

if TYPE_CHECKING:
    import numpy


class SeriesMaker:
    """Turns column `index` of blocks into what `pandas.DataFrame` takes for a column."""

    def __init__(
        self,
        index: int,
        found: ClickHouseType,
        *,
        use_none: bool,
        use_extended_dtypes: bool,
        max_str_len: int,
    ) -> None:
        self._index = index
        self._type = found
        self._use_none = use_none
        self._extended = use_extended_dtypes
        self._max_str_len = max_str_len

    def column(self, blocks: Sequence[Block]) -> Any:
        """The column of all blocks."""
        read_format = blocks[0].format(self._index, self._type.base_type)
        layout = layout_of(self._type, read_format)
        boxes_numbers = (
            layout.kind in ("int", "float") and self._type.nullable and self._use_none and not self._extended
        )
        if layout.stored is not None and not boxes_numbers:
            return self._of_values(read_values(blocks, self._index, layout), layout, blocks[0])
        if layout.kind == "text" and self._extended and read_format == "native":
            return self._of_texts(blocks)
        return self._of_objects(read_objects(blocks, self._index), read_format)

    def _of_values(self, read: Values, layout: Layout, block: Block) -> Any:
        values, nulls = read.values, read.nulls
        if layout.kind in ("days", "time", "duration"):
            return self._of_times(values, nulls, layout, block)
        if nulls is None:
            return values
        return self._of_nullable_numbers(values, nulls, layout)

    def _of_nullable_numbers(
        self, values: numpy.ndarray[Any, Any], nulls: numpy.ndarray[Any, Any], layout: Layout
    ) -> Any:
        np, pd = extras.numpy(), extras.pandas()
        if layout.kind == "bool":
            return with_none(values, nulls)
        if layout.kind == "bfloat":
            values[nulls] = np.nan
            return pd.array(values, dtype="Float32") if self._extended else values
        if layout.kind == "float":
            values[nulls] = np.nan
            return values if not self._use_none else values.astype(np.float64)
        if self._extended:
            return pd.arrays.IntegerArray(values.view(values.dtype.str), nulls)
        values[nulls] = 0
        return values

    def _of_times(
        self,
        values: numpy.ndarray[Any, Any],
        nulls: numpy.ndarray[Any, Any] | None,
        layout: Layout,
        block: Block,
    ) -> Any:
        np, pd = extras.numpy(), extras.pandas()
        if nulls is not None:
            if not self._extended and not self._use_none and layout.kind != "duration":
                values[nulls] = np.zeros(1, values.dtype)[0]
            else:
                values[nulls] = np.array("NaT", values.dtype)
        if layout.kind == "days":
            # pandas has no days; seconds are its nearest unit.
            return values.astype("datetime64[s]")
        if layout.kind == "duration":
            return values
        zone = block.zone(self._index, self._zone_name())
        if zone is None:
            return values
        return pd.DatetimeIndex(values, tz="UTC").tz_convert(zone)

    def _zone_name(self) -> str | None:
        arguments = self._type.arguments[1:] if self._type.base_type == "DateTime64" else self._type.arguments
        return arguments[0].strip("'") if arguments else None

    def _of_texts(self, blocks: Sequence[Block]) -> Any:
        """Texts move from ClickHouse's memory to Arrow's, without a Python object for each."""
        pd, arrow = extras.pandas(), extras.pyarrow_or_none()
        dtype = pd.StringDtype()
        plain = dtype.storage == "pyarrow" and all(block.is_utf8(self._index) for block in blocks)
        if arrow is None or not plain:
            series = [_texts(part) for part in read_objects(blocks, self._index)]
            return pd.concat(series, ignore_index=True)
        chunks = [_arrow_texts(arrow, block, self._index) for block in blocks]
        texts = arrow.chunked_array(chunks, type=arrow.large_string())
        if not self._use_none:
            texts = texts.fill_null("")
        return dtype.__from_arrow__(texts)

    def _of_objects(self, parts: list[list[Any]], read_format: str) -> Any:
        np, pd = extras.numpy(), extras.pandas()
        base = self._type.base_type
        if base == "String" and self._max_str_len and not self._extended:
            return np.concatenate([np.array(part, dtype=f"<U{self._max_str_len}") for part in parts])
        make = pd.Series
        if self._extended and base == "FixedString" and read_format == "string":
            make = _texts
        elif self._extended and base == "Nothing":
            make = _nones
        elif self._extended and read_format == "int" and self._type.nullable and base.startswith("Date"):
            make = _with_na
        series = [make(part) for part in parts]
        return series[0] if len(series) == 1 else pd.concat(series, ignore_index=True)


def _texts(part: list[Any]) -> Any:
    pd = extras.pandas()
    return pd.Series(pd.array(part, dtype=pd.StringDtype()))


def _nones(part: list[Any]) -> Any:
    np, pd = extras.numpy(), extras.pandas()
    return pd.Series(np.full(len(part), None, dtype=object))


def _with_na(part: list[Any]) -> Any:
    pd = extras.pandas()
    return pd.Series(object_array([pd.NA if value is None else value for value in part]))


def _arrow_texts(arrow: Any, block: Block, index: int) -> Any:
    np = extras.numpy()
    parts = block.parts(index)
    assert parts.offsets is not None and parts.data is not None, "columns of String have both"
    offsets = arrow.foreign_buffer(parts.offsets.address, len(parts.offsets), parts.offsets)
    # Without a copy, these bytes would keep the memory of all other columns alive.
    data = arrow.py_buffer(np.array(parts.data))
    count = len(parts.offsets) // 4 - 1
    nulls = None
    if parts.nulls is not None:
        nulls = arrow.py_buffer(np.packbits(np.asarray(parts.nulls) == 0, bitorder="little"))
    texts = arrow.StringArray.from_buffers(count, offsets, data, nulls)
    if parts.indices is not None:
        rows = arrow.foreign_buffer(parts.indices.address, len(parts.indices), parts.indices)
        rows = arrow.UInt32Array.from_buffers(arrow.uint32(), block.rows, [None, rows])
        if parts.first_is_null:
            rows = arrow.compute.if_else(arrow.compute.equal(rows, 0), None, rows)
        texts = texts.take(rows)
    return texts.cast(arrow.large_string())
