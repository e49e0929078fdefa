"""The writer in Go: its own tests, and those that need a ClickHouse, a Windrow and a Redis."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from clients.run_program import built_once, environment_of
from harness.endpoint import Endpoint
from harness.kept_engine import KeptEngine
from harness.paths import ROOT
from harness.redis import Redis

GO = ROOT / "go"
# Each is a module of its own, so that nobody gets dependencies of what is not used.
MODULES = ("", "native", "windrowprom", "tests")
SECONDS = 900


def go(*arguments: str, folder: Path = GO, environment: dict[str, str] | None = None) -> str:
    command = ["go", *arguments]
    ended = subprocess.run(
        command, cwd=folder, env=environment or None, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert ended.returncode == 0, f"{command} in {folder}:\n{ended.stdout[-8000:]}\n{ended.stderr[-8000:]}"
    return ended.stdout


@pytest.fixture(scope="module")
def engine_tests() -> Path:
    """Built once, with the race detector, and run against each server."""
    with built_once("go-writer") as cache:
        built = cache / "go-writer.test"
        go("test", "-race", "-c", "-o", str(built), ".", folder=GO / "tests")
    return built


def run_tests(program: Path, endpoint: Endpoint, native_port: int, redis: Redis) -> None:
    more = {"WINDROW_TEST_NATIVE_PORT": str(native_port), "WINDROW_TEST_REDIS": f"127.0.0.1:{redis.port}"}
    environment = {**environment_of(endpoint, "http"), **more}
    ended = subprocess.run(
        [str(program), "-test.timeout=300s", "-test.failfast"],
        cwd=GO / "tests", env=environment, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert ended.returncode == 0, f"{ended.stdout[-8000:]}\n{ended.stderr[-4000:]}"


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_what_it_shares_with_the_rust_writer_is_the_same() -> None:
    rust = ROOT / "clients" / "writer"
    assert files_in(GO / "redisbuffer" / "scripts") == files_in(rust / "src" / "redis" / "scripts")
    assert files_in(GO / "diskbuffer" / "testdata" / "disk-1") == files_in(rust / "tests" / "golden" / "disk-1")


@pytest.mark.parametrize("module", MODULES)
def test_it_is_formatted_and_sound(module: str) -> None:
    folder = GO / module
    assert subprocess.run(["gofmt", "-l", "."], cwd=folder, capture_output=True, text=True, check=True).stdout == ""
    go("vet", "./...", folder=folder)
    with built_once("staticcheck") as cache:
        go("build", "-o", str(cache / "staticcheck"), "honnef.co/go/tools/cmd/staticcheck", folder=GO / "tests")
        ended = subprocess.run([str(cache / "staticcheck"), "./..."], cwd=folder, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr


@pytest.mark.parametrize("module", [module for module in MODULES if module != "tests"])
def test_by_itself(module: str) -> None:
    go("test", "-race", "./...", folder=GO / module)


@pytest.fixture(scope="module")
def redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    started = Redis(tmp_path_factory.mktemp("redis"))
    yield started
    started.stop()


def test_on_clickhouse(engine_tests: Path, engine: KeptEngine, redis: Redis) -> None:
    run_tests(engine_tests, engine.direct, engine.engine.native_port, redis)


def test_on_windrow(engine_tests: Path, tested: Endpoint, native: Endpoint, redis: Redis) -> None:
    run_tests(engine_tests, tested, native.port, redis)
