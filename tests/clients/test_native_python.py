"""clickhouse-driver and asynch: the native protocol by Python."""

from __future__ import annotations

import sys

import pytest
from clickhouse_driver import Client

from clients.expected_routes import ASYNCH, DRIVER, DRIVER_TYPES
from clients.routes import Routes
from clients.run_program import CLIENTS, expect_all, run_program
from harness.endpoint import Endpoint
from harness.gateway import Gateway

FOLDER = CLIENTS / "python"
# Of asynch's checks, those that insert nothing.
ASYNCH_READS = 12


def test_driver(native: Endpoint, subtests: pytest.Subtests) -> None:
    expect_all(run_program([sys.executable, "driver_program.py"], FOLDER, native), 33, subtests)


def test_ways_to_insert(server, native: Endpoint, subtests: pytest.Subtests) -> None:
    routes = Routes(server, native)
    report = run_program([sys.executable, "driver_inserts.py"], FOLDER, native)
    # Temporary tables have no checks of their own; one finds out within, and one goes on behind its errors.
    expect_all(report, len(DRIVER) - 1 + 2, subtests)
    routes.expect(report, DRIVER, subtests)


def test_types(server, native: Endpoint, subtests: pytest.Subtests) -> None:
    routes = Routes(server, native)
    report = run_program([sys.executable, "driver_types.py"], FOLDER, native)
    # Both nested tables are one check.
    expect_all(report, len(DRIVER_TYPES) - 1, subtests)
    routes.expect(report, DRIVER_TYPES, subtests)


def test_asynch(server, native: Endpoint, subtests: pytest.Subtests) -> None:
    routes = Routes(server, native)
    report = run_program([sys.executable, "asynch_program.py"], FOLDER, native)
    expect_all(report, len(ASYNCH) - 1 + ASYNCH_READS, subtests)
    routes.expect(report, ASYNCH, subtests)


def test_driver_without_events(gateway: Gateway, native: Endpoint) -> None:
    """The driver waits for events after each block even if it wants none. Of ClickHouse it gets none, and waits for ever."""
    settings = {"send_profile_events": 0, "insert_block_size": 2}
    where = {"host": native.host, "port": native.port, "user": native.user, "password": native.password}
    with Client(**where, database=native.database, settings=settings, send_receive_timeout=60) as client:
        client.execute("CREATE TABLE t (id UInt64) ENGINE = MergeTree ORDER BY id")
        for _ in range(2):
            assert client.execute("INSERT INTO t VALUES", [(number,) for number in range(5)]) == 5
        assert client.execute("SELECT count() FROM t") == [(10,)]
