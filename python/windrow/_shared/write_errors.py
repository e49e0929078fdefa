"""Rows that a writer could not store, with the reason."""

from __future__ import annotations

from functools import cached_property
from typing import Any

from windrow import _core
from windrow._shared.errors import DatabaseError, name_of_message


class WriteError(DatabaseError):
    """Rows that were taken and not stored: what ClickHouse refuses, or what was given up.

    `rows` has them as Python values (a list of tuples in the order of `column_names`), `code` is ClickHouse's or None,
    `batch_id` the name of the last batch that they were sent in. `reason` is "values" (these rows are refused),
    "refused" (all rows are: the table, its columns, the account), "maybe_stored" (a view of the table failed),
    "gave_up" (after retries), "closed" (the writer was), or "lost" (the buffer's files are damaged).
    """

    def __init__(self, failed: _core.FailedRows) -> None:
        super().__init__(failed.message, code=failed.code, name=name_of_message(failed.message))
        self._failed = failed

    @property
    def batch_id(self) -> str:
        return self._failed.batch_id

    @property
    def reason(self) -> str:
        return self._failed.reason

    @property
    def row_count(self) -> int:
        return self._failed.row_count

    @property
    def table(self) -> str:
        return self._failed.table

    @property
    def database(self) -> str:
        return self._failed.database

    @property
    def column_names(self) -> list[str]:
        return self._failed.column_names

    @property
    def encoded_rows(self) -> list[bytes]:
        """Each row in ClickHouse's format RowBinary."""
        return self._failed.encoded_rows()

    @cached_property
    def rows(self) -> list[tuple[Any, ...]]:
        """The rows as a query would give them. Of a type that can't be read back here: each row's bytes, in a tuple."""
        block = self._failed.native()
        if block is None:
            return [(row,) for row in self.encoded_rows]
        if not self.row_count:
            return []
        decoder = _core.Decoder.of_bytes(block, _core.ReadOptions())
        return [row for rows in decoder.advance(0) for row in rows]
