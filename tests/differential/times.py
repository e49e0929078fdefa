"""Values of dates and times, in the many spellings that people have for them."""

from __future__ import annotations

import datetime
from random import Random

from differential.kind import Kind
from differential.language import Language

DATE_ODDITIES = (
    "1970-01-01", "1969-12-31", "1900-01-01", "1899-12-31", "2149-06-06", "2149-06-07", "2299-12-31", "2300-01-01",
    "2106-02-07",
    "9999-12-31", "0000-00-00", "0001-01-01", "2023-02-29", "2024-02-29", "2024-04-31", "2024-13-01", "2024-00-10",
    "2024-1-5", "2024-1-05",
    "24-01-05", "2024/01/05", "2024.01.05", "20240105", "05.01.2024", "01/05/2024", "5 Jan 2024", "Jan 5, 2024",
    "Fri, 05 Jan 2024 10:11:12 GMT",
    "2024-01-05 ", " 2024-01-05", "2024-01-05T", "2024-01-05x", "2024-01", "2024", "19000", "-1", "65535", "65536",
    "120530", "-25568", "1.5",
    "2024-01-05 10:11:12", "2024-01-05T10:11:12", "2024-01-05T10:11:12Z", "0", "00000000", "now", "2024-W01-5",
)  # fmt: skip


class Date(Kind):
    def __init__(self, name: str, first_year: int, last_year: int):
        self.name = name
        self.first = datetime.date(first_year, 1, 1).toordinal()
        self.last = datetime.date(last_year, 1, 1).toordinal()
        self.peculiar = DATE_ODDITIES

    def plain(self, rng: Random, language: Language) -> str:
        return language.quoted(datetime.date.fromordinal(rng.randint(self.first, self.last)).isoformat())


TIME_ODDITIES = (
    "2024-01-05 10:11:12", "2024-01-05 10:11:12.5", "2024-01-05 10:11:12.", "2024-01-05 10:11:12.123456789123",
    "2024-01-05 10:11", "2024-01-05 10",
    "2024-01-05  10:11:12", "2024-01-05T10:11:12", "2024-01-05t10:11:12", "2024-01-05T10:11:12Z",
    "2024-01-05T10:11:12z", "2024-01-05 10:11:12 Z",
    "2024-01-05T10:11:12+02:00", "2024-01-05T10:11:12+0200", "2024-01-05T10:11:12+02", "2024-01-05 10:11:12 +02:00",
    "2024-01-05 10:11:12-11:30",
    "2024-01-05T10:11:12.345Z", "2024-01-05T10:11:12,345Z", "2024-01-05T10:11:12+15:00", "2024-01-05T10:11:12+00:60",
    "2024-01-05 24:00:00",
    "2024-01-05 23:59:60", "2024-01-05 10:60:00", "2024-01-05 1:2:3", "2024-01-05 10:11:12 PM",
    "2024-01-05 10:11:12 UTC", "2024-01-05 10:11:12 CET",
    "20240105101112", "20240105", "20240105T101112", "2024-01-05T101112", "Jan 5 2024 10:11:12", "05/01/2024 10:11:12",
    "01/13/2024 10:11:12",
    "13/01/2024 10:11:12", "2024/01/05 10:11:12", "1700000000", "1700000000.5", "1700000000.123456789",
    "1700000000000", "1700000000000000", "170000000",
    "17000000000", "-1", "-1.5", "0", "4294967295", "4294967296", "-2208988800", "10413792000", "9223372036854775807",
    "1e9", "1.7e9",
    "1969-12-31 23:59:59", "1969-12-31 23:59:59.5", "1970-01-01 00:00:00", "1899-12-31 23:59:59",
    "1900-01-01 00:00:00", "2299-12-31 23:59:59.999999999",
    "2300-01-01 00:00:00", "2106-02-07 06:28:15", "2106-02-07 06:28:16", "2106-02-07T06:28:15Z",
    "2262-04-11 23:47:16.854775807", "2262-04-12 00:00:00",
    "0000-00-00 00:00:00", "1925-01-01 00:00:00", "1900-01-01T00:00:00+05:00", "1970-01-01 01:00:00+02:00",
    "2299-12-31T23:00:00-05:00",
    "2024-02-30 00:00:00", "2024-03-31 02:30:00", "2024-10-27 02:30:00", "2024-03-10 02:30:00", "2024-11-03 01:30:00",
    "2024-04-07 01:45:00",
    "2024-10-06 02:15:00", "1945-05-24 02:30:00", "1980-04-06 02:30:00", "2038-03-28 02:30:00", "2090-07-01 12:00:00",
    "1901-12-13 20:45:52",
    "1890-01-01 00:00:00", "2024-01-05 10:11:12 ", " 2024-01-05 10:11:12", "yesterday", "10:11:12",
    "2024-01-05 -10:11:12", "2024-01-05 10:11:12x",
)  # fmt: skip


# Zones whose local times are left to ClickHouse.
UNSETTLED = ("Australia/Lord_Howe",)


class DateTime(Kind):
    """`precision` is None for DateTime."""

    def __init__(self, zone: str = "", precision: int | None = None):
        arguments = [*([str(precision)] if precision is not None else []), *([f"'{zone}'"] if zone else [])]
        bare = "DateTime" if precision is None else "DateTime64"
        self.name = f"{bare}({', '.join(arguments)})" if arguments else bare
        self.precision, self.zone = precision, zone
        self.everyday = zone not in UNSETTLED
        self.peculiar = TIME_ODDITIES

    def plain(self, rng: Random, language: Language) -> str:
        # Local times of the years for which time zone databases agree; without a zone, all that DateTime can hold.
        seconds = rng.randint(978_307_200, 2_140_000_000) if self.zone else rng.randint(86_400, 4_200_000_000)
        if rng.random() < 0.15 and not (self.precision and language is Language.SQL):
            return str(seconds * 10 ** (self.precision or 0))
        moment = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
        separator = rng.choice(" T") if language is Language.JSON else " "
        text = moment.strftime(f"%Y-%m-%d{separator}%H:%M:%S")
        if self.precision and rng.random() < 0.8:
            digits = rng.randint(1, self.precision)
            text += f".{rng.randrange(10**digits):0{digits}d}"
        if language is Language.JSON and rng.random() < 0.3:
            text += rng.choice(("Z", "+00:00", "+02:00", "-0530"))
        return language.quoted(text)


DATES = (Date("Date", 1970, 2149), Date("Date32", 1900, 2299))
TIMES = (
    DateTime(), DateTime("UTC"), DateTime("Europe/Berlin"), DateTime("America/New_York"), DateTime("Asia/Kolkata"),
    DateTime("Australia/Lord_Howe"),
    DateTime("", 3), DateTime("", 0), DateTime("Europe/Berlin", 6), DateTime("UTC", 9), DateTime("America/New_York", 2),
)  # fmt: skip
