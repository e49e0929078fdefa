"""An error that comes again and again for one insert, for each code: nothing else waits, nothing is lost, nothing is stored twice.

A sink that is scripted does the same in core/engine/tests/engine/injected.rs, with all that the sender is told.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.dead_letters import DeadLetters
from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.eventually import eventually
from harness.middle import Middle
from harness.remote import RemoteGateway, backend_url
from harness.users import TESTER

# `make chaos` tries each code that ClickHouse has, and some that it has not, and waits until the last is given up.
IS_LONG = "WINDROW_CHAOS_ROUNDS" in os.environ
# Of rows, of the table, of rights, of time, of memory, of the disk, of Keeper, of the number of parts or of queries, and unknown ones.
CODES = (6, 60, 159, 202, 216, 241, 242, 243, 252, 319, 469, 497, 999, 1001, 31_337)
# What a whole server has too little or too much of: those are never given up.
OF_THE_SERVER = (202, 243, 252)
DISK = {"async_insert": 1, "wait_for_async_insert": 0}
STORED = {"async_insert": 1, "wait_for_async_insert": 1}
WITH_A_WINDOW = " SETTINGS non_replicated_deduplication_window = 1000"
BATCHES, AT_ONCE = 5, 4
GIVEN_UP_SECONDS = 300


@dataclass
class Stage:
    direct: Endpoint
    tested: Endpoint
    middle: Middle
    gateway: RemoteGateway


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    engine = Engine(tmp_path / "engine")
    with Middle(engine.direct.port) as middle:
        gateway = RemoteGateway(tmp_path / "gateway", backend_url(TESTER, middle.address), engine.direct)
        yield Stage(engine.direct, gateway.http.as_user(TESTER.name, TESTER.password), middle, gateway)
        assert gateway.stop() == 0, gateway.child.log()[-3000:]
    engine.stop()


def codes(stage: Stage) -> list[int]:
    if not IS_LONG:
        return list(CODES)
    known = stage.direct.sql("SELECT number FROM numbers(1, 1100) WHERE errorCodeToName(number) != ''")
    return sorted({*map(int, known.split()), *CODES})


class Table:
    """One code, met by the one insert of its table that has the marker."""

    def __init__(self, stage: Stage, code: int, window: str):
        self.stage, self.code, self.name = stage, code, f"t{code}{'_w' if window else ''}"
        self.marker, self.sent = f"marker-{self.name}-", 0
        stage.direct.sql(f"CREATE TABLE {self.name} (id UInt64, text String) ENGINE = MergeTree ORDER BY id{window}")
        stage.middle.refused[self.marker.encode()] = code

    def insert(self, text: str, settings: dict[str, int]) -> None:
        self.sent += 1
        reply = self.stage.tested.insert(f"INSERT INTO {self.name} FORMAT CSV", f"{self.sent},{text}\n", **settings)
        assert reply.status == 200, f"{self.name}: {reply.text}"

    def run(self) -> None:
        """The culprit first, with neighbours that its gateway may send in the same batch; then others, of whom some wait."""
        for text in ("good", self.marker, "good"):
            self.insert(text, DISK)
        eventually(lambda: self.marker.encode() in self.stage.middle.met, f"{self.name}: the culprit is on its way")
        for _ in range(BATCHES):
            self.insert("good", DISK)
            self.insert("good", STORED)

    def found(self) -> tuple[int, int, int]:
        sums = f"count(), uniqExact(id), countIf(startsWith(text, 'marker'))"
        there = self.stage.direct.sql(f"SELECT {sums} FROM {self.name}").split("\t")
        return (int(there[0]), int(there[1]), int(there[2]))

    def letters(self) -> int:
        return len(DeadLetters(self.stage.gateway, "default").all(table=self.name))


@pytest.mark.parametrize("window", ["", WITH_A_WINDOW], ids=["without a window", "with a window"])
def test_an_error_of_one_insert(stage: Stage, window: str) -> None:
    tables = [Table(stage, code, window) for code in codes(stage)]
    with ThreadPoolExecutor(AT_ONCE) as threads:
        list(threads.map(Table.run, tables))
    # Who waited was served. Now so are those who didn't; but for neighbours in a batch that nobody can take apart.
    for table in tables:
        behind = 2 * BATCHES
        eventually(lambda: table.found()[0] >= behind, f"{table.name}: the others are stored", GIVEN_UP_SECONDS)
    if IS_LONG:
        given_up = [table for table in tables if table.code not in OF_THE_SERVER]
        for table in given_up:
            eventually(lambda: table.letters() >= 1, f"{table.name}: the culprit is given up", GIVEN_UP_SECONDS)
    # What is still tried is stored as soon as nothing is in its way.
    stage.middle.refused.clear()
    for table in tables:
        whole = lambda: table.found()[0] + table.letters() == table.sent
        eventually(whole, f"{table.name}: all is stored or a dead letter", GIVEN_UP_SECONDS)
        count, distinct, _ = table.found()
        assert count == distinct, f"{table.name}: {count - distinct} inserts are stored twice"
    print(f"{len(tables)} codes; {sum(table.letters() for table in tables)} dead letters, {sum(table.found()[0] for table in tables)} rows")
