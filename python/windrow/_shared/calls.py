"""One request to ClickHouse as the client sees it, and what may be done when it fails.

A lost answer leaves open whether the server did the work. So a read is sent again; an insert only with a token that the
table will recognise; everything else never. An answer that refuses (429, 503) leaves nothing open: reads and inserts go
again. No connection at all leaves nothing open either.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any
from urllib.parse import quote, urlencode

from windrow._shared.errors import Error
from windrow._shared.progress import ProgressReport

RETRYABLE_STATUSES = (429, 503, 504)
AUTHENTICATION_FAILED = 516
ID_RUNS_ALREADY = 216
SESSION_IS_LOCKED = 373
# What is said of a setting that the server doesn't know, that this user may not change, or that another database behind a
# gateway can't heed: UNKNOWN_SETTING, READONLY, SETTING_CONSTRAINT_VIOLATION, NOT_IMPLEMENTED.
SETTING_CODES = frozenset((115, 164, 452, 48))
PAUSE_S = 0.1
FIRST_SESSION_PAUSE_S = 0.005
LONGEST_SESSION_PAUSE_S = 0.2


class Repeat(Enum):
    """What a request is, as far as sending it again goes."""

    READ = "read"
    INSERT = "insert"
    NEVER = "never"


class Lost(Enum):
    """What is to be done after a request without an answer."""

    AGAIN = "again"
    AGAIN_IF_RECOGNISED = "again if the table recognises the token"
    RAISE = "raise"


@dataclass
class Call:
    """A request: `params` stand in the URL, beside those of the client; `make_body` makes a body that is read only
    once.
    """

    params: dict[str, str]
    body: Any = None
    make_body: Callable[[], Any] | None = None
    headers: list[tuple[str, str]] = field(default_factory=list)
    repeat: Repeat = Repeat.NEVER
    native: bool = False
    use_database: bool = True
    encoding: str | None = None
    report: ProgressReport | None = None
    table: str | None = None
    token_is_users: bool = False
    timeout_s: float | None = None
    query_id: str = ""
    id_is_ours: bool = False
    own_settings: tuple[str, ...] = ()

    @property
    def can_be_sent_again(self) -> bool:
        """Whether there is a body for another attempt."""
        return (
            self.make_body is not None
            or self.body is None
            or isinstance(self.body, (bytes, bytearray, str, list, tuple))
        )


@dataclass
class Attempts:
    """How often a call was sent, and which of the attempts that are granted only once are used up."""

    retries: int
    sent: int = 0
    token_renewed: bool = False
    connected_again: bool = False
    settings_dropped: bool = False
    id_renewed: bool = False
    session_locked: int = 0

    def after_loss(self, call: Call, error: Error) -> Lost:
        """No answer, or not a whole one."""
        phase = getattr(error, "phase", None)
        if not call.can_be_sent_again:
            return Lost.RAISE
        if phase == "connect":
            if isinstance(error.__cause__, TimeoutError) and not self.connected_again:
                self.connected_again = True
                self.sent -= 1
                return Lost.AGAIN
            return Lost.RAISE
        if phase != "sent" or call.repeat is Repeat.NEVER or self.sent >= max(2, self.retries + 1):
            return Lost.RAISE
        if call.repeat is Repeat.READ or call.token_is_users:
            return Lost.AGAIN
        return Lost.AGAIN_IF_RECOGNISED

    def after_refusal(self, call: Call, status: int) -> Lost:
        """An answer that says "not now"."""
        if call.repeat is Repeat.NEVER or not call.can_be_sent_again or self.sent > self.retries:
            return Lost.RAISE
        if status == 504 and call.repeat is Repeat.INSERT and not call.token_is_users:
            return Lost.AGAIN_IF_RECOGNISED
        return Lost.AGAIN

    def after_locked_session(self) -> float:
        """How long to wait for the session; the attempt counts as none, since nothing was done."""
        self.sent -= 1
        self.session_locked += 1
        return min(LONGEST_SESSION_PAUSE_S, FIRST_SESSION_PAUSE_S * 2.0**self.session_locked)

    @property
    def pause_s(self) -> float:
        """How long to wait before the next attempt."""
        return PAUSE_S * max(1, self.sent)


class Targets:
    """The request targets of one client; the part that is the same for every request is made once."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._made: dict[tuple[bool, bool], tuple[str, dict[str, str]]] = {}
        self.database: str | None = None
        self.settings: dict[str, str] = {}  # of the client: sent with everything
        self.read_params: dict[str, str] = {}  # sent with what is read as Native

    def changed(self) -> None:
        """To be called after any change of the attributes."""
        self._made.clear()

    def target(self, call: Call) -> str:
        """Path and query of the request; what the call says wins over what the client says."""
        key = (call.native, call.use_database)
        made = self._made.get(key)
        if made is None:
            made = self._make(*key)
        prefix, every = made
        params = call.params
        if len(params) == 1 and "query_id" in params and "query_id" not in every:
            return f"{prefix}query_id={quote(params['query_id'])}"
        if every.keys().isdisjoint(params):
            return prefix + urlencode(params)
        return f"{self.path}/?{urlencode({**every, **params})}"

    def _make(self, native: bool, use_database: bool) -> tuple[str, dict[str, str]]:
        every: dict[str, str] = {}
        if use_database and self.database:
            every["database"] = self.database
        every.update(self.settings)
        if native:
            every = {**self.read_params, **every}
        prefix = f"{self.path}/?{urlencode(every)}{'&' if every else ''}"
        self._made[native, use_database] = prefix, every
        return prefix, every


def new_id() -> str:
    """A random UUID, as text."""
    digits = os.urandom(16).hex()
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-a{digits[17:20]}-{digits[20:]}"


def multipart(fields: dict[str, str | bytes], files: dict[str, tuple[str, bytes, str]]) -> tuple[list[bytes], str]:
    """The parts of a form and its Content-Type."""
    boundary = os.urandom(16).hex()
    parts: list[bytes] = []
    for name, value in fields.items():
        head = f'--{boundary}\r\nContent-Disposition: form-data; name="{_quoted(name)}"\r\n\r\n'
        parts += [head.encode(), value.encode() if isinstance(value, str) else value, b"\r\n"]
    for name, (file_name, content, mime_type) in files.items():
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="{_quoted(name)}";'
            f' filename="{_quoted(file_name)}"\r\n'
            f"Content-Type: {mime_type}\r\n\r\n"
        )
        parts += [head.encode(), content.encode() if isinstance(content, str) else bytes(content), b"\r\n"]
    parts.append(f"--{boundary}--\r\n".encode())
    return parts, f"multipart/form-data; boundary={boundary}"


def _quoted(name: str) -> str:
    return name.replace("\\", "\\\\").replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")
