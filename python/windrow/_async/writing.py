"""The part of the client that opens writers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from windrow._async.writer import OpeningWriter  # sync only: from windrow._sync.writer import Writer
from windrow._async.writer import open_writer
from windrow._shared.write_errors import WriteError
from windrow._shared.writer_options import Buffer, Retry, RetryPolicy, WriterOptions


class Writing:
    """Writers that send through this client."""

    def writer(
        self,
        table: str,
        columns: str | Sequence[str] | None = None,
        *,
        batch_rows: int = 5000,
        flush_interval: float = 1.0,
        buffer: str | Buffer = "memory",
        retry: Retry | RetryPolicy | None = None,
        on_error: Callable[[WriteError], Any] | None = None,
        wait: bool = False,
        ordered: bool = False,
        max_in_flight: int = 4,
        max_bytes: int = 256 * 1024 * 1024,
        batch_bytes: int = 16 * 1024 * 1024,
        max_errors: int = 1000,
        sync: str = "never",
        sync_interval: float = 1.0,
        max_disk_bytes: int = 1024 * 1024 * 1024,
        settings: Mapping[str, Any] | None = None,
    ) -> OpeningWriter:  # sync only: ) -> Writer:
        """A writer that gathers rows for a table, and stores them in batches.

            async with client.writer("events", ["id", "what"]) as writer:
                await writer.write_row((1, "started"))

        `columns`: names (None: all that take values). A batch goes when it has `batch_rows` rows or `batch_bytes`
        bytes, or when its first row has waited for `flush_interval` seconds.

        `buffer`: "memory", "disk:<folder>", "redis://host:port/db?bucket=name", or an object (`windrow.Buffer`). Rows
        on a disk and in Redis survive the end of the process: the next writer for the same table sends them. `sync`
        says when a disk buffer is made to survive a loss of power, too: "never", "interval" (every `sync_interval`
        seconds) or "always".

        `retry`: `windrow.Retry(...)` or an object with `again_after`. `on_error` is called with a
        `windrow.WriteError` for rows that could not be stored; without it `errors()` has them, `max_errors` at most.

        `wait=True`: calls return when their rows are stored, and raise if they can't be. `ordered=True`: one batch
        after the other. `max_bytes`: rows that wait or are in flight; then calls wait for room, and `try_write_row`
        says False.

        `settings` go along with each batch. Raises ProgrammingError for unknown columns, OperationalError when the
        buffer can't be opened.
        """
        options = WriterOptions(
            batch_rows=batch_rows,
            batch_bytes=batch_bytes,
            flush_interval=flush_interval,
            buffer=buffer,
            max_bytes=max_bytes,
            max_in_flight=max_in_flight,
            ordered=ordered,
            wait=wait,
            retry=retry or Retry(),
            max_errors=max_errors,
            sync=sync,
            sync_interval=sync_interval,
            max_disk_bytes=max_disk_bytes,
            settings=dict(settings or {}),
        )
        return open_writer(self, table, columns, options, on_error)
