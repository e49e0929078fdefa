"""Inserts of Python rows and columns, NumPy arrays and pandas data frames, as Native blocks.

The first block is small and made before anything is sent: it says how large a row is, and most errors in the data are
found while nothing has been stored. A small insert is that one block. The others are made on worker threads, at most
two ahead of the network.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from windrow import _core, common
from windrow._async.blocks import BlockSource
from windrow._async.raw import Raw
from windrow._shared import tables
from windrow._shared.calls import Call, Repeat
from windrow._shared.contexts import InsertContext
from windrow._shared.errors import DatabaseError, DataError, ProgrammingError
from windrow._shared.identifiers import column_list, qualified_table
from windrow._shared.imports import needed
from windrow._shared.progress import ProgressOption
from windrow._shared.sources import columns_of
from windrow._shared.summary import QuerySummary
from windrow._shared.tables import Column, Table
from windrow.datatypes.registry import get_from_name

FIRST_BLOCK_ROWS = 1000
INLINE_VALUES = 4000  # encoded on the event loop: some tenths of a millisecond
BLOCK_BYTES = 2 << 20
MAX_BLOCK_ROWS = 1 << 17
# ClickHouse stores up to so many rows (max_insert_block_size) as one part: of more, some may be stored when it refuses.
ONE_PART_ROWS = 1_000_000
# An insert whose table is changed by somebody else again and again.
MOST_ATTEMPTS = 3

BlockMaker = Callable[[int, int, bool], bytes]  # first row, the row after the last, whether others want the interpreter


class Inserts(Raw):
    """The part of the client that inserts."""

    async def insert(
        self,
        table: str | None = None,
        data: Any = None,
        column_names: str | Sequence[str] | None = "*",
        database: str | None = None,
        column_types: Sequence[Any] | None = None,
        column_type_names: Sequence[str] | None = None,
        column_oriented: bool = False,
        settings: dict[str, Any] | None = None,
        context: InsertContext | None = None,
        transport_settings: dict[str, str] | None = None,
        progress: ProgressOption = None,
    ) -> QuerySummary:
        """Inserts rows (or columns, with `column_oriented`), and returns when ClickHouse has them.

            await client.insert("events", [(1, "started"), (2, "ended")], column_names=["id", "what"])

        A small insert is made in the types that the columns had within the last minute, and made anew when ClickHouse
        says that they have others now. For a large one, and for one in columns, they are asked for; with
        `column_type_names` never. With `context` everything but the data comes from there. DataError names the column,
        its type, the row and the value that don't fit.

        The insert carries a token: when its answer is lost it is sent again to tables that recognise it.
        """
        if data is None and (context is None or context.empty):
            raise ProgrammingError("There is nothing to insert: give data, or a context that holds some")
        if context is not None:
            if data is not None:
                if not context.empty:
                    raise ProgrammingError(
                        "This insert context still holds data: insert that first, or give data to a new context"
                    )
                context.data = data
            return await self._insert_context(context, progress)
        if table is None:
            raise ProgrammingError("insert needs the name of a table, or a context made for one")
        arguments = (table, column_names, database, column_types, column_type_names, column_oriented, settings)
        is_known = self._tables.get(self._table_key(table, database, settings)) is not None
        made = await self.create_insert_context(*arguments, transport_settings=transport_settings)
        try:
            made.data = data
        except ProgrammingError:
            if not is_known or made._described is None:
                raise
            self._tables.forget(self._table_key(table, database, settings))
            is_known = False
            made = await self.create_insert_context(*arguments, transport_settings=transport_settings)
            made.data = data
        made._has_all_columns = column_names is None or isinstance(column_names, str) and column_names == "*"
        return await self._insert_context(made, progress, is_fresh=not is_known)

    def _nothing_stored(self, error: DatabaseError) -> bool:
        """Whether the insert failed before anything was stored, and for a reason that an old structure may be."""
        if isinstance(error, DataError):
            return bool(getattr(error, "nothing_sent", False))
        return error.code in tables.STRUCTURE_CODES or (isinstance(error, ProgrammingError) and error.code is None)

    async def insert_df(
        self,
        table: str | None = None,
        df: Any = None,
        database: str | None = None,
        settings: dict[str, Any] | None = None,
        column_names: Sequence[str] | None = None,
        column_types: Sequence[Any] | None = None,
        column_type_names: Sequence[str] | None = None,
        context: InsertContext | None = None,
        transport_settings: dict[str, str] | None = None,
        progress: ProgressOption = None,
    ) -> QuerySummary:
        """Inserts a pandas DataFrame; its columns' names are the table's unless `column_names` says otherwise."""
        needed("pandas")
        if context is None:
            if column_names is None:
                column_names = [str(name) for name in df.columns]
            elif len(df.columns) != len(column_names):
                raise ProgrammingError(
                    f"The frame has {len(df.columns)} columns, but {len(column_names)} names are given: make them equal"
                )
        return await self.insert(
            table,
            df,
            column_names,
            database,
            column_types,
            column_type_names,
            settings=settings,
            context=context,
            transport_settings=transport_settings,
            progress=progress,
        )

    async def create_insert_context(
        self,
        table: str,
        column_names: str | Sequence[str] | None = None,
        database: str | None = None,
        column_types: Sequence[Any] | None = None,
        column_type_names: Sequence[str] | None = None,
        column_oriented: bool = False,
        settings: dict[str, Any] | None = None,
        data: Any = None,
        transport_settings: dict[str, str] | None = None,
    ) -> InsertContext:
        """A table with its columns and types, for many inserts; `client.insert(data=rows, context=context)` uses it."""
        # Not only lists: an Index of pandas names columns, too.
        names = column_names if column_names is None or isinstance(column_names, str) else list(map(str, column_names))
        types = None if column_types is None else list(column_types)
        are_given = types is not None or column_type_names is not None
        if names is None or names == "*" or not are_given:
            found = await self._columns(table, database, names, settings)
            names = [column.name for column in found]
            if not are_given:
                types = [get_from_name(column.type_name) for column in found]
        elif isinstance(names, str):
            names = [names]
        if len(names) == 0:
            raise ValueError("column_names is empty: name the columns, or leave it out for all of the table's")
        if not types:
            types = [get_from_name(name) for name in (() if column_type_names is None else column_type_names)]
        if len(names) != len(types):
            raise ProgrammingError(f"{len(names)} columns are named, but {len(types)} types are given: make them equal")
        context = InsertContext(
            qualified_table(table, database),
            names,
            types,
            column_oriented=column_oriented,
            settings=settings,
            transport_settings=transport_settings,
            data=data,
            server_tz=self.server_tz,
        )
        context._described = None if are_given else (table, database, settings)
        return context

    async def data_insert(self, context: InsertContext, progress: ProgressOption = None) -> QuerySummary:
        """Inserts the data of a context, which is empty afterwards."""
        return await self._insert_context(context, progress)

    async def _insert_context(
        self, context: InsertContext, progress: ProgressOption = None, is_fresh: bool = False
    ) -> QuerySummary:
        if context.empty:
            return QuerySummary()
        try:
            if context._described is None:
                return await self._send_insert(context, progress, as_rows=False)
            return await self._insert_as_described(context, progress, is_fresh)
        finally:
            context.data = None

    async def _insert_as_described(
        self, context: InsertContext, progress: ProgressOption, is_fresh: bool
    ) -> QuerySummary:
        """Inserts in the types that the table has now, whoever has changed them since they were asked for.

        `is_fresh`: they were asked for just now, for this insert.
        """
        as_rows = not is_fresh and self._types_are_compared(context)
        if not is_fresh and not as_rows:
            await self._describe_anew(context)
        for attempt in range(MOST_ATTEMPTS):
            try:
                return await self._send_insert(context, progress, as_rows)
            except DatabaseError as error:
                is_of_values = isinstance(error, DataError) and not as_rows
                if is_of_values or context.row_count > ONE_PART_ROWS or not self._nothing_stored(error):
                    raise
                if attempt + 1 == MOST_ATTEMPTS:
                    raise
                has_changed = await self._describe_anew(context)
                # A header that is refused although the types are right is worded otherwise here than there.
                if not has_changed and not (as_rows and error.code == tables.HEADER_CODE):
                    raise
                as_rows = False
        raise AssertionError("the last attempt returns or raises")

    def _types_are_compared(self, context: InsertContext) -> bool:
        """Whether the data can go as rows behind a header, whose types ClickHouse compares with the table's."""
        is_small = context.row_count * context.column_count <= INLINE_VALUES and not context.req_block_size
        if not is_small or not isinstance(context.data, (list, tuple)) or context.column_oriented:
            return False
        name = tables.COMPARES_HEADERS
        known = self.server_settings.get(name)
        if known is None or not tables.may_be_rows(context.type_names):
            return False
        own = (context.settings or {}).get(name, self._targets.settings.get(name, known.value))
        return str(own).lower() in ("1", "true")

    async def _describe_anew(self, context: InsertContext) -> bool:
        """Gives the context the names and types that its table has now; whether they have changed."""
        assert context._described is not None
        table, database, settings = context._described
        self._tables.forget(self._table_key(table, database, settings))
        now = await self._table(table, database, settings)
        found = now.chosen(table, "*")
        if not context._has_all_columns or len(found) != context.column_count:
            found = now.chosen(table, context.column_names)
        before = list(context.column_names), context.type_names
        context.column_names = [column.name for column in found]
        context.column_types = [get_from_name(column.type_name) for column in found]
        return before != (context.column_names, context.type_names)

    async def _send_insert(self, context: InsertContext, progress: ProgressOption, as_rows: bool) -> QuerySummary:
        call = self._insert_call(context)
        if progress:
            self._ask_for_progress(call, progress)
        try:
            if as_rows:
                self._put_rows(call, context)
            else:
                await self._put_blocks(call, context)
        except DataError as error:
            error.nothing_sent = True  # type: ignore[attr-defined]
            raise
        return await self._insert_answer(call)

    def _insert_call(self, context: InsertContext) -> Call:
        call = Call(self._checked(context.settings), repeat=Repeat.INSERT, table=context.table)
        call.headers.append(("Content-Type", "application/octet-stream"))
        if context.transport_settings:
            call.headers += context.transport_settings.items()
        # True means the client's own, as in get_client.
        own = context.compression is None or context.compression is True
        call.encoding = self.write_compression if own else str(context.compression or "") or None
        return call

    def _put_rows(self, call: Call, context: InsertContext) -> None:
        """All rows, behind the names and types of their columns."""
        columns = column_list(context.column_names)
        statement = f"INSERT INTO {context.table}{columns} FORMAT RowBinaryWithNamesAndTypes\n".encode()
        encoder = _core.RowBinary(list(context.column_names), context.type_names, self._write_options(context))
        header = tables.rows_header(context.column_names, context.type_names)
        call.body = [statement + header, encoder.encode(context.data)]

    async def _put_blocks(self, call: Call, context: InsertContext) -> None:
        """Makes the first block, and what will make the others."""
        if context._described is not None and tables.may_forbid_casts(context.type_names):
            for name, value in tables.NO_CASTS:
                self._own_setting(call, name, value)
        statement = f"INSERT INTO {context.table}{column_list(context.column_names)} FORMAT Native\n".encode()
        encode = self._block_maker(context)
        rows = context.row_count
        first = context.req_block_size or FIRST_BLOCK_ROWS
        if rows * context.column_count <= INLINE_VALUES and not context.req_block_size:
            first = rows
        stop = min(first, rows)
        if stop * context.column_count <= INLINE_VALUES:
            block = encode(0, stop, False)
        else:
            block = await self._offload(lambda: encode(0, stop, True))
        if stop == rows:
            call.body = [statement, block]
            return
        step = context.req_block_size or max(1, min(MAX_BLOCK_ROWS, BLOCK_BYTES * stop // max(1, len(block))))

        def jobs() -> Iterator[Callable[[], bytes]]:
            yield lambda: statement + block
            for start in range(stop, rows, step):
                yield block_job(encode, start, min(start + step, rows), call)

        encoding, call.encoding = call.encoding, None
        if encoding:
            call.headers.append(("Content-Encoding", encoding))
        call.make_body = lambda: BlockSource(self._transport, jobs(), encoding)

    def _block_maker(self, context: InsertContext) -> BlockMaker:
        """What makes the Native block of the rows from `start` to `stop`."""
        encoder = _core.Encoder(list(context.column_names), context.type_names, self._write_options(context))
        data = context.data
        columns = columns_of(data, context)
        if columns is not None:
            return partial(encoder.columns, columns)
        return partial(encoder.rows, data)

    def _write_options(self, context: InsertContext) -> _core.WriteOptions:
        server_tz = context.server_tz if common.get_setting("naive_datetime_insert") == "server" else None
        return _core.WriteOptions(encoding=context.encoding, server_tz=server_tz)

    def _table_key(self, table: str, database: str | None, settings: dict[str, Any] | None) -> tuple[Any, ...]:
        session = (settings or {}).get("session_id") or self._targets.settings.get("session_id")
        return qualified_table(table, database), self.database, session

    async def _table(self, table: str, database: str | None, settings: dict[str, Any] | None = None) -> Table:
        """The table's columns, remembered for a minute."""
        key = self._table_key(table, database, settings)
        known: Table | None = self._tables.get(key)
        if known is None:
            # An empty query_id keeps the one that was meant for the insert from being used up here.
            context = self.create_query_context(
                f"DESCRIBE TABLE {key[0]}",
                settings={**(settings or {}), "query_id": ""},
                query_formats={"String": "string"},
            )
            described = await self._query_with_context(context)
            known = tables.table_of(described.result_rows, time.monotonic())
            self._tables.put(key, known)
        return known

    async def _columns(
        self, table: str, database: str | None, names: str | Sequence[str] | None, settings: dict[str, Any] | None
    ) -> tuple[Column, ...]:
        """The columns of those names; a name that isn't known yet is asked for."""
        is_known = self._tables.get(self._table_key(table, database, settings)) is not None
        try:
            return (await self._table(table, database, settings)).chosen(table, names)
        except ProgrammingError:
            if not is_known:
                raise
            self._tables.forget(self._table_key(table, database, settings))
            return (await self._table(table, database, settings)).chosen(table, names)

    async def describe(self, table: str, database: str | None = None) -> tuple[Column, ...]:
        """The columns of a table: `name`, `type_name`, `default_type`; remembered for a minute."""
        return (await self._table(table, database)).columns

    async def _ask_whether_recognised(self, table: str) -> bool:
        call = Call({}, b"SHOW CREATE TABLE " + table.encode() + b" FORMAT TabSeparatedRaw", repeat=Repeat.READ)
        try:
            definition = await self._whole(call)
        except DatabaseError:
            return False
        return tables.dedups(definition.decode(errors="replace"))

    write_compression: str | None


def block_job(encode: BlockMaker, start: int, stop: int, call: Call) -> Callable[[], bytes]:
    """Makes one block, when its turn comes."""

    def job() -> bytes:
        block = encode(start, stop, True)
        if call.report:
            call.report.on_rows(sent=stop - start)
        return block

    return job
