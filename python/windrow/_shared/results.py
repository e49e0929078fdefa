"""Results that are whole: rows, columns, NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from windrow._shared import shown
from windrow._shared.errors import StreamClosedError, summary_of

Matrix = Sequence[Sequence[Any]]


class QueryResult:
    """A whole result: rows (`result_rows`) or columns (`result_columns`); the other form is made when it is asked for.

    >>> result = QueryResult([(1, "a"), (2, "b")], column_names=("id", "name"))
    >>> result.row_count, result.first_row, result.first_item
    (2, (1, 'a'), {'id': 1, 'name': 'a'})
    >>> result.result_columns
    [[1, 2], ['a', 'b']]
    >>> list(result.named_results())
    [{'id': 1, 'name': 'a'}, {'id': 2, 'name': 'b'}]
    """

    def __init__(
        self,
        result_set: Matrix | None = None,
        block_gen: Any = None,
        column_names: tuple[str, ...] = (),
        column_types: tuple[Any, ...] = (),
        column_oriented: bool = False,
        source: Any = None,
        query_id: str | None = None,
        summary: dict[str, Any] | None = None,
        *,
        columns: Matrix | None = None,
        stream_of: Callable[[Any, Iterator[Any]], Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._rows: Matrix | None = result_set
        if result_set is None and columns is None:
            self._rows = [row for block in block_gen or () for row in zip(*block, strict=True)]
        self._columns = columns
        self._query_id = query_id
        self._stream_of = stream_of
        self.column_names = column_names
        self.column_types = column_types
        self.column_oriented = column_oriented
        self.source = source
        self._summary = summary
        self._headers = headers

    def _first_rows(self, most: int) -> Matrix:
        """Without making the other form of the result."""
        if self._rows is not None:
            return self._rows[:most]
        return list(zip(*(column[:most] for column in self._columns or ()), strict=True))

    def __repr__(self) -> str:
        return shown.as_text("QueryResult", self.column_names, self.column_types, self.row_count, self._first_rows)

    def _repr_html_(self) -> str:
        """A table of the first rows, for notebooks."""
        return shown.as_html(self.column_names, self.column_types, self.row_count, self._first_rows)

    @property
    def summary(self) -> dict[str, Any]:
        """ClickHouse's counters (texts), and `query_id`."""
        if self._summary is None:
            self._summary = {}
            if self._headers is not None:
                # When the head was made ClickHouse had not counted them yet.
                self._summary = {**summary_of(self._headers), "result_rows": str(self.row_count)}
        return self._summary

    @property
    def result_set(self) -> Matrix:
        """Columns if the query asked for them (`column_oriented`), else rows."""
        return self.result_columns if self.column_oriented else self.result_rows

    @property
    def result_rows(self) -> Matrix:
        """A list of rows; each is a tuple."""
        if self._rows is None:
            self._rows = list(zip(*(self._columns or ()), strict=True))
        return self._rows

    @property
    def result_columns(self) -> Matrix:
        """A list of columns; each is a list."""
        if self._columns is None:
            rows = self._rows or ()
            self._columns = (
                [list(column) for column in zip(*rows, strict=True)] if rows else [[] for _ in self.column_names]
            )
        return self._columns

    @property
    def row_count(self) -> int:
        """The number of rows."""
        if self._rows is not None:
            return len(self._rows)
        return len(self._columns[0]) if self._columns else 0

    @property
    def first_row(self) -> Sequence[Any] | None:
        """The first row, or None."""
        if self.row_count == 0:
            return None
        return [column[0] for column in self.result_columns] if self.column_oriented else self.result_rows[0]

    @property
    def first_item(self) -> dict[str, Any] | None:
        """The first row as a dictionary, or None."""
        row = self.first_row
        return None if row is None else dict(zip(self.column_names, row, strict=False))

    def named_results(self) -> Iterator[dict[str, Any]]:
        """The rows as dictionaries."""
        names = self.column_names
        for row in self.result_rows:
            yield dict(zip(names, row, strict=False))

    @property
    def query_id(self) -> str:
        """The query's id, as in system.query_log."""
        return self.summary.get("query_id") or self._query_id or ""

    @property
    def column_block_stream(self) -> Any:
        """The result as a stream of one block of columns."""
        return self._stream(iter([self.result_columns]))

    @property
    def row_block_stream(self) -> Any:
        """The result as a stream of one block of rows."""
        return self._stream(iter([self.result_rows]))

    @property
    def rows_stream(self) -> Any:
        """The result as a stream of rows."""
        return self._stream(iter(self.result_rows))

    def _stream(self, items: Iterator[Any]) -> Any:
        if self._stream_of is None:
            raise StreamClosedError
        made, self._stream_of = self._stream_of(self, items), None
        return made

    def close(self) -> None:
        """Nothing is open: the result is whole. After this no streams are made from it."""
        self._stream_of = None

    async def aclose(self) -> None:
        """As `close`."""
        self.close()


class NumpyResult:
    """What `query(..., use_numpy=True)` gives: the result as an array (`np_result`) or a data frame (`df_result`)."""

    def __init__(
        self,
        whole: Callable[[bool], Any] | None = None,
        column_names: tuple[str, ...] = (),
        column_types: tuple[Any, ...] = (),
        summary: dict[str, Any] | None = None,
    ) -> None:
        self._whole = whole
        self._made: dict[bool, Any] = {}
        self.column_names = column_names
        self.column_types = column_types
        self.summary: dict[str, Any] = {} if summary is None else summary
        self.query_id = self.summary.get("query_id", "")

    def __repr__(self) -> str:
        return f"NumpyResult({shown.columns(self.column_names, self.column_types)})"

    @property
    def np_result(self) -> Any:
        """The result as a NumPy array."""
        return self._result(False)

    @property
    def df_result(self) -> Any:
        """The result as a pandas DataFrame."""
        return self._result(True)

    @property
    def np_types(self) -> Any:
        """The array's dtype."""
        return self.np_result.dtype

    def _result(self, as_pandas: bool) -> Any:
        if as_pandas not in self._made:
            if self._whole is None:
                raise StreamClosedError
            self._made[as_pandas] = self._whole(as_pandas)
        return self._made[as_pandas]

    def close(self) -> None:
        """Gives up what the result would be made from."""
        self._whole = None

    async def aclose(self) -> None:
        """As `close`."""
        self.close()
