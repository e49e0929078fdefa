"""clickhouse-driver and asynch: the native protocol by Python."""

from __future__ import annotations

import sys

import pytest

from clients.routes import Routes
from clients.run_program import CLIENTS, expect_all, run_program
from harness.endpoint import Endpoint

FOLDER = CLIENTS / "python"


def test_ways_to_insert(server, native: Endpoint, subtests: pytest.Subtests) -> None:
    routes = Routes(server, native)
    report = run_program([sys.executable, "driver_inserts.py"], FOLDER, native)
    expect_all(report, 1, subtests)
