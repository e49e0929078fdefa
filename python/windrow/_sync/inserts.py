# Made from windrow/_async/inserts.py by python/tools/async_to_sync.py; edit that file.
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
from windrow._sync.blocks import BlockSource
from windrow._sync.raw import Raw
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

BlockMaker = Callable[[int, int, bool], bytes]  # first row, the row after the last, whether others want the interpreter


class Inserts(Raw):
    """The part of the client that inserts."""

    def insert(
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

            client.insert("events", [(1, "started"), (2, "ended")], column_names=["id", "what"])

        The columns' types are asked for once in a while; with `column_type_names` never. With `context` everything but
        the data comes from there. DataError names the column, its type, the row and the value that don't fit.

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
            return self._insert_context(context, progress)
        if table is None:
            raise ProgrammingError("insert needs the name of a table, or a context made for one")
        arguments = (table, column_names, database, column_types, column_type_names, column_oriented, settings)
        known = self._tables.get(self._table_key(table, database, settings))
        made = self.create_insert_context(*arguments, transport_settings=transport_settings)
        rows = 0
        try:
            made.data = data
            rows = made.row_count
            return self._insert_context(made, progress)
        except DatabaseError as error:
            may_be_old = known is not None and column_types is None and column_type_names is None
            if not may_be_old or rows > ONE_PART_ROWS or not self._nothing_stored(error):
                raise
            self._tables.forget(self._table_key(table, database, settings))
            fresh = self.create_insert_context(*arguments, transport_settings=transport_settings)
            if (fresh.column_names, fresh.type_names) == (made.column_names, made.type_names):
                raise
            fresh.data = data
            return self._insert_context(fresh, progress)

    def _nothing_stored(self, error: DatabaseError) -> bool:
        """Whether the insert failed before anything was stored, and for a reason that an old structure may be."""
        if isinstance(error, DataError):
            return bool(getattr(error, "nothing_sent", False))
        return error.code in tables.STRUCTURE_CODES or (isinstance(error, ProgrammingError) and error.code is None)

    def insert_df(
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
        return self.insert(
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

    def create_insert_context(
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
        if names is None or names == "*" or (types is None and column_type_names is None):
            found = (self._table(table, database, settings)).chosen(table, names)
            names = [column.name for column in found]
            if types is None and column_type_names is None:
                types = [get_from_name(column.type_name) for column in found]
        elif isinstance(names, str):
            names = [names]
        if len(names) == 0:
            raise ValueError("column_names is empty: name the columns, or leave it out for all of the table's")
        if not types:
            types = [get_from_name(name) for name in (() if column_type_names is None else column_type_names)]
        if len(names) != len(types):
            raise ProgrammingError(f"{len(names)} columns are named, but {len(types)} types are given: make them equal")
        return InsertContext(
            qualified_table(table, database),
            names,
            types,
            column_oriented=column_oriented,
            settings=settings,
            transport_settings=transport_settings,
            data=data,
            server_tz=self.server_tz,
        )

    def data_insert(self, context: InsertContext, progress: ProgressOption = None) -> QuerySummary:
        """Inserts the data of a context, which is empty afterwards."""
        return self._insert_context(context, progress)

    def _insert_context(self, context: InsertContext, progress: ProgressOption = None) -> QuerySummary:
        if context.empty:
            return QuerySummary()
        try:
            call = self._insert_call(context)
            if progress:
                self._ask_for_progress(call, progress)
            self._put_blocks(call, context)
            return self._insert_answer(call)
        finally:
            context.data = None

    def _insert_call(self, context: InsertContext) -> Call:
        call = Call(self._checked(context.settings), repeat=Repeat.INSERT, table=context.table)
        call.headers.append(("Content-Type", "application/octet-stream"))
        if context.transport_settings:
            call.headers += context.transport_settings.items()
        # True means the client's own, as in get_client.
        own = context.compression is None or context.compression is True
        call.encoding = self.write_compression if own else str(context.compression or "") or None
        return call

    def _put_blocks(self, call: Call, context: InsertContext) -> None:
        """Makes the first block, and what will make the others."""
        statement = f"INSERT INTO {context.table}{column_list(context.column_names)} FORMAT Native\n".encode()
        encode = self._block_maker(context)
        rows = context.row_count
        first = context.req_block_size or FIRST_BLOCK_ROWS
        if rows * context.column_count <= INLINE_VALUES and not context.req_block_size:
            first = rows
        stop = min(first, rows)
        try:
            if stop * context.column_count <= INLINE_VALUES:
                block = encode(0, stop, False)
            else:
                block = self._offload(lambda: encode(0, stop, True))
        except DataError as error:
            error.nothing_sent = True  # type: ignore[attr-defined]
            raise
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
        server_tz = context.server_tz if common.get_setting("naive_datetime_insert") == "server" else None
        options = _core.WriteOptions(encoding=context.encoding, server_tz=server_tz)
        encoder = _core.Encoder(list(context.column_names), context.type_names, options)
        data = context.data
        columns = columns_of(data, context)
        if columns is not None:
            return partial(encoder.columns, columns)
        return partial(encoder.rows, data)

    def _table_key(self, table: str, database: str | None, settings: dict[str, Any] | None) -> tuple[Any, ...]:
        session = (settings or {}).get("session_id") or self._targets.settings.get("session_id")
        return qualified_table(table, database), self.database, session

    def _table(self, table: str, database: str | None, settings: dict[str, Any] | None = None) -> Table:
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
            described = self._query_with_context(context)
            known = tables.table_of(described.result_rows, time.monotonic())
            self._tables.put(key, known)
        return known

    def describe(self, table: str, database: str | None = None) -> tuple[Column, ...]:
        """The columns of a table: `name`, `type_name`, `default_type`; remembered for a minute."""
        return (self._table(table, database)).columns

    def _ask_whether_recognised(self, table: str) -> bool:
        call = Call({}, b"SHOW CREATE TABLE " + table.encode() + b" FORMAT TabSeparatedRaw", repeat=Repeat.READ)
        try:
            definition = self._whole(call)
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
