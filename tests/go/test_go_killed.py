"""kill -9 of Go programs that write, of the engine and of Redis: what a call had taken is in the table once."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from harness.endpoint import Endpoint
from harness.kept_engine import KeptEngine
from harness.redis import Redis

from go.killed import GoProgram, Killed, address_of, all_are_there_once

ROUNDS = int(os.environ.get("WINDROW_CHAOS_ROUNDS", "2"))
# At once.
PROGRAMS = 3
SEED = int(os.environ.get("WINDROW_CHAOS_SEED", "1"))
# Rows of a call, at most: a batch has 100.
CALL_ROWS = 300


def kill_in_rounds(program: GoProgram, most_calls: int, disturb: Callable[[], None] | None = None) -> list[Killed]:
    """Each program finds what the ones before it left, and is killed itself."""
    print(f"seed {SEED}, {ROUNDS} rounds")
    choice = random.Random(SEED)
    return [program.run_and_kill(number, choice.randrange(2, most_calls), disturb) for number in range(ROUNDS)]


@pytest.mark.parametrize(("sync", "call_rows"), [(False, 1), (True, 1), (False, CALL_ROWS)])
def test_programs_with_a_disk(program: Path, table: Endpoint, tmp_path: Path, sync: bool, call_rows: int) -> None:
    buffer = f"disk:{tmp_path / 'buffer'}"
    running = GoProgram(program, address=address_of(table), buffer=buffer, sync=sync, call_rows=call_rows)
    killed = kill_in_rounds(running, max((300 if sync else 3000) // call_rows, 20))
    running.drain()
    all_are_there_once(table, killed)
    assert list((tmp_path / "buffer").iterdir()) == [], "everything is released"


@pytest.mark.parametrize("call_rows", [1, CALL_ROWS])
def test_programs_with_redis(program: Path, table: Endpoint, redis: Redis, call_rows: int) -> None:
    buffer = f"{redis.address}/0?bucket=killed"
    running = GoProgram(program, address=address_of(table), buffer=buffer, call_rows=call_rows)
    killed = kill_in_rounds(running, max(600 // call_rows, 20))
    running.drain()
    all_are_there_once(table, killed)
    assert not [key for key in redis.keys() if key.endswith((":rows", ":batches"))], "everything is released"


@pytest.mark.parametrize("place", ["disk", "redis"])
def test_several_programs_at_once(program: Path, table: Endpoint, redis: Redis, tmp_path: Path, place: str) -> None:
    """Those that live take over what the killed ones have left, while they write themselves."""
    buffer = f"disk:{tmp_path / 'buffer'}" if place == "disk" else f"{redis.address}/0?bucket=killed&lease=0.3"
    running = GoProgram(program, address=address_of(table), buffer=buffer, call_rows=7)
    choice = random.Random(SEED)
    counts = [choice.randrange(2, 300) for _ in range(PROGRAMS * ROUNDS)]
    with ThreadPoolExecutor(PROGRAMS) as pool:
        killed = list(pool.map(running.run_and_kill, range(len(counts)), counts))
    running.drain()
    all_are_there_once(table, killed)


def test_the_engine(program: Path, engine: KeptEngine, table: Endpoint, tmp_path: Path) -> None:
    running = GoProgram(program, address=address_of(table), buffer=f"disk:{tmp_path / 'buffer'}")
    killed = kill_in_rounds(running, 3000, engine.kill)
    running.drain()
    all_are_there_once(table, killed)


def test_rows_in_memory_outlive_the_engine(program: Path, engine: KeptEngine, table: Endpoint) -> None:
    running = GoProgram(program, address=address_of(table), buffer="memory", call_rows=CALL_ROWS)
    all_are_there_once(table, [running.stop_and_go_on(number, 20_000, engine.kill) for number in range(ROUNDS)])


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
