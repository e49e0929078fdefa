"""How a query and its parameters become what is sent: on the client's side (%s, %(name)s) or on the server's
({name:Type}).

A query that holds a placeholder `{name:Type}` is bound at the server: its parameters are sent beside it as
`param_name`. Otherwise parameters are written into the text by the % operator. `$name$` with a bytes value is put into
the text as it is, which makes the query bytes; such markers may stand beside either kind.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, tzinfo
from functools import lru_cache
from typing import Any
from urllib.parse import quote, urlencode

from windrow import common
from windrow._shared.errors import ProgrammingError
from windrow._shared.literals import DT64Param, parameter_text, query_literal
from windrow._shared.sql import Statement, Token, statement, tokens
from windrow._shared.timezones import find_zone
from windrow._shared.typenames import base_and_arguments, element_types, names_in

Parameters = Sequence[Any] | dict[str, Any] | None

PLACEHOLDER = re.compile(
    r"\{((?:[A-Za-z_][A-Za-z0-9_$]*|\$[A-Za-z0-9_][A-Za-z0-9_$]*|[0-9]+[A-Za-z_]\w*)|\w+):([^}]+)\}"
)
_PERCENT_NAME = re.compile(r"%(?:%|\(([^()]*(?:\([^()]*\)[^()]*)*)\))")

# Above this many bytes of parameters in the URL proxies begin to refuse: they go into a form then.
MAX_URL_PARAMETER_CHARS = 4096
# http_max_field_value_size: a longer query is refused as a field of a form.
MAX_FORM_QUERY_BYTES = (128 << 10) + 1


@dataclass(frozen=True)
class Bound:
    """A query that is ready to be sent: its text, what is known of it, and the parameters beside it (`param_name`)."""

    text: str | bytes
    statement: Statement
    parameters: dict[str, str]


def extended(text: str | bytes, ending: str) -> str | bytes:
    """The text with more at its end."""
    return text + ending if isinstance(text, str) else text + ending.encode()


_NONE: dict[str, str] = {}


def bind(query: str | bytes, parameters: Parameters, zone: tzinfo | None) -> Bound:
    """The query with its parameters; semicolons at the end are taken off unless they are data of an INSERT.

    What is sent is judged, not what was given: a parameter may hold the verb, a LIMIT, or the start of an INSERT's data.
    """
    if isinstance(query, bytes):
        return Bound(query, statement(query.decode("utf-8", "surrogateescape")), _NONE)
    bound, beside = _bound(query, parameters, zone) if parameters else (query, _NONE)
    if isinstance(bound, str):
        known = statement(bound)
        return Bound(known.bare, known, beside)
    known = statement(bound.decode("utf-8", "surrogateescape"))
    return Bound(known.bare.encode("utf-8", "surrogateescape"), known, beside)


def bind_query(query: str, parameters: Parameters, zone: tzinfo | None = None) -> tuple[str | bytes, dict[str, str]]:
    """The query's text and the parameters to send beside it.

    >>> bind_query("SELECT %(a)s", {"a": "it's"})
    ("SELECT 'it\\\\'s'", {})
    >>> bind_query("SELECT {a:Int32}", {"a": 5})
    ('SELECT {a:Int32}', {'param_a': '5'})
    """
    bound = bind(query, parameters, zone)
    return bound.text, bound.parameters


def _bound(
    query: str, parameters: Sequence[Any] | dict[str, Any], zone: tzinfo | None
) -> tuple[str | bytes, dict[str, str]]:
    if not isinstance(parameters, dict):
        if hasattr(parameters, "items"):
            parameters = dict(parameters)
        else:
            return _finalized(query, parameters, zone), {}
    raw = _raw_values(parameters) if "$" in query else {}
    plain = {name: value for name, value in parameters.items() if name not in raw} if raw else parameters
    beside: dict[str, str] = {}
    types = placeholder_types(query) if "{" in query else {}
    if raw:
        types = {name: kind for name, kind in types.items() if name not in raw}
    _refuse_markers(query, plain)
    plain = _precise(query, plain, types)
    if types:
        beside = {f"param_{name}": _for_server(value, types.get(name), zone) for name, value in plain.items()}
    elif plain:
        query = _finalized(query, plain, zone)
    return (_with_raw(query, raw) if raw else query), beside


def finalize_query(query: str, parameters: Parameters, server_tz: tzinfo | None = None) -> str:
    """The query with its parameters written into it, %s or %(name)s."""
    return statement(_finalized(query, parameters, server_tz)).bare


def _finalized(query: str, parameters: Parameters, server_tz: tzinfo | None) -> str:
    if not parameters:
        return query
    if isinstance(parameters, dict):
        return query % {name: query_literal(value, server_tz) for name, value in parameters.items()}
    return query % tuple(query_literal(value, server_tz) for value in parameters)


@lru_cache(maxsize=512)
def _placeholders(query: str) -> tuple[tuple[str, str], ...]:
    return tuple(PLACEHOLDER.findall(query))


def placeholder_types(query: str) -> dict[str, str]:
    """The types of the query's placeholders, by name; the first one counts."""
    types: dict[str, str] = {}
    for name, kind in _placeholders(query) if len(query) <= 4096 else PLACEHOLDER.findall(query):
        types.setdefault(name, kind)
    return types


def _for_server(value: Any, kind: str | None, zone: tzinfo | None) -> str:
    if kind is not None and "ate" in kind:  # DateTime or a type around it
        zone = zone_of(kind) or zone
        value = _with_precision(kind, value)
    return parameter_text(value, zone)


@lru_cache(maxsize=256)
def zone_of(kind: str) -> tzinfo | None:
    """The time zone that a type names, at whatever depth."""
    base, arguments = base_and_arguments(kind)
    if base.lower() in ("datetime", "datetime64"):
        named = next((item for item in arguments if item[:1] == "'" == item[-1:]), None)
        return find_zone(named[1:-1]) if named else None
    return next((zone for zone in map(zone_of, arguments) if zone is not None), None)


def _with_precision(kind: str, value: Any) -> Any:
    """The value with its microseconds kept wherever the type is DateTime64."""
    if value is None or "datetime64" not in kind.lower():
        return value
    base, arguments = base_and_arguments(kind)
    base = base.lower()
    if base == "variant" and isinstance(value, (datetime, DT64Param)):
        moments = [item for item in arguments if names_in(item) & {"datetime", "datetime32", "datetime64"}]
        return _with_precision(moments[0], value) if len(moments) == 1 else value
    if base == "datetime64":
        if isinstance(value, datetime):
            return DT64Param(value, zone_of(kind))
        if isinstance(value, DT64Param) and value.tz is None and zone_of(kind) is not None:
            value = copy.copy(value)
            value.tz = zone_of(kind)
    elif base == "array" and type(value) in (list, tuple):
        return type(value)(_with_precision(arguments[0], item) for item in value)
    elif base == "tuple" and type(value) is tuple:
        kinds = element_types(kind)
        if len(kinds) == len(value):
            return tuple(_with_precision(item_kind, item) for item_kind, item in zip(kinds, value, strict=True))
    elif base == "nested" and type(value) in (list, tuple):
        row_kind = f"Tuple({', '.join(element_types(kind))})"
        return type(value)(_with_precision(row_kind, item) for item in value)
    elif base == "map" and isinstance(value, dict) and common.get_setting("dict_parameter_format") == "map":
        key, item = arguments
        return {_with_precision(key, name): _with_precision(item, inner) for name, inner in value.items()}
    return value


def _precise(query: str, parameters: dict[str, Any], types: dict[str, str]) -> dict[str, Any]:
    """Parameters named `x_64` are `x` with microseconds, unless the query itself names `x_64`."""
    if not any(name.endswith("_64") for name in parameters):
        return parameters
    used = set(types) or {name for name in _PERCENT_NAME.findall(query) if name}
    renamed: dict[str, Any] = {}
    for name, value in parameters.items():
        if name.endswith("_64") and name not in used:
            if isinstance(value, datetime):
                name, value = name[:-3], DT64Param(value)
            elif isinstance(value, list) and value and isinstance(value[0], datetime):
                name, value = name[:-3], [DT64Param(item) for item in value]
        renamed[name] = value
    return renamed


def _is_marker(name: str) -> bool:
    return len(name) > 1 and name[0] == "$" == name[-1]


def _raw_values(parameters: dict[str, Any]) -> dict[str, bytes]:
    """The values that are put into the query as they are: bytes-like ones named `$name$`."""
    found: dict[str, bytes] = {}
    for name, value in parameters.items():
        if _is_marker(name) and not isinstance(value, int):
            try:
                found[name] = bytes(memoryview(value))
            except TypeError:
                continue
    return found


def _refuse_markers(query: str, parameters: dict[str, Any]) -> None:
    """A marker whose value isn't bytes would be read as a heredoc by ClickHouse, together with the next one."""
    for name in parameters:
        if not _is_marker(name) or name not in query:
            continue
        places, markers = _places_of(name, query)
        if len(places) > 1:
            raise ProgrammingError(
                f"The parameter {name!r} stands in the query {len(places)} times: ClickHouse takes what is between two "
                "$...$ of one name for text. Give the parameter a name without dollar signs."
            )
        before = places and any(marker.start < places[0].start for marker in markers)
        behind = places and name in query[places[0].start + 1 + len(name) :]
        if before or behind or (markers and not places and f"{{{name}:" in query):
            raise ProgrammingError(
                f"{name} is a parameter's name and stands elsewhere in the query too: ClickHouse takes what is between "
                "the two for text. Give the parameter a name without dollar signs, or take the other one out."
            )
        if markers and not places:
            raise ProgrammingError(
                f"{name} in a query is filled in with bytes (or a bytearray or memoryview), and its value isn't. "
                "For other values write {name:Type}, with a name without dollar signs."
            )


def _places_of(name: str, query: str) -> tuple[list[Token], list[Token]]:
    """Where the name stands as a placeholder, and where as a marker; inside of other names and of texts it is neither."""
    places: list[Token] = []
    markers: list[Token] = []
    for token in tokens(query):
        if token.kind == "parameter" and token.text.startswith(f"{{{name}:"):
            places.append(token)
        elif token.kind in ("heredoc", "sign") and query.startswith(name, token.start):
            markers.append(token)
    return places, markers


def _with_raw(query: str, values: dict[str, bytes]) -> bytes:
    """The query with the bytes put between pairs of their marker: `$a$` becomes `$a$...$a$`, a heredoc.

    In the middle of a name (`b$a$c`) it is no marker, for ClickHouse neither.
    """
    names = b"|".join(re.escape(name.encode()) for name in sorted(values, key=len, reverse=True))

    def with_value(match: re.Match[bytes]) -> bytes:
        marker = match.group()
        return marker + values[marker.decode()] + marker

    return re.sub(rb"(?<![A-Za-z0-9_])(?:" + names + rb")", with_value, query.encode())


def needs_form(text: str | bytes, parameters: dict[str, str], forced: bool) -> bool:
    """Whether query and parameters are sent as a form: too much for a URL, or the user wants it."""
    if forced:
        return True
    if not parameters or isinstance(text, bytes):
        return False
    if len(text) > MAX_FORM_QUERY_BYTES // 4 and len(text.encode()) > MAX_FORM_QUERY_BYTES:
        return False
    if sum(len(name) + len(value) for name, value in parameters.items()) < MAX_URL_PARAMETER_CHARS // 12:
        return False  # however many characters are escaped (one may become twelve)
    return len(urlencode(parameters, quote_via=quote)) > MAX_URL_PARAMETER_CHARS
