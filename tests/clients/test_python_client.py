"""clickhouse-connect, blocking and asynchronous."""

from __future__ import annotations

import sys

import pytest

from clients.run_program import CLIENTS, expect_all, run_program
from harness.endpoint import Endpoint

FOLDER = CLIENTS / "python"


def test_blocking(tested: Endpoint, subtests: pytest.Subtests) -> None:
    expect_all(run_program([sys.executable, "sync_program.py"], FOLDER, tested), 27, subtests)


def test_asynchronous(tested: Endpoint, subtests: pytest.Subtests) -> None:
    expect_all(run_program([sys.executable, "async_program.py"], FOLDER, tested), 13, subtests)
