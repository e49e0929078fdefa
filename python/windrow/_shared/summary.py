"""What ClickHouse says of an insert or a command."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from windrow._shared.results import QueryResult


class QuerySummary:
    """The counters of X-ClickHouse-Summary; `summary` has them all, as texts.

    >>> QuerySummary({"written_rows": "3", "query_id": "a"}).written_rows
    3
    """

    def __init__(self, summary: dict[str, Any] | None = None) -> None:
        self.summary: dict[str, Any] = {} if summary is None else summary

    def __repr__(self) -> str:
        return f"QuerySummary({self.summary!r})"

    @property
    def written_rows(self) -> int:
        """Rows written, also those of materialized views."""
        return int(self.summary.get("written_rows", 0))

    def written_bytes(self) -> int:
        """Bytes written, uncompressed."""
        return int(self.summary.get("written_bytes", 0))

    def query_id(self) -> str:
        """The query's id, as in system.query_log."""
        return str(self.summary.get("query_id", ""))

    def as_query_result(self) -> QueryResult:
        """The counters as a result of one row."""
        from windrow._shared.results import QueryResult
        from windrow.datatypes.registry import get_from_name

        row = [int(value) if str(value).isnumeric() else value for value in self.summary.values()]
        types = tuple(get_from_name("Int64" if isinstance(value, int) else "String") for value in row)
        return QueryResult([row], column_names=tuple(self.summary), column_types=types)
