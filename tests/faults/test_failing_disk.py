"""A disk that fails at each of its calls in turn: who asks for `disk` is refused, nothing that was acknowledged is lost, service resumes.

A disk that fills up under load is in chaos/test_full_disk.py. Every call of the journal fails in core/log's simulation.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from chaos.failing_disk import DiskFault, FailingDisk
from harness.endpoint import Endpoint, Reply
from harness.engine import Engine
from harness.eventually import eventually
from harness.inserts import INTO_T, Background, ids, make_table, rows
from harness.remote import RemoteGateway, backend_url
from harness.users import TESTER

# A few inserts fill a file, so that new ones are made, and old ones removed, meanwhile.
CONFIG = '[journal]\nsegment_bytes = "64KiB"\nmax_bytes = "4MiB"\n'
ROWS_PER_INSERT = 1000
HANGING = 100_000_000
# Room in a file, its making and the first write into it are among so many calls.
SPARED = range(12)
INTO_OTHER = "INSERT INTO other FORMAT JSONEachRow"
KEPT = {"wait_for_async_insert": 0}
# The one text that leaves it open, should the gateway end before its disk works again.
MAY_BE_FOUND = "the next start may find it there"


@dataclass
class Stage:
    engine: Engine
    disk: FailingDisk
    gateway: RemoteGateway
    inserts: int = 0
    acknowledged: list[int] = field(default_factory=list)
    open: list[int] = field(default_factory=list)

    @property
    def tested(self) -> Endpoint:
        return self.gateway.http.as_user(TESTER.name, TESTER.password)

    def insert(self, **settings: object) -> Reply:
        first = self.inserts * ROWS_PER_INSERT
        self.inserts += 1
        reply = self.tested.insert(INTO_T, rows(*range(first, first + ROWS_PER_INSERT)), **settings)
        if reply.status == 200:
            self.acknowledged.append(first)
        elif MAY_BE_FOUND in reply.text:
            self.open.append(first)
        return reply

    def whole(self) -> list[int]:
        """The rows of what was acknowledged."""
        return [number for first in self.acknowledged for number in range(first, first + ROWS_PER_INSERT)]


@pytest.fixture(scope="module")
def started(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("failing")
    engine = Engine(folder / "engine")
    disk = FailingDisk(folder / "gateway" / "data", folder / "preloaded")
    url = backend_url(TESTER, f"127.0.0.1:{engine.direct.port}")
    stage = Stage(engine, disk, RemoteGateway(folder / "gateway", url, engine.direct, CONFIG, disk.environment))
    yield stage
    disk.mend()
    stage.gateway.stop()
    engine.stop()


@pytest.fixture
def stage(started: Stage) -> Iterator[Stage]:
    direct = started.engine.direct
    make_table(direct, settings="SETTINGS non_replicated_deduplication_window = 10000")
    make_table(direct, name="other")
    # Rows that were there before would be taken for repeats.
    started.acknowledged, started.open = [], []
    yield started
    started.disk.mend()
    # What is under way would come into the next test's table.
    eventually(lambda: started.insert().status == 200, "all has come to its end")
    direct.sql("DROP TABLE t SYNC")
    direct.sql("DROP TABLE other SYNC")


FAILING = (
    DiskFault.SYNC_FAILS,
    DiskFault.WRITE_FAILS,
    DiskFault.FULL,
    DiskFault.NO_NEW_ROOM,
    DiskFault.READ_ONLY,
    DiskFault.NO_DESCRIPTORS,
)


@pytest.mark.parametrize("fault", FAILING, ids=lambda fault: fault.name.lower())
def test_every_call_fails_once(stage: Stage, fault: DiskFault) -> None:
    refused: list[Reply] = []
    for spared in SPARED:
        stage.disk.fail(fault, spared)
        refused.append(first_refused(stage))
        assert stage.disk.met(), "it is refused for the fault"
        # Into the same table, it would wait for what came before it.
        assert stage.tested.insert(INTO_OTHER, rows(spared)).status == 200, "who waits needs no disk"
        stage.disk.mend()
        eventually(lambda: stage.insert(**KEPT).status == 200, "service resumes")
    for reply in refused:
        assert (reply.status, reply.code, reply.headers["retry-after"]) == (503, 243, "1"), reply.text
        assert "The insert was not taken" in reply.text
    # With the disk failing until the end, what came after its last good moment is found in nothing but its memory.
    stage.disk.fail(fault)
    first_refused(stage)
    stage.gateway.kill()
    stage.disk.mend()
    stage.gateway.start()
    each_once(stage)


# Each would have taken a record's room of what is kept for the ends of others.
REFUSALS = 300
# Less than one of them would hold its table for, if it were sent.
LONGEST_SECONDS = 60


def test_a_disk_that_stays_full(stage: Stage) -> None:
    """However much is refused meanwhile, what was acknowledged is stored, also after a crash, and no insert holds up its table."""
    assert stage.insert(**KEPT).status == 200
    stage.disk.fail(DiskFault.NO_NEW_ROOM)
    first_refused(stage)
    for number in range(REFUSALS):
        assert stage.insert(**KEPT).status in (200, 503)
        if number % 30 == 0:
            # Their records are needed for repeats after a crash, and can't be written: of one with a token, and of one into
            # a table whose owner has given it a window.
            assert stage.insert(insert_deduplication_token=f"full-{number}").status in (200, 503)
            assert stage.insert().status in (200, 503)
            assert stage.tested.insert(INTO_OTHER, rows(number)).status == 200, "who waits needs no disk"
    all_stored = lambda: set(stage.whole()) <= set(ids(stage.engine.direct))
    eventually(all_stored, "what was acknowledged is stored", LONGEST_SECONDS)
    stage.gateway.kill()
    stage.gateway.start()
    eventually(all_stored, "what was acknowledged is stored", LONGEST_SECONDS)
    stage.disk.mend()
    each_once(stage)
    eventually(lambda: stage.insert(**KEPT).status == 200, "service resumes")


def first_refused(stage: Stage) -> Reply:
    for _ in range(200):
        reply = stage.insert(**KEPT)
        if reply.status != 200:
            return reply
    raise AssertionError("the fault shows in no answer")


def each_once(stage: Stage) -> None:
    assert stage.insert().status == 200, "all that is left from before has come to its end"
    acknowledged = set(stage.whole())
    left_open = {number for first in stage.open for number in range(first, first + ROWS_PER_INSERT)}
    eventually(lambda: acknowledged <= set(ids(stage.engine.direct)), "what was acknowledged is stored")
    there = ids(stage.engine.direct)
    assert len(there) == len(set(there)), f"{len(there) - len(set(there))} rows are there twice"
    assert acknowledged <= set(there), f"{len(acknowledged - set(there))} rows are missing"
    invented = set(there) - acknowledged - left_open
    assert not invented, f"{len(invented)} rows are there that were not taken"


def test_a_disk_that_hangs(stage: Stage) -> None:
    """What is not synced is not acknowledged; who needs no disk is served meanwhile."""
    assert stage.insert(**KEPT).status == 200
    stage.disk.fail(DiskFault.SYNC_WAITS)
    with Background(stage.tested) as background:
        hanging = background.insert(rows(HANGING - 1), **KEPT)
        eventually(stage.disk.met, "the sync has begun")
        assert stage.tested.sql("SELECT 1") == "1"
        assert stage.tested.insert(INTO_OTHER, rows(1)).status == 200
        assert not hanging.answered()
        stage.disk.mend()
        assert hanging.reply().status == 200


def test_an_end_while_the_disk_hangs(stage: Stage) -> None:
    """SIGTERM waits for the sync: what hangs is answered, and kept."""
    stage.disk.fail(DiskFault.SYNC_WAITS)
    with Background(stage.tested) as background:
        hanging = background.insert(rows(HANGING), **KEPT)
        eventually(stage.disk.met, "the sync has begun")
        stage.gateway.child.process.terminate()
        eventually(lambda: "shutting down" in stage.gateway.child.log(), "it ends")
        assert not hanging.answered()
        stage.disk.mend()
        assert hanging.reply().status == 200
    assert stage.gateway.child.wait() == 0
    stage.gateway.start()
    eventually(lambda: ids(stage.engine.direct).count(HANGING) == 1, "it is stored")
