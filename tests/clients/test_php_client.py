"""PHP, by plain HTTP."""

from __future__ import annotations

import pytest

from clients.expected_routes import PHP
from clients.routes import Routes
from clients.run_program import CLIENTS, expect_all, run_program
from harness.endpoint import Endpoint


def test_php(server, tested: Endpoint, subtests: pytest.Subtests) -> None:
    routes = Routes(server, tested)
    report = run_program(["php", "inserts.php"], CLIENTS / "php", tested)
    expect_all(report, len(PHP), subtests)
    routes.expect(report, PHP, subtests)
