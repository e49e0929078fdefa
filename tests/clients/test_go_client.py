"""clickhouse-go over HTTP and over the native protocol, by itself and as the OpenTelemetry collector's exporter uses it; ch-go."""

from __future__ import annotations

from pathlib import Path

import pytest

from clients.expected_routes import CHGO, GO, GO_NATIVE, GO_TYPES, TELEMETRY
from clients.routes import Routes
from clients.run_program import CLIENTS, built_once, expect_all, prepare, run_program
from harness.endpoint import Endpoint

FOLDER = CLIENTS / "go"


def program() -> Path:
    with built_once("go") as cache:
        built = cache / "go-client"
        prepare(["go", "build", "-trimpath", "-o", str(built), "."], FOLDER)
    return built


def test_driver(tested: Endpoint, subtests: pytest.Subtests) -> None:
    expect_all(run_program([str(program()), "driver"], FOLDER, tested), 38, subtests)


def test_ways_to_insert(server, tested: Endpoint, subtests: pytest.Subtests) -> None:
    built, routes = program(), Routes(server, tested)
    report = run_program([str(built), "ways"], FOLDER, tested)
    expect_all(report, len(GO), subtests)
    routes.expect(report, GO, subtests)


def test_types(server, tested: Endpoint, subtests: pytest.Subtests) -> None:
    built, routes = program(), Routes(server, tested)
    report = run_program([str(built), "types"], FOLDER, tested)
    expect_all(report, len(GO_TYPES), subtests)
    routes.expect(report, GO_TYPES, subtests)


def test_telemetry(server, tested: Endpoint, subtests: pytest.Subtests) -> None:
    built, routes = program(), Routes(server, tested)
    report = run_program([str(built), "telemetry"], FOLDER, tested)
    expect_all(report, len(TELEMETRY), subtests)
    routes.expect(report, TELEMETRY, subtests)


def test_native_driver(native: Endpoint, subtests: pytest.Subtests) -> None:
    expect_all(run_program([str(program()), "driver"], FOLDER, native, "native"), 32, subtests)


@pytest.mark.parametrize(("name", "routes_expected"), [("ways", GO_NATIVE), ("types", GO_TYPES), ("telemetry", TELEMETRY)])
def test_natively(server, native: Endpoint, name: str, routes_expected: dict, subtests: pytest.Subtests) -> None:
    built, routes = program(), Routes(server, native)
    report = run_program([str(built), name], FOLDER, native, "native")
    expect_all(report, len(routes_expected), subtests)
    routes.expect(report, routes_expected, subtests)


def test_ch_go(server, native: Endpoint, subtests: pytest.Subtests) -> None:
    built, routes = program(), Routes(server, native)
    report = run_program([str(built), "chgo"], FOLDER, native, "native")
    # Beside those of its inserts, what it reads, and two errors.
    expect_all(report, len(CHGO) + 8, subtests)
    routes.expect(report, CHGO, subtests)
