"""kill -9 in the middle of write_row: what a call had taken is in ClickHouse once after the next start."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import windrow
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.redis import Redis
from harness.killed import Killed, Programs

ROUNDS = int(os.environ.get("WINDROW_CHAOS_ROUNDS", "25"))
# Of rows; a batch has 100.
CALLS = pytest.mark.parametrize("call_rows", [1, 300])


@pytest.fixture
def programs(tmp_path: Path) -> Iterator[Programs]:
    started = Programs(tmp_path)
    yield started
    started.stop()


@pytest.fixture
def table(direct: Endpoint) -> Endpoint:
    direct.sql(
        "CREATE TABLE t (round UInt32, n UInt64, text String) ENGINE = MergeTree ORDER BY (round, n) "
        "SETTINGS non_replicated_deduplication_window = 100000"
    )
    return direct


def kill_in_rounds(
    programs: Programs, where: dict[str, Any], options: dict[str, Any], most_calls: int, call_rows: int
) -> list[Killed]:
    """Each program finds what the ones before it left, and is killed itself."""
    choice = random.Random(9)
    most = max(most_calls // call_rows, 20)
    return [
        programs.run_and_kill(number, choice.randrange(1, most), where, options, call_rows) for number in range(ROUNDS)
    ]


def all_are_there_once(table: Endpoint, where: dict[str, Any], killed: list[Killed], **options: Any) -> None:
    expected = sum(program.completed for program in killed)

    def completed_rows() -> int:
        conditions = " + ".join(f"countIf(round = {program.round} AND n < {program.completed})" for program in killed)
        return int(table.sql(f"SELECT {conditions} FROM t"))

    with windrow.get_client(**where) as client, client.writer("t", ["round", "n", "text"], **options) as writer:
        eventually(lambda: completed_rows() >= expected, "rows of killed programs are stored")
        eventually(lambda: writer.statistics().batches_in_flight == 0, "nothing is left to be sent")
    assert completed_rows() == expected
    assert table.sql("SELECT count() - uniqExact(round, n) FROM t").strip() == "0"
    wrong = table.sql("SELECT count() FROM t WHERE text != repeat('x', n % 100)")
    assert wrong.strip() == "0"


@CALLS
def test_on_a_disk(programs: Programs, table: Endpoint, where: dict[str, Any], tmp_path: Path, call_rows: int) -> None:
    buffer = f"disk:{tmp_path / 'buffer'}"
    options = {"buffer": buffer, "batch_rows": 100, "flush_interval": 0.01}
    killed = kill_in_rounds(programs, where, options, 3000, call_rows)
    all_are_there_once(table, where, killed, buffer=buffer)


@CALLS
def test_in_redis(programs: Programs, table: Endpoint, where: dict[str, Any], redis: Redis, call_rows: int) -> None:
    buffer = f"{redis.address}/0?bucket=killed"
    options = {"buffer": buffer, "batch_rows": 100, "flush_interval": 0.01}
    killed = kill_in_rounds(programs, where, options, 600, call_rows)
    all_are_there_once(table, where, killed, buffer=buffer)
    assert redis.call("HLEN", "{windrow:killed}:lanes") != [":1"]
    assert not [key for key in redis.keys() if key.endswith((":rows", ":batches"))], "everything is released"
