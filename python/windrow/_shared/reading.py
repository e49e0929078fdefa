"""What a query's arguments mean for the values of its result: formats, encoding, NULL and time zones, in one object."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timezone, tzinfo
from functools import lru_cache
from typing import Any

from windrow._core import ReadOptions
from windrow._shared import formats
from windrow._shared.errors import ProgrammingError
from windrow._shared.timezones import TZDATA_HINT, find_zone, is_utc_timezone, local_timezone

TZ_MODES = ("naive_utc", "aware", "schema")


def read_options(
    *,
    query_formats: Mapping[str, str] | None = None,
    column_formats: Mapping[str, str | Mapping[str, str]] | None = None,
    encoding: str | None = None,
    use_none: bool | None = True,
    query_tz: str | tzinfo | None = None,
    column_tzs: Mapping[str, str | tzinfo] | None = None,
    tz_mode: str | None = "naive_utc",
    response_tz: tzinfo | None = None,
    server_tz: tzinfo = timezone.utc,
    apply_server_tz: bool = False,
) -> ReadOptions:
    """The options of one query. Columns are named as the server names them.

    The zone of a time is the first of: the column's in `column_tzs`, its type's, `query_tz`, `response_tz`, `server_tz`
    if `apply_server_tz`, this machine's. In UTC, times are naive unless `tz_mode` is "aware"; with "schema" they are
    aware where `column_tzs` or the type names a zone, and else naive. ProgrammingError for an unknown zone or mode.
    """
    mode = "naive_utc" if tz_mode is None else tz_mode
    fallback = _zone("query_tz", query_tz) or response_tz or (server_tz if apply_server_tz else local_timezone())
    none = use_none is None or use_none
    by_type = formats.read_formats(query_formats)
    if not (by_type or column_formats or encoding or column_tzs):
        return _plain(none, _shown(fallback, mode), mode)
    return ReadOptions(
        formats=by_type,
        column_formats=_column_formats(column_formats),
        encoding=encoding,
        use_none=none,
        timezone=_shown(fallback, mode),
        column_timezones={name: _column_zone(zone) for name, zone in (column_tzs or {}).items()},
        tz_mode=mode,
    )


@lru_cache(maxsize=64)
def _plain(use_none: bool, zone: tzinfo | None, mode: str) -> ReadOptions:
    return ReadOptions(use_none=use_none, timezone=zone, tz_mode=mode)


@lru_cache(maxsize=64)
def _shown(fallback: tzinfo, mode: str) -> tzinfo | None:
    """The zone of times whose type names none; None for naive ones."""
    if mode not in TZ_MODES:
        raise ProgrammingError(f"tz_mode={mode!r} isn't known: use one of {', '.join(TZ_MODES)}")
    if mode == "schema" or (mode == "naive_utc" and is_utc_timezone(fallback)):
        return None
    return fallback


def _column_formats(given: Mapping[str, str | Mapping[str, str]] | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, form in (given or {}).items():
        found[name] = form if isinstance(form, str) else formats.by_type(form)
    return found


def _column_zone(zone: str | tzinfo) -> tzinfo:
    found = _zone("column_tz", zone)
    if found is None:
        raise ProgrammingError(f"column_tz {zone!r} is not a time zone")
    return found


def _zone(argument: str, zone: str | tzinfo | None) -> tzinfo | None:
    if not isinstance(zone, str):
        return zone
    found = find_zone(zone)
    if found is None:
        raise ProgrammingError(f"{argument} {zone} is not recognized; {TZDATA_HINT}")
    return found
