"""pyarrow tables and the data frames over them, from blocks and back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from windrow import _core
from windrow._shared.errors import DataError, ProgrammingError
from windrow._shared.imports import loaded, needed
from windrow._shared.timezones import is_utc_timezone


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
