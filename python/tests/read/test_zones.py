"""Times on the clocks of all zones, at every moment: as `datetime.fromtimestamp` says, which is asked rarely."""

from __future__ import annotations

import random
import struct
import subprocess
import sys
import zoneinfo
from datetime import datetime, timedelta, timezone, tzinfo

import pytest
from read.results import block_of, rows, told

ZONES = [
    "Europe/Berlin",
    "America/New_York",
    "Australia/Lord_Howe",  # half an hour of summer time
    "Asia/Kathmandu",
    "Africa/Monrovia",  # an offset of seconds until 1972
    "Africa/Casablanca",  # clocks change four times a year
    "Pacific/Apia",  # a day left out
    "America/St_Johns",
    "Antarctica/Troll",
    "Europe/Dublin",  # winter is the exception
]


def seconds_block(name: str, moments: list[int]) -> bytes:
    return block_of(len(moments), ("x", f"DateTime('{name}')", struct.pack(f"<{len(moments)}I", *moments)))


def ticks_block(type_name: str, ticks: list[int]) -> bytes:
    return block_of(len(ticks), ("x", type_name, struct.pack(f"<{len(ticks)}q", *ticks)))


@pytest.mark.parametrize("name", ZONES)
def test_every_moment(name: str) -> None:
    zone = zoneinfo.ZoneInfo(name)
    chance = random.Random(20)
    moments = [chance.randrange(2**32) for _ in range(3000)]
    # Around all hours at which clocks may change in one year: each quarter of an hour, and a second off it.
    start = int(datetime(2024, 1, 1, tzinfo=timezone.utc).timestamp())
    moments += [start + quarter * 900 + off for quarter in range(366 * 96) for off in (-1, 0)]
    found = [row[0] for row in rows(seconds_block(name, moments))]
    assert [told(value) for value in found] == [told(datetime.fromtimestamp(moment, zone)) for moment in moments]


@pytest.mark.parametrize("name", ZONES)
def test_parts_of_a_second_long_ago_and_far_ahead(name: str) -> None:
    zone = zoneinfo.ZoneInfo(name)
    chance = random.Random(21)
    first, last = -2_208_988_800_000, 10_413_791_999_999  # ClickHouse's 1900 to 2299
    ticks = [chance.randrange(first, last) for _ in range(3000)]
    found = [row[0] for row in rows(ticks_block(f"DateTime64(3, '{name}')", ticks))]
    expected = [datetime.fromtimestamp(tick // 1000, zone).replace(microsecond=tick % 1000 * 1000) for tick in ticks]
    assert [told(value) for value in found] == [told(value) for value in expected]


def test_naive_times_of_all_of_pythons_years() -> None:
    chance = random.Random(22)
    first, last = -62_135_596_800, 253_402_300_799
    seconds = [first, last, 0, -1, *(chance.randrange(first, last) for _ in range(20000))]
    found = [row[0] for row in rows(ticks_block("DateTime64(0)", seconds))]
    assert found == [datetime(1970, 1, 1) + timedelta(seconds=second) for second in seconds]


@pytest.mark.parametrize("second", [-62_135_596_801, 253_402_300_800, 2**63 - 1, -(2**63)])
def test_a_time_that_python_has_no_year_for(second: int) -> None:
    with pytest.raises(ValueError, match="out of Python's range"):
        rows(ticks_block("DateTime64(0)", [second]))


class Odd(tzinfo):
    """A zone of the program's own, of which nothing is known but what it answers."""

    def utcoffset(self, moment: datetime | None) -> timedelta:
        return timedelta(hours=1 if moment is None or moment.minute % 2 else 2)

    def dst(self, moment: datetime | None) -> timedelta:
        return timedelta(0)

    def tzname(self, moment: datetime | None) -> str:
        return "odd"

    def fromutc(self, moment: datetime) -> datetime:
        return moment + timedelta(hours=5)


def test_a_zone_of_the_programs_own_is_always_asked() -> None:
    moments = list(range(0, 6000, 7))
    found = rows(ticks_block("DateTime64(0)", moments), column_tzs={"x": Odd()})
    assert [row[0].replace(tzinfo=None) for row in found] == [
        datetime.fromtimestamp(moment, Odd()).replace(tzinfo=None) for moment in moments
    ]


def test_fixed_offsets() -> None:
    zone = timezone(timedelta(hours=-3, minutes=-30))
    found = rows(ticks_block("DateTime64(3)", [-1, 0, 1]), column_tzs={"x": zone})
    assert [row[0] for row in found] == [datetime.fromtimestamp(tick / 1000, zone) for tick in (-1, 0, 1)]
    assert all(row[0].tzinfo is zone for row in found)


OTHER_CLASSES = """
import datetime

class Date(datetime.date):
    pass

class DateTime(datetime.datetime):
    pass

datetime.date, datetime.datetime = Date, DateTime

import struct
from read.results import block_of, rows

data = block_of(
    2,
    ("day", "Date", struct.pack("<2H", 0, 65535)),
    ("at", "DateTime64(6)", struct.pack("<2q", -1, 10**15)),
    ("there", "DateTime('Europe/Berlin')", struct.pack("<2I", 1729989000, 1729992600)),
    ("long", "Time", struct.pack("<2i", -1, 90000)),
)
for row in rows(data):
    print([type(value).__name__ for value in row], *row, row[2].fold)
"""


def test_classes_that_took_the_place_of_pythons_own() -> None:
    """As libraries do that stop the clock; it is also the way on versions of Python whose fast way isn't known."""
    found = subprocess.run([sys.executable, "-c", OTHER_CLASSES], capture_output=True, text=True, env=environment())
    assert found.stdout.splitlines() == [
        "['Date', 'DateTime', 'DateTime', 'timedelta'] 1970-01-01 1969-12-31 23:59:59.999999"
        " 2024-10-27 02:30:00+02:00 -1 day, 23:59:59 0",
        "['Date', 'DateTime', 'DateTime', 'timedelta'] 2149-06-06 2001-09-09 01:46:40"
        " 2024-10-27 02:30:00+01:00 1 day, 1:00:00 1",
    ], found.stderr


def environment() -> dict[str, str]:
    import os

    return {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
