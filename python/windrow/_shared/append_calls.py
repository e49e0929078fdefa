"""The requests of an append, and what is read out of their answers."""

from __future__ import annotations

import json
import re
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, cast
from urllib.parse import urlencode

from windrow._shared import errors
from windrow._shared.append_types import AppendOptions, AppendResult, Atomic
from windrow._shared.errors import AppendError, InternalError, ProgrammingError
from windrow._shared.http_request import Request
from windrow._shared.identifiers import quote_identifier

PATH = "/windrow/v1/appends"
LINE_BREAK = re.compile(r"\n *")
# A lost answer says nothing; these say that another attempt may do better.
PASSING_STATUSES = frozenset((429, 502, 503, 504))
GONE_STATUS = 404
COMMITTED_STATUS = 409
ABORT_TIMEOUT_S = 5.0


class Ending(Enum):
    """What became of an append that was to be dropped."""

    DROPPED = "dropped"
    COMMITTED = "committed"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class HttpAnswer:
    """A whole answer; names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class AppendCalls:
    """Makes the requests of one append."""

    def __init__(self, prefix: str, table: str, append_id: str, options: AppendOptions, encoding: str | None) -> None:
        self.id = append_id
        self._appends = prefix + PATH
        self._this = f"{self._appends}/{append_id}"
        self._encoding = encoding
        opening = {"table": table}
        if options.columns is not None:
            opening["columns"] = ",".join(map(quote_identifier, options.columns))
        if not options.ordered:
            opening["ordered"] = "0"
        # The same in all requests that may open the append, so that the server can compare.
        self._opening = opening
        # Whether the server may still have to open the append. Once it has answered, a batch must not open it anew: after
        # a restart of the server that would be an append without the batches that were acknowledged before.
        self.known = False

    def tell_source(self, fingerprint: str) -> None:
        """Before the first request: what tells the data from other data, so that nobody goes on with an append of other."""
        self._opening["source"] = fingerprint

    def open(self) -> Request:
        """Opens the append, or asks how far it is."""
        return self._request("POST", self._appends, {**self._opening, "id": self.id})

    def put(self, number: int, body: Any, native: bool) -> Request:
        """One batch."""
        parameters = {} if self.known else dict(self._opening)
        if native:
            parameters["format"] = "Native"
        return self._request("POST", f"{self._this}/batches/{number}", parameters, body)

    def commit(self, batches: int) -> Request:
        """The end, which the server answers when all is stored."""
        parameters = {} if self.known else dict(self._opening)
        return self._request("POST", f"{self._this}/commit", {"batches": str(batches), **parameters})

    def abort(self) -> Request:
        """Drops what there is."""
        return self._request("DELETE", self._this, {}, timeout_s=ABORT_TIMEOUT_S)

    def status(self) -> Request:
        """How it stands."""
        return self._request("GET", self._this, {})

    @staticmethod
    def ending(answer: HttpAnswer) -> Ending:
        """What the answer to `abort` says."""
        if answer.status == COMMITTED_STATUS:
            return Ending.COMMITTED
        return Ending.DROPPED if answer.status < 300 or answer.status == GONE_STATUS else Ending.UNKNOWN

    def _request(
        self, method: str, path: str, parameters: Mapping[str, str], body: Any = b"", timeout_s: float | None = None
    ) -> Request:
        target = f"{path}?{urlencode(parameters)}" if parameters else path
        # Every one of them may be made twice: batches have numbers, a commit answers what it answered before.
        encoding = self._encoding if len(body) else None
        return Request(method, target, (), body, timeout_s, may_repeat=True, encoding=encoding)


def checked_id(given: object) -> str:
    """The id of an append as text; a new one for None."""
    if given is None:
        return str(uuid.uuid4())
    try:
        return str(given if isinstance(given, uuid.UUID) else uuid.UUID(str(given)))
    except ValueError:
        raise ProgrammingError(f"id={given!r} is no UUID; leave it out for a new append") from None


def answer_of(body: bytes) -> dict[str, Any]:
    """The JSON object of an answer."""
    try:
        read = json.loads(body)
    except ValueError:
        read = None
    if not isinstance(read, dict):
        raise InternalError("The server's answer is no JSON object: is there a Windrow gateway at this address?")
    return read


def received_of(answer: dict[str, Any]) -> list[tuple[int, int]]:
    """The batches that the server has, as ranges with both ends."""
    ranges = answer.get("received", [])
    try:
        return [(int(first), int(last)) for first, last in ranges]
    except (TypeError, ValueError):
        raise InternalError("The server's answer has unreadable numbers of batches") from None


def columns_of(answer: dict[str, Any]) -> list[tuple[str, str]]:
    """Names and ClickHouse types of the table's columns."""
    try:
        return [(str(column["name"]), on_one_line(str(column["type"]))) for column in answer["columns"]]
    except (KeyError, TypeError):
        raise InternalError("The server's answer has unreadable columns") from None


def on_one_line(type_name: str) -> str:
    """A type's name without the line breaks that ClickHouse puts into long ones for human readers.

    >>> on_one_line("Tuple(\\n    a Int64,\\n    b String)")
    'Tuple(a Int64, b String)'
    """
    return LINE_BREAK.sub(" ", type_name).replace("( ", "(")


def result_of(answer: dict[str, Any], append_id: str, seconds: float) -> AppendResult:
    """What was committed."""
    of_status = answer.get("committed")
    if isinstance(of_status, dict):
        answer = of_status
    try:
        rows, encoded_bytes, batches = (int(answer[name]) for name in ("rows", "bytes", "batches"))
    except (KeyError, TypeError, ValueError):
        raise InternalError("The server's answer to a commit has unreadable counts") from None
    atomic = cast(Atomic, str(answer.get("atomic", "all")))
    return AppendResult(append_id, rows, encoded_bytes, batches, seconds, atomic)


def refused(append_id: str, answer: HttpAnswer, show: bool | str, url: str, max_chars: int) -> AppendError:
    """The exception for an answer that is an error."""
    said = errors.of_response(answer.status, answer.headers, answer.body, url=url, show=show, max_chars=max_chars)
    no_gateway = "append needs a Windrow gateway, and there is none at this address. "
    unknown_path = answer.status == GONE_STATUS and said.code is None
    error = AppendError(no_gateway + str(said) if unknown_path else str(said), code=said.code, name=said.name)
    error.append_id = append_id
    error.batch = _number(answer.headers.get("x-windrow-batch"))
    error.row = _number(answer.headers.get("x-windrow-row"))
    return error


def lost(append_id: str, url: str, reached: bool, cause: Exception) -> AppendError:
    """The exception for an append whose server can't be reached, or not any more."""
    what = f"No answer from {url}" if reached else f"Cannot connect to {url}, so that nothing was sent"
    error = AppendError(f"{what}: {cause}")
    error.append_id = append_id
    return error


def outcome_unknown(cause: AppendError) -> AppendError:
    """The exception for an append that may have been committed."""
    error = AppendError(
        f"{cause}; whether the append was committed isn't known: append the same data again with id={cause.append_id!r}, "
        "which stores it unless it is stored already"
    )
    error.append_id = cause.append_id
    error.outcome_unknown = True
    return error


def _number(value: str | None) -> int | None:
    return int(value) if value and value.isdecimal() and len(value) < 20 else None
