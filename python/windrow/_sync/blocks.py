"""Results block by block, and blocks for inserts made ahead of the network.

The thread that asks for a block reads the network and decodes, in turns: the kernel's buffer receives while it decodes, and what
hasn't been decoded waits in the answer's bounded Body. Blocks for inserts are made by a worker while this thread sends.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any

from windrow._core import Compressor
from windrow._shared.block_decoder import BlockDecoder
from windrow._shared.errors import StreamClosedError
from windrow._sync.response import Response

if TYPE_CHECKING:
    from windrow._sync.transport import SyncTransport

# How much is read, after an error of the decoder, to find what ClickHouse has to say.
LAST_WORDS_BYTES = 16 << 20


class BlockStream:
    """The blocks of one answer, in the decoder's form `form` (rows, columns or blocks) of at most `max_rows` rows (0: any)."""

    def __init__(self, response: Response, decoder: BlockDecoder, form: int, max_rows: int = 0) -> None:
        self.response = response
        self.decoder = decoder
        self._form = form
        self._max_rows = max_rows
        self._body = response.body
        self._ready: deque[Any] = deque()
        self._header: Any | None = None
        self._ended = False
        self._closed = False
        self._error: Exception | None = None

    def header(self) -> Any | None:
        """Names and types of the columns; None for a result that has none."""
        while self._header is None and not self._ended:
            self._advance()
        return self._header

    def next(self) -> Any | None:
        """The next block; None at the end."""
        while not self._ready:
            if self._ended and not self._closed:
                return None
            self._advance()
        return self._ready.popleft()

    def rest(self) -> list[Any]:
        """All blocks that are left."""
        blocks: list[Any] = []
        while True:
            blocks += self._ready
            self._ready.clear()
            if self._ended and not self._closed:
                return blocks
            self._advance()

    def close(self) -> None:
        """Ends the stream; what hasn't arrived yet is not read, and its connection closed."""
        if not self._closed:
            self._closed = True
            self._ready.clear()
            self.response.abandon()

    def _advance(self) -> None:
        """Makes blocks of what is there, or waits for more to be there."""
        if self._closed:
            raise StreamClosedError()
        if self._error is not None:
            raise self._error
        try:
            whole = self._body.ended
            blocks = self.decoder.advance(self._form, self._max_rows)
            if self._header is None:
                self._header = self.decoder.header()
            if not blocks and whole:
                self.decoder.finish()
                self._ended = True
        except Exception as error:
            self._error = self._explanation(error)
            raise self._error from self._error.__cause__
        except BaseException:
            self.close()
            raise
        self._ready.extend(blocks)
        if not blocks and not whole:
            self.response.arrival()

    def _explanation(self, error: Exception) -> Exception:
        """What broke the stream: what ClickHouse wrote in its body as its last words, if it did."""
        read = 0
        while not self._body.ended and read < LAST_WORDS_BYTES:
            read += self._body.buffered
            if self._body.exception_text():
                break
            self.response.arrival()
        explained = self.response.explained(error)
        self.response.abandon()
        return explained


class BlockSource:
    """A request's body, made by jobs on a worker thread, one after the other and at most `ahead` ahead of the network.

    With an `encoding`, each block is compressed where it is made; the request has to name the same encoding. An exception of a
    job ends the request and is what its sender gets.
    """

    def __init__(
        self,
        transport: SyncTransport,
        jobs: Iterable[Callable[[], bytes]],
        encoding: str | None = None,
        ahead: int = 2,
    ) -> None:
        self.encoding = encoding
        self._workers = transport.workers
        self._jobs = iter(jobs)
        self._ahead = ahead
        self._made: deque[Future[bytes]] = deque()
        self._exhausted = False

    def __iter__(self) -> BlockSource:
        return self

    def __next__(self) -> bytes:
        self._produce()
        if not self._made:
            raise StopIteration
        block = self._made.popleft().result()
        self._produce()
        return block

    def close(self) -> None:
        """No more jobs are begun."""
        self._exhausted = True
        for future in self._made:
            future.cancel()
        self._made.clear()

    def _produce(self) -> None:
        while not self._exhausted and len(self._made) < self._ahead:
            job = next(self._jobs, None)
            if job is None:
                self._exhausted = True
                return
            before = self._made[-1] if self._made else None
            self._made.append(self._workers.executor.submit(self._run, job, before))

    def _run(self, job: Callable[[], bytes], before: Future[bytes] | None) -> bytes:
        """Jobs share what they encode with: one begins when the one before has ended."""
        if before is not None:
            before.exception()
        block = job()
        if self.encoding:
            compressor = Compressor(self.encoding)
            block = compressor.step(block) + compressor.finish()
        return block
