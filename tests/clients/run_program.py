"""Runs a client program against an endpoint and reads its report."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from harness.endpoint import Endpoint
from harness.paths import CACHE, TESTS

CLIENTS = TESTS / "clients"
PROGRAM_SECONDS = 600


@dataclass(frozen=True)
class Check:
    name: str
    ok: bool
    detail: str


@dataclass(frozen=True)
class ProgramReport:
    checks: list[Check]
    # How many inserts the program sent into each of its tables; empty where it doesn't count them.
    sent: dict[str, int]


def environment_of(endpoint: Endpoint, protocol: str) -> dict[str, str]:
    return {
        **os.environ,
        "CLICKHOUSE_HOST": endpoint.host,
        "CLICKHOUSE_PORT": str(endpoint.port),
        "CLICKHOUSE_USER": endpoint.user,
        "CLICKHOUSE_PASSWORD": endpoint.password,
        "CLICKHOUSE_DATABASE": endpoint.database,
        "CLICKHOUSE_PROTOCOL": protocol,
    }


def run_program(command: list[str], folder: Path, endpoint: Endpoint, protocol: str = "http") -> ProgramReport:
    environment = environment_of(endpoint, protocol)
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=PROGRAM_SECONDS, check=False
    )
    said = f"{command} exited with {ended.returncode}\n{ended.stdout[-4000:]}\n{ended.stderr[-4000:]}"
    assert ended.returncode == 0, said
    report = json.loads(ended.stdout.strip().splitlines()[-1])
    assert report["finished"], said
    checks = [Check(check["name"], check["ok"], check["detail"]) for check in report["checks"]]
    return ProgramReport(checks, report.get("sent", {}))


def expect_all(report: ProgramReport, least: int, subtests: pytest.Subtests) -> None:
    """Every check of the program passed, and none went missing: `least` is how many it is known to make."""
    for check in report.checks:
        with subtests.test(check.name):
            assert check.ok, check.detail
    assert len(report.checks) >= least, [check.name for check in report.checks]


@contextmanager
def built_once(name: str) -> Iterator[Path]:
    """Holds a lock while a program is prepared, so that parallel workers don't build into one folder."""
    CACHE.mkdir(parents=True, exist_ok=True)
    with (CACHE / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield CACHE


def prepare(command: list[str], folder: Path) -> None:
    ended = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=1800, check=False)
    assert ended.returncode == 0, f"{command} failed:\n{ended.stdout[-4000:]}\n{ended.stderr[-4000:]}"
