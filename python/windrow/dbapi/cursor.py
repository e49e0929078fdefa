"""Cursors of the database API: statements, and the result of the last one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from typing import Any, cast

from windrow._shared.binding import bind, zone_of
from windrow._shared.errors import DatabaseError, DataError, NotSupportedError, ProgrammingError, StreamFailureError
from windrow._shared.insert_sql import RowsInsert, ends_with_values, rows_insert
from windrow._shared.literals import moment_of_literal
from windrow._shared.results import QueryResult
from windrow._shared.sql import Statement, statement
from windrow._shared.typenames import base_and_arguments, names_in
from windrow._sync.client import Client
from windrow.datatypes.registry import get_from_name

_OF_TIME = frozenset(("date", "date32", "datetime", "datetime32", "datetime64", "variant", "dynamic", "json"))
_NULL_WITHOUT_SAYING = ("Dynamic", "Variant")


class Cursor:
    """Executes statements; the rows of the last one are fetched from it."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.arraysize = 1
        self.data: Any = None
        self.names: Sequence[str] = []
        self.types: Sequence[Any] = []
        self._rowcount = 0
        self._summary: list[dict[str, Any]] = []
        self._at = 0

    @property
    def description(self) -> list[tuple[str, Any, None, None, None, None, bool | None]]:
        """A tuple per column: name, type, and at the end whether it may be NULL."""
        columns = zip(self.names, self.types, strict=False)
        return [(name, kind, None, None, None, None, may_be_null(kind)) for name, kind in columns]

    @property
    def rowcount(self) -> int:
        """Rows of the result, or rows written; -1 if nobody knows."""
        return self._rowcount

    @property
    def summary(self) -> list[dict[str, Any]]:
        """ClickHouse's counters of every statement that this cursor has executed."""
        return self._summary

    def close(self) -> None:
        """Gives up the result."""
        self.data = None

    def __enter__(self) -> Cursor:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        while (row := self.fetchone()) is not None:
            yield row

    def execute(
        self,
        operation: str,
        parameters: Any = None,
        settings: dict[str, Any] | None = None,
        query_formats: dict[str, str] | None = None,
        *,
        pyformat_encoded: bool = True,
    ) -> None:
        """Executes a statement. `%%` is a percent sign unless `pyformat_encoded` is False and there are no
        parameters.
        """
        if isinstance(operation, str) and pyformat_encoded and not parameters:
            operation = _with_single_percents(operation)
        result = self.client.query(operation, parameters, settings=settings, query_formats=query_formats)
        self._start()
        self.data = result.result_set
        self._rowcount = len(result.result_set)
        self._summary.append(result.summary)
        if result.column_names:
            self._describe(result)
        elif self.data:
            self.names = [f"col_{number}" for number in range(len(self.data[0]))]
            self.types = [value.__class__ for value in self.data[0]]
        else:
            sent = bind(operation, parameters, self.client.server_tz).statement
            if _may_have_columns(sent):
                self._ask_for_columns(statement(operation).bare, parameters, settings, query_formats)

    def _start(self) -> None:
        self.names = []
        self.types = []
        self.data = []
        self._rowcount = 0
        self._at = 0

    def _describe(self, result: QueryResult) -> None:
        self.names = result.column_names
        self.types = [kind.name for kind in result.column_types]

    def _ask_for_columns(self, bare: str, parameters: Any, settings: Any, query_formats: Any) -> None:
        """An answer without rows says nothing of its columns."""
        try:
            asked = f"SELECT * FROM ({bare.strip()}) LIMIT 0"
            self._describe(self.client.query(asked, parameters, settings=settings, query_formats=query_formats))
        except StreamFailureError:
            raise
        except DatabaseError:
            pass  # the description stays empty; the statement itself went well

    def executemany(
        self,
        operation: str,
        parameters: Any,
        settings: dict[str, Any] | None = None,
        query_formats: dict[str, str] | None = None,
        *,
        pyformat_encoded: bool = True,
    ) -> None:
        """Executes a statement for each row of parameters; an INSERT ... VALUES of plain rows is one insert of them
        all.
        """
        self._start()
        if not parameters:
            return
        plan = rows_insert(_with_single_percents(operation) if pyformat_encoded else operation)
        if plan is None and ends_with_values(operation):
            raise ProgrammingError(
                "executemany can't tell where this INSERT puts its rows: write INSERT INTO table (columns) VALUES"
            )
        if plan is not None and self._insert(plan, parameters, settings):
            return
        try:
            self._execute_each(operation, parameters, settings, query_formats, pyformat_encoded)
        except DataError:
            raise
        except TypeError as cause:
            raise ProgrammingError(
                f"executemany takes a sequence of rows of parameters, not a {type(parameters).__name__}: {cause}"
            ) from cause

    def _insert(self, plan: RowsInsert, parameters: Any, settings: dict[str, Any] | None) -> bool:
        """Inserts the rows at once; False if they have to be sent as SQL, one by one."""
        try:
            rows = list(parameters)
        except TypeError as cause:
            raise ProgrammingError(
                f"executemany takes the rows of an INSERT as a sequence, not a {type(parameters).__name__}"
            ) from cause
        if not rows:
            return True
        try:
            columns, data = plan.rows(rows)
            if plan.has_placeholders and not self._has_moments_of_sql(plan.table, columns, data, settings):
                return False
            summary = self.client.insert(plan.table, data, columns, settings=settings)
        except DataError as error:
            if not plan.has_placeholders or not getattr(error, "nothing_sent", False):
                raise
            return False  # what isn't a value of the column's type may still be one in SQL
        except ProgrammingError as error:
            if not plan.has_placeholders or error.code is not None:
                raise
            return False
        self._rowcount = summary.written_rows
        self._summary.append(summary.summary)
        return True

    def _has_moments_of_sql(
        self, table: str, columns: Sequence[str] | str, data: list[list[Any]], settings: dict[str, Any] | None
    ) -> bool:
        """Puts moments in place of datetimes, each the one that its literal in SQL would be: the wall time, that of one
        with a zone in the server's, read in the column's zone. False where only ClickHouse knows what it would be.
        """
        if not any(isinstance(value, (date, list, tuple, dict)) for row in data for value in row):
            return True
        context = self.client.create_insert_context(table, columns, settings=settings)
        for index, name in enumerate(context.type_names):
            inside = names_in(name)
            if inside.isdisjoint(_OF_TIME):
                continue
            base, _ = base_and_arguments(name)
            zone = zone_of(name) or self.client.server_tz
            for row in data:
                value = row[index]
                if not isinstance(value, (date, list, tuple, dict)) or (base in ("Date", "Date32") and type(value) is date):
                    continue
                is_moment = isinstance(value, datetime) and base.startswith("DateTime")
                if not is_moment or self._has_session_zone(settings):
                    return False
                row[index] = moment_of_literal(cast(datetime, value), self.client.server_tz, zone)
                if row[index] is None:
                    return False
        return True

    def _has_session_zone(self, settings: dict[str, Any] | None) -> bool:
        return "session_timezone" in (settings or {}) or self.client.get_client_setting("session_timezone") is not None

    def _execute_each(
        self, operation: str, parameters: Any, settings: Any, query_formats: Any, pyformat_encoded: bool
    ) -> None:
        written: int | None = 0
        text, row = operation, None
        for row in parameters:
            text = operation.replace("%%", "%") if pyformat_encoded and not row else operation
            result = self.client.query(text, row, settings=settings, query_formats=query_formats)
            self.data.extend(result.result_set)
            count = str(result.summary.get("written_rows", ""))
            written = written + int(count) if written is not None and count.isdecimal() else None
            if not self.names:
                self.names, self.types = result.column_names, result.column_types
            self._summary.append(result.summary)
        if (
            self.names
            or self.data
            or (written is None and _may_have_columns(bind(text, row, self.client.server_tz).statement))
        ):
            self._rowcount = len(self.data)
        else:
            self._rowcount = -1 if written is None else written

    def fetchone(self) -> Any:
        """The next row, or None."""
        rows = self._valid()
        if self._at >= len(rows):
            return None
        self._at += 1
        return rows[self._at - 1]

    def fetchmany(self, size: int = -1) -> Sequence[Any]:
        """The next rows; all that are left when `size` is negative."""
        rows = self._valid()
        stop = len(rows) if size < 0 else min(self._at + size, len(rows))
        taken, self._at = rows[self._at : stop], stop
        return list(taken) if size == 0 else taken

    def fetchall(self) -> Sequence[Any]:
        """All rows that are left."""
        return self.fetchmany(-1)

    def nextset(self) -> None:
        """There is one result for one statement."""
        raise NotSupportedError("a statement has one result")

    def callproc(self, *args: Any, **kwargs: Any) -> None:
        """ClickHouse has no procedures."""
        raise NotSupportedError("ClickHouse has no procedures")

    def setinputsizes(self, sizes: Any) -> None:
        """Nothing: sizes are of no use here."""

    def setoutputsize(self, size: int, column: int | None = None) -> None:
        """Nothing: sizes are of no use here."""

    def check_valid(self) -> None:
        """ProgrammingError if there is no result."""
        self._valid()

    def _valid(self) -> Sequence[Any]:
        if self.data is None:
            raise ProgrammingError("There is no result to fetch: execute a query first")
        rows: Sequence[Any] = self.data
        return rows


def _may_have_columns(sent: Statement) -> bool:
    return sent.first_word in ("SELECT", "WITH") and not sent.is_insert


def may_be_null(kind: Any) -> bool | None:
    """Whether a column of that type may hold NULL; None if that isn't known."""
    if isinstance(kind, str):
        try:
            kind = get_from_name(kind)
        except (DatabaseError, ValueError, TypeError):
            return None
    if not hasattr(kind, "nullable"):
        return None
    if kind.nullable or kind.base_type in _NULL_WITHOUT_SAYING:
        return True
    if kind.base_type == "SimpleAggregateFunction":
        return may_be_null(getattr(kind, "element_type", None))
    return False


def _with_single_percents(operation: str) -> str:
    """The statement as it is meant where nothing is put into it: `%%` is how a percent sign is written."""
    return operation.replace("%%", "%")
