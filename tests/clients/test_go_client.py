"""clickhouse-go over HTTP."""

from __future__ import annotations

import pytest

from clients.run_program import CLIENTS, built_once, expect_all, prepare, run_program
from harness.endpoint import Endpoint

FOLDER = CLIENTS / "go"


def test_go(tested: Endpoint, subtests: pytest.Subtests) -> None:
    with built_once("go") as cache:
        program = cache / "go-client"
        prepare(["go", "build", "-trimpath", "-o", str(program), "."], FOLDER)
    expect_all(run_program([str(program)], FOLDER, tested), 38, subtests)
