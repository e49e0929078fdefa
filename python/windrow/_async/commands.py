"""Statements without a result matrix: command, ping, and the start of a client."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from windrow._async.queries import Queries
from windrow._shared.binding import Parameters, bind
from windrow._shared.calls import Call, Repeat, multipart
from windrow._shared.errors import Error, ProgrammingError, summary_of
from windrow._shared.external import ExternalData
from windrow._shared.http_request import Request
from windrow._shared.progress import ProgressOption
from windrow._shared.sql import STRUCTURE_WORDS, Statement
from windrow._shared.summary import QuerySummary
from windrow._shared.tables import Remembered

PING_TIMEOUT_S = 3.0


class Commands(Queries):
    """The part of the client that executes commands."""

    _tables: Remembered

    async def command(
        self,
        cmd: str | bytes,
        parameters: Parameters = None,
        data: str | bytes | None = None,
        settings: dict[str, Any] | None = None,
        use_database: bool = True,
        external_data: ExternalData | None = None,
        transport_settings: dict[str, str] | None = None,
        progress: ProgressOption = None,
    ) -> str | int | Sequence[str] | QuerySummary:
        """Executes a statement. A single value comes as int or str, several as a list of str; none as a QuerySummary.

            count = await client.command("SELECT count() FROM numbers(3)")

        `data` is sent as the body, behind the statement. `use_database=False` leaves the client's database out.
        """
        bound = bind(cmd, parameters, self.server_tz)
        call = Call(self._checked(settings), use_database=use_database)
        call.params.update(bound.parameters)
        if bound.statement.is_read and not data and "query" not in call.params:
            call.repeat = Repeat.READ
        self._put_command(call, bound.text, data, external_data)
        if transport_settings:
            call.headers += transport_settings.items()
        if progress:
            self._ask_for_progress(call, progress)
        try:
            return await self._answer(call)
        finally:
            self._forget_structure(bound.statement)

    def _put_command(
        self, call: Call, text: str | bytes, data: str | bytes | None, external_data: ExternalData | None
    ) -> None:
        if external_data is not None and data:
            raise ProgrammingError("A command takes data or external_data: send one of them")
        if not data and external_data is None:
            if not text:
                raise ProgrammingError("There is nothing to send: give the command a statement")
            call.body = text.encode() if isinstance(text, str) else text
            return
        if isinstance(text, bytes):
            raise ProgrammingError(
                "A command whose parameters are bytes takes no data and no external_data: write them into the statement"
            )
        call.params["query"] = text
        if external_data is not None:
            call.params.update(external_data.query_params)
            call.body, content_type = multipart({}, external_data.form_data)
        else:
            call.body = data.encode() if isinstance(data, str) else data
            content_type = "text/plain; charset=utf-8" if isinstance(data, str) else "application/octet-stream"
        call.headers.append(("Content-Type", content_type))

    async def _answer(self, call: Call) -> str | int | Sequence[str] | QuerySummary:
        response = await self._exchange(call)
        try:
            body = bytes(await response.read())
        except BaseException:
            self._stopper.stop(call.query_id)
            await response.close()
            raise
        summary = summary_of(response.headers)
        if call.report:
            call.report.finish(summary)
        if body:
            return parsed(body)
        return "" if "x-clickhouse-format" in response.headers else QuerySummary(summary)

    def _forget_structure(self, statement: Statement) -> None:
        """A statement that may change tables makes what is known of them doubtful."""
        if statement.first_word in STRUCTURE_WORDS or not statement.is_whole:
            self._tables.clear()
            self._dedups.clear()

    async def ping(self, timeout: float | None = None) -> bool:
        """Whether the server answers within `timeout` seconds (3 when None)."""
        if not (timeout is None or timeout > 0):
            raise ProgrammingError(f"ping can't wait for {timeout!r} seconds: give a timeout above 0, or None")
        try:
            response = await self._transport.send(
                Request("GET", f"{self._options.path}/ping", timeout_s=timeout or PING_TIMEOUT_S, may_repeat=True)
            )
            await response.read()
        except Error:
            return False
        return bool(200 <= response.status < 300)

    async def _kill(self, statement: str, timeout_s: float) -> None:
        """Sends a statement outside of any session and of this client's settings."""
        target = f"{self._options.path}/"
        response = await self._transport.send(Request("POST", target, (), statement.encode(), timeout_s=timeout_s))
        await response.read()


def parsed(body: bytes) -> str | int | Sequence[str]:
    """The answer of a command: one value, or several between tabs."""
    try:
        words = body.decode()[:-1].split("\t")
    except UnicodeDecodeError:
        return str(body)
    if len(words) > 1:
        return words
    try:
        return int(words[0])
    except ValueError:
        return words[0]
