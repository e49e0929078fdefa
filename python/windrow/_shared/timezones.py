"""Which tzinfo a time zone's name stands for, and which zones count as UTC."""

from __future__ import annotations

import os
import re
import zoneinfo
from datetime import datetime, timedelta, timezone, tzinfo
from functools import lru_cache

from windrow._shared.errors import ProgrammingError

UTC_NAMES = frozenset(
    (
        "UTC Etc/UTC UCT Etc/UCT GMT Etc/GMT GMT0 GMT-0 GMT+0 Etc/GMT0 Etc/GMT-0 Etc/GMT+0 "
        "Universal Etc/Universal Zulu Etc/Zulu Greenwich Etc/Greenwich"
    ).split()
)
TZDATA_HINT = "install the package tzdata if this system has no zone database"
# What a server without a time zone database calls its zones.
_FIXED = re.compile(r"Fixed/UTC([+-])(\d\d):(\d\d):(\d\d)\Z")


def resolve_zone(name: str) -> tzinfo:
    """The zone of that name; names that mean UTC give `timezone.utc`. ProgrammingError when there is none.

    >>> resolve_zone("Etc/UTC") is timezone.utc
    True
    """
    zone = find_zone(name)
    if zone is None:
        raise ProgrammingError(f"{name} is not recognized as a time zone; {TZDATA_HINT}")
    return zone


@lru_cache(maxsize=512)
def find_zone(name: str) -> tzinfo | None:
    """The zone of that name, or None."""
    if name in UTC_NAMES:
        return timezone.utc
    fixed = _FIXED.match(name)
    if fixed:
        hours, minutes, seconds = (int(part) for part in fixed.groups()[1:])
        if hours < 24 and minutes < 60 and seconds < 60:
            offset = timedelta(hours=hours, minutes=minutes, seconds=seconds)
            return timezone(-offset if fixed.group(1) == "-" else offset) if offset else timezone.utc
    try:
        return zoneinfo.ZoneInfo(name)
    except (ValueError, OSError, zoneinfo.ZoneInfoNotFoundError):
        return None


def is_utc_timezone(zone: tzinfo | str | None) -> bool:
    """Whether the zone is UTC by any of its names."""
    if zone is None:
        return False
    if isinstance(zone, str):
        return zone in UTC_NAMES
    return zone is timezone.utc or zone.tzname(None) in UTC_NAMES or getattr(zone, "key", None) in UTC_NAMES


def is_dst_safe(zone: tzinfo) -> bool:
    """Whether moments convert to and from the zone without doubt: all but zones that only know today's offset."""
    return isinstance(zone, timezone) or find_zone(getattr(zone, "key", None) or zone.tzname(None) or "") is not None


@lru_cache(maxsize=1)
def local_timezone() -> tzinfo:
    """This machine's zone: the variable TZ, else the system's."""
    zone = find_zone(os.environ["TZ"]) if os.environ.get("TZ") else None
    if zone is None:
        zone = _system_zone()
    return timezone.utc if is_utc_timezone(zone) else zone


def _system_zone() -> tzinfo:
    try:
        linked = os.path.realpath("/etc/localtime")
        if "zoneinfo/" in linked:
            named = find_zone(linked.split("zoneinfo/", 1)[1])
            if named is not None:
                return named
    except OSError:
        pass
    system = datetime.now().astimezone().tzinfo
    assert system is not None, "astimezone() always sets a zone"
    return find_zone(system.tzname(None) or "") or system


def column_timezone(name: str) -> tzinfo:
    """The zone that a column's type names. ProgrammingError when this machine doesn't know it."""
    zone = find_zone(name)
    if zone is None:
        raise ProgrammingError(
            f"A column has times of the zone {name}, which isn't known on this machine; {TZDATA_HINT}"
        )
    return zone
