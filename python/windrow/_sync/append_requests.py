# Made from windrow/_async/append_requests.py by python/tools/async_to_sync.py; edit that file.
"""The requests of an append: each is sent until it has an answer that means something.

A lost answer is no reason to give up: batches have numbers, and a commit that was done answers so. An answer that says "not
now" is waited out. All others that are no success end the append.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Callable
from typing import Any

from windrow import common
from windrow._sync.exchange import Exchange
from windrow._shared.append_calls import PASSING_STATUSES, AppendCalls, Ending, HttpAnswer, answer_of, lost, refused
from windrow._shared.append_state import AppendState
from windrow._shared.append_types import NO_FAULT, Fault
from windrow._shared.calls import AUTHENTICATION_FAILED
from windrow._shared.errors import AppendError, Error, OperationalError
from windrow._shared.http_request import Request


class BrokenOnPurpose(Exception):  # noqa: N818 - it is nobody's error
    """Ends a request in the middle of its body."""


class AppendRequests:
    """Sends what `calls` makes over the client's own connections."""

    def __init__(self, client: Exchange, calls: AppendCalls, state: AppendState) -> None:
        self._client = client
        self._calls = calls
        self._state = state
        # Whether anything that was sent may have come to the server.
        self.reached = False

    def answered(
        self, make: Callable[[], Request], fault_of: Callable[[int], Fault] | None = None
    ) -> dict[str, Any] | None:
        """The server's answer to a request; None if the append was over before there was one.

        AppendError says what the server refuses, or that it can't be reached.
        """
        losses = refusals = attempt = 0
        token_renewed = False
        while not self._state.over:
            fault = fault_of(attempt) if fault_of else NO_FAULT
            attempt += 1
            try:
                answer = self._attempt(make(), fault)
            except (OperationalError, BrokenOnPurpose) as error:
                losses += 1
                self.reached = self.reached or getattr(error, "phase", "sent") != "connect"
                pause_s = self._state.pause_after_loss(losses, self.reached)
                if pause_s is None:
                    raise lost(self._calls.id, self._client.url, self.reached, error) from error
            else:
                self.reached = True
                if answer.status < 300:
                    self._calls.known = True
                    return answer_of(answer.body)
                refusal = self._refusal(answer)
                pause_s = None
                if answer.status in PASSING_STATUSES:
                    refusals += 1
                    pause_s = self._state.pause_after_refusal(refusals, answer.headers.get("retry-after"))
                elif refusal.code == AUTHENTICATION_FAILED and self._client._token_provider and not token_renewed:
                    token_renewed = True
                    self._client.set_access_token(self._client._new_token())
                    pause_s = 0.0
                if pause_s is None and not self._state.over:
                    raise refusal
            time.sleep(pause_s or 0.0)
        return None

    def abort(self) -> Ending:
        """Tells the server to drop the append; one that it can't be told of is dropped by itself after a while."""
        if self._client._closed:
            return Ending.UNKNOWN
        try:
            answer = self._once(self._calls.abort())
        except Error:
            return Ending.UNKNOWN
        return self._calls.ending(answer)

    def status(self) -> dict[str, Any]:
        """How the append stands."""
        answer = self._once(self._calls.status())
        return answer_of(answer.body)

    def _refusal(self, answer: HttpAnswer) -> AppendError:
        client = self._client
        limit = common.get_setting("max_error_size")
        return refused(self._calls.id, answer, client.show_clickhouse_errors, client.url, limit)

    def _attempt(self, request: Request, fault: Fault) -> HttpAnswer:
        if fault.delay_s:
            time.sleep(fault.delay_s)
        if fault.repeats:
            self._once(request)
        if fault.drops:
            request.body = broken_off(request.body)
        return self._once(request)

    def _once(self, request: Request) -> HttpAnswer:
        response = self._client._transport.send(request)
        return HttpAnswer(response.status, response.headers, bytes(response.read()))


def broken_off(body: Any) -> Iterator[bytes]:
    """The first half of a body, and then no more."""
    whole = b"".join(body) if isinstance(body, list) else bytes(body)
    yield whole[: len(whole) // 2]
    raise BrokenOnPurpose("the connection was cut on purpose")
