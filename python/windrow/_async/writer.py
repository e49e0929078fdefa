"""The asynchronous writer: rows from any task, gathered and sent by one task of its own.

`write_row` and the rest that is called per row are methods of `_core.Writer`, without any Python in between. What is
here sends batches, a task for each, and reports what became of them.
"""

from __future__ import annotations

import asyncio
import atexit
import inspect
import logging
import time
import warnings
import weakref
from collections.abc import AsyncIterator, Callable, Generator, Iterable, Sequence
from types import TracebackType
from typing import Any, TypeVar

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
T = TypeVar("T")

_ROW_BINARY = "RowBinary"
_ROW_BINARY_TYPED = "RowBinaryWithNamesAndTypes"


class AsyncWriter(_core.Writer):
    """Gathers rows and stores them in batches. Made by `client.writer(...)`; belongs to the event loop it was opened
    on.

        async with client.writer("events", ["id", "what"]) as writer:
            await writer.write_row((1, "started"))

    A row that was taken is stored, or comes back with an error by `on_error` or `errors()`.
    """

    _client: Any
    _destination: Destination
    _options: WriterOptions
    _on_error: OnError | None
    _clock: Callable[[], float]
    _loop: asyncio.AbstractEventLoop
    _woken: asyncio.Event
    _error_waiters: list[asyncio.Future[None]]
    _sending: set[asyncio.Task[None]]
    #: Of an `on_error` that is a coroutine function.
    _callbacks: list[asyncio.Future[Any]]
    _driver: asyncio.Task[None]
    _ended: asyncio.Task[None] | None

    @classmethod
    async def _open(
        cls, client: Any, table: str, columns: Any, options: WriterOptions, on_error: OnError | None
    ) -> AsyncWriter:
        database, name = table_parts(table, client.database)
        if not database:
            database = str(await client.command("SELECT currentDatabase()"))
        described = await client.query(describe_statement(database, name), **question_options(client))
        destination = destination_of(database, name, column_names(columns), described.result_rows)
        loop = asyncio.get_running_loop()

        def make() -> AsyncWriter:
            return _core.Writer.__new__(cls, destination.for_core, options.buffer, options.for_core(), loop)

        # A buffer on a disk or in Redis is opened: not on the loop.
        writer = make() if options.buffer == "memory" else await _made_off_loop(loop, make)
        writer._start(client, destination, options, on_error, loop)
        try:
            if writer._control.survives():
                await writer._warn_of_repeats()
        except BaseException:
            # Nobody has it, so nobody else could close it: it would hold its buffer's lock as long as the program runs.
            await writer.close(timeout=0)
            raise
        return writer

    def _start(
        self,
        client: Any,
        destination: Destination,
        options: WriterOptions,
        on_error: OnError | None,
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._client = client
        self._destination = destination
        self._options = options
        self._on_error = on_error
        self._clock = time.monotonic
        self._loop = loop
        self._woken = asyncio.Event()
        self._error_waiters = []
        self._sending = set()
        self._callbacks = []
        self._ended = None
        self._control.set_waker(loop, self._wake)
        self._driver = loop.create_task(self._drive())
        _OPEN.add(self)

    async def _warn_of_repeats(self) -> None:
        destination = self._destination
        parameters = {"database": destination.database, "table": destination.table}
        found = await self._client.query(ENGINE_STATEMENT, parameters=parameters, **question_options(self._client))
        for engine, engine_full in found.result_rows:
            told = deduplication_warning(full_name(destination.database, destination.table), engine, engine_full)
            if told:
                warnings.warn(told, RuntimeWarning, stacklevel=4)

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

    async def flush(self) -> None:
        """Returns when all rows that were taken before are stored, or have come back with an error."""
        await self._control.flush()

    def statistics(self) -> WriterStatistics:
        """What was done since the opening, and what is held now."""
        return WriterStatistics(**self._control.statistics())

    async def errors(self) -> AsyncIterator[WriteError]:
        """Rows that could not be stored, as they come, until the writer is closed and all were told.

        Without `on_error` they wait here, at most `max_errors` of them; the oldest give way and are counted.
        """
        while True:
            error = self._control.take_error()
            if error is not None:
                yield error
                continue
            if self._ended is not None and self._ended.done():
                return
            waiter = self._loop.create_future()
            self._error_waiters.append(waiter)
            await waiter

    def take_error(self) -> WriteError | None:
        """The oldest error that nobody has taken; None if there is none now."""
        error: WriteError | None = self._control.take_error()
        return error

    async def close(self, timeout: float | None = 30.0) -> None:
        """Takes nothing more and sends what waits, for at most `timeout` seconds (None: as long as it takes).

        Rows that are not stored by then stay in a buffer that survives; those in memory come back as errors, and
        OperationalError is raised if there is no `on_error` that was told of them.
        """
        if self._ended is None:
            self._ended = self._loop.create_task(self._end(timeout))
        await asyncio.shield(self._ended)

    async def __aenter__(self) -> AsyncWriter:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def _write_many(self, rows: Iterable[object], wait: bool | None, future: bool) -> asyncio.Task[None]:
        """`write_rows` of so many rows that their encoding would hold up the loop: a worker thread does it."""
        return self._loop.create_task(self._write_from_thread(rows, wait, future))

    async def _write_from_thread(self, rows: Iterable[object], wait: bool | None, future: bool) -> None:
        encoded = await self._loop.run_in_executor(None, self._encode, rows)
        await self._write_encoded(encoded, wait, future)

    # What drives it.

    def _wake(self) -> None:
        """There is a reason to look. Called on the loop."""
        self._woken.set()
        self._tell_errors()

    def _tell_errors(self) -> None:
        waiters, self._error_waiters = self._error_waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)
        while self._on_error is not None:
            error = self._control.take_error()
            if error is None:
                return
            try:
                answer = self._on_error(error)
                if inspect.isawaitable(answer):
                    self._callbacks.append(asyncio.ensure_future(answer))
                    self._callbacks = [callback for callback in self._callbacks if not callback.done()]
            except Exception:
                logger.exception("on_error of the writer for %s raised", self.table)

    async def _drive(self) -> None:
        while True:
            self._woken.clear()
            step = await self._blocking(lambda: self._control.next(self._clock()))
            if step is None:
                return
            if isinstance(step, _core.OutgoingBatch):
                task = self._loop.create_task(self._send(step))
                self._sending.add(task)
                task.add_done_callback(self._sending.discard)
            else:
                await self._sleep(step)

    async def _sleep(self, seconds: float) -> None:
        timer = self._loop.call_later(seconds, self._woken.set)
        try:
            await self._woken.wait()
        finally:
            timer.cancel()

    async def _blocking(self, call: Callable[[], T]) -> T:
        """What may wait for a disk or a program's own buffer is kept off the loop."""
        if self._control.may_block():
            return await self._loop.run_in_executor(None, call)
        return call()

    async def _send(self, batch: _core.OutgoingBatch) -> None:
        try:
            await self._insert(batch)
        except Exception as error:
            code, message = code_and_message(error)
            await self._blocking(lambda: self._control.failed(batch, code, message, self._clock()))
        else:
            await self._blocking(lambda: self._control.stored(batch))

    async def _insert(self, batch: _core.OutgoingBatch) -> None:
        settings = batch_settings(self._client, batch, self._options.settings)
        table = full_name(batch.database, batch.table)
        try:
            await self._client.raw_insert(
                table, batch.column_names, batch.body(), settings=settings, fmt=_ROW_BINARY_TYPED
            )
        except Exception as error:
            if not is_about_structure(*code_and_message(error)):
                raise
            now = await self._structure_now(batch)
            target = converting_target(batch, now) if now is not None and now.types != batch.type_names else None
            if target is None:
                raise
            rows = batch.encoded_rows()
            await self._client.raw_insert(target, None, rows, settings=settings, fmt=_ROW_BINARY)

    async def _structure_now(self, batch: _core.OutgoingBatch) -> Destination | None:
        """The same columns as they are now; None if they can't be written any more."""
        try:
            statement = describe_statement(batch.database, batch.table)
            described = await self._client.query(statement, **question_options(self._client))
            return destination_of(batch.database, batch.table, batch.column_names, described.result_rows)
        except Exception as error:
            logger.debug("the columns of %s are not to be had: %s", batch.table, error)
            return None

    async def _end(self, timeout: float | None) -> None:
        _OPEN.discard(self)
        self._control.close()
        done, _ = await asyncio.wait({self._driver}, timeout=timeout)
        if done:
            await asyncio.gather(*self._sending, return_exceptions=True)
        self._driver.cancel()
        for task in self._sending:
            task.cancel()
        await asyncio.gather(self._driver, *self._sending, return_exceptions=True)
        report = await self._loop.run_in_executor(None, self._control.abandon)
        self._control.clear_waker()
        # Whoever iterates over errors() looks once more when this task has ended.
        self._loop.call_soon(self._tell_errors)
        self._tell_errors()
        await asyncio.gather(*self._callbacks, return_exceptions=True)
        if report.handed_over and self._on_error is None:
            raise OperationalError(
                f"{report.handed_over} rows for {self.table} were not stored before the writer was closed: "
                "errors() has them"
            )


#: Writers that nobody has closed: at the end of the program there is no loop left that could send their rows.
_OPEN: weakref.WeakSet[AsyncWriter] = weakref.WeakSet()


def _abandon_all() -> None:
    for writer in list(_OPEN):
        if writer._control.is_own_process():
            report = writer._control.abandon()
            if report.handed_over:
                logger.error("%d rows for %s are lost: the writer was not closed", report.handed_over, writer.table)


atexit.register(_abandon_all)


async def _made_off_loop(loop: asyncio.AbstractEventLoop, make: Callable[[], AsyncWriter]) -> AsyncWriter:
    """What `make` makes on a thread. When nobody waits for it any more, it lets go of its buffer as soon as it is there."""
    making = loop.run_in_executor(None, make)
    try:
        return await asyncio.shield(making)
    except asyncio.CancelledError:
        making.add_done_callback(_let_go)
        raise


def _let_go(made: asyncio.Future[AsyncWriter]) -> None:
    if not made.cancelled() and made.exception() is None:
        made.get_loop().run_in_executor(None, made.result()._control.abandon)


class OpeningWriter:
    """What `client.writer(...)` answers: to be awaited, or used in `async with`."""

    def __init__(self, open_writer: Callable[[], Any]) -> None:
        self._open_writer = open_writer
        self._writer: AsyncWriter | None = None
        self._opening: asyncio.Future[AsyncWriter] | None = None

    def __await__(self) -> Generator[Any, None, AsyncWriter]:
        return self._opened().__await__()

    async def _opened(self) -> AsyncWriter:
        """However many wait for it, one writer is opened."""
        if self._writer is None:
            if self._opening is None or self._opening.done():
                self._opening = asyncio.ensure_future(self._open_writer())
            self._writer = await self._opening
        return self._writer

    async def __aenter__(self) -> AsyncWriter:
        return await self._opened()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._writer is not None:
            await self._writer.close()


def open_writer(
    client: Any, table: str, columns: str | Sequence[str] | None, options: WriterOptions, on_error: OnError | None
) -> OpeningWriter:
    """What `client.writer(...)` answers."""
    return OpeningWriter(lambda: AsyncWriter._open(client, table, columns, options, on_error))
