"""Arrow, and data frames over Arrow: queries and inserts."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any

from windrow._async.frames import Frames
from windrow._async.queries import BLOCKS, Opened
from windrow._async.start import Start
from windrow._async.streams import StreamContext
from windrow._shared import arrow_tables
from windrow._shared.binding import Parameters
from windrow._shared.contexts import QueryContext
from windrow._shared.errors import OperationalError
from windrow._shared.external import ExternalData
from windrow._shared.identifiers import qualified_table
from windrow._shared.imports import needed
from windrow._shared.progress import ProgressOption
from windrow._shared.summary import QuerySummary

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

logger = logging.getLogger("windrow.client")
AS_STRINGS = "output_format_arrow_string_as_string"
STRIPS_UTC = True  # sync only: STRIPS_UTC = False


class Arrow(Start, Frames):
    """The part of the client that speaks Arrow."""

    async def query_arrow(
        self,
        query: str,
        parameters: Parameters = None,
        settings: dict[str, Any] | None = None,
        use_strings: bool | None = None,
        external_data: ExternalData | None = None,
        transport_settings: dict[str, str] | None = None,
        progress: ProgressOption = None,
    ) -> pyarrow.Table:
        """The result as a pyarrow Table; needs `windrow[arrow]`. `use_strings=False` gives String columns as binary."""
        needed("pyarrow")
        context = self._arrow_context(query, parameters, settings, external_data, transport_settings)
        as_text = self._as_text(use_strings)
        table = None
        if not arrow_tables.asks_for_arrow_settings(context.settings):
            opened = await self._open(context, BLOCKS, progress)
            blocks = await self._rest(opened)
            if blocks:
                table = await self._offload(lambda: arrow_tables.table_of(blocks, opened.names, as_text, opened.zone))
        if table is None:
            table = await self._arrow_of_server(context, as_text)
        return self._zones_as_asked(table) if STRIPS_UTC else table

    async def _arrow_of_server(self, context: QueryContext, as_text: bool) -> pyarrow.Table:
        """The table as ClickHouse itself makes it: where settings ask for another form, or where there are no rows to
        make a schema from."""
        self._own_setting_of(context, AS_STRINGS, "1" if as_text else "0")
        call = self._raw_call(
            context.query,
            context.parameters,
            context.settings,
            "ArrowStream",
            True,
            context.external_data,
            context.transport_settings,
        )
        body = await self._whole(call)
        return await self._offload(lambda: arrow_tables.table_of_stream(body))

    async def query_arrow_stream(
        self,
        query: str,
        parameters: Parameters = None,
        settings: dict[str, Any] | None = None,
        use_strings: bool | None = None,
        external_data: ExternalData | None = None,
        transport_settings: dict[str, str] | None = None,
        progress: ProgressOption = None,
    ) -> StreamContext:
        """The result as a stream of pyarrow RecordBatches, one per block."""
        needed("pyarrow")
        convert = self._zones_as_asked if STRIPS_UTC else None
        return await self._arrow_stream(
            self._arrow_context(query, parameters, settings, external_data, transport_settings, streaming=True),
            convert,
            use_strings,
            progress,
        )

    async def query_df_arrow(
        self,
        query: str,
        parameters: Parameters = None,
        settings: dict[str, Any] | None = None,
        use_strings: bool | None = None,
        external_data: ExternalData | None = None,
        transport_settings: dict[str, str] | None = None,
        dataframe_library: str = "pandas",
        progress: ProgressOption = None,
    ) -> pandas.DataFrame | polars.DataFrame:
        """The result as a data frame of `dataframe_library` ("pandas" or "polars") whose columns are Arrow's."""
        convert = arrow_tables.frame_maker(dataframe_library)
        table = await self.query_arrow(
            query, parameters, settings, use_strings, external_data, transport_settings, progress=progress
        )
        return await self._offload(lambda: convert(self._zones_as_asked(table)))

    async def query_df_arrow_stream(
        self,
        query: str,
        parameters: Parameters = None,
        settings: dict[str, Any] | None = None,
        use_strings: bool | None = None,
        external_data: ExternalData | None = None,
        transport_settings: dict[str, str] | None = None,
        dataframe_library: str = "pandas",
        progress: ProgressOption = None,
    ) -> StreamContext:
        """The result as a stream of data frames, one per block; see query_df_arrow."""
        frame_of = arrow_tables.frame_maker(dataframe_library)

        def convert(batch: Any) -> Any:
            return frame_of(self._zones_as_asked(batch))

        return await self._arrow_stream(
            self._arrow_context(query, parameters, settings, external_data, transport_settings, streaming=True),
            convert,
            use_strings,
            progress,
        )

    def _arrow_context(
        self,
        query: str,
        parameters: Parameters,
        settings: dict[str, Any] | None,
        external_data: ExternalData | None,
        transport_settings: dict[str, str] | None,
        streaming: bool = False,
    ) -> QueryContext:
        return self.create_query_context(
            query,
            parameters,
            settings,
            external_data=external_data,
            transport_settings=transport_settings,
            streaming=streaming,
        )

    async def _arrow_stream(
        self,
        context: QueryContext,
        convert: Callable[[Any], Any] | None,
        use_strings: bool | None,
        progress: ProgressOption,
    ) -> StreamContext:
        as_text = self._as_text(use_strings)
        opened = await self._open(context, BLOCKS, progress)
        return StreamContext(self._source(opened), self._batches(opened, convert, as_text))

    async def _batches(self, opened: Opened, convert: Callable[[Any], Any] | None, as_text: bool) -> AsyncIterator[Any]:
        async for block in self._pieces(opened):
            batch = arrow_tables.batch_of(block, opened.names, as_text, opened.zone)
            yield convert(batch) if convert else batch

    def _own_setting_of(self, context: QueryContext, name: str, value: str) -> None:
        if name not in context.settings and self._setting_status(name).is_writable:
            context.settings = {**context.settings, name: value}

    def _as_text(self, use_strings: bool | None) -> bool:
        """Whether String columns are Arrow strings: as asked, else unless the server's setting says binary for good."""
        status = self._setting_status(AS_STRINGS)
        if use_strings is None:
            return status.is_writable or status.is_set
        if use_strings != status.is_set and not status.is_writable:
            raise OperationalError(f"This user may not set {AS_STRINGS}: leave use_strings={use_strings} out")
        return use_strings

    def _zones_as_asked(self, table: Any) -> Any:
        """Moments in UTC without their zone, unless `tz_mode` says otherwise."""
        if self.tz_mode == "schema":
            logger.warning(
                'tz_mode="schema" is not supported by the methods for Arrow: they give the zone that the result names'
            )
        return arrow_tables.without_utc(table) if self.tz_mode == "naive_utc" else table

    async def insert_arrow(
        self,
        table: str,
        arrow_table: pyarrow.Table,
        database: str | None = None,
        settings: dict[str, Any] | None = None,
        transport_settings: dict[str, str] | None = None,
        progress: ProgressOption = None,
        *,
        convert: bool = False,
    ) -> QuerySummary:
        """Inserts a pyarrow Table into the columns of the same names, each value as it is: DataError names the column,
        the row and the value that the column's type doesn't hold.

        With `convert` ClickHouse converts as CAST does, and says nothing: 300 becomes 44 in a UInt8, 1.5 becomes 1.
        """
        needed("pyarrow")
        names = arrow_table.schema.names
        if not convert:
            return await self.insert(
                table,
                arrow_table,
                names,
                database,
                settings=settings,
                transport_settings=transport_settings,
                progress=progress,
            )
        body = await self._offload(lambda: arrow_tables.file_bytes(arrow_table, self.write_compression))
        return await self.raw_insert(
            qualified_table(table, database),
            names,
            body,
            settings,
            "Arrow",
            transport_settings=transport_settings,
            progress=progress,
        )

    async def insert_df_arrow(
        self,
        table: str,
        df: Any,
        database: str | None = None,
        settings: dict[str, Any] | None = None,
        transport_settings: dict[str, str] | None = None,
        progress: ProgressOption = None,
        *,
        convert: bool = False,
    ) -> QuerySummary:
        """Inserts a polars DataFrame, or a pandas DataFrame whose columns are all Arrow's (pandas.ArrowDtype), as
        insert_arrow does.
        """
        needed("pyarrow")
        arrow_tables.check_frame(df)
        arrow_table = await self._offload(lambda: arrow_tables.table_of_frame(df))
        return await self.insert_arrow(
            table, arrow_table, database, settings, transport_settings, progress, convert=convert
        )
