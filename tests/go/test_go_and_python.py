"""Programs in Go and in Python share a disk or a Redis, and are killed: what a call of either had taken is in the table once.

Python's writer is the one in Rust.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.killed import Programs
from harness.redis import Redis

from go.killed import GoProgram, address_of, all_are_there_once

CALLS = 200
# Rows of a call, at most.
CALL_ROWS = 300
ROUNDS = int(os.environ.get("WINDROW_CHAOS_ROUNDS", "4"))
# Each waits for a lease to end.
TAKEOVERS = max(ROUNDS // 5, 2)
LANGUAGES = ("Go", "Python")
# Nothing is sent before the program is killed.
NEVER = {"rows": 1_000_000, "seconds": 3600.0}
# Some batches are stored then, some are under way.
ALWAYS = {"rows": 20, "seconds": 0.01}
SEGMENT_HEADER, RECORD_HEADER = 64, 32


class Writing(Protocol):
    """Programs in one language that write into one buffer."""

    def run_and_kill(self, number: int, calls: int) -> Any: ...

    def stop_and_go_on(self, number: int, rows: int, meanwhile: Callable[[], None]) -> Any: ...

    def drain(self) -> None: ...


class InPython:
    def __init__(
        self, programs: Programs, table: Endpoint, buffer: str, rows: int, seconds: float, call_rows: int
    ) -> None:
        self.programs, self.call_rows = programs, call_rows
        self.where = {
            "host": table.host, "port": table.port, "username": table.user, "password": table.password,
            "database": table.database,
        }  # fmt: skip
        self.options = {"buffer": buffer, "batch_rows": rows, "flush_interval": seconds}

    def run_and_kill(self, number: int, calls: int) -> Any:
        return self.programs.run_and_kill(number, calls, self.where, self.options, self.call_rows)

    def stop_and_go_on(self, number: int, rows: int, meanwhile: Callable[[], None]) -> Any:
        return self.programs.stop_and_go_on(number, rows, self.where, self.options, meanwhile)

    def drain(self) -> None:
        import windrow  # the installed package, which the folder's other tests don't need

        with windrow.get_client(**self.where) as client, client.writer("t", ["round", "n", "text"], **self.options) as writer:
            eventually(lambda: writer.statistics().batches_in_flight == 0, "all that was left is stored")


class Both:
    """A language's programs, by its name."""

    def __init__(self, program: Path, programs: Programs, table: Endpoint) -> None:
        self.program, self.programs, self.table = program, programs, table

    def writing(self, language: str, buffer: str, rows: int, seconds: float, call_rows: int = 1) -> Writing:
        if language == "Python":
            return InPython(self.programs, self.table, buffer, rows, seconds, call_rows)
        address, interval_ms = address_of(self.table), int(seconds * 1000)
        return GoProgram(
            self.program, address=address, buffer=buffer, interval_ms=interval_ms, batch_rows=rows, call_rows=call_rows
        )


@pytest.fixture
def both(program: Path, table: Endpoint, tmp_path: Path) -> Iterator[Both]:
    programs = Programs(tmp_path)
    yield Both(program, programs, table)
    programs.stop()


@pytest.fixture(params=["disk", "redis"])
def buffer(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "disk":
        return f"disk:{tmp_path / 'buffer'}"
    redis: Redis = request.getfixturevalue("redis")
    return f"{redis.address}/0?bucket=shared"


def tear(folder: Path) -> None:
    """Behind the last record comes the beginning of another one: an append that was under way when power was lost."""
    segment = max(folder.glob("*/*.segment"))
    written = segment.read_bytes()
    at, record, half = SEGMENT_HEADER, b"", 0
    while length := int.from_bytes(written[at + 4 : at + 8], "little"):
        end = at + (RECORD_HEADER + length + 7) // 8 * 8
        at, record, half = end, written[at:end], length // 2
    with segment.open("r+b") as file:
        file.seek(at)
        # The program may have been killed in the middle of the next record: nothing of that is to complete this one.
        file.write(record[: RECORD_HEADER + half].ljust(len(record), b"\0"))


@pytest.mark.parametrize(("first", "second"), [("Go", "Python"), ("Python", "Go")])
def test_each_stores_what_the_other_has_left(both: Both, table: Endpoint, buffer: str, first: str, second: str) -> None:
    killed = [both.writing(first, buffer, **NEVER).run_and_kill(0, CALLS)]
    assert table.sql("SELECT count() FROM t").strip() == "0"
    both.writing(second, buffer, **ALWAYS).drain()
    all_are_there_once(table, killed)


@pytest.mark.parametrize(("first", "second"), [("Go", "Python"), ("Python", "Go")])
def test_a_torn_last_record_takes_nothing_along(both: Both, table: Endpoint, tmp_path: Path, first: str, second: str) -> None:
    folder = tmp_path / "buffer"
    killed = [both.writing(first, f"disk:{folder}", **NEVER).run_and_kill(0, CALLS)]
    tear(folder)
    both.writing(second, f"disk:{folder}", **ALWAYS).drain()
    all_are_there_once(table, killed)
    assert list(folder.iterdir()) == [], "it is no damage, and all is released"


def test_in_turns(both: Both, table: Endpoint, buffer: str) -> None:
    """Each finds what the one before it left, goes on with it, and is killed itself. No call divides a batch."""
    choice = random.Random(1)
    killed = [
        both.writing(choice.choice(LANGUAGES), buffer, **ALWAYS, call_rows=CALL_ROWS).run_and_kill(number, choice.randrange(1, 30))
        for number in range(ROUNDS)
    ]
    both.writing("Go", buffer, **ALWAYS).drain()
    all_are_there_once(table, killed)


def lanes_are_left(redis: Redis) -> bool:
    """As Redis sees it, every writer has been silent for longer than its lease."""
    now_ms = int(redis.call("TIME")[2]) * 1000
    ends = redis.call("ZRANGE", "{windrow:shared}:lanes", 0, -1, "WITHSCORES")[4::4]
    return bool(ends) and all(int(end) < now_ms for end in ends)


@pytest.mark.parametrize(("stopped", "other"), [("Go", "Go"), ("Go", "Python"), ("Python", "Go")])
def test_who_was_stopped_for_longer_than_its_lease(
    both: Both, table: Endpoint, redis: Redis, stopped: str, other: str
) -> None:
    """What it had written is stored by another one; when it goes on, its flush ends, and each row is there once."""
    buffer = f"{redis.address}/0?bucket=shared&lease=1"

    def meanwhile() -> None:
        eventually(lambda: lanes_are_left(redis), "its lease has run out")
        both.writing(other, buffer, **ALWAYS).drain()

    went_on = both.writing(stopped, buffer, rows=20, seconds=3600.0, call_rows=CALL_ROWS).stop_and_go_on(0, 5000, meanwhile)
    assert went_on.completed >= 5000
    all_are_there_once(table, [went_on])
    assert not [key for key in redis.keys() if key.endswith((":rows", ":batches"))], "everything is released"


@pytest.mark.parametrize(("stopped", "other"), [("Go", "Go"), ("Go", "Python"), ("Python", "Go")])
def test_who_took_over_was_killed_before_the_stopped_one_went_on(
    both: Both, table: Endpoint, redis: Redis, stopped: str, other: str
) -> None:
    """The stopped one takes back what it had, with what the other has made of it."""
    buffer = f"{redis.address}/0?bucket=shared&lease=1"
    wrote = []
    for number in range(0, 2 * TAKEOVERS, 2):

        def meanwhile(number: int = number) -> None:
            eventually(lambda: lanes_are_left(redis), "its lease has run out")
            wrote.append(both.writing(other, buffer, **ALWAYS).run_and_kill(number + 1, 30))

        wrote.append(both.writing(stopped, buffer, **ALWAYS, call_rows=7).stop_and_go_on(number, 1000, meanwhile))
    both.writing("Go", buffer, **ALWAYS).drain()
    all_are_there_once(table, wrote)
    assert not [key for key in redis.keys() if key.endswith((":rows", ":batches"))], "everything is released"
