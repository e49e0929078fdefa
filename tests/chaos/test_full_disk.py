"""A disk that fills up: writers are told so, nothing acknowledged is lost, and service resumes when there is room."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chaos.count import drained
from chaos.kinds import KINDS, PLAIN, Kind
from chaos.load import Load, create_tables
from chaos.small_disk import WAYS, SmallDisk
from chaos.stage import Behind, InProcess
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.process import most_resident_bytes, resident_bytes
from harness.quick_http import QuickConnection, QuickReply

# `make chaos` takes twenty rounds of a minute each.
ROUNDS = min(20, int(os.environ.get("WINDROW_CHAOS_ROUNDS", "1")))
AWAY_SECONDS = min(60.0, float(os.environ.get("WINDROW_CHAOS_AWAY_SECONDS", "1")))
SEED = int(os.environ.get("WINDROW_CHAOS_SEED", "1"))
NOT_WAITED_FOR = tuple(kind for kind in KINDS if kind.name.startswith("disk"))
DISK_BYTES = 24 << 20
# The bound that is configured is never met: the disk is full before.
CONFIG = '[journal]\nsegment_bytes = "1MiB"\nmax_bytes = "1GiB"\n'
BUFFER_BYTES = 32 << 20
SMALL_BUFFERS = f'[gather]\nmax_buffer_bytes = "{BUFFER_BYTES >> 20}MiB"\n'
# What is refused while the disk is full, at least: many times what may be held.
FLOOD_BYTES = 10 * BUFFER_BYTES
# What may come on top of what the program takes when it has begun to work: the buffers, which grow by doubling, as much again for
# bodies on their way, and what the allocator keeps.
MOST_GROWTH_BYTES = 6 * BUFFER_BYTES
# Less than a segment.
A_LITTLE_BYTES = 256 << 10
# Its write-ahead log is written there too.
DUCKDB_DISK_BYTES = 48 << 20


class Filled:
    def __init__(self, folder: Path, ways: tuple[str, ...]):
        self.disk = SmallDisk(folder / "gateway" / "data", DISK_BYTES, ways)
        self.stage = Behind(folder, SEED, CONFIG, self.disk.environment)


@pytest.fixture(params=[WAYS, ("preload",)], ids=["by the best way", "by preloading"])
def filled(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Filled]:
    started = Filled(tmp_path, request.param)
    with started.stage.relay:
        yield started
        started.stage.relay.behave()
        started.stage.stop()
    started.disk.close()


def is_filled(disk: SmallDisk) -> bool:
    """Others write meanwhile, so that there may be less room than there was."""
    try:
        disk.fill()
    except OSError:
        return False
    return True


def test_a_disk_that_fills_up(filled: Filled) -> None:
    stage, disk = filled.stage, filled.disk
    with Load(stage.where, SEED, kinds=NOT_WAITED_FOR) as load:
        eventually(load.every_writer_more(5), "every writer is served")
        stage.relay.go_away()
        eventually(lambda: is_filled(disk), "the disk is full")
        refused = lambda: all(writer.promises.refused or writer.promises.repeats for writer in load.writers)
        eventually(refused, "every writer is refused")
        # With the disk still full: what is there is read, and served again as room comes back.
        stage.kill_gateway()
        stage.start_gateway()
        disk.make_room()
        stage.relay.behave()
        eventually(load.every_writer_more(20), "service resumes")
    told = [error for error in load.errors() if "HTTP 503" in error]
    assert told and all("disk" in error for error in told), told[:3] or load.errors()[:3]
    counted = drained(stage, load)
    print(f"disk of {DISK_BYTES >> 20} MiB by {disk.way}; {told[0]}; {load.figures()}; {counted.line()}")
    counted.check()


def test_duckdb_on_a_disk_that_fills_up(tmp_path: Path) -> None:
    disk = SmallDisk(tmp_path / "gateway" / "data", DUCKDB_DISK_BYTES)
    stage = InProcess(tmp_path / "gateway", CONFIG, disk.environment)
    try:
        create_tables(stage.direct, stage.language)
        # The search for poison has an end, which what piles up here may reach.
        kinds = tuple(kind for kind in NOT_WAITED_FOR if kind.table is PLAIN)
        with Load(stage.where, SEED, kinds=kinds) as load:
            eventually(load.every_writer_more(5), "every writer is served")
            eventually(lambda: is_filled(disk), "the disk is full")
            refused = lambda: all(writer.promises.refused or writer.promises.repeats for writer in load.writers)
            eventually(refused, "every writer is refused")
            disk.make_room()
            eventually(load.every_writer_more(20), "service resumes")
        told = [error for error in load.errors() if "HTTP 503" in error]
        assert told and all("disk" in error for error in told), told[:3] or load.errors()[:3]
        counted = drained(stage, load)
        print(f"disk of {DUCKDB_DISK_BYTES >> 20} MiB by {disk.way}; {told[0]}; {load.figures()}; {counted.line()}")
        counted.check()
    finally:
        stage.stop()
        disk.close()


class Flood:
    """Large inserts at level `disk`, each of one row, for as long as it is open."""

    ROW_BYTES = 400_000
    WRITERS = 4
    table = "flooded"

    def __init__(self, where: Callable[[], Endpoint | None], direct: Endpoint, first: int):
        columns, window = "(number UInt64, text String)", "SETTINGS non_replicated_deduplication_window = 10000"
        direct.sql(f"CREATE TABLE IF NOT EXISTS {self.table} {columns} ENGINE = MergeTree ORDER BY number {window}")
        self.where, self.direct, self.first = where, direct, first
        self.acknowledged: list[int] = []
        self.refused_bytes = 0
        self.errors: list[str] = []
        self.stopping = threading.Event()
        self.threads = [threading.Thread(target=self.run, args=(writer,), daemon=True) for writer in range(self.WRITERS)]

    def begin(self) -> None:
        """An insert while there is a backend: what it says of the table is known from then on."""
        eventually(lambda: self.insert(QuickConnection(self.where(), 60), self.first).status == 200, "the first is taken")
        self.acknowledged.append(self.first)

    def __enter__(self) -> Flood:
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stopping.set()
        for thread in self.threads:
            thread.join(60)
            assert not thread.is_alive(), "an insert that nobody has to wait for still has no answer"

    def run(self, writer: int) -> None:
        number, connection = self.first + 1 + writer, None
        while not self.stopping.is_set():
            endpoint = self.where()
            if endpoint is None or (connection and connection.endpoint != endpoint):
                connection = None
                self.stopping.wait(0.02)
                continue
            connection = connection or QuickConnection(endpoint, 60)
            try:
                reply = self.insert(connection, number)
            except (ConnectionError, OSError, ValueError):
                connection = None
            else:
                if reply.status == 200:
                    self.acknowledged.append(number)
                else:
                    self.refused_bytes += self.ROW_BYTES
                    self.errors.append(reply.text)
            number += self.WRITERS

    def insert(self, connection: QuickConnection, number: int) -> QuickReply:
        target = connection.endpoint.target(f"INSERT INTO {self.table} FORMAT TSV", {"wait_for_async_insert": 0})
        return connection.post(target, b"%d\t%s\n" % (number, b"x" * self.ROW_BYTES))

    def check(self) -> None:
        counts = self.direct.sql(f"SELECT count(), uniqExact(number) FROM {self.table}").split()
        assert counts[0] == counts[1], f"{counts[0]} rows of {counts[1]} inserts"
        there = self.direct.sql(f"SELECT number FROM {self.table} WHERE number >= {self.first}").split()
        missing = set(self.acknowledged) - {int(number) for number in there}
        assert not missing, f"{len(missing)} of {len(self.acknowledged)} large inserts are missing"


def test_a_full_disk_with_the_backend_away(tmp_path: Path) -> None:
    """Memory is bounded whatever is refused, and with the disk still full, or hardly less so, all that was acknowledged is stored."""
    disk = SmallDisk(tmp_path / "gateway" / "data", DISK_BYTES)
    stage = Behind(tmp_path, SEED, CONFIG + SMALL_BUFFERS, disk.environment)
    # Dead letters and what is known of repeats are written there too: these may find no room.
    kinds = tuple(kind for kind in NOT_WAITED_FOR if "poison" not in kind.name)
    try:
        with stage.relay:
            for number in range(ROUNDS):
                a_round(stage, disk, kinds, number)
            stage.relay.behave()
    finally:
        stage.stop()
        disk.close()


def a_round(stage: Behind, disk: SmallDisk, kinds: tuple[Kind, ...], number: int) -> None:
    first = (number + 1) * 1000
    flood = Flood(stage.where, stage.direct, first * 100_000)
    with Load(stage.where, SEED, first, kinds) as load:
        flood.begin()
        eventually(load.every_writer_more(5), "every writer is served")
        stage.relay.go_away()
        away_until = time.monotonic() + AWAY_SECONDS
        eventually(load.every_writer_more(20), "every writer is served without a backend")
        eventually(lambda: is_filled(disk), "the disk is full")
        before = resident_bytes(stage.gateway.child.pid)
        with flood:
            eventually(lambda: flood.refused_bytes > FLOOD_BYTES, "many times what may be held is refused")
            eventually(lambda: time.monotonic() > away_until, "the time without a backend is over", AWAY_SECONDS + 60)
            growth = most_resident_bytes(stage.gateway.child.pid) - before
        assert growth < MOST_GROWTH_BYTES, f"{growth >> 20} MiB more than when the disk became full"
        if number % 2:
            stage.kill_gateway()
            stage.start_gateway()
            disk.leave(A_LITTLE_BYTES)
        known = load.acknowledged()
        stage.relay.behave()
        eventually(lambda: load.acknowledged() > known, "service resumes")
    counted = drained(stage, load)
    print(f"round {number + 1}: {growth >> 20} MiB more, {flood.refused_bytes >> 20} MiB refused; {load.figures()}; {counted.line()}")
    counted.check()
    flood.check()
    disk.make_room()
