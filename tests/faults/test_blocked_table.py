"""A table that takes nothing for a while: what is refused meanwhile is held no longer, and who is refused is told soon."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from chaos.failing_disk import DiskFault, FailingDisk
from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.eventually import eventually
from harness.inserts import ids, make_table
from harness.metrics import metrics_of
from harness.process import most_resident_bytes
from harness.quick_http import QuickConnection
from harness.relay import Relay
from harness.remote import RemoteGateway, backend_url
from harness.users import TESTER

INTO_T = "INSERT INTO t FORMAT TSV"
COLUMNS = "a UInt64, text String"
CONFIG = """
[gather]
max_buffer_bytes = "64MiB"
too_many_parts_wait_ms = 100

[journal]
segment_bytes = "1MiB"
max_bytes = "1GiB"
"""
FULL = "SETTINGS parts_to_throw_insert = 1, parts_to_delay_insert = 1, max_delay_to_insert = 0"
ROW_BYTES = 50_000
CLIENTS = 200
# Many times what is held at once.
REFUSED_BYTES = 120 << 20
MOST_GROWTH_BYTES = 80 << 20
# On a machine that is busy.
SOON_SECONDS = 20
SIZES = (1, 1000, 100_000, 900_000, 3_000_000, 9_000_000)
# Is forwarded.
TOO_LARGE = 20_000_000


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    started = Engine(tmp_path / "engine")
    yield started
    started.stop()


def row(number: int, size: int) -> bytes:
    return b"%d\t%s\n" % (number, b"x" * size)


class Clients:
    """Each waits for its insert, and comes again when it is refused, until so much was."""

    def __init__(self, tested: Endpoint):
        self.tested = tested
        self.refused_bytes = 0
        self.others: list[str] = []
        self.threads = [threading.Thread(target=self.run, args=(number,), daemon=True) for number in range(CLIENTS)]

    def run(self, number: int) -> None:
        connection = QuickConnection(self.tested, 60)
        while self.refused_bytes < REFUSED_BYTES and not self.others:
            reply = connection.post(self.tested.target(INTO_T, {"async_insert": 1}), row(1000 + number, ROW_BYTES))
            if "Code: 252." in reply.text:
                self.refused_bytes += ROW_BYTES
            else:
                self.others.append(reply.text)


def test_refusals_of_too_many_parts_leave_nothing_behind(engine: Engine, tmp_path: Path) -> None:
    """While an insert at level `disk` waits in front of them, and they come again and again."""
    gateway = RemoteGateway(tmp_path / "gateway", backend_url(TESTER, f"127.0.0.1:{engine.direct.port}"), engine.direct, CONFIG)
    tested = gateway.http.as_user(TESTER.name, TESTER.password)
    make_table(engine.direct, COLUMNS, settings=FULL)
    engine.direct.sql("SYSTEM STOP MERGES t")
    assert tested.insert(INTO_T, row(0, 1)).status == 200
    assert tested.insert(INTO_T, row(1, 1), async_insert=1, wait_for_async_insert=0).status == 200
    clients = Clients(tested)
    before = most_resident_bytes(gateway.child.pid)
    for thread in clients.threads:
        thread.start()
    for thread in clients.threads:
        thread.join(180)
        assert not thread.is_alive(), "a client still waits"
    growth = most_resident_bytes(gateway.child.pid) - before
    assert not clients.others, clients.others[0]
    assert growth < MOST_GROWTH_BYTES, f"{growth >> 20} MiB more for {clients.refused_bytes >> 20} MiB that were refused"
    eventually(lambda: metrics_of(gateway).sum("windrow_buffers_bytes") < ROW_BYTES, "only the insert that is kept is held")
    engine.direct.sql("TRUNCATE TABLE t")
    eventually(lambda: ids(engine.direct) == [1], "the insert that was kept is stored")
    assert gateway.stop() == 0


@pytest.mark.parametrize("hangs", [False, True], ids=["away", "hangs"])
@pytest.mark.parametrize("fault", [DiskFault.FULL, DiskFault.NO_NEW_ROOM], ids=lambda fault: fault.name.lower())
def test_any_size_is_answered_with_disk_and_backend_away(
    engine: Engine, tmp_path: Path, fault: DiskFault, hangs: bool
) -> None:
    relay = Relay(engine.direct.port, 1)
    disk = FailingDisk(tmp_path / "gateway" / "data", tmp_path / "preloaded")
    with relay:
        gateway = RemoteGateway(
            tmp_path / "gateway", backend_url(TESTER, relay.address), engine.direct, CONFIG, disk.environment
        )
        tested = gateway.http.as_user(TESTER.name, TESTER.password)
        make_table(engine.direct, COLUMNS)
        kept = [0]
        assert tested.insert(INTO_T, row(0, 1), wait_for_async_insert=0).status == 200
        eventually(lambda: ids(engine.direct) == kept, "the first is stored")
        disk.fail(fault)
        if hangs:
            relay.hang()
        else:
            relay.go_away()
        sizes = SIZES if hangs else (*SIZES, TOO_LARGE)
        for number, size in enumerate((*sizes, 1), start=1):
            began = time.monotonic()
            reply = tested.insert(INTO_T, row(number, size), wait_for_async_insert=0)
            took = time.monotonic() - began
            assert took < SOON_SECONDS, f"{size} bytes: {reply.status} after {took:.0f} s"
            if reply.status == 200:
                kept.append(number)
        disk.mend()
        relay.behave()
        eventually(lambda: ids(engine.direct) == kept, "what was acknowledged is stored, and no more")
        assert gateway.stop() == 0
