"""Queries whose results are Python values: query, and streams of blocks and of rows."""

from __future__ import annotations

import json
from abc import abstractmethod
from collections.abc import AsyncIterator
from datetime import tzinfo
from functools import cached_property
from typing import Any

from windrow import _core, common
from windrow._async.asking import Asking
from windrow._async.blocks import BlockStream
from windrow._async.streams import RowStream, StreamContext, StreamSource
from windrow._shared import errors
from windrow._shared.binding import Parameters, extended
from windrow._shared.calls import Call, Repeat
from windrow._shared.contexts import QueryContext, TzMode
from windrow._shared.errors import InternalError, StreamFailureError
from windrow._shared.external import ExternalData
from windrow._shared.progress import ProgressOption
from windrow._shared.rename import renamer_of
from windrow._shared.results import NumpyResult, QueryResult
from windrow._shared.summary import QuerySummary
from windrow.datatypes.registry import get_from_name

ROWS, COLUMNS, BLOCKS = 0, 1, 2
# Programs ask this of the client, not of ClickHouse.
VERSION_QUERY = "select __connect_version__"


class Opened:
    """A query whose answer has begun: its blocks, and the columns if there is any block."""

    def __init__(self, call: Call, response: Any, blocks: BlockStream) -> None:
        self.call = call
        self.response = response
        self.blocks = blocks
        self.names: tuple[str, ...] = ()
        self.type_names: tuple[str, ...] = ()
        self.finished = False

    @cached_property
    def summary(self) -> dict[str, Any]:
        """ClickHouse's counters, and the query's id."""
        return errors.summary_of(self.response.headers)

    @property
    def zone(self) -> str:
        """The time zone that the answer names."""
        return str(self.response.headers.get("x-clickhouse-timezone") or "UTC")

    @property
    def types(self) -> tuple[Any, ...]:
        """The columns' types."""
        return tuple(get_from_name(name) for name in self.type_names)


class Queries(Asking):
    """The part of the client that reads results."""

    database: str | None
    _rename_response_column: str | None

    async def query(
        self,
        query: str | None = None,
        parameters: Parameters = None,
        settings: dict[str, Any] | None = None,
        query_formats: dict[str, str] | None = None,
        column_formats: dict[str, str | dict[str, str]] | None = None,
        encoding: str | None = None,
        use_none: bool | None = None,
        column_oriented: bool | None = None,
        use_numpy: bool | None = None,
        max_str_len: int | None = None,
        context: QueryContext | None = None,
        query_tz: str | tzinfo | None = None,
        column_tzs: dict[str, str | tzinfo] | None = None,
        external_data: ExternalData | None = None,
        transport_settings: dict[str, str] | None = None,
        tz_mode: TzMode | None = None,
        progress: ProgressOption = None,
    ) -> QueryResult:
        """The whole result of a query: `result_rows`, `result_columns`, `column_names`, `column_types`, `summary`.

        DatabaseError with ClickHouse's `code` and `name` when it refuses or fails; OperationalError when the connection
        does.

            result = await client.query("SELECT name FROM users WHERE id = {id:UInt64}", parameters={"id": 5})
        """
        if query and query.lstrip()[: len(VERSION_QUERY)].lower() == VERSION_QUERY:
            words = f"Windrow v.{common.version()}"
            return QueryResult([[words]], None, ("connect_version",), (get_from_name("String"),))
        context = self.create_query_context(
            query,
            parameters,
            settings,
            query_formats,
            column_formats,
            encoding,
            use_none,
            column_oriented,
            use_numpy,
            max_str_len,
            context,
            query_tz,
            column_tzs,
            external_data=external_data,
            transport_settings=transport_settings,
            tz_mode=tz_mode,
            as_pandas=context is not None and context.as_pandas,
            streaming=context is not None and context.streaming,
        )
        if context.is_command:
            return await self._command_as_query(context)
        result: QueryResult = await self._query_with_context(context, progress)
        return result

    async def _command_as_query(self, context: QueryContext) -> QueryResult:
        answer = await self.command(
            context.query,
            parameters=context.parameters,
            settings=context.settings,
            external_data=context.external_data,
            transport_settings=context.transport_settings,
        )
        if isinstance(answer, QuerySummary):
            return answer.as_query_result()
        return QueryResult([answer] if isinstance(answer, list) else [[answer]])

    @abstractmethod
    async def command(self, *arguments: Any, **named: Any) -> Any:
        """In commands.py."""

    async def _query_with_context(
        self, context: QueryContext, progress: ProgressOption = None, use_database: bool = True
    ) -> Any:
        """The whole result; what breaks off in the middle is an error like any other, since nobody has seen a part of
        it.
        """
        if self._asks_for_columns_only(context):
            return await self._columns_only(context)
        form = BLOCKS if context.use_numpy else COLUMNS if context.column_oriented else ROWS
        opened = await self._open(context, form, progress, use_database)
        blocks = await self._rest(opened)
        if context.use_numpy:
            return self._numpy_result(context, opened, blocks)
        if len(blocks) <= 1:
            whole = blocks[0] if blocks else []
        else:
            join = joined_columns if form == COLUMNS else _core.join_lists
            whole = await self._offload(lambda: join(blocks))
            blocks.clear()  # the worker may not have let go of it yet
        return QueryResult(
            whole if form == ROWS else None,
            None,
            opened.names,
            opened.types,
            context.column_oriented,
            columns=whole if form == COLUMNS else None,
            stream_of=None,  # sync only: stream_of=StreamContext,
            headers=opened.response.headers,
        )

    async def _rest(self, opened: Opened) -> list[Any]:
        """All blocks; a failure in their middle is ClickHouse's error, as if it had come at once."""
        try:
            blocks = await opened.blocks.rest()
        except StreamFailureError as error:
            if error.code is None:
                self._stopper.stop(opened.call.query_id)
            raise self._as_whole(error, opened.call) from error.__cause__
        except BaseException:
            self._stopper.stop(opened.call.query_id)
            raise
        opened.finished = True
        if opened.call.report:
            opened.call.report.finish(opened.summary)
        return blocks

    def _as_whole(self, error: StreamFailureError, call: Call) -> errors.DatabaseError:
        """What a result has that broke off before anybody saw a part of it: the same as if it had failed at once, unless
        the user wanted to read it while it is made.
        """
        waits = call.params.get("wait_end_of_query", self._targets.settings.get("wait_end_of_query", "1"))
        if waits == "0":
            return error
        return errors.of_whole(error, self.url, self.show_clickhouse_errors, common.get_setting("max_error_size"))

    def _numpy_result(self, context: QueryContext, opened: Opened, blocks: list[Any]) -> NumpyResult:
        def whole(as_pandas: bool) -> Any:
            return self._frames(context, opened, as_pandas).whole(blocks)

        return NumpyResult(whole, opened.names, opened.types, opened.summary)

    @abstractmethod
    def _frames(self, context: QueryContext, opened: Opened, as_pandas: bool) -> Any:
        """In frames.py."""

    async def query_column_block_stream(
        self,
        query: str | None = None,
        parameters: Parameters = None,
        settings: dict[str, Any] | None = None,
        query_formats: dict[str, str] | None = None,
        column_formats: dict[str, str | dict[str, str]] | None = None,
        encoding: str | None = None,
        use_none: bool | None = None,
        context: QueryContext | None = None,
        query_tz: str | tzinfo | None = None,
        column_tzs: dict[str, str | tzinfo] | None = None,
        external_data: ExternalData | None = None,
        transport_settings: dict[str, str] | None = None,
        tz_mode: TzMode | None = None,
        progress: ProgressOption = None,
    ) -> StreamContext:
        """The result as a stream of blocks; each is a list of columns."""
        made = self._stream_context(locals())
        return await self._block_stream(made, COLUMNS, progress)

    async def query_row_block_stream(
        self,
        query: str | None = None,
        parameters: Parameters = None,
        settings: dict[str, Any] | None = None,
        query_formats: dict[str, str] | None = None,
        column_formats: dict[str, str | dict[str, str]] | None = None,
        encoding: str | None = None,
        use_none: bool | None = None,
        context: QueryContext | None = None,
        query_tz: str | tzinfo | None = None,
        column_tzs: dict[str, str | tzinfo] | None = None,
        external_data: ExternalData | None = None,
        transport_settings: dict[str, str] | None = None,
        tz_mode: TzMode | None = None,
        progress: ProgressOption = None,
    ) -> StreamContext:
        """The result as a stream of blocks; each is a list of rows."""
        made = self._stream_context(locals())
        return await self._block_stream(made, ROWS, progress)

    async def query_rows_stream(
        self,
        query: str | None = None,
        parameters: Parameters = None,
        settings: dict[str, Any] | None = None,
        query_formats: dict[str, str] | None = None,
        column_formats: dict[str, str | dict[str, str]] | None = None,
        encoding: str | None = None,
        use_none: bool | None = None,
        context: QueryContext | None = None,
        query_tz: str | tzinfo | None = None,
        column_tzs: dict[str, str | tzinfo] | None = None,
        external_data: ExternalData | None = None,
        transport_settings: dict[str, str] | None = None,
        tz_mode: TzMode | None = None,
        progress: ProgressOption = None,
    ) -> StreamContext:
        """The result as a stream of rows; each is a tuple.

        async with await client.query_rows_stream("SELECT number, toString(number) FROM numbers(3)") as stream:
            async for number, text in stream:
                print(number, text)
        """
        made = self._stream_context(locals())
        opened = await self._open(made, ROWS, progress)
        return RowStream(self._source(opened), self._rows(opened))

    def _stream_context(self, arguments: dict[str, Any], **others: Any) -> QueryContext:
        """The context for the arguments of a `*_stream` method."""
        named = {name: value for name, value in arguments.items() if name not in ("self", "progress")}
        return self.create_query_context(**named, **others, streaming=True)

    async def _block_stream(self, context: QueryContext, form: int, progress: ProgressOption) -> StreamContext:
        opened = await self._open(context, form, progress)
        return StreamContext(self._source(opened), self._pieces(opened))

    def _source(self, opened: Opened) -> StreamSource:
        async def close() -> None:
            if not opened.finished:
                opened.finished = True
                self._stopper.stop(opened.call.query_id)
            await opened.blocks.close()

        return StreamSource(close, opened.names, opened.types, opened.summary)

    async def _pieces(self, opened: Opened) -> AsyncIterator[Any]:
        """The blocks, as they come."""
        report = opened.call.report
        while (block := await self._next(opened)) is not None:
            if report:
                report.on_rows(received=rows_in(block))
            yield block
        opened.finished = True
        if report:
            report.finish(opened.summary)

    async def _next(self, opened: Opened) -> Any:
        try:
            return await opened.blocks.next()
        except StreamFailureError as error:
            opened.finished = error.code is not None  # ClickHouse has ended the query itself
            raise

    async def _rows(self, opened: Opened) -> AsyncIterator[Any]:
        async for block in self._pieces(opened):
            for row in block:
                yield row

    async def _open(
        self, context: QueryContext, form: int, progress: ProgressOption = None, use_database: bool = True
    ) -> Opened:
        """Sends the query and waits for its first block."""
        call = self._read_call(context)
        call.use_database = use_database
        if progress:
            self._ask_for_progress(call, progress)
        response = await self._exchange(call)
        try:
            self._take_zone(context, response)
            opened = Opened(
                call, response, BlockStream(response, _core.Decoder(response.body, self._reading(context)), form)
            )
            header = await opened.blocks.header()
        except BaseException as error:
            if not isinstance(error, StreamFailureError) or error.code is None:
                self._stopper.stop(call.query_id)
            await response.close()
            if isinstance(error, StreamFailureError) and not context.streaming:
                raise self._as_whole(error, call) from error.__cause__
            raise
        if header is not None:
            rename = context.column_renamer or renamer_of(self._rename_response_column)
            opened.names = tuple(header[0]) if rename is None else tuple(rename(name) for name in header[0])
            opened.type_names = tuple(header[1])
        return opened

    async def _columns_only(self, context: QueryContext) -> Any:
        bound = context.bound
        call = Call(self._checked(context.settings), repeat=Repeat.READ if bound.statement.is_read else Repeat.NEVER)
        self._put_query(call, extended(bound.text, "\n FORMAT JSON"), bound.parameters, context.external_data)
        answer = json.loads(await self._whole(call))
        if answer.get("data"):
            raise InternalError("A query that ends with LIMIT 0 returned rows; raw_query() gives them")
        rename = context.column_renamer or renamer_of(self._rename_response_column)
        names = tuple(rename(column["name"]) if rename else column["name"] for column in answer["meta"])
        types = tuple(get_from_name(column["type"]) for column in answer["meta"])
        if context.use_numpy:
            return NumpyResult(None, names, types)
        return QueryResult([], None, names, types)

    async def _whole(self, call: Call) -> bytes:
        """The body of an answer, decompressed."""
        response = await self._exchange(call)
        try:
            return bytes(await response.read())
        except BaseException:
            self._stopper.stop(call.query_id)
            await response.close()
            raise


def joined_columns(blocks: list[list[list[Any]]]) -> list[list[Any]]:
    """The columns of all blocks."""
    return [_core.join_lists(list(parts)) for parts in zip(*blocks, strict=True)]


def rows_in(block: Any) -> int:
    """The number of rows of a block in any form."""
    if hasattr(block, "rows"):
        return int(block.rows)
    if block and isinstance(block[0], list):
        return len(block[0])
    return len(block)
