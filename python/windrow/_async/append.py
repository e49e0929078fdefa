"""Large appends: data of any size, over several connections at once, in order, and as a whole or not at all."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from windrow import _core
from windrow._async.append_source import source_of
from windrow._async.appending import Appending
from windrow._async.exchange import Exchange
from windrow._shared.append_calls import AppendCalls, checked_id, columns_of, received_of, result_of
from windrow._shared.append_progress import reporter
from windrow._shared.append_state import CommitPlaces
from windrow._shared.append_types import (
    DEFAULT_BATCH_BYTES,
    DEFAULT_CONNECTIONS,
    DEFAULT_WINDOW_BYTES,
    AppendFaults,
    AppendProgress,
    AppendResult,
    checked_options,
)
from windrow._shared.identifiers import qualified_table


class Appends(Exchange):
    """The part of the client that appends, to a Windrow gateway."""

    _commit_places: CommitPlaces
    write_compression: str | None

    async def append(
        self,
        table: str,
        data: Any,
        *,
        connections: int = DEFAULT_CONNECTIONS,
        window_bytes: int = DEFAULT_WINDOW_BYTES,
        batch_bytes: int = DEFAULT_BATCH_BYTES,
        progress: AppendProgress = None,
        columns: Sequence[str] | None = None,
        id: str | UUID | None = None,  # noqa: A002 - the interface's own word
        ordered: bool = True,
        faults: AppendFaults | None = None,
    ) -> AppendResult:
        """Appends all rows of the data to the table, in order and as one: either all of them are stored, or none.

            result = await client.append("trips", pyarrow.table({"id": [1, 2], "km": [3.5, 7.0]}))
            result = await client.append("trips", ["2025.parquet", "2026.parquet"], progress=True)

        It needs a Windrow gateway. The data is an Arrow table, batch or reader, a frame of pandas or polars, a DuckDB
        relation, a list of rows (dicts, or tuples in the order of the table's columns), a list or an iterator, also an
        asynchronous one, of any of these, or the path of a Parquet or CSV file, a pattern or a list of them. Columns go by
        name; those that the data lacks take their defaults. `columns` names those that are sent.

        It is cut into batches of about `batch_bytes`, at most `window_bytes` of which are on their way at a time, over
        up to `connections` connections of this client. `progress=True` shows a line on the error output if that is a
        terminal; a function is called with the rows and bytes that the server has taken. An append that was
        interrupted is taken up again by its `id` with the same data and `batch_bytes`: what the server has isn't sent
        again. `ordered=False` lets rows land in any order. `faults` are for tests.

        AppendError when the server refuses something, with the batch and row where it knows them, or can't be reached;
        what the data raises is raised as it is. Nothing is stored then, nor when the call is cancelled.
        """
        began_s = time.monotonic()
        options = checked_options(connections, window_bytes, batch_bytes, columns, ordered, faults)
        append_id = checked_id(id)
        encoding = self.write_compression
        calls = AppendCalls(self._targets.path, qualified_table(table, self._targets.database), append_id, options, encoding)
        write_options = _core.WriteOptions()
        show = reporter(progress)
        source = await source_of(self, data, options, write_options)
        try:
            calls.tell_source(await source.fingerprint())
            appending = Appending(self, calls, options, self._commit_places, show)
            if id is not None or source.needs_columns:
                opened = await appending.open()
                if opened.get("state") == "committed":
                    return result_of(await appending.status(), append_id, time.monotonic() - began_s)
                appending.received = received_of(opened)
                source.use_columns(columns_of(opened))
            answer = await appending.run(source)
        finally:
            await source.close()
        result = result_of(answer, append_id, time.monotonic() - began_s)
        if show is not None:
            show.finish(result)
        return result
