from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import tzinfo
from typing import Any, final

__version__: str

# arrow: results as Arrow by its C data interface

@final
class ArrowStream:
    """Blocks of one result for whoever takes Arrow streams, laid out as ClickHouse's own Arrow formats are; nothing is copied that need not be.

    `columns`: numbers of those that are wanted. `timezone`: the server's or session's, for times without one of their own.
    """

    def __new__(
        cls,
        blocks: Sequence[Block],
        *,
        string_as_string: bool = True,
        low_cardinality_as_dictionary: bool = False,
        timezone: str = "UTC",
        columns: Sequence[int] | None = None,
    ) -> ArrowStream: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

# http: answers as their bytes come, bodies in a bounded queue

class ProtocolError(Exception):
    """What came is no HTTP answer, or ends too early."""

class BodyError(Exception):
    """A body was cut, or can't be decompressed."""

@final
class Exchange:
    """One HTTP answer; `feed` and `eof` answer with flags: HEAD=1, BODY=2, END=4, FULL=8."""

    def __new__(
        cls,
        high_water_bytes: int = 1048576,
        on_progress: Callable[[str], object] | None = None,
        is_answer_to_head: bool = False,
    ) -> Exchange: ...
    def feed(self, data: bytes) -> int: ...
    def feed_from(self, buffer: bytearray, count: int) -> int: ...
    def eof(self) -> int: ...
    def header(self, name: str) -> str | None: ...
    @property
    def status(self) -> int: ...
    @property
    def headers(self) -> dict[str, str]: ...
    @property
    def body(self) -> Body: ...
    @property
    def received(self) -> bool: ...
    @property
    def ended(self) -> bool: ...
    @property
    def keep_alive(self) -> bool: ...
    @property
    def keep_alive_s(self) -> int | None: ...

@final
class Body:
    """The queue between a connection and the decoder of its answer; thread-safe, read by one thread at a time."""

    @staticmethod
    def of_bytes(data: bytes, content_encoding: str | None = None, exception_tag: str | None = None) -> Body: ...
    @property
    def buffered(self) -> int: ...
    @property
    def most_buffered(self) -> int: ...
    @property
    def ended(self) -> bool: ...
    @property
    def compressed(self) -> bool: ...
    def unbound(self) -> None: ...
    def on_drained(self, callback: Callable[[], object] | None) -> None: ...
    def read(self, max_bytes: int) -> bytes: ...
    def read_all(self) -> bytes: ...
    def fail(self, reason: str) -> None: ...
    def exception_text(self) -> str | None: ...

@final
class Compressor:
    """Compresses one body, piece by piece: lz4, zstd, gzip or deflate."""

    def __new__(cls, encoding: str) -> Compressor: ...
    def step(self, data: bytes) -> bytes: ...
    def finish(self) -> bytes: ...

# read: results as Python values

@final
class ReadOptions:
    """How values are shown; made by `windrow._shared.reading.read_options`. Formats go by types' names, without patterns."""

    def __new__(
        cls,
        *,
        formats: Mapping[str, str] | None = None,
        column_formats: Mapping[str, str | Mapping[str, str]] | None = None,
        encoding: str | None = None,
        use_none: bool = True,
        timezone: tzinfo | None = None,
        column_timezones: Mapping[str, tzinfo] | None = None,
        tz_mode: str = "naive_utc",
    ) -> ReadOptions: ...

@final
class Decoder:
    """The blocks of a body, as rows (form 0), columns (1) or `Block`s (2)."""

    def __new__(cls, body: Body, options: ReadOptions) -> Decoder: ...
    @staticmethod
    def of_bytes(data: bytes, options: ReadOptions) -> Decoder: ...
    def header(self) -> tuple[tuple[str, ...], tuple[str, ...]] | None: ...
    def advance(self, form: int, max_rows: int = 0, share_gil: bool = False) -> list[Any]: ...
    def finish(self) -> None: ...

@final
class Block:
    """A block of a result as it was decoded."""

    @property
    def rows(self) -> int: ...
    @property
    def names(self) -> tuple[str, ...]: ...
    @property
    def type_names(self) -> tuple[str, ...]: ...
    def column(self, index: int, share_gil: bool = False) -> list[Any]: ...
    def parts(self, index: int) -> Parts: ...
    def is_utf8(self, index: int) -> bool: ...
    def format(self, index: int, type_name: str) -> str: ...
    def zone(self, index: int, type_zone: str | None = None) -> tzinfo | None: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

@final
class Parts:
    """The flat arrays that a column of a block consists of."""

    @property
    def nulls(self) -> Buffer | None: ...
    @property
    def indices(self) -> Buffer | None: ...
    @property
    def data(self) -> Buffer | None: ...
    @property
    def offsets(self) -> Buffer | None: ...
    @property
    def first_is_null(self) -> bool: ...

@final
class Buffer:
    """Bytes of a block, read-only; they live as long as this does."""

    @property
    def address(self) -> int: ...
    def __len__(self) -> int: ...
    @property
    def __array_interface__(self) -> dict[str, Any]: ...

# write: Python values to what ClickHouse reads

@final
class WriteOptions:
    """How values are taken that can be taken in more than one way; shared by any number of encoders.

    `server_tz`: datetimes without a zone are taken in the column's zone or else in this one; without it, in the machine's.
    """

    def __new__(cls, *, encoding: str | None = None, server_tz: tzinfo | None = None) -> WriteOptions: ...

@final
class Encoder:
    """Blocks in the format Native for these columns of a table; immutable, for any number of threads.

    `share_gil`: called on a worker thread, so others are let in every half millisecond. Values that don't fit raise
    `windrow.exceptions.DataError`.
    """

    def __new__(
        cls, names: Sequence[str], type_names: Sequence[str], options: WriteOptions | None = None
    ) -> Encoder: ...
    def rows(self, data: Sequence[Any], start: int, stop: int, share_gil: bool = False) -> bytes: ...
    def columns(self, columns: Sequence[Any], start: int, stop: int, share_gil: bool = False) -> bytes: ...

@final
class RowBinary:
    """Rows of these columns as the format RowBinary. Documents (JSON) are written as text, which needs
    `input_format_binary_read_json_as_string=1` with the insert."""

    def __new__(
        cls, names: Sequence[str], type_names: Sequence[str], options: WriteOptions | None = None
    ) -> RowBinary: ...
    def encode(self, rows: Iterable[Sequence[Any] | dict[str, Any]]) -> bytes: ...
