"""@clickhouse/client on Node."""

from __future__ import annotations

import pytest

from clients.expected_routes import JAVASCRIPT
from clients.routes import Routes
from clients.run_program import CLIENTS, built_once, expect_all, prepare, run_program
from harness.endpoint import Endpoint

FOLDER = CLIENTS / "js"


def test_javascript(tested: Endpoint, subtests: pytest.Subtests) -> None:
    install_packages()
    expect_all(run_program(["node", "program.mjs"], FOLDER, tested), 30, subtests)


def test_ways_to_insert(server, tested: Endpoint, subtests: pytest.Subtests) -> None:
    install_packages()
    routes = Routes(server, tested)
    report = run_program(["node", "inserts.mjs"], FOLDER, tested)
    expect_all(report, len(JAVASCRIPT), subtests)
    routes.expect(report, JAVASCRIPT, subtests)


def install_packages() -> None:
    """npm writes a copy of the lock file last; when it is not older than ours, the folder is whole and current."""
    with built_once("js"):
        installed, locked = FOLDER / "node_modules" / ".package-lock.json", FOLDER / "package-lock.json"
        if not installed.exists() or installed.stat().st_mtime < locked.stat().st_mtime:
            prepare(["npm", "ci", "--ignore-scripts"], FOLDER)
