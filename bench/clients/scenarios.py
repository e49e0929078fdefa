"""The eight scenarios of the article on the async client, for any client with clickhouse-connect's methods."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

START = datetime(2026, 1, 1)
# Small tables: the clients are measured, not the server.
EVENTS = 50_000
USERS = 1_000

SETUP = [
    "CREATE DATABASE IF NOT EXISTS bench",
    "DROP TABLE IF EXISTS bench.users SYNC",
    "CREATE TABLE bench.users (id UInt32, name String, country LowCardinality(String)) ORDER BY id",
    f"INSERT INTO bench.users SELECT number, concat('user ', toString(number)), ['DE', 'FR', 'US', 'JP'][number % 4 + 1]"
    f" FROM numbers({USERS})",
    "DROP TABLE IF EXISTS bench.events SYNC",
    "CREATE TABLE bench.events (id UInt64, user_id UInt32, kind LowCardinality(String), page String, value Float64,"
    " at DateTime) ORDER BY (user_id, at)",
    f"INSERT INTO bench.events SELECT number, number % {USERS}, ['view', 'click', 'buy'][number % 3 + 1],"
    f" concat('/page/', toString(number % 500)), number / 7, toDateTime('2026-01-01 00:00:00') + number"
    f" FROM numbers({EVENTS})",
]

#: Ten columns of the types that tables are made of; 60 bytes a row in Native.
ROWS_OF_MILLION = 1_000_000
MILLION = (
    "SELECT number AS id, toInt32(number) AS a, number / 3 AS f, toString(number) AS s,"
    " concat('user-', toString(number % 1000)) AS u, toDateTime('2024-01-01 00:00:00') + number AS at,"
    " toDate('2020-01-01') + number % 3000 AS d, if(number % 7 = 0, NULL, number) AS n,"
    " toLowCardinality(toString(number % 100)) AS lc, toDateTime64('2024-01-01 00:00:00', 3) + number / 10 AS at64"
    f" FROM numbers({ROWS_OF_MILLION})"
)
#: A gigabyte, a kilobyte a row.
LARGE, LARGE_ROWS = "SELECT number, repeat('x', 1000) AS text FROM numbers(1000000)", 1_000_000
SELECT_100 = "SELECT id, user_id, kind, page, value, at FROM bench.events LIMIT 100"
FILTERED = (
    "SELECT id, kind, page, value, at FROM bench.events WHERE user_id = %(user)s AND value > %(value)s ORDER BY at LIMIT 100"
)
JOINED = (
    "SELECT u.name, u.country, count() AS events, sum(e.value) AS total FROM bench.events AS e"
    " JOIN bench.users AS u ON u.id = e.user_id WHERE e.user_id < %(below)s GROUP BY u.name, u.country"
    " ORDER BY total DESC LIMIT 50"
)
AGGREGATED = (
    "SELECT toStartOfHour(at) AS hour, kind, count() AS events, avg(value) AS mean, uniq(user_id) AS users"
    " FROM bench.events GROUP BY hour, kind ORDER BY hour, kind"
)
SELECT_10000 = "SELECT id, user_id, kind, page, value, at FROM bench.events LIMIT 10000"
INSERT_COLUMNS = ["id", "user_id", "kind", "page", "value", "at"]


@dataclass(frozen=True)
class Scenario:
    """One line of the article's table."""

    name: str
    title: str
    in_flight: int
    operations: int
    #: Names the method to call and its arguments, for the n-th operation of a run.
    call: Callable[[int, str], tuple[str, tuple[Any, ...], dict[str, Any]]]
    #: How many rows come back, so that an empty answer is not taken for a fast one.
    rows: int | None = None


def inserted_rows(number: int) -> list[list[Any]]:
    return [
        [n, n % USERS, "view", f"/page/{n % 500}", n / 7, START + timedelta(seconds=n)] for n in range(number)
    ]


ROWS = {count: inserted_rows(count) for count in (10, 100)}


def insert(count: int, target: str) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    return "insert", (target, ROWS[count]), {"column_names": INSERT_COLUMNS}


def query(text: str, **parameters: Any) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    return "query", (text,), {"parameters": parameters} if parameters else {}


def filtered(number: int) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    chance = random.Random(number)
    return query(FILTERED, user=chance.randrange(USERS), value=chance.random() * 1000)


def mixed(number: int, target: str) -> tuple[str, tuple[Any, ...], dict[str, Any]]:
    kinds = [lambda: query(SELECT_100), lambda: filtered(number), lambda: insert(10, target), lambda: query(SELECT_10000)]
    return kinds[number % 4]()


SCENARIOS = [
    Scenario("select_100", "Select 100 rows", 1, 200, lambda n, t: query(SELECT_100), 100),
    Scenario("filtered", "Filtered query", 16, 200, lambda n, t: filtered(n)),
    Scenario("joined", "Join query", 16, 150, lambda n, t: query(JOINED, below=50 + n % 50), 50),
    Scenario("aggregated", "Aggregation", 32, 150, lambda n, t: query(AGGREGATED), 42),
    Scenario("select_10000", "Large result (10,000 rows)", 4, 100, lambda n, t: query(SELECT_10000), 10_000),
    Scenario("insert_10", "Insert 10 rows", 32, 150, lambda n, t: insert(10, t)),
    Scenario("insert_100", "Insert 100 rows", 32, 150, lambda n, t: insert(100, t)),
    Scenario("mixed", "Mixed workload", 32, 200, mixed),
]
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
