"""What the tests of the Go writer share: the program that is killed, a ClickHouse, a table, a Redis."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from clients.run_program import built_once, prepare
from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.kept_engine import KeptEngine
from harness.paths import ROOT
from harness.redis import Redis


@pytest.fixture(scope="module")
def program() -> Path:
    with built_once("go-writer-program") as cache:
        built = cache / "go-writer-program"
        prepare(["nice", "go", "build", "-trimpath", "-o", str(built), "./program"], ROOT / "go" / "tests")
    return built


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeptEngine]:
    """A ClickHouse as it is by itself: one inside of a gateway leaves repeats to that."""
    kept = KeptEngine(Engine(tmp_path_factory.mktemp("engine")))
    yield kept
    kept.stop()


@pytest.fixture
def table(engine: KeptEngine) -> Iterator[Endpoint]:
    direct = engine.direct
    direct.sql(
        "CREATE TABLE t (round UInt32, n UInt64, text String) ENGINE = MergeTree ORDER BY (round, n) "
        "SETTINGS non_replicated_deduplication_window = 100000"
    )
    yield direct
    direct.sql("DROP TABLE t")


@pytest.fixture
def redis(tmp_path: Path) -> Iterator[Redis]:
    """It keeps what it has confirmed, also when it is killed."""
    started = Redis(tmp_path / "redis", ("--appendonly", "yes", "--appendfsync", "always"))
    yield started
    started.stop()
