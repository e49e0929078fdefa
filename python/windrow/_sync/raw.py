# Made from windrow/_async/raw.py by python/tools/async_to_sync.py; edit that file.
"""Bytes as ClickHouse sends and takes them: raw_query, raw_stream, raw_insert."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from windrow._sync.commands import Commands
from windrow._sync.streams import StreamContext, StreamSource
from windrow._sync.bytestream import ByteStream
from windrow._shared.binding import Parameters, bind, extended
from windrow._shared.calls import Call, Repeat, new_id
from windrow._shared.errors import summary_of
from windrow._shared.external import ExternalData
from windrow._shared.identifiers import column_list
from windrow._shared.progress import ProgressOption
from windrow._shared.summary import QuerySummary

PIECE_BYTES = 256 * 1024
TOKEN = "insert_deduplication_token"  # noqa: S105 - a setting's name


class Raw(Commands):
    """The part of the client that doesn't look into what it carries."""

    def raw_query(
        self,
        query: str,
        parameters: Parameters = None,
        settings: dict[str, Any] | None = None,
        fmt: str | None = None,
        use_database: bool = True,
        external_data: ExternalData | None = None,
        transport_settings: dict[str, str] | None = None,
        progress: ProgressOption = None,
    ) -> bytes:
        """The whole answer as bytes, in the format `fmt` (or the one that the query names).

            csv = client.raw_query("SELECT number FROM numbers(3)", fmt="CSV")
        """
        call = self._raw_call(query, parameters, settings, fmt, use_database, external_data, transport_settings)
        if progress:
            self._ask_for_progress(call, progress)
        return self._whole(call)

    def raw_stream(
        self,
        query: str,
        parameters: Parameters = None,
        settings: dict[str, Any] | None = None,
        fmt: str | None = None,
        use_database: bool = True,
        external_data: ExternalData | None = None,
        transport_settings: dict[str, str] | None = None,
    ) -> ByteStream:
        """The answer as a stream of bytes, in pieces of whatever size they come."""
        call = self._raw_call(query, parameters, settings, fmt, use_database, external_data, transport_settings)
        response = self._exchange(call)
        ended = False

        def pieces() -> Iterator[bytes]:
            nonlocal ended
            while piece := response.read_some(PIECE_BYTES):
                yield piece
            ended = True

        def close() -> None:
            nonlocal ended
            if not ended:
                ended = True
                self._stopper.stop(call.query_id)
            response.close()

        source = StreamSource(close, summary=summary_of(response.headers))
        return ByteStream(source, pieces())

    def _raw_call(
        self,
        query: str | bytes,
        parameters: Parameters,
        settings: dict[str, Any] | None,
        fmt: str | None,
        use_database: bool,
        external_data: ExternalData | None,
        transport_settings: dict[str, str] | None,
    ) -> Call:
        bound = bind(query, parameters, self.server_tz)
        text = bound.text
        if fmt:
            text = extended(text, f"\n FORMAT {fmt}")
        call = Call(self._checked(settings), use_database=use_database)
        if bound.statement.is_read and "query" not in call.params:
            call.repeat = Repeat.READ
        self._put_query(call, text, bound.parameters, external_data)
        if transport_settings:
            call.headers += transport_settings.items()
        return call

    def raw_insert(
        self,
        table: str | None = None,
        column_names: Sequence[str] | None = None,
        insert_block: Any = None,
        settings: dict[str, Any] | None = None,
        fmt: str | None = None,
        compression: str | None = None,
        transport_settings: dict[str, str] | None = None,
        progress: ProgressOption = None,
    ) -> QuerySummary:
        """Inserts data that is in one of ClickHouse's formats already: text, bytes, a file, or an iterator of bytes.

        `compression` says how the data is compressed ("gzip", "zstd", "lz4" ...); it is sent as it is. Data that can be
        read only once (files, iterators) isn't sent again when the answer is lost.
        """
        call = Call(self._checked(settings), repeat=Repeat.INSERT, table=table)
        call.headers.append(("Content-Type", "application/octet-stream"))
        if compression:
            call.headers.append(("Content-Encoding", compression))
        call.body = body_of(insert_block)
        if table:
            statement = f"INSERT INTO {table}{column_list(column_names)} FORMAT {fmt or 'Native'}"
            if isinstance(call.body, bytes) and not compression:
                call.body = [f"{statement}\n".encode(), call.body]
            else:
                call.params["query"] = statement
        if transport_settings:
            call.headers += transport_settings.items()
        if progress:
            self._ask_for_progress(call, progress)
        return self._insert_answer(call)

    def _insert_answer(self, call: Call) -> QuerySummary:
        """Sends an insert under a token and reads what ClickHouse says of it."""
        call.token_is_users = bool(call.params.get(TOKEN) or self._targets.settings.get(TOKEN))
        if not call.token_is_users:
            self._own_setting(call, TOKEN, new_id())
        response = self._exchange(call)
        try:
            response.read()
        except BaseException:
            self._stopper.stop(call.query_id)
            response.close()
            raise
        summary = summary_of(response.headers)
        if call.report:
            call.report.finish(summary)
        return QuerySummary(summary)


def body_of(insert_block: Any) -> Any:
    """The data as a body: bytes, or something that gives bytes piece by piece."""
    if insert_block is None:
        return b""
    if isinstance(insert_block, str):
        return insert_block.encode()
    if isinstance(insert_block, (bytearray, memoryview)):
        return bytes(insert_block)
    if hasattr(insert_block, "read"):
        return file_pieces(insert_block)
    return insert_block


def file_pieces(file: Any) -> Any:
    """The content of an open file, piece by piece."""
    while piece := file.read(PIECE_BYTES):
        yield piece.encode() if isinstance(piece, str) else piece
