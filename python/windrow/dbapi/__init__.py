"""The Python database API 2.0 (PEP 249) over the synchronous client.

    with windrow.dbapi.connect(host="localhost") as connection, connection.cursor() as cursor:
        cursor.execute("SELECT name FROM users WHERE id = %(id)s", {"id": 5})
        print(cursor.fetchall())

ClickHouse has no transactions of this kind: commit and rollback do nothing.
"""

from __future__ import annotations

from datetime import date, datetime, time
from typing import Any

from windrow._shared.errors import (
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    Warning,
)
from windrow.dbapi.connection import Connection

apilevel = "2.0"
threadsafety = 2
paramstyle = "pyformat"

Date = date
Time = time
Timestamp = datetime
Binary = bytes

__all__ = [
    "Binary",
    "Connection",
    "DataError",
    "DatabaseError",
    "Date",
    "DateFromTicks",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "Time",
    "TimeFromTicks",
    "Timestamp",
    "TimestampFromTicks",
    "Warning",
    "apilevel",
    "connect",
    "paramstyle",
    "threadsafety",
]


def DateFromTicks(ticks: float) -> date:  # noqa: N802 - the name is PEP 249's
    """The local date of a moment, in seconds since 1970."""
    return date.fromtimestamp(ticks)


def TimeFromTicks(ticks: float) -> time:  # noqa: N802 - the name is PEP 249's
    """The local time of day of a moment, in seconds since 1970."""
    return TimestampFromTicks(ticks).time()


def TimestampFromTicks(ticks: float) -> datetime:  # noqa: N802 - the name is PEP 249's
    """The local date and time of a moment, in seconds since 1970."""
    return datetime.fromtimestamp(ticks // 1)


def connect(
    host: str | None = None,
    database: str | None = None,
    username: str = "",
    password: str = "",
    port: int | None = None,
    **kwargs: Any,
) -> Connection:
    """A connection; further arguments are those of get_client, and what isn't one of them is a ClickHouse setting."""
    return Connection(host=host, database=database, username=username, password=password, port=port, **kwargs)
