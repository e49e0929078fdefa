"""The official Rust crate `clickhouse`."""

from __future__ import annotations

import pytest

from clients.expected_routes import RUST
from clients.routes import Routes
from clients.run_program import CLIENTS, built_once, expect_all, prepare, run_program
from harness.endpoint import Endpoint

FOLDER = CLIENTS / "rust"


def test_rust(server, tested: Endpoint, subtests: pytest.Subtests) -> None:
    with built_once("rust") as cache:
        target = cache / "rust-target"
        prepare(["cargo", "build", "--quiet", "--locked", "--target-dir", str(target)], FOLDER)
    program = target / "debug" / "windrow-test-rust-client"
    routes = Routes(server, tested)
    report = run_program([str(program)], FOLDER, tested)
    expect_all(report, len(RUST) + 3, subtests)
    routes.expect(report, RUST, subtests)
