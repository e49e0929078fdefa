"""In which form values of a type are read and written: formats by type, for the whole process and for one query.

Patterns are those of clickhouse-connect: `*` stands for anything, case doesn't matter, and the beginning of a type's
name is enough: `"IPv"`, `"ip*"` and `"IPv4"` all mean IPv4.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from windrow._shared.errors import ProgrammingError

_NUMBERS = ("string", "native")
_INTERVALS = "Nanosecond Microsecond Millisecond Second Minute Hour Day Week Month Quarter Year".split()
_GEOMETRY = "Point Ring Polygon MultiPolygon LineString MultiLineString MultiPoint".split()

# Which formats values of a type have.
VALID_FORMATS: dict[str, Sequence[str]] = {
    **{f"{sign}{width}": _NUMBERS for width in (8, 16, 32) for sign in ("Int", "UInt")},
    "Int64": _NUMBERS,
    "UInt64": ("signed", "native"),
    **{f"{sign}{width}": _NUMBERS for width in (128, 256) for sign in ("Int", "UInt")},
    **dict.fromkeys(("Float32", "Float64", "BFloat16"), _NUMBERS),
    **dict.fromkeys((f"Interval{unit}" for unit in _INTERVALS), _NUMBERS),
    **dict.fromkeys(("Bool", "Boolean", "Decimal", "Decimal32", "Decimal64", "Decimal128", "Decimal256"), ("native",)),
    "String": ("bytes", "native"),
    "FixedString": ("string", "native"),
    **dict.fromkeys(("Date", "Date32", "DateTime", "DateTime64"), ("native", "int")),
    **dict.fromkeys(("Time", "Time64"), ("native", "string", "int", "time")),
    **dict.fromkeys(("Enum", "Enum8", "Enum16"), ("native", "int")),
    "UUID": ("string", "native"),
    "IPv4": ("string", "native", "int"),
    "IPv6": ("string", "native"),
    **dict.fromkeys(("Array", "Nested", "Nothing", "Dynamic", "QBit"), ("native",)),
    **dict.fromkeys(("SimpleAggregateFunction", "AggregateFunction"), ("native",)),
    "Tuple": ("tuple", "dict", "json", "native"),
    "Map": ("native", "dict", "pairs"),
    **dict.fromkeys(("Variant", "Geometry"), ("typed", "native")),
    "JSON": ("string", "native"),
    **dict.fromkeys(_GEOMETRY, ("native",)),
}

_default_read: dict[str, str] = {}
_default_write: dict[str, str] = {}


def set_default_formats(*args: str, **kwargs: str) -> None:
    """Formats for reading and writing, as pairs of a pattern and a format, or as keywords.

    >>> set_default_formats("IPv*", "string", UUID="string")
    >>> clear_all_formats()
    """
    formats = dict(zip(args[::2], args[1::2], strict=False)) if len(args) % 2 == 0 else None
    if formats is None:
        raise ProgrammingError("Formats come in pairs, a pattern of types and a format: the last pattern has no format")
    formats.update(kwargs)
    for pattern, name in formats.items():
        for type_name in _matching(pattern, name):
            _default_read[type_name] = name
            _default_write[type_name] = name


def clear_all_formats() -> None:
    """Every type in its native form again."""
    _default_read.clear()
    _default_write.clear()


def clear_default_format(pattern: str) -> None:
    """The native form again, for reading and writing, of the types that the pattern means."""
    clear_read_format(pattern)
    clear_write_format(pattern)


def set_read_format(pattern: str, fmt: str) -> None:
    """The form of values read from now on."""
    _default_read.update(dict.fromkeys(_matching(pattern), fmt))


def clear_read_format(pattern: str) -> None:
    """The native form again for values read."""
    for type_name in _matching(pattern):
        _default_read.pop(type_name, None)


def set_write_format(pattern: str, fmt: str) -> None:
    """The form in which values to be written are given from now on."""
    _default_write.update(dict.fromkeys(_matching(pattern), fmt))


def clear_write_format(pattern: str) -> None:
    """The native form again for values written."""
    for type_name in _matching(pattern):
        _default_write.pop(type_name, None)


def read_formats(formats: Mapping[str, str] | None = None) -> dict[str, str]:
    """Formats by the names of types: the query's where its patterns mean the type, else the process's."""
    return _formats(_default_read, formats)


def write_formats(formats: Mapping[str, str] | None = None) -> dict[str, str]:
    """As `read_formats`, of values that are inserted."""
    return _formats(_default_write, formats)


def by_type(formats: Mapping[str, str]) -> dict[str, str]:
    """The formats that patterns give, by the names of types. The first pattern that means a type counts."""
    return _spelled_out(tuple(formats.items())).copy()


def _formats(defaults: dict[str, str], formats: Mapping[str, str] | None) -> dict[str, str]:
    if not formats:
        return defaults.copy()
    return {**defaults, **_spelled_out(tuple(formats.items()))}


@lru_cache(maxsize=256)
def _spelled_out(formats: tuple[tuple[str, str], ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for pattern, name in reversed(formats):
        compiled = _pattern(pattern)
        found.update({type_name: name for type_name in VALID_FORMATS if compiled.match(type_name)})
    return found


def _pattern(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern.replace("*", ".*"), re.IGNORECASE)


def _matching(pattern: str, name: str | None = None) -> list[str]:
    compiled = _pattern(pattern)
    found = [type_name for type_name in VALID_FORMATS if compiled.match(type_name)]
    if not found:
        raise ProgrammingError(
            f"No type of ClickHouse matches {pattern!r}: name a type (UUID), or several with * (IPv*)"
        )
    invalid = [type_name for type_name in found if name is not None and name not in VALID_FORMATS[type_name]]
    if invalid:
        raise ProgrammingError(f"{', '.join(invalid)} can't be given as {name!r}: there is {_formats_of(invalid)}")
    return found


def _formats_of(type_names: Sequence[str]) -> str:
    """The formats that all of these types have."""
    common = set(VALID_FORMATS[type_names[0]]).intersection(*(VALID_FORMATS[name] for name in type_names[1:]))
    return ", ".join(sorted(common))


def to_json(value: Any) -> bytes:
    """JSON text without spaces; what JSON has no word for is written as text."""
    return json.dumps(value, separators=(",", ":"), default=_plain).encode()


def _plain(value: Any) -> Any:
    if not isinstance(value, bytes):
        return str(value)
    try:
        return json.loads(value)  # a JSON column inside of a JSON column
    except ValueError:
        return value.decode("utf-8", "backslashreplace")
