"""A disk that fills up: writers are told so, nothing acknowledged is lost, and service resumes when there is room."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.count import drained
from chaos.kinds import KINDS, PLAIN
from chaos.load import Load, create_tables
from chaos.small_disk import WAYS, SmallDisk
from chaos.stage import Behind, InProcess
from harness.eventually import eventually

SEED = int(os.environ.get("WINDROW_CHAOS_SEED", "1"))
NOT_WAITED_FOR = tuple(kind for kind in KINDS if kind.name.startswith("disk"))
DISK_BYTES = 24 << 20
# The bound that is configured is never met: the disk is full before.
CONFIG = '[journal]\nsegment_bytes = "1MiB"\nmax_bytes = "1GiB"\n'
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
