"""The official Rust crate `clickhouse`, over HTTP, and klickhouse, over the native protocol."""

from __future__ import annotations

import pytest

from clients.expected_routes import KLICKHOUSE, RUST
from clients.routes import Routes
from clients.run_program import CLIENTS, built_once, expect_all, prepare, run_program
from harness.endpoint import Endpoint

FOLDER = CLIENTS / "rust"


def program() -> str:
    with built_once("rust") as cache:
        target = cache / "rust-target"
        prepare(["cargo", "build", "--quiet", "--locked", "--target-dir", str(target)], FOLDER)
    return str(target / "debug" / "windrow-test-rust-client")


def test_rust(server, tested: Endpoint, subtests: pytest.Subtests) -> None:
    built, routes = program(), Routes(server, tested)
    report = run_program([built], FOLDER, tested)
    expect_all(report, len(RUST) + 3, subtests)
    routes.expect(report, RUST, subtests)


def test_klickhouse(server, native: Endpoint, subtests: pytest.Subtests) -> None:
    built, routes = program(), Routes(server, native)
    report = run_program([built, "klickhouse"], FOLDER, native, "native")
    expect_all(report, len(KLICKHOUSE), subtests)
    routes.expect(report, KLICKHOUSE, subtests)
