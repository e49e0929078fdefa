"""pyarrow tables and the data frames over them, from blocks and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from windrow import _core
from windrow._shared.errors import DataError, ProgrammingError
from windrow._shared.imports import loaded, needed
from windrow._shared.timezones import is_utc_timezone
from windrow._shared.typenames import base_and_arguments


def frame_maker(library: str) -> Callable[[Any], Any]:
    """What makes a data frame of a pyarrow table or batch. ValueError for a library that isn't known."""
    if library == "pandas":
        pandas = needed("pandas")
        needed("pyarrow")
        return lambda table: table.to_pandas(types_mapper=pandas.ArrowDtype, safe=False)
    if library == "polars":
        polars = needed("polars")
        needed("pyarrow")
        return lambda table: polars.from_arrow(table)
    raise ValueError(f"dataframe_library={library!r} isn't known: frames are made by 'pandas' or by 'polars'")


def without_utc(table: Any) -> Any:
    """The table, or batch, with columns in UTC as columns without a zone; other zones stay."""
    pyarrow = needed("pyarrow")
    fields = [
        pyarrow.field(field.name, pyarrow.timestamp(field.type.unit))
        if pyarrow.types.is_timestamp(field.type) and is_utc_timezone(field.type.tz)
        else field
        for field in table.schema
    ]
    return table if list(table.schema) == fields else table.cast(pyarrow.schema(fields))


def is_arrow_table(data: Any) -> bool:
    """Whether it is a table of pyarrow's."""
    return type(data).__module__.partition(".")[0] == "pyarrow" and hasattr(data, "num_columns")


def check_frame(df: Any) -> None:
    """Refuses what is no data frame over Arrow: TypeError for other things, ProgrammingError for other columns."""
    pandas, polars = loaded("pandas"), loaded("polars")
    if pandas is not None and isinstance(df, pandas.DataFrame):
        others = [str(name) for name, dtype in df.dtypes.items() if not isinstance(dtype, pandas.ArrowDtype)]
        if others:
            raise ProgrammingError(
                f"These columns are not stored as Arrow: {', '.join(others)}. Convert the frame first, "
                'df.convert_dtypes(dtype_backend="pyarrow"), or insert it with insert_df'
            )
    elif polars is None or not isinstance(df, polars.DataFrame):
        if pandas is None and polars is None:
            raise ImportError(
                "insert_df_arrow takes frames of pandas or polars: install windrow[pandas] or windrow[polars]"
            )
        raise TypeError(
            f"insert_df_arrow takes a frame of pandas or polars, not a {type(df).__name__}; for rows there is insert"
        )


def table_of_frame(df: Any) -> Any:
    """The pyarrow table of a data frame that `check_frame` has let through."""
    pyarrow = needed("pyarrow")
    try:
        return df.to_arrow() if hasattr(df, "to_arrow") else pyarrow.Table.from_pandas(df, preserve_index=False)
    except Exception as cause:
        raise DataError(f"Failed to convert DataFrame to Arrow table: {cause}") from cause


class ExactColumn:
    """A column of an Arrow table that is stored as it is or refused: no value of it is converted to another one.

    `_core.Encoder` takes it over whole where it can, and asks `parts` where it can't.
    """

    def __init__(self, array: Any, name: str, type_name: str) -> None:
        self.array = array
        self.name = name
        self.type_name = type_name
        self._floats_are_checked = False

    def __len__(self) -> int:
        return len(self.array)

    def __arrow_c_stream__(self, requested_schema: Any = None) -> Any:
        """The whole column. DataError for a float that would become infinite, which `_core` lets through."""
        if not self._floats_are_checked:
            self._check_floats()
            self._floats_are_checked = True
        return self.array.__arrow_c_stream__(requested_schema)

    def parts(self, start: int, stop: int) -> tuple[str, list[Any]]:
        """The values as Python objects, which are exact, too. DataError for a value that has none in the column's type,
        and for kinds of values that only ClickHouse's own reader of Arrow puts into such a column.
        """
        types = needed("pyarrow").types
        kind = self.array.type
        columns = _core.ArrowColumns.of(self.array)
        if columns is not None and columns.data(self.type_name, 0, 0) is not None:
            row = self._first_misfit(columns, start, stop)
            value = repr(self.array[row].as_py())
            raise self._error(f"row {row}: the value doesn't fit as it is", row, value[:MAX_SHOWN_CHARS])
        is_time = types.is_temporal(kind)
        is_number = types.is_primitive(kind) or types.is_decimal(kind) or types.is_dictionary(kind)
        if is_time or is_number and base_and_arguments(self.type_name)[0] not in ("Variant", "Dynamic", "JSON"):
            raise self._error(f"Arrow's {kind} doesn't go into it as it is")
        values = self.array.slice(start, stop - start)
        return "objects", values.to_pylist(maps_as_pydicts="lossy" if types.is_map(kind) else None)

    def _check_floats(self) -> None:
        pyarrow, compute = needed("pyarrow"), needed("pyarrow.compute")
        if base_and_arguments(self.type_name)[0] != "Float32" or not pyarrow.types.is_float64(self.array.type):
            return
        narrowed = self.array.cast(pyarrow.float32(), safe=False)
        row = compute.index(compute.and_(compute.is_finite(self.array), compute.is_inf(narrowed)), True).as_py()
        if row >= 0:
            raise self._error(f"row {row}: the value would become infinite", row, str(self.array[row]))

    def _first_misfit(self, columns: Any, start: int, stop: int) -> int:
        while stop - start > 1:
            middle = (start + stop) // 2
            fits = columns.data(self.type_name, start, middle) is not None
            start, stop = (middle, stop) if fits else (start, middle)
        return start

    def _error(self, reason: str, row: int | None = None, value: str | None = None) -> DataError:
        told = f"; it is {value}" if value is not None else ""
        error = DataError(
            f"column `{self.name}` ({self.type_name}), {reason}{told}. Cast it before, or let ClickHouse convert: convert=True"
        )
        error.column, error.type_name, error.row, error.value = self.name, self.type_name, row, value
        return error


MAX_SHOWN_CHARS = 100


def file_bytes(table: Any, encoding: str | None) -> Any:
    """The table as an Arrow file, its buffers compressed where Arrow knows that compression."""
    pyarrow = needed("pyarrow")
    options = pyarrow.ipc.IpcWriteOptions(compression=encoding if encoding in ("lz4", "zstd") else None)
    sink = pyarrow.BufferOutputStream()
    with pyarrow.RecordBatchFileWriter(sink, table.schema, options=options) as writer:
        writer.write(table)
    return memoryview(sink.getvalue())


def asks_for_arrow_settings(settings: dict[str, Any]) -> bool:
    """Whether the user wants Arrow in another form than ClickHouse's usual one."""
    return any(name.startswith("output_format_arrow_") for name in settings)


def batch_of(block: Any, names: Sequence[str], as_text: bool, zone: str) -> Any:
    """A pyarrow RecordBatch of a block; nothing is copied."""
    pyarrow = needed("pyarrow")
    stream = _core.ArrowStream([block], string_as_string=as_text, timezone=zone)
    batch = pyarrow.RecordBatchReader.from_stream(stream).read_next_batch()
    return batch if list(names) == batch.schema.names else batch.rename_columns(list(names))


def table_of(blocks: list[Any], names: Sequence[str], as_text: bool, zone: str) -> Any:
    """A pyarrow Table of blocks; nothing is copied."""
    pyarrow = needed("pyarrow")
    table = pyarrow.table(_core.ArrowStream(blocks, string_as_string=as_text, timezone=zone))
    return table if list(names) == table.schema.names else table.rename_columns(list(names))


def table_of_stream(body: bytes) -> Any:
    """The table that ClickHouse wrote in the format ArrowStream."""
    pyarrow = needed("pyarrow")
    return pyarrow.ipc.open_stream(body).read_all()
