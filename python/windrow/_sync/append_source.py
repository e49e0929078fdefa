# Made from windrow/_async/append_source.py by python/tools/async_to_sync.py; edit that file.
"""The batches of an append, of whatever was given; they are cut and encoded beside the event loop.

A source is asked for one batch after the other, and its batches are encoded several at a time: what `next` gives is cut
only, which is quick, and encoded by its lane. Rows are the exception, since their values have to be looked at one by one to
know how many of them make a batch.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Iterator, Callable, Iterable, Mapping, Sequence
from typing import Any, cast

from windrow import _core
from windrow._sync.exchange import Exchange
from windrow._shared import append_data
from windrow._shared.append_types import AppendOptions
from windrow._shared.errors import ProgrammingError


# So much is encoded on the event loop: some fifty microseconds.
INLINE_BYTES = 128 << 10


class Batch:
    """A batch on its way: `encode` makes its body, on any thread; `encoded_bytes` is known afterwards."""

    def __init__(
        self, number: int, rows: int, is_small: bool, encode: Callable[[], Any], is_native: bool = False
    ) -> None:
        self.number = number
        self.rows = rows
        self.is_small = is_small
        self.is_native = is_native
        self.encoded_bytes = 0
        self._encode = encode

    def encode(self) -> Any:
        """The body."""
        body = self._encode()
        self.encoded_bytes = len(body)
        return body


class BatchSource:
    """What all sources are."""

    # Whether it has to know the table's columns before it can make a batch.
    needs_columns = False

    @property
    def is_quick(self) -> bool:
        """Whether `next` never waits, so that asking it costs the event loop nothing worth speaking of."""
        return False

    def use_columns(self, columns: Sequence[tuple[str, str]]) -> None:
        """Tells names and types of the table's columns."""

    @abstractmethod
    def fingerprint(self) -> str:
        """What tells this data, and how it is cut, from others: the same for an append that is gone on with."""

    @abstractmethod
    def next(self) -> Batch | None:
        """The next batch; None at the end."""

    def close(self) -> None:
        """Lets go of what was given."""


class ArrowSource(BatchSource):
    """Batches of Arrow data: `items` gives what is to be cut; None if all is there from the start."""

    def __init__(
        self, client: Exchange, options: AppendOptions, cutter: _core.AppendCutter, items: Items | None, said: str
    ) -> None:
        self._client = client
        self._options = options
        self._cutter = cutter
        self._items = items
        self._said = said

    def fingerprint(self) -> str:
        """See BatchSource."""
        return f"arrow {self._said}batch_bytes={self._options.batch_bytes}"

    @property
    def is_quick(self) -> bool:
        """See BatchSource."""
        return self._items is None and self._cutter.is_quick

    def next(self) -> Batch | None:
        """See BatchSource."""
        while True:
            cut = self._cutter.cut() if self.is_quick else self._client._offload(self._cutter.cut)
            if cut is not None:
                return Batch(cut.number, cut.rows, cut.bytes <= INLINE_BYTES, cut_encoder(cut))
            if self._items is None:
                return None
            item = self._items.next()
            if item is END:
                self._items = None
                self._cutter.finish()
            elif not append_data.is_arrow(item):
                raise append_data.refuse(item)
            else:
                self._client._offload(lambda: self._cutter.push(append_data.arrow_of(item)))  # noqa: B023

    def close(self) -> None:
        """See BatchSource."""
        if self._items is not None:
            self._items.close()


class RowSource(BatchSource):
    """Batches of Python values, as blocks in ClickHouse's Native format, which its own types are exact in."""

    needs_columns = True

    def __init__(
        self, client: Exchange, options: AppendOptions, write_options: _core.WriteOptions, items: Items, said: str
    ) -> None:
        self._client = client
        self._said = said
        self._options = options
        self._write_options = write_options
        self._items = items
        self._columns: Sequence[tuple[str, str]] = ()
        self._encoder: _core.Encoder | None = None
        # What is encoded now: a list of which `_at` rows are done. Its first one has the number `_base`.
        self._rows: Sequence[Any] = ()
        self._at = self._base = 0
        # What comes after it, and rows that are too few yet.
        self._lists: deque[Sequence[Any]] = deque()
        self._few: list[Any] = []
        self._ended = False
        self._count = 0
        self._row_bytes = 0

    def fingerprint(self) -> str:
        """See BatchSource."""
        return f"rows {self._said}batch_bytes={self._options.batch_bytes}"

    def use_columns(self, columns: Sequence[tuple[str, str]]) -> None:
        """See BatchSource."""
        self._columns = columns

    def next(self) -> Batch | None:
        """See BatchSource."""
        blocks: list[bytes] = []
        rows = size = 0
        # Not to the last byte: that would be a block of its own.
        while size < self._options.batch_bytes * 7 // 8 and self._has_rows():
            start, stop = self._at, min(len(self._rows), self._at + self._rows_of_next_block(size))
            block = self._client._offload(lambda: self._block(start, stop))  # noqa: B023
            self._at = stop
            blocks.append(block)
            rows += stop - start
            size += len(block)
            self._row_bytes = max(1, len(block) // (stop - start))
        if not blocks:
            return None
        self._count += 1
        return Batch(self._count - 1, rows, size <= INLINE_BYTES, lambda: b"".join(blocks), is_native=True)

    def _has_rows(self) -> bool:
        """Waits until there are rows to encode: enough for a block, unless there are no more."""
        if self._at < len(self._rows):
            return True
        self._base += len(self._rows)
        self._rows, self._at = (), 0
        while not self._lists and not self._ended:
            items = self._items.some()
            self._ended = not items
            for item in items:
                self._gather(item)
            if self._ended:
                self._gathered()
        if self._lists:
            self._rows = self._lists.popleft()
        return bool(self._rows)

    def _gather(self, item: Any) -> None:
        """Few rows are taken together, which depends on what comes alone, not on when it comes: the cut has to be the same
        when the append is gone on with. Long lists aren't copied.
        """
        rows = append_data.rows_of(item)
        if rows is None:
            raise append_data.refuse(item)
        if len(rows) >= append_data.ROWS_AT_ONCE:
            self._gathered()
            self._lists.append(rows)
            return
        self._few += rows
        if len(self._few) >= append_data.ROWS_AT_ONCE:
            self._gathered()

    def _gathered(self) -> None:
        if self._few:
            self._lists.append(self._few)
            self._few = []

    def _rows_of_next_block(self, size: int) -> int:
        if not self._row_bytes:
            return append_data.ROWS_AT_ONCE
        room = min(append_data.BLOCK_BYTES, self._options.batch_bytes - size)
        return max(1, min(append_data.MOST_ROWS_AT_ONCE, room // self._row_bytes))

    def _block(self, start: int, stop: int) -> bytes:
        if self._encoder is None:
            names, types = append_data.chosen_columns(self._columns, self._options.columns, self._rows[start])
            self._encoder = _core.Encoder(names, types, self._write_options)
        numbered = append_data.NumberedRows(self._rows, self._base)
        return self._encoder.rows(numbered, self._base + start, self._base + stop, True)

    def close(self) -> None:
        """See BatchSource."""
        self._items.close()


class FileSource(ArrowSource):
    """Batches of files."""

    def __init__(self, client: Exchange, paths: list[str], options: AppendOptions) -> None:
        super().__init__(client, options, _core.AppendCutter(options.batch_bytes), None, "")
        self._paths = paths
        self.needs_columns = _core.AppendCutter.needs_columns(paths)
        self._columns: list[tuple[str, str]] | None = None
        self._is_open = False

    def fingerprint(self) -> str:
        """See BatchSource."""
        return str(
            self._client._offload(lambda: _core.AppendCutter.fingerprint(self._paths, self._options.batch_bytes))
        )

    def use_columns(self, columns: Sequence[tuple[str, str]]) -> None:
        """See BatchSource."""
        self._columns = list(columns)

    def next(self) -> Batch | None:
        """See BatchSource."""
        if not self._is_open:
            self._is_open = True
            self._client._offload(lambda: self._cutter.open_files(self._paths, self._columns))
            self._cutter.finish()
        return super().next()


class End:
    """What stands for the end of an iterator."""


END = End()


class Items:
    """The items of an iterator of either kind, one after the other."""

    def __init__(self, client: Exchange, given: Any) -> None:
        self._client = client
        self._peeked: list[Any] = []
        self._is_async = hasattr(given, "__aiter__")
        if isinstance(given, Iterable):
            self._iterator: Any = iter(given)
        else:
            raise append_data.refuse(given)

    def peek(self) -> Any:
        """The first item, which stays the next one."""
        if not self._peeked:
            self._peeked.append(self.next())
        return self._peeked[0]

    def next(self) -> Any:
        """The next item, or END."""
        if self._peeked:
            return self._peeked.pop()
        return self._client._offload(lambda: next(self._iterator, END))

    def all(self) -> list[Any]:
        """What is left."""
        found: list[Any] = []
        while (item := self.next()) is not END:
            found.append(item)
        return found

    def some(self) -> list[Any]:
        """The next items, as many as come within a moment: asking for each alone costs more than a row is worth. None at
        the end.
        """
        if self._peeked or self._is_async:
            item = self.next()
            return [] if item is END else [item]
        items = self._client._offload(lambda: append_data.within_a_moment(self._iterator))
        return cast(list[Any], items)

    def close(self) -> None:
        """Ends an asynchronous generator, which may hold something open."""


def cut_encoder(cut: _core.AppendCut) -> Callable[[], Any]:
    """What makes a batch's body."""
    return lambda: append_data.bytes_of(cut.encode())


def source_of(
    client: Exchange, data: Any, options: AppendOptions, write_options: _core.WriteOptions
) -> BatchSource:
    """The source for what was given to append. ProgrammingError for what can't be appended."""
    paths = append_data.paths_of(data)
    if paths is not None:
        return FileSource(client, paths, options)
    cutter = _core.AppendCutter(options.batch_bytes)
    if append_data.is_whole_arrow(data):
        client._offload(lambda: cutter.push(append_data.arrow_of(data), append_data.is_in_memory(data)))
        cutter.finish()
        return ArrowSource(client, options, cutter, None, append_data.length_of(data))
    if isinstance(data, (Mapping, bytes, bytearray)):
        raise append_data.refuse(data)
    said = append_data.length_of(data)
    if append_data.is_rows(data):
        items = Items(client, [list(data) if isinstance(data, tuple) else data])
        return RowSource(client, options, write_options, items, said)
    items = Items(client, data)
    first = items.peek()
    if append_data.is_path(first):
        return FileSource(client, append_data.paths_of(items.all()) or [], options)
    if append_data.rows_of(first) is not None:
        return RowSource(client, options, write_options, items, said)
    return ArrowSource(client, options, cutter, items, said)
