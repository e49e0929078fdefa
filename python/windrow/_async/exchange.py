"""How one call becomes an answer: sent, repeated where that is safe, stopped at the server when it isn't wanted any
more.

Everything that the client does goes through `_exchange`. What it gives back is an answer that says "done" or "here it
comes"; all others are exceptions with ClickHouse's code.
"""

from __future__ import annotations

import asyncio  # sync only: import time
import inspect
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from windrow import common
from windrow._async.stopper import Stopper
from windrow._async.transport import AsyncTransport
from windrow._shared import errors, tables
from windrow._shared.calls import (
    AUTHENTICATION_FAILED,
    ID_RUNS_ALREADY,
    RETRYABLE_STATUSES,
    SESSION_IS_LOCKED,
    SETTING_CODES,
    Attempts,
    Call,
    Lost,
    Repeat,
    Targets,
    new_id,
)
from windrow._shared.errors import OperationalError, ProgrammingError
from windrow._shared.http_request import Request
from windrow._shared.options import ClientOptions

UNKNOWN_OUTCOME = (
    "{error}; the answer was lost, so it isn't known whether the rows were stored, and {table} doesn't recognise a "
    "repeated insert (a MergeTree table does with non_replicated_deduplication_window)"
)


class Exchange:
    """The part of the client that sends; the others build on it."""

    _options: ClientOptions
    _transport: AsyncTransport
    _targets: Targets
    _stopper: Stopper
    _headers: dict[str, str]
    _token_provider: Callable[[], Any] | None
    _autogenerate_query_id: bool
    _active_session: str | None
    _closed: bool
    _dedups: tables.Remembered
    query_retries: int
    url: str

    @property
    def show_clickhouse_errors(self) -> bool | str:
        """How much of ClickHouse's errors is shown: True, False or "scrub"."""
        return self._transport.show_errors

    @show_clickhouse_errors.setter
    def show_clickhouse_errors(self, value: bool | str | None) -> None:
        self._transport.show_errors = errors.shown_as(value)

    async def _exchange(self, call: Call) -> Any:
        """The answer, once its head is there; its body is the caller's to read or to close."""
        if self._closed:
            raise ProgrammingError("The client was closed; get_async_client() makes another one")
        if "query_id" in call.params:
            call.query_id = call.params["query_id"]
        elif self._autogenerate_query_id:
            call.query_id = call.params["query_id"] = new_id()
            call.id_is_ours = True
        attempts = Attempts(self.query_retries)
        while True:
            attempts.sent += 1
            try:
                response = await self._send_within_session(call)
            except OperationalError as error:
                await self._after_loss(call, attempts, error)
                continue
            except BaseException:
                self._stopper.stop(call.query_id)
                raise
            if 200 <= response.status < 300 and "x-clickhouse-exception-code" not in response.headers:
                return response
            await self._after_error(call, attempts, response)

    async def _send_within_session(self, call: Call) -> Any:
        session = call.params.get("session_id") or self._targets.settings.get("session_id")
        if not session:
            return await self._send(call)
        if session == self._active_session:
            raise ProgrammingError(
                f"The session {session!r} is in use by another query of this client, and takes one at a time: "
                "wait for that query, use a client per task, or set autogenerate_session_id=False"
            )
        self._active_session = session
        try:
            return await self._send(call)
        finally:
            self._active_session = None

    async def _send(self, call: Call) -> Any:
        body = call.make_body() if call.make_body else call.body
        return await self._transport.send(
            Request(
                "POST",
                self._targets.target(call),
                call.headers,
                body,
                timeout_s=call.timeout_s,
                may_repeat=call.repeat is Repeat.READ or call.token_is_users,
                encoding=call.encoding,
                on_progress=call.report.on_header if call.report else None,
            )
        )

    async def _after_loss(self, call: Call, attempts: Attempts, error: OperationalError) -> None:
        """Returns when the call may be sent again, else raises."""
        if getattr(error, "phase", None) == "timeout":
            self._stopper.stop(call.query_id)
        what_now = attempts.after_loss(call, error)
        if what_now is Lost.RAISE:
            raise error
        self._stopper.left()
        await self._check_recognised(call, what_now, error)
        await asyncio.sleep(attempts.pause_s)  # sync only: time.sleep(attempts.pause_s)

    async def _check_recognised(self, call: Call, what_now: Lost, error: OperationalError) -> None:
        if what_now is Lost.AGAIN_IF_RECOGNISED and not await self._recognises_repeats(call.table):
            raised = OperationalError(
                UNKNOWN_OUTCOME.format(error=error, table=call.table), code=error.code, name=error.name
            )
            raise raised from error

    async def _after_error(self, call: Call, attempts: Attempts, response: Any) -> None:
        """Returns when the call may be sent again, else raises what the answer says."""
        refused = response.status in RETRYABLE_STATUSES
        body = await self._error_body(response)
        error = errors.of_response(
            response.status,
            response.headers,
            body,
            url=self.url,
            show=self.show_clickhouse_errors,
            tried_again=refused,
            max_chars=common.get_setting("max_error_size"),
        )
        if refused and (what_now := attempts.after_refusal(call, response.status)) is not Lost.RAISE:
            await self._check_recognised(call, what_now, OperationalError(str(error)))
            await asyncio.sleep(attempts.pause_s)  # sync only: time.sleep(attempts.pause_s)
        elif error.code == AUTHENTICATION_FAILED and self._token_provider and not attempts.token_renewed:
            if not call.can_be_sent_again:
                raise error
            attempts.token_renewed = True
            self.set_access_token(await self._new_token())
        elif error.code in SETTING_CODES and not attempts.settings_dropped and self._drop_own_settings(call, body):
            attempts.settings_dropped = True
        elif error.code == ID_RUNS_ALREADY and call.id_is_ours and not attempts.id_renewed and call.can_be_sent_again:
            # The answer of an earlier attempt was lost, and the server is still busy with it.
            attempts.id_renewed = True
            if call.repeat is Repeat.READ:
                self._stopper.stop(call.query_id)
            call.query_id = call.params["query_id"] = new_id()
        elif error.code == SESSION_IS_LOCKED and call.can_be_sent_again and self._stopper.has_just_left():
            # By a query of ours, which holds it until the server has ended it.
            pause_s = attempts.after_locked_session()
            await asyncio.sleep(pause_s)  # sync only: time.sleep(pause_s)
        else:
            raise error

    async def _error_body(self, response: Any) -> bytes:
        try:
            return bytes(await response.read())
        except errors.Error:
            return b""  # the status has said enough

    def _drop_own_settings(self, call: Call, body: bytes) -> bool:
        """Settings that this client sends by itself must not break users who may not set them."""
        if not call.can_be_sent_again:
            return False
        text = body.decode(errors="replace")
        own = {*self._own_settings, *call.own_settings}
        guilty = [name for name in own if name in text]
        for name in guilty:
            self._refused_settings.add(name)
            self._own_settings.pop(name, None)
            self._targets.settings.pop(name, None)
            self._targets.read_params.pop(name, None)
            call.params.pop(name, None)
        self._targets.changed()
        return bool(guilty)

    async def _recognises_repeats(self, table: str | None) -> bool:
        """Whether the table recognises an insert by its token, so that sending it twice stores it once."""
        if table is None:
            return False
        known = self._dedups.get(table)
        if known is None:
            known = await self._ask_whether_recognised(table)
            self._dedups.put(table, known)
        return bool(known)

    async def _offload(self, work: Callable[[], Any]) -> Any:
        """Runs what takes long beside the event loop."""
        return await self._transport.run(work)  # sync only: return work()

    @abstractmethod
    async def _ask_whether_recognised(self, table: str) -> bool:
        """Needs queries, which are made of exchanges."""

    async def _new_token(self) -> str:
        """The token that the user's provider gives; it may be a plain function (run on a thread) or a coroutine
        function.
        """
        provider = self._token_provider
        if provider is None:
            raise ProgrammingError("There is no token_provider")
        if inspect.iscoroutinefunction(provider):  # async only
            return str(await provider())  # async only
        token = await asyncio.get_running_loop().run_in_executor(None, provider)  # sync only: token = provider()
        return str(await token) if inspect.isawaitable(token) else str(token)  # sync only: return str(token)

    def set_access_token(self, access_token: str) -> None:
        """Uses another token from now on; ProgrammingError when this client authenticates by other means."""
        known = self._headers.get("Authorization")
        if known and not known.startswith("Bearer"):
            raise ProgrammingError(
                "This client signs in with a password: make a client with access_token to use tokens"
            )
        self._headers["Authorization"] = f"Bearer {access_token}"
        self._transport.headers = list(self._headers.items())

    _own_settings: dict[str, str]
    _refused_settings: set[str]
