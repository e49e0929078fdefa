"""A ClickHouse that is killed between the record of a block and its part: what was acknowledged is stored all the same."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from chaos.failing_disk import DiskFault, FailingDisk
from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.inserts import INTO_T, ids, make_table, rows
from harness.users import TESTER

WINDOW = "SETTINGS non_replicated_deduplication_window = 100"


def has_recorded(folder: Path, blocks: int) -> bool:
    """Whether ClickHouse's data there has so many records of blocks."""
    logs = folder.glob("store/*/*/deduplication_logs/*.txt")
    return sum(log.read_text().count("\n") for log in logs) == blocks


@pytest.mark.parametrize("ack", ["stored", "disk"])
def test_the_embedded_engine_forgets_what_it_did_not_store(tmp_path: Path, ack: str) -> None:
    data = tmp_path / "gateway" / "data" / "embedded"
    disk = FailingDisk(data, tmp_path / "preloaded")
    gateway = Gateway(tmp_path / "gateway", environment=disk.environment)
    try:
        make_table(gateway.direct)
        tested = gateway.http.as_user(TESTER.name, TESTER.password)
        assert tested.insert(INTO_T, rows(1)).status == 200
        disk.fail(DiskFault.RENAME_WAITS)
        replies: list[int] = []
        insert = threading.Thread(target=lambda: replies.append(tested.insert(INTO_T, rows(2), windrow_ack=ack).status))
        insert.start()
        eventually(lambda: has_recorded(data / "data", 2) and disk.met(), "ClickHouse is between record and part")
        os.kill(gateway.engine_pid(), signal.SIGKILL)
        disk.mend()
        insert.join()
        assert replies == [200]
        eventually(lambda: gateway.direct.answers() and ids(gateway.direct) == [1, 2], "both are stored")
    finally:
        disk.mend()
        gateway.stop()


@pytest.mark.parametrize(("mended", "stored"), [(False, [1]), (True, [1, 2])], ids=["clickhouse", "mended"])
def test_a_clickhouse_that_is_killed_loses_a_repeat_unless_its_log_is_mended(
    tmp_path: Path, mended: bool, stored: list[int]
) -> None:
    disk = FailingDisk(tmp_path / "engine", tmp_path / "preloaded")
    engine = Engine(tmp_path / "engine", environment=disk.environment)
    try:
        make_table(engine.direct, settings=WINDOW)
        assert named(engine.direct, 1) == 200
        # From now on, parts that are being written have other numbers than they will be stored under.
        engine.kill()
        engine.start()
        disk.fail(DiskFault.RENAME_WAITS)
        insert = threading.Thread(target=lambda: pytest.raises(OSError, named, engine.direct, 2))
        insert.start()
        eventually(lambda: has_recorded(tmp_path / "engine" / "data", 2) and disk.met(), "it is between record and part")
        engine.kill()
        insert.join()
        disk.mend()
        if mended:
            engine.mend()
            assert engine.records_withdrawn == 1
        engine.start()
        for number in (1, 2):
            assert named(engine.direct, number) == 200
        assert ids(engine.direct) == stored
    finally:
        disk.mend()
        engine.stop()


def named(direct: Endpoint, number: int) -> int:
    return direct.insert(INTO_T, rows(number), insert_deduplication_token=str(number), deduplicate_insert="enable").status
