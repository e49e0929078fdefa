"""clickhouse-connect, blocking and asynchronous."""

from __future__ import annotations

import sys

import pytest

from clients.expected_routes import PYTHON_ASYNC, PYTHON_SYNC, PYTHON_TYPES
from clients.routes import Routes
from clients.run_program import CLIENTS, expect_all, run_program
from harness.endpoint import Endpoint

FOLDER = CLIENTS / "python"


def test_blocking(tested: Endpoint, subtests: pytest.Subtests) -> None:
    expect_all(run_program([sys.executable, "sync_program.py"], FOLDER, tested), 27, subtests)


def test_asynchronous(tested: Endpoint, subtests: pytest.Subtests) -> None:
    expect_all(run_program([sys.executable, "async_program.py"], FOLDER, tested), 13, subtests)


def test_ways_to_insert_blocking(server, tested: Endpoint, subtests: pytest.Subtests) -> None:
    routes = Routes(server, tested)
    report = run_program([sys.executable, "sync_inserts.py"], FOLDER, tested)
    expect_all(report, len(PYTHON_SYNC) + 1, subtests)
    routes.expect(report, PYTHON_SYNC, subtests)


def test_ways_to_insert_asynchronous(server, tested: Endpoint, subtests: pytest.Subtests) -> None:
    routes = Routes(server, tested)
    report = run_program([sys.executable, "async_inserts.py"], FOLDER, tested)
    expect_all(report, len(PYTHON_ASYNC) + 1, subtests)
    routes.expect(report, PYTHON_ASYNC, subtests)


def test_types(server, tested: Endpoint, subtests: pytest.Subtests) -> None:
    routes = Routes(server, tested)
    report = run_program([sys.executable, "types_program.py"], FOLDER, tested)
    expect_all(report, len(PYTHON_TYPES), subtests)
    routes.expect(report, PYTHON_TYPES, subtests)
