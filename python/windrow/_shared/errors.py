"""Which exceptions are raised, and what is read out of ClickHouse's own error messages.

The tree is the one of the Python database API (PEP 249). `code` and `name` are ClickHouse's (60, UNKNOWN_TABLE); both
are None where the error isn't ClickHouse's own, or where the user asked for errors without details.
"""

from __future__ import annotations

import builtins
import json
import re
from collections.abc import Mapping
from typing import Any

GENERIC_MESSAGE = "The ClickHouse server returned an error"
MAX_MESSAGE_CHARS = 1024

_NAME = re.compile(r"\(([A-Z][A-Z0-9_]+)\)")
# As ClickHouse words it, and not what the error page of a proxy may say.
_CODE = re.compile(r"\bCode:\s*(\d{1,9})\b(?=[^\n]{0,60}(?:DB::|e\.what\(\)))")
_VERSION_AT_END = re.compile(r"\s*\(version\s+(?:[^()]|\([^()]*\))*\)\s*$")


class ClickHouseError(Exception):
    """The root of everything that this package raises on purpose."""


class Warning(builtins.Warning, ClickHouseError):  # noqa: A001, N818 - the name is PEP 249's
    """An important warning, such as data that was cut while it was inserted."""


class Error(ClickHouseError):
    """The root of all errors; `code` and `name` are ClickHouse's, or None."""

    def __init__(self, *args: object, code: int | None = None, name: str | None = None) -> None:
        super().__init__(*args)
        self.code = code
        self.name = name


class InterfaceError(Error):
    """This package was used in a way that it can't serve."""


class DatabaseError(Error):
    """ClickHouse refused or failed."""


class DataError(DatabaseError, ValueError, TypeError):
    """A value doesn't fit its column, or what was received can't be read. Programs that expect Python's own errors for
    such values catch it too.

    `column`, `type_name`, `row` and `value` say where, when one value is to blame.
    """

    column: str | None = None
    type_name: str | None = None
    row: int | None = None
    value: str | None = None


class OperationalError(DatabaseError):
    """The connection was refused, lost or silent for too long, or the server is overloaded."""


class IntegrityError(DatabaseError):
    """Relational integrity is broken (PEP 249's; ClickHouse has no such error)."""


class InternalError(DatabaseError):
    """Something that can't be happened between this package and the server."""


class ProgrammingError(DatabaseError):
    """The call itself is wrong: a parameter, a setting, or the order of calls."""


class NotSupportedError(DatabaseError):
    """What was asked for doesn't exist here."""


class StreamClosedError(ProgrammingError):
    """A stream was read after it was closed, or outside of its `with`."""

    def __init__(self, message: str = "This stream is closed: ask for the query again to read its result") -> None:
        super().__init__(message)


class StreamFailureError(OperationalError):
    """A result broke off: ClickHouse failed in the middle of it, or the connection was lost."""


class AppendError(DatabaseError):
    """An append failed; nothing of it is stored.

    `append_id` names it. `batch` and `row` (within the batch, both from 0) say where the server found the fault, and
    are None where there is no such place. `outcome_unknown` is True when the commit's answer was lost and the server
    couldn't be asked afterwards: then the append is stored as a whole or not at all, and appending the same data once
    more under the same id settles it.
    """

    append_id: str = ""
    batch: int | None = None
    row: int | None = None
    outcome_unknown: bool = False


class StreamCompleteException(Exception):  # noqa: N818 - the name is part of the interface
    """The end of a result; never reaches callers."""


def code_of_header(value: str | None) -> int | None:
    """ClickHouse's code from `X-ClickHouse-Exception-Code`."""
    return int(value) if value and value.isdecimal() and len(value) < 10 else None


def code_of_message(message: str) -> int | None:
    """ClickHouse's code from the text of an exception (`Code: 60. DB::Exception: ...`)."""
    found = _CODE.search(message)
    return int(found.group(1)) if found else None


def name_of_message(message: str) -> str | None:
    """ClickHouse's name of the error: the last such word in brackets (`... (UNKNOWN_TABLE)`)."""
    found = _NAME.findall(message)
    return found[-1] if found else None


def without_version(message: str) -> str:
    """The message without the server's version at its end."""
    return _VERSION_AT_END.sub("", message).rstrip()


def shown_as(value: object) -> bool | str:
    """The option `show_clickhouse_errors`: True (all), False (nothing but the code) or "scrub" (no version, no
    address).
    """
    if value is None:
        return False
    if isinstance(value, bool):
        return value
    word = value.strip().lower() if isinstance(value, str) else None
    if word == "scrub":
        return word
    if word in ("true", "1", "y", "yes"):
        return True
    if word in ("false", "0", "n", "no", ""):
        return False
    shown = f'"{value}"' if isinstance(value, str) else repr(value)
    raise ProgrammingError(f'show_clickhouse_errors={shown} isn\'t known: use True, False or "scrub"')


def of_response(
    status: int,
    headers: Mapping[str, str],
    body: bytes,
    *,
    url: str = "",
    show: bool | str = True,
    tried_again: bool = False,
    max_chars: int = MAX_MESSAGE_CHARS,
) -> DatabaseError:
    """The exception for an answer that is an error; `headers` have lower-case names."""
    raw_code = headers.get("x-clickhouse-exception-code")
    text = body.decode(errors="backslashreplace")
    code = code_of_header(raw_code) or code_of_message(text)
    kind = OperationalError if tried_again else DatabaseError
    if not show:
        return kind(GENERIC_MESSAGE, code=code)
    origin = f"The server answered with HTTP status {status}"
    if raw_code:
        origin = f"Received ClickHouse exception, code: {raw_code}"
    return kind(_wording(origin, text, url, show, max_chars), code=code, name=name_of_message(text))


def of_whole(
    error: StreamFailureError, url: str, show: bool | str, max_chars: int = MAX_MESSAGE_CHARS
) -> DatabaseError:
    """The exception for a result that broke off before anybody saw a part of it: the same as if it had failed at
    once.
    """
    if error.code is None:
        return error
    message = str(error)
    if show:
        message = _wording(f"Received ClickHouse exception, code: {error.code}", message, url, show, max_chars)
    return DatabaseError(message, code=error.code, name=error.name)


def _wording(origin: str, text: str, url: str, show: bool | str, max_chars: int) -> str:
    shown = without_version(text) if show == "scrub" else text
    shown = (shown[:max_chars] if max_chars else shown).strip()
    message = f"{origin}, server response: {shown}" if shown else origin
    return f"{message} (for url {url})" if show is True and url else message


def of_stream(text: str, show: bool | str = True) -> StreamFailureError:
    """The exception for a result that ClickHouse broke off with the given text."""
    code = code_of_message(text)
    if not show:
        return StreamFailureError(GENERIC_MESSAGE, code=code)
    shown = without_version(text) if show == "scrub" else text
    return StreamFailureError(shown, code=code, name=name_of_message(text))


def of_network(cause: BaseException, show: bool | str = True, server: str = "") -> OperationalError:
    """The exception for a request that failed below ClickHouse; `server` is host and port."""
    return OperationalError(_network_words(cause, show, server))


def of_lost_stream(cause: BaseException, show: bool | str = True) -> StreamFailureError:
    """The exception for an answer that had begun when the connection was lost."""
    return StreamFailureError(_network_words(cause, show, ""))


def _network_words(cause: BaseException, show: bool | str, server: str) -> str:
    if show is not True:
        return "Network Error"
    return f"Network Error: {cause} ({server})" if server else f"Network Error: {cause}"


def summary_of(headers: Mapping[str, str]) -> dict[str, Any]:
    """`X-ClickHouse-Summary` and the query's id; `headers` have lower-case names."""
    summary: dict[str, Any] = {}
    raw = headers.get("x-clickhouse-summary")
    if raw:
        try:
            summary = json.loads(raw)
        except ValueError:
            summary = {}
    summary["query_id"] = headers.get("x-clickhouse-query-id", "")
    return summary


for _class in [value for value in list(globals().values()) if isinstance(value, type) and issubclass(value, Exception)]:
    if _class.__module__ == __name__:
        _class.__module__ = "windrow.exceptions"  # what users import, so what tracebacks show
