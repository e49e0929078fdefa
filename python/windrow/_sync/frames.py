# Made from windrow/_async/frames.py by python/tools/async_to_sync.py; edit that file.
"""Queries whose results are NumPy arrays or pandas data frames."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo
from typing import TYPE_CHECKING, Any

from windrow._sync.queries import BLOCKS, Opened, Queries
from windrow._sync.streams import StreamContext
from windrow._shared.binding import Parameters
from windrow._shared.contexts import QueryContext, TzMode
from windrow._shared.external import ExternalData
from windrow._shared.imports import needed
from windrow._shared.progress import ProgressOption

if TYPE_CHECKING:
    import numpy
    import pandas


class Frames(Queries):
    """The part of the client that makes arrays and data frames."""

    def query_np(
        self,
        query: str | None = None,
        parameters: Parameters = None,
        settings: dict[str, Any] | None = None,
        query_formats: dict[str, str] | None = None,
        column_formats: dict[str, str] | None = None,
        encoding: str | None = None,
        use_none: bool | None = None,
        max_str_len: int | None = None,
        context: QueryContext | None = None,
        external_data: ExternalData | None = None,
        transport_settings: dict[str, str] | None = None,
        progress: ProgressOption = None,
    ) -> numpy.ndarray:
        """The result as a NumPy array; needs `windrow[numpy]`."""
        needed("numpy")
        return self._whole_frame(self._frame_context(locals(), False), False, progress)

    def query_df(
        self,
        query: str | None = None,
        parameters: Parameters = None,
        settings: dict[str, Any] | None = None,
        query_formats: dict[str, str] | None = None,
        column_formats: dict[str, str] | None = None,
        encoding: str | None = None,
        use_none: bool | None = None,
        max_str_len: int | None = None,
        use_na_values: bool | None = None,
        query_tz: str | None = None,
        column_tzs: dict[str, str | tzinfo] | None = None,
        context: QueryContext | None = None,
        external_data: ExternalData | None = None,
        use_extended_dtypes: bool | None = None,
        transport_settings: dict[str, str] | None = None,
        tz_mode: TzMode | None = None,
        progress: ProgressOption = None,
    ) -> pandas.DataFrame:
        """The result as a pandas DataFrame; needs `windrow[pandas]`."""
        needed("pandas")
        return self._whole_frame(self._frame_context(locals(), True), True, progress)

    def query_np_stream(
        self,
        query: str | None = None,
        parameters: Parameters = None,
        settings: dict[str, Any] | None = None,
        query_formats: dict[str, str] | None = None,
        column_formats: dict[str, str] | None = None,
        encoding: str | None = None,
        use_none: bool | None = None,
        max_str_len: int | None = None,
        context: QueryContext | None = None,
        external_data: ExternalData | None = None,
        transport_settings: dict[str, str] | None = None,
        progress: ProgressOption = None,
    ) -> StreamContext:
        """The result as a stream of NumPy arrays, one per block."""
        needed("numpy")
        return self._frame_stream(self._frame_context(locals(), False, streaming=True), False, progress)

    def query_df_stream(
        self,
        query: str | None = None,
        parameters: Parameters = None,
        settings: dict[str, Any] | None = None,
        query_formats: dict[str, str] | None = None,
        column_formats: dict[str, str] | None = None,
        encoding: str | None = None,
        use_none: bool | None = None,
        max_str_len: int | None = None,
        use_na_values: bool | None = None,
        query_tz: str | None = None,
        column_tzs: dict[str, str | tzinfo] | None = None,
        context: QueryContext | None = None,
        external_data: ExternalData | None = None,
        use_extended_dtypes: bool | None = None,
        transport_settings: dict[str, str] | None = None,
        tz_mode: TzMode | None = None,
        progress: ProgressOption = None,
    ) -> StreamContext:
        """The result as a stream of pandas DataFrames, one per block."""
        needed("pandas")
        return self._frame_stream(self._frame_context(locals(), True, streaming=True), True, progress)

    def _frame_context(self, arguments: dict[str, Any], as_pandas: bool, **others: Any) -> QueryContext:
        named = {name: value for name, value in arguments.items() if name not in ("self", "progress")}
        return self.create_query_context(**named, **others, use_numpy=True, as_pandas=as_pandas)

    def _whole_frame(self, context: QueryContext, as_pandas: bool, progress: ProgressOption) -> Any:
        if self._asks_for_columns_only(context):
            result = self._columns_only(context)
            return self._frames_of(
                context, result.column_names, [kind.name for kind in result.column_types], as_pandas
            ).whole([])
        opened = self._open(context, BLOCKS, progress)
        blocks = self._rest(opened)
        return self._offload(lambda: self._frames(context, opened, as_pandas).whole(blocks))

    def _frame_stream(self, context: QueryContext, as_pandas: bool, progress: ProgressOption) -> StreamContext:
        opened = self._open(context, BLOCKS, progress)
        frames = self._frames(context, opened, as_pandas)

        def made() -> Iterator[Any]:
            for block in self._pieces(opened):
                yield frames.block(block)

        return StreamContext(self._source(opened), made())

    def _frames(self, context: QueryContext, opened: Opened, as_pandas: bool) -> Any:
        return self._frames_of(context, opened.names, opened.type_names, as_pandas)

    def _frames_of(self, context: QueryContext, names: Any, type_names: Any, as_pandas: bool) -> Any:
        from windrow._shared.frames import NumpyFrames, PandasFrames

        if as_pandas:
            return PandasFrames(
                names,
                type_names,
                use_none=context.use_none,
                use_extended_dtypes=context.use_extended_dtypes,
                max_str_len=context.max_str_len,
            )
        return NumpyFrames(names, type_names, use_none=context.use_none, max_str_len=context.max_str_len)
