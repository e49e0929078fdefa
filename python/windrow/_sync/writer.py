"""The synchronous writer: rows from any thread, gathered and sent by threads of its own.

The twin of `windrow._async.writer`, by hand: where that has tasks, this has threads, up to `max_in_flight` of them,
which are started as they are needed. Each of them takes a batch, sends it, and reports what became of it.
"""

from __future__ import annotations

import atexit
import logging
import threading
import time
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import Any

from windrow import _core
from windrow._shared.errors import OperationalError
from windrow._shared.write_errors import WriteError
from windrow._shared.writer_options import WriterOptions, WriterStatistics, column_names
from windrow._shared.writer_table import (
    ENGINE_STATEMENT,
    Destination,
    batch_settings,
    code_and_message,
    converting_target,
    deduplication_warning,
    describe_statement,
    destination_of,
    full_name,
    is_about_structure,
    question_options,
    table_parts,
)

logger = logging.getLogger("windrow.writer")

OnError = Callable[[WriteError], Any]

_ROW_BINARY = "RowBinary"
_ROW_BINARY_TYPED = "RowBinaryWithNamesAndTypes"
#: How long a program that ends without closing its writers waits for each.
_SECONDS_AT_EXIT = 10.0


class Writer(_core.Writer):
    """Gathers rows and stores them in batches. Made by `client.writer(...)`; may be used by many threads.

        with client.writer("events", ["id", "what"]) as writer:
            writer.write_row((1, "started"))

    A row that was taken is stored, or comes back with an error by `on_error` or `errors()`. A forked process opens
    its own.
    """

    _client: Any
    _destination: Destination
    _options: WriterOptions
    _on_error: OnError | None
    _clock: Callable[[], float]
    _lock: threading.Lock
    _threads: list[threading.Thread]
    _error_thread: threading.Thread | None
    _idle: int
    _ended: threading.Event

    @classmethod
    def _open(cls, client: Any, table: str, columns: Any, options: WriterOptions, on_error: OnError | None) -> Writer:
        database, name = table_parts(table, client.database)
        if not database:
            database = str(client.command("SELECT currentDatabase()"))
        described = client.query(describe_statement(database, name), **question_options(client))
        destination = destination_of(database, name, column_names(columns), described.result_rows)
        writer = _core.Writer.__new__(cls, destination.for_core, options.buffer, options.for_core())
        writer._start(client, destination, options, on_error)
        try:
            if writer._control.survives():
                writer._warn_of_repeats()
        except BaseException:
            # Nobody has it, so nobody else could close it: it would hold its buffer's lock as long as the program runs.
            writer.close(timeout=0)
            raise
        return writer

    def _start(self, client: Any, destination: Destination, options: WriterOptions, on_error: OnError | None) -> None:
        self._client = client
        self._destination = destination
        self._options = options
        self._on_error = on_error
        self._clock = time.monotonic
        self._lock = threading.Lock()
        self._threads = []
        self._idle = 0
        self._ended = threading.Event()
        self._error_thread = None
        if on_error is not None:
            self._error_thread = self._add_thread(self._tell_errors, "windrow-writer-errors")
        self._add_thread(self._drive, "windrow-writer")
        _OPEN.add(self)

    def _warn_of_repeats(self) -> None:
        destination = self._destination
        parameters = {"database": destination.database, "table": destination.table}
        options = question_options(self._client)
        for engine, engine_full in self._client.query(ENGINE_STATEMENT, parameters=parameters, **options).result_rows:
            told = deduplication_warning(full_name(destination.database, destination.table), engine, engine_full)
            if told:
                warnings.warn(told, RuntimeWarning, stacklevel=5)

    # What users call, besides write_row, write_rows and try_write_row.

    @property
    def table(self) -> str:
        """The table's full name."""
        return full_name(self._destination.database, self._destination.table)

    @property
    def column_names(self) -> list[str]:
        """The columns of a row, in order."""
        return list(self._destination.columns)

    @property
    def closed(self) -> bool:
        return self._control.is_closed()

    def flush(self) -> None:
        """Returns when all rows that were taken before are stored, or have come back with an error."""
        self._control.flush()

    def statistics(self) -> WriterStatistics:
        """What was done since the opening, and what is held now."""
        return WriterStatistics(**self._control.statistics())

    def errors(self) -> Iterator[WriteError]:
        """Rows that could not be stored, as they come, until the writer is closed and all were told.

        Without `on_error` they wait here, at most `max_errors` of them; the oldest give way and are counted.
        """
        while True:
            seen = self._control.wake_count()
            has_ended = self._ended.is_set()
            error = self._control.take_error()
            if error is not None:
                yield error
            elif has_ended:
                return
            else:
                self._control.wait_for_wake(seen, 1.0)

    def take_error(self) -> WriteError | None:
        """The oldest error that nobody has taken; None if there is none now."""
        error: WriteError | None = self._control.take_error()
        return error

    def close(self, timeout: float | None = 30.0) -> None:
        """Takes nothing more and sends what waits, for at most `timeout` seconds (None: as long as it takes).

        Rows that are not stored by then stay in a buffer that survives; those in memory come back as errors, and
        OperationalError is raised if there is no `on_error` that was told of them.
        """
        if not self._control.is_own_process():
            return
        _OPEN.discard(self)
        deadline = None if timeout is None else time.monotonic() + timeout
        self._control.close()
        for thread in self._drivers():
            thread.join(None if deadline is None else max(0.0, deadline - time.monotonic()))
        report = self._control.abandon()
        self._ended.set()
        self._control.wake()
        if self._error_thread is not None:
            # Closed by `on_error` itself, it goes on after this call.
            if self._error_thread is not threading.current_thread():
                self._error_thread.join(timeout)
        elif report.handed_over:
            raise OperationalError(
                f"{report.handed_over} rows for {self.table} were not stored before the writer was closed: "
                "errors() has them"
            )

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    # What drives it.

    def _drivers(self) -> list[threading.Thread]:
        with self._lock:
            return [thread for thread in self._threads if thread.name == "windrow-writer"]

    def _add_thread(self, target: Callable[[], None], name: str) -> threading.Thread:
        thread = threading.Thread(target=target, name=name, daemon=True)
        with self._lock:
            thread.start()
            self._threads.append(thread)
        return thread

    def _drive(self) -> None:
        while True:
            seen = self._control.wake_count()
            step = self._control.next(self._clock())
            if step is None:
                return
            if isinstance(step, _core.OutgoingBatch):
                self._leave_to_others()
                self._send(step)
            else:
                with self._lock:
                    self._idle += 1
                self._control.wait_for_wake(seen, step)
                with self._lock:
                    self._idle -= 1

    def _leave_to_others(self) -> None:
        """This thread is busy now: another one looks for the next batch."""
        with self._lock:
            drivers = sum(thread.name == "windrow-writer" for thread in self._threads)
            is_needed = self._idle == 0 and drivers < self._options.max_in_flight
        if is_needed:
            self._add_thread(self._drive, "windrow-writer")

    def _tell_errors(self) -> None:
        assert self._on_error is not None
        for error in self.errors():
            try:
                self._on_error(error)
            except Exception:
                logger.exception("on_error of the writer for %s raised", self.table)

    def _send(self, batch: _core.OutgoingBatch) -> None:
        try:
            self._insert(batch)
        except Exception as error:
            code, message = code_and_message(error)
            self._control.failed(batch, code, message, self._clock())
        else:
            self._control.stored(batch)

    def _insert(self, batch: _core.OutgoingBatch) -> None:
        settings = batch_settings(self._client, batch, self._options.settings)
        table = full_name(batch.database, batch.table)
        try:
            self._client.raw_insert(table, batch.column_names, batch.body(), settings=settings, fmt=_ROW_BINARY_TYPED)
        except Exception as error:
            if not is_about_structure(*code_and_message(error)):
                raise
            now = self._structure_now(batch)
            target = converting_target(batch, now) if now is not None and now.types != batch.type_names else None
            if target is None:
                raise
            rows = batch.encoded_rows()
            self._client.raw_insert(target, None, rows, settings=settings, fmt=_ROW_BINARY)

    def _structure_now(self, batch: _core.OutgoingBatch) -> Destination | None:
        """The same columns as they are now; None if they can't be written any more."""
        try:
            statement = describe_statement(batch.database, batch.table)
            described = self._client.query(statement, **question_options(self._client))
            return destination_of(batch.database, batch.table, batch.column_names, described.result_rows)
        except Exception as error:
            logger.debug("the columns of %s are not to be had: %s", batch.table, error)
            return None


#: Closed when the program ends without having done so.
_OPEN: weakref.WeakSet[Writer] = weakref.WeakSet()


def _close_all() -> None:
    for writer in list(_OPEN):
        try:
            writer.close(_SECONDS_AT_EXIT)
        except OperationalError as error:
            logger.error("%s", error)


atexit.register(_close_all)


def open_writer(
    client: Any, table: str, columns: str | Sequence[str] | None, options: WriterOptions, on_error: OnError | None
) -> Writer:
    """What `client.writer(...)` answers."""
    return Writer._open(client, table, columns, options, on_error)
