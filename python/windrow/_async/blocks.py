"""Results block by block: the network on the event loop, decoding on a worker, a bounded queue between them; and blocks for
inserts, made ahead of the network.

What is received waits, undecoded, in the answer's Body, which stops the network when it is full. A worker takes what is there
and makes blocks of it, one job at a time; when two jobs' blocks wait for the consumer, or one's that were large, no further job is begun. So memory
holds a queue of bytes and some blocks, whatever the result. There is no task: arrivals, finished jobs and the consumer
each call `_pump`, which begins a job if one makes sense.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any
from weakref import WeakMethod

from windrow._async.response import Response
from windrow._core import Compressor
from windrow._shared.block_decoder import BlockDecoder
from windrow._shared.errors import StreamClosedError

if TYPE_CHECKING:
    from windrow._async.transport import AsyncTransport

# So much of an answer is decoded where it arrived: a thread would cost more.
INLINE_BYTES = 32 << 10
INLINE_COMPRESSED_BYTES = 2 << 10
MOST_JOBS_WAITING = 2
MOST_BYTES_WAITING = 4 << 20
# Less than this is left to wait a moment for the rest: small answers come in pieces.
WORTH_A_JOB_BYTES = 64 << 10
MOMENT_S = 0.002
# How long, after an error of the decoder, ClickHouse may take to say what happened.
LAST_WORDS_S = 2.0


class BlockStream:
    """The blocks of one answer, in the decoder's form `form` (rows, columns or blocks) of at most `max_rows` rows (0: any)."""

    def __init__(self, response: Response, decoder: BlockDecoder, form: int, max_rows: int = 0) -> None:
        self.response = response
        self.decoder = decoder
        self._form = form
        self._max_rows = max_rows
        self._body = response.body
        self._loop = asyncio.get_running_loop()
        self._waiter: asyncio.Future[None] | None = None
        self._ready: deque[list[Any]] = deque()
        self._at = 0
        self._ready_bytes = 0
        self._given_before = 0
        self._header: Any | None = None
        self._job_runs = False
        self._outcomes: list[tuple[list[Any], bool, Exception | None]] = []
        self._used_up = True
        self._inline_left = INLINE_COMPRESSED_BYTES if self._body.compressed else INLINE_BYTES
        self._moment: asyncio.TimerHandle | None = None
        self._ended = False
        self._closed = False
        self._error: Exception | None = None
        self._explained = False
        if not self._body.ended:
            response.connection.listener = WeakMethod(self._pump)
        self._pump()

    async def header(self) -> Any | None:
        """Names and types of the columns; None for a result that has none."""
        while self._header is None and not self._ended:
            await self._raise_or_wait()
        return self._header

    async def next(self) -> Any | None:
        """The next block; None at the end."""
        while not self._ready:
            if self._ended and not self._closed:
                return None
            await self._raise_or_wait()
        blocks = self._ready[0]
        block = blocks[self._at]
        blocks[self._at] = None
        self._at += 1
        if self._at == len(blocks):
            self._ready.popleft()
            self._at = 0
            self._pump()
        return block

    async def rest(self) -> list[Any]:
        """All blocks that are left."""
        blocks: list[Any] = []
        while True:
            while self._ready:
                blocks += self._ready.popleft()[self._at :]
                self._at = 0
                self._pump()
            if self._ended and not self._ready and not self._closed:
                return blocks
            if not self._ready:
                await self._raise_or_wait()

    async def close(self) -> None:
        """Ends the stream; what hasn't arrived yet is not read, and its connection closed."""
        if not self._closed:
            self._closed = True
            self._ready.clear()
            self.response.abandon()
            self._wake()

    def _moment_passed(self) -> None:
        self._moment = None
        self._pump(however_little=True)

    def _pump(self, however_little: bool = False) -> None:
        """Begins a job if there is something to do and room for what it makes."""
        body = self._body
        if not (self._job_runs or self._ended or self._closed or self._error is not None):
            whole = body.ended
            buffered = body.buffered
            if self._enough_waits() or (self._used_up and not buffered and not whole):
                return
            if self._used_up and (whole or however_little) and buffered <= self._inline_left:
                self._inline_left -= buffered
                self._decode_here(whole)
                return
            if buffered < WORTH_A_JOB_BYTES and self._used_up and not whole and not however_little:
                if self._moment is None:
                    self._moment = self._loop.call_later(MOMENT_S, self._moment_passed)
                return
            try:
                self.response.transport.workers.executor.submit(self._job_on_worker, whole)
            except RuntimeError as error:
                # The client was closed meanwhile. This is called by the connection: the one who waits has to hear of it.
                self._error = error
                self._wake()
            else:
                self._job_runs = True

    def _enough_waits(self) -> bool:
        """Whether the consumer has so much to take that nothing is made for it."""
        return len(self._ready) >= MOST_JOBS_WAITING or (bool(self._ready) and self._ready_bytes >= MOST_BYTES_WAITING)

    def _decode_here(self, whole: bool) -> None:
        """All that is there of a small answer."""
        while not self._ended and self._error is None:
            self._take(*self._job(whole))
            if self._used_up and not whole:
                return

    def _job(self, whole: bool) -> tuple[list[Any], bool, Exception | None]:
        """Blocks, whether they were the last, and what went wrong."""
        try:
            blocks = self.decoder.advance(self._form, self._max_rows)
            if self._header is None:
                self._header = self.decoder.header()
            if blocks or not whole:
                return blocks, False, None
            self.decoder.finish()
            return [], True, None
        except Exception as error:
            return [], False, error

    def _job_on_worker(self, whole: bool) -> None:
        # By way of a list that the loop empties: what this thread still held would be freed by it, and a large result that is
        # freed holds up the loop for as long as one that is made.
        self._outcomes.append(self._job(whole))
        try:
            self._loop.call_soon_threadsafe(self._job_ended)
        except RuntimeError:
            # The loop was closed in the meantime: nobody waits for these blocks.
            pass

    def _job_ended(self) -> None:
        outcome = self._outcomes.pop()
        self._job_runs = False
        if not self._closed:
            self._take(*outcome)
            self._pump()

    def _take(self, blocks: list[Any], ended: bool, error: Exception | None) -> None:
        self._used_up = not blocks
        self._ended = ended
        self._error = error
        if blocks:
            given = self._body.given_bytes
            self._ready_bytes = given - self._given_before + (self._ready_bytes if self._ready else 0)
            self._given_before = given
            self._ready.append(blocks)
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def _raise_or_wait(self) -> None:
        if self._closed:
            raise StreamClosedError()
        if self._error is not None:
            raise await self._explanation(self._error)
        if not self._job_runs and self._body.ended:
            # The end of a connection is told to the one who waits on it, which may have been nobody.
            self._pump()
            if self._ready or self._ended or self._error is not None:
                return
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    async def _explanation(self, error: Exception) -> Exception:
        """What broke the stream: what ClickHouse wrote in its body as its last words, if it did."""
        if self._explained:
            return error
        response = self.response
        if response.connection.exchange is response.exchange:
            response.connection.listener = None
        until = self._loop.time() + LAST_WORDS_S
        while not self._body.ended and self._loop.time() < until:
            if await self._loop.run_in_executor(response.transport.workers.executor, self._body.exception_text):
                break
            try:
                await asyncio.wait_for(response.arrival(), until - self._loop.time())
            except asyncio.TimeoutError:
                break
        self._error = response.explained(error)
        self._explained = True
        response.abandon()
        return self._error


class BlockSource:
    """A request's body, made by jobs on a worker thread, one after the other and at most `ahead` ahead of the network.

    With an `encoding`, each block is compressed where it is made; the request has to name the same encoding. An exception of a
    job ends the request and is what its sender gets.
    """

    def __init__(
        self,
        transport: AsyncTransport,
        jobs: Iterable[Callable[[], bytes]],
        encoding: str | None = None,
        ahead: int = 2,
    ) -> None:
        self.encoding = encoding
        self._workers = transport.workers
        self._jobs = iter(jobs)
        self._ahead = ahead
        self._loop = asyncio.get_running_loop()
        self._made: deque[bytes] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._job_runs = False
        self._exhausted = False
        self._error: BaseException | None = None

    def __aiter__(self) -> BlockSource:
        return self

    async def __anext__(self) -> bytes:
        self._produce()
        while not self._made:
            if self._error is not None:
                raise self._error
            if self._exhausted:
                raise StopAsyncIteration
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        block = self._made.popleft()
        self._produce()
        return block

    async def aclose(self) -> None:
        """No more jobs are begun."""
        self._exhausted = True
        self._made.clear()

    def _produce(self) -> None:
        if self._job_runs or self._exhausted or self._error is not None or len(self._made) >= self._ahead:
            return
        try:
            job = next(self._jobs, None)
        except Exception as error:
            self._error = error
            return
        if job is None:
            self._exhausted = True
            return
        self._job_runs = True
        self._workers.executor.submit(self._run, job)

    def _run(self, job: Callable[[], bytes]) -> None:
        block, error = b"", None
        try:
            block = job()
            if self.encoding:
                compressor = Compressor(self.encoding)
                block = compressor.step(block) + compressor.finish()
        except BaseException as raised:
            error = raised
        try:
            self._loop.call_soon_threadsafe(self._ran, block, error)
        except RuntimeError:
            # The loop was closed in the meantime: nobody sends this block.
            pass

    def _ran(self, block: bytes, error: BaseException | None) -> None:
        self._job_runs = False
        self._error = error
        if error is None and not self._exhausted:
            self._made.append(block)
            self._produce()
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
