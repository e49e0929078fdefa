"""How Python values are written into SQL (`query_literal`) and into parameters of the URL (`parameter_text`).

A moment without a time zone is the wall time that ClickHouse will read; one with a zone is moved into the zone of its
target first. The two forms differ where ClickHouse reads them differently: a parameter of type String stands there
without quotes, NULL is \\N, and inside of an array everything is a literal again.
"""

from __future__ import annotations

import ipaddress
import json
import uuid
from datetime import date, datetime, time, timedelta, timezone, tzinfo
from enum import Enum
from typing import Any

from windrow import common
from windrow._shared.timezones import is_utc_timezone

MAX_NESTING = 100
TO_THE_SECOND = "%Y-%m-%d %H:%M:%S"
ESCAPES = str.maketrans({"\\": "\\\\", "'": "\\'", "`": "\\`", "\t": "\\\t", "\n": "\\\n"})


class DT64Param:
    """A moment that is sent with its microseconds; for columns of type DateTime64.

    >>> from datetime import datetime
    >>> DT64Param(datetime(2024, 5, 1, 12, 0, 0, 250000)).format(None, True)
    '2024-05-01 12:00:00.250000'
    """

    def __init__(self, value: datetime, tz: tzinfo | None = None) -> None:
        self.value = value
        self.tz = tz

    def format(self, tz: tzinfo | None, top_level: bool) -> str:
        """The text for ClickHouse: in this parameter's zone, else in `tz`; in quotes unless at top level."""
        zone = self.tz or tz
        value = self.value
        if zone is not None and (_binds_as_of_old() or value.utcoffset() is not None):
            value = value.astimezone(zone)
        text = value.strftime(f"{TO_THE_SECOND}.%f")
        nanosecond = getattr(value, "nanosecond", 0)  # pandas.Timestamp has it
        if nanosecond:
            text += f"{nanosecond:03d}"
        return text if top_level else f"'{text}'"


class MapParam(dict[Any, Any]):
    """A dict that is written as a Map, whatever `dict_parameter_format` says of dicts."""


def query_literal(value: Any, zone: tzinfo | None = timezone.utc, depth: int = 0) -> Any:
    """The value as SQL; what isn't known stays as it is (its `str` is taken by the formatting)."""
    kind = type(value)
    if kind is str:
        return f"'{value.translate(ESCAPES)}'"
    if kind is int or kind is float:
        return value
    if value is None:
        return "NULL"
    if isinstance(value, datetime):
        return f"'{_wall_time(value, zone).strftime(TO_THE_SECOND)}'"
    if _is_json(value):
        return f"'{_json(value).translate(ESCAPES)}'"
    return _literal(value, zone, depth, query_literal)


def moment_of_literal(value: datetime, server_zone: tzinfo | None, zone: tzinfo) -> datetime | None:
    """The moment that `query_literal(value, server_zone)` stands for in a column of that zone, with all its digits.
    None for a wall time that the zone has twice or never.

    >>> moment_of_literal(datetime(2024, 5, 1, 12), timezone.utc, timezone(timedelta(hours=9))).isoformat()
    '2024-05-01T12:00:00+09:00'
    """
    wall = _wall_time(value, server_zone)
    first, second = (wall.replace(tzinfo=zone, fold=fold) for fold in (0, 1))
    return first if first.utcoffset() == second.utcoffset() else None


def _wall_time(value: datetime, zone: tzinfo | None) -> datetime:
    if _binds_as_of_old():
        is_moved = value.tzinfo is not None or not is_utc_timezone(zone)
    else:
        is_moved = value.utcoffset() is not None
    return value.astimezone(zone) if is_moved else value


def parameter_text(value: Any, zone: tzinfo | None = timezone.utc, depth: int = 0) -> str:
    """The value of a server-side parameter, `param_name`; inside of containers (`depth` > 0) values are literals."""
    top = depth == 0
    kind = type(value)
    if kind is str:
        text = value.translate(ESCAPES)
        return text if top else f"'{text}'"
    if kind is int or kind is float:
        return str(value)
    if value is None:
        return "\\N" if top else "NULL"
    if isinstance(value, datetime):
        if _binds_as_of_old() or value.utcoffset() is not None:
            value = value.astimezone(zone)
        text = value.strftime(TO_THE_SECOND)
        return text if top else f"'{text}'"
    if _is_json(value):
        return _json(value)
    text = str(_literal(value, zone, depth, parameter_text))
    composite = isinstance(value, (list, tuple, dict)) or (isinstance(value, Enum) and not isinstance(value, str))
    return text[1:-1] if top and not composite and text[:1] == "'" == text[-1:] else text


def _literal(value: Any, zone: tzinfo | None, depth: int, write: Any) -> Any:
    """What both forms have in common; `write` writes what is inside."""
    if depth > MAX_NESTING:
        raise ValueError(f"parameters may be nested {MAX_NESTING} deep")
    if isinstance(value, str):
        return f"'{str.translate(value, ESCAPES)}'"
    if isinstance(value, Enum):
        return write(value.value, zone, depth + 1 if write is parameter_text else depth)
    if isinstance(value, (bytes, bytearray)):
        return "'" + "".join(f"\\x{byte:02x}" for byte in value) + "'"
    if isinstance(value, DT64Param):
        return value.format(zone, False)
    if isinstance(value, date):
        return f"'{value.isoformat()}'"
    if isinstance(value, (time, timedelta)):
        return f"'{time_text(value)}'"
    if isinstance(value, (uuid.UUID, ipaddress.IPv4Address, ipaddress.IPv6Address)):
        return f"'{value}'"
    if isinstance(value, list):
        return "[" + ", ".join(str(write(item, zone, depth + 1)) for item in value) + "]"
    if isinstance(value, tuple):
        return "(" + ", ".join(str(write(item, zone, depth + 1)) for item in value) + ")"
    if isinstance(value, dict):
        pairs = (f"{write(key, zone, depth + 1)}:{write(item, zone, depth + 1)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    return value


def setting_literal(value: Any) -> str:
    """A setting's value as ClickHouse reads it: maps and arrays are literals with quoted texts."""
    if value is True or value is False:
        return "1" if value else "0"
    if isinstance(value, dict):
        pairs = (f"{query_literal(str(key), None)}: {query_literal(item, None)}" for key, item in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, (list, tuple)):
        return str(query_literal(value, None))
    return str(value)


def time_text(value: time | timedelta) -> str:
    """[-]HH:MM:SS with as many decimals as there are, for the types Time and Time64."""
    if isinstance(value, time):
        whole_ns = ((value.hour * 60 + value.minute) * 60 + value.second) * 10**9 + value.microsecond * 1000
    else:
        whole_ns = (value.days * 86400 + value.seconds) * 10**9 + value.microseconds * 1000
        whole_ns += getattr(value, "nanoseconds", 0)
    sign = "-" if whole_ns < 0 else ""
    seconds, rest_ns = divmod(abs(whole_ns), 10**9)
    text = f"{sign}{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
    if rest_ns % 1000:
        return f"{text}.{rest_ns:09d}"
    return f"{text}.{rest_ns // 1000:06d}" if rest_ns else text


def _is_json(value: Any) -> bool:
    is_dict = isinstance(value, dict) and not isinstance(value, MapParam)
    return is_dict and common.get_setting("dict_parameter_format") == "json"


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _binds_as_of_old() -> bool:
    return bool(common.get_setting("naive_datetime_binding") == "legacy")
