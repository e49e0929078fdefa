# Made from windrow/_async/appending.py by python/tools/async_to_sync.py; edit that file.
"""One append under way: its batches go side by side, and the commit with the last of them.

Nothing waits for an answer that it doesn't need. Each request names the table, so that whichever comes first opens the
append, and the commit names the number of batches and waits at the server for those that are still on their way. A small
append so takes as long as one request. A batch goes to a lane as soon as one is free; its lane encodes it, sends it, and
sends it again as long as that makes sense; the first lane that fails ends the append.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from windrow._sync.append_requests import AppendRequests
from windrow._sync.append_source import Batch, BatchSource
from windrow._sync.exchange import Exchange
from windrow._sync.lanes import Lanes
from windrow._shared.append_calls import AppendCalls, Ending, outcome_unknown
from windrow._shared.append_state import AppendState, CommitPlaces
from windrow._shared.append_types import AppendOptions
from windrow._shared.errors import AppendError

OnProgress = Callable[[int, int], object]


class Appending:
    """One append of a client; `on_progress` gets the rows and bytes that the server holds."""

    def __init__(
        self,
        client: Exchange,
        calls: AppendCalls,
        options: AppendOptions,
        places: CommitPlaces,
        on_progress: OnProgress | None,
    ) -> None:
        self._client = client
        self._calls = calls
        self._options = options
        self._places = places
        self._on_progress = on_progress
        self._state = AppendState()
        self._requests = AppendRequests(client, calls, self._state)
        self._lanes = Lanes(options.lanes)
        self._commit_sent = False
        # Batches that were given to a lane and that nobody has been told of as acknowledged.
        self._unacknowledged: dict[int, Batch] = {}
        # Ranges of numbers that needn't be sent, since the server has them; with both ends.
        self.received: list[tuple[int, int]] = []
        self._ending: Ending | None = None

    def open(self) -> dict[str, Any]:
        """Opens the append, or hears how far it is."""
        return self._requests.answered(self._calls.open) or {}

    def status(self) -> dict[str, Any]:
        """How the append stands, with its counts if it was committed."""
        return self._requests.status()

    def run(self, source: BatchSource) -> dict[str, Any]:
        """Sends what the source gives and commits; the commit's answer. Nothing stays of an append that fails."""
        try:
            count = 0
            while True:
                batch = (source.next() if source.is_quick else self._lanes.beside(source.next()))
                if batch is None:
                    break
                count += 1
                self._unacknowledged[batch.number] = batch
                if self._is_received(batch.number):
                    self._acknowledged(batch)
                    continue
                self._lanes.start(partial(self._put, batch))
            answer = self._committed(count)
            # A commit is answered when the server has every batch; answers to the last ones may still be on their way.
            for batch in list(self._unacknowledged.values()):
                self._acknowledged(batch)
            return answer
        except Exception as error:
            # What a lane failed with is the cause of what the others saw.
            return self._after(self._lanes.failure or error)
        except BaseException:
            self._requests.abort()
            raise
        finally:
            self._state.over = True
            self._lanes.stop()

    def _put(self, batch: Batch) -> None:
        try:
            body = batch.encode() if batch.is_small else self._client._offload(batch.encode)
            answer = self._requests.answered(
                partial(self._calls.put, batch.number, body, batch.is_native),
                partial(self._options.fault, batch.number),
            )
        except Exception as error:
            if self._lanes.failed(error):
                # At once: the commit, and batches that wait for room, wait at the server.
                self._ending = self._requests.abort()
            raise
        if answer is not None:
            self._acknowledged(batch)

    def _is_received(self, number: int) -> bool:
        return any(first <= number <= last for first, last in self.received)

    def _acknowledged(self, batch: Batch) -> None:
        if self._unacknowledged.pop(batch.number, None) is None:
            return
        sums = self._state.acknowledged(batch.rows, batch.encoded_bytes)
        if self._on_progress is not None:
            self._on_progress(sums.rows, sums.encoded_bytes)

    def _committed(self, batches: int) -> dict[str, Any]:
        early = self._places.take()
        try:
            if not early:
                self._lanes.ended()
            self._commit_sent = True
            return self._lanes.beside(self._requests.answered(partial(self._calls.commit, batches))) or {}
        finally:
            if early:
                self._places.give_back()

    def _after(self, error: Exception) -> dict[str, Any]:
        """What a failure leaves: nothing, or the append, if only the answers were lost."""
        ending = self._ending or self._requests.abort()
        if ending is Ending.COMMITTED:
            return self._requests.status()
        may_be_stored = ending is Ending.UNKNOWN and self._commit_sent and self._requests.reached
        if may_be_stored and isinstance(error, AppendError) and error.code is None:
            raise outcome_unknown(error) from error
        raise error
