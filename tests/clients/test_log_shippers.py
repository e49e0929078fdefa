"""Requests as log shippers send them: Vector's clickhouse sink."""

from __future__ import annotations

import gzip
import json

import pytest

from clients.expected_routes import VECTOR
from clients.routes import Routes
from clients.run_program import ProgramReport
from harness.endpoint import Endpoint, Reply
from harness.eventually import eventually

EVENTS = [
    {
        "timestamp": f"2024-02-29T12:34:{number:02}.789Z",
        "message": f"line {number} of ‘many’\twith \"quotes\" and\nbreaks",
        "host": "web-1",
        "level": "info" if number % 2 else None,
        "pid": 100 + number,
        "tags": {"source": "file", "n": str(number)},
        "source_type": "dropped: the table has no such column",
    }
    for number in range(50)
]
COLUMNS = (
    "(timestamp DateTime64(3, 'UTC'), message String, host LowCardinality(String), level Nullable(String), pid UInt32,"
    " tags Map(String, String))"
)
HEADERS = {"Content-Type": "application/x-ndjson", "Content-Encoding": "gzip"}
# What each of its options adds to the URL.
ALWAYS = {"input_format_import_nested_json": 1}
LENIENT = {"input_format_skip_unknown_fields": 1, "date_time_input_format": "best_effort"}
# Newer versions name database and table by parameters, older ones in the text.
BY_PARAMETER = "INSERT INTO {database:Identifier}.{table:Identifier} FORMAT JSONEachRow"
BY_NAME = 'INSERT INTO "%s"."%s" FORMAT JSONEachRow'
ASYNC = {"async_insert": 1, "wait_for_async_insert": 1}
WAYS = {
    "by_name": {},
    "by_name_waiting": ASYNC,
    "by_name_not_waiting": {"async_insert": 1, "wait_for_async_insert": 0},
    "by_name_random_shard": {"insert_distributed_one_random_shard": 1},
    "by_parameter": {},
    "by_parameter_waiting": ASYNC,
}


def send(endpoint: Endpoint, table: str, events: list[dict], settings: dict[str, object]) -> Reply:
    body = gzip.compress("".join(json.dumps(event) + "\n" for event in events).encode())
    if table.startswith("by_parameter"):
        named = {"param_database": endpoint.database, "param_table": table}
        return endpoint.request(BY_PARAMETER, body, {**ALWAYS, **settings, **named}, headers=HEADERS)
    return endpoint.request(BY_NAME % (endpoint.database, table), body, {**ALWAYS, **settings}, headers=HEADERS)


def stored_rows(endpoint: Endpoint, table: str) -> list[dict]:
    return [json.loads(line) for line in endpoint.sql(f"SELECT * FROM {table} ORDER BY pid FORMAT JSONEachRow").splitlines()]


def as_stored(event: dict) -> dict:
    stored = {name: value for name, value in event.items() if name != "source_type"}
    return {**stored, "timestamp": event["timestamp"].replace("T", " ").removesuffix("Z")}


def test_vector(server, tested: Endpoint, subtests: pytest.Subtests) -> None:
    routes = Routes(server, tested)
    expected = [as_stored(event) for event in EVENTS]
    for table, settings in WAYS.items():
        with subtests.test(table):
            tested.sql(f"CREATE TABLE {table} {COLUMNS} ENGINE = MergeTree ORDER BY pid")
            reply = send(tested, table, EVENTS, {**LENIENT, **settings})
            assert (reply.status, reply.text) == (200, "")
            eventually(lambda: stored_rows(tested, table) == expected, f"the events are in {table}")
    with subtests.test("a bad event is 27"):
        tested.sql(f"CREATE TABLE by_name_bad {COLUMNS} ENGINE = MergeTree ORDER BY pid")
        bad = send(tested, "by_name_bad", [*EVENTS, {"pid": "none"}], LENIENT)
        assert (bad.status, bad.code) == (400, 27) and "(at row 51)" in bad.text, bad.text
        assert tested.sql("SELECT count() FROM by_name_bad") == "0"
    routes.expect(ProgramReport([], dict.fromkeys([*WAYS, "by_name_bad"], 1)), VECTOR, subtests)
