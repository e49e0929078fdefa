# Made from windrow/_async/streams.py by python/tools/async_to_sync.py; edit that file.
"""Streams: what the `*_stream` methods give. A stream is used within `with`, and read by `for`."""

from __future__ import annotations

from collections.abc import Iterator, Awaitable, Callable
from typing import Any

from windrow._shared.errors import ProgrammingError, StreamClosedError


class StreamSource:
    """Where a stream comes from: the columns' names and types, the query's id and counters."""

    def __init__(
        self,
        close: Callable[[], None],
        column_names: tuple[str, ...] = (),
        column_types: tuple[Any, ...] = (),
        summary: dict[str, Any] | None = None,
    ) -> None:
        self._close = close
        self.column_names = column_names
        self.column_types = column_types
        self.summary: dict[str, Any] = {} if summary is None else summary

    @property
    def query_id(self) -> str:
        """The query's id, as in system.query_log."""
        return str(self.summary.get("query_id", ""))

    def close(self) -> None:
        """Closes the stream; a query that isn't through is stopped at the server."""
        self._close()


class StreamContext:
    """A result that comes piece by piece: blocks, rows, data frames or bytes.

        with client.query_rows_stream("SELECT number FROM numbers(3)") as stream:
            for row in stream:
                print(row)

    Leaving the `with` early stops the query. `source` has `column_names`, `column_types` and `query_id`.
    """

    __slots__ = ("_in_context", "gen", "source")

    def __init__(self, source: Any, gen: Iterator[Any]) -> None:
        self.source = source
        self.gen: Iterator[Any] | None = gen
        self._in_context = False

    def __enter__(self) -> StreamContext:
        if self.gen is None:
            raise StreamClosedError
        self._in_context = True
        return self

    def __exit__(self, *exception: object) -> None:
        self._in_context = False
        gen, self.gen = self.gen, None
        try:
            close = getattr(gen, "close", None)
            if close is not None:
                close()
        finally:
            self.source.close()

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        if not self._in_context:
            raise ProgrammingError(
                "A stream is read inside of its block: open it by `async with` (`with`, if the client is synchronous)"
            )
        if self.gen is None:
            raise StreamClosedError
        return self.gen.__next__()


class RowStream(StreamContext):
    """A stream of rows; `for` reads them without a call per row."""

    __slots__ = ()

    def __iter__(self) -> Iterator[Any]:
        if not self._in_context:
            return self  # whose __anext__ says what is wrong
        return self.gen if self.gen is not None else self
