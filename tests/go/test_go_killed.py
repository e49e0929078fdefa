"""kill -9 of Go programs that write, of the engine and of Redis: what a call had taken is in the table once."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest
from clients.run_program import built_once, prepare
from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.kept_engine import KeptEngine
from harness.paths import ROOT
from harness.redis import Redis

from go.killed import GoProgram, Killed

ROUNDS = int(os.environ.get("WINDROW_CHAOS_ROUNDS", "2"))
# At once.
PROGRAMS = 3
SEED = int(os.environ.get("WINDROW_CHAOS_SEED", "1"))


@pytest.fixture(scope="module")
def program() -> Path:
    with built_once("go-writer-program") as cache:
        built = cache / "go-writer-program"
        prepare(["nice", "go", "build", "-trimpath", "-o", str(built), "./program"], ROOT / "go" / "tests")
    return built


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeptEngine]:
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


def address_of(endpoint: Endpoint) -> str:
    account = f"{quote(endpoint.user, '')}:{quote(endpoint.password, '')}"
    return f"http://{account}@{endpoint.host}:{endpoint.port}/{endpoint.database}"


def kill_in_rounds(program: GoProgram, most_calls: int, disturb: Callable[[], None] | None = None) -> list[Killed]:
    """Each program finds what the ones before it left, and is killed itself."""
    print(f"seed {SEED}, {ROUNDS} rounds")
    choice = random.Random(SEED)
    return [program.run_and_kill(number, choice.randrange(2, most_calls), disturb) for number in range(ROUNDS)]


def all_are_there_once(table: Endpoint, killed: list[Killed]) -> None:
    conditions = " + ".join(f"countIf(round = {one.round} AND n < {one.completed})" for one in killed)
    assert int(table.sql(f"SELECT {conditions} FROM t")) == sum(one.completed for one in killed)
    assert table.sql("SELECT count() - uniqExact(round, n) FROM t").strip() == "0"
    assert table.sql("SELECT count() FROM t WHERE text != repeat('x', n % 100)").strip() == "0"


@pytest.mark.parametrize("sync", [False, True])
def test_programs_with_a_disk(program: Path, table: Endpoint, tmp_path: Path, sync: bool) -> None:
    running = GoProgram(program, address=address_of(table), buffer=f"disk:{tmp_path / 'buffer'}", sync=sync)
    killed = kill_in_rounds(running, 300 if sync else 3000)
    running.drain()
    all_are_there_once(table, killed)
    assert list((tmp_path / "buffer").iterdir()) == [], "everything is released"


def test_programs_with_redis(program: Path, table: Endpoint, redis: Redis) -> None:
    running = GoProgram(program, address=address_of(table), buffer=f"{redis.address}/0?bucket=killed")
    killed = kill_in_rounds(running, 600)
    running.drain()
    all_are_there_once(table, killed)
    assert not [key for key in redis.keys() if key.endswith((":rows", ":batches"))], "everything is released"


@pytest.mark.parametrize("place", ["disk", "redis"])
def test_several_programs_at_once(program: Path, table: Endpoint, redis: Redis, tmp_path: Path, place: str) -> None:
    """Those that live take over what the killed ones have left, while they write themselves."""
    buffer = f"disk:{tmp_path / 'buffer'}" if place == "disk" else f"{redis.address}/0?bucket=killed&lease=0.3"
    running = GoProgram(program, address=address_of(table), buffer=buffer)
    choice = random.Random(SEED)
    counts = [choice.randrange(2, 900) for _ in range(PROGRAMS * ROUNDS)]
    with ThreadPoolExecutor(PROGRAMS) as pool:
        killed = list(pool.map(running.run_and_kill, range(len(counts)), counts))
    running.drain()
    all_are_there_once(table, killed)


def test_the_engine(program: Path, engine: KeptEngine, table: Endpoint, tmp_path: Path) -> None:
    running = GoProgram(program, address=address_of(table), buffer=f"disk:{tmp_path / 'buffer'}")
    killed = kill_in_rounds(running, 3000, engine.kill)
    running.drain()
    all_are_there_once(table, killed)


def test_redis(program: Path, table: Endpoint, redis: Redis) -> None:
    def kill_it() -> None:
        redis.kill()
        redis.start()

    running = GoProgram(program, address=address_of(table), buffer=f"{redis.address}/0?bucket=killed&lease=2")
    killed = kill_in_rounds(running, 600, kill_it)
    running.drain()
    all_are_there_once(table, killed)


def test_redis_that_forgets(program: Path, table: Endpoint, tmp_path: Path) -> None:
    """It is killed and comes back empty: what a living program has in memory is written there once more."""
    redis = Redis(tmp_path / "redis")
    killed = []
    try:
        for number in range(ROUNDS):
            running = GoProgram(program, address=address_of(table), buffer=f"{redis.address}/0?bucket=round{number}")
            killed.append(running.run_and_kill(number, 400, lambda: (redis.kill(), redis.start())))
            running.drain()
    finally:
        redis.stop()
    all_are_there_once(table, killed)
