"""kill -9 of the gateway at any moment of an append into DuckDB: all of it or nothing, and its client can ask which."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.duckdb import DuckDbGateway
from harness.eventually import eventually
from harness.ordered import LOST, Append, native

KILLS = 50
BATCHES, ROWS = 10, 200


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[DuckDbGateway]:
    started = DuckDbGateway(tmp_path / "gateway", f"duckdb://{tmp_path}/kill.db")
    yield started
    started.stop()


class Sending:
    """An append on its way: `answers` counts its batches that were answered, and its commit."""

    def __init__(self, append: Append, seed: int):
        self.append, self.answers = append, 0
        self.payloads = [native(seed=[seed] * ROWS, n=range(b * ROWS, b * ROWS + ROWS)) for b in range(BATCHES)]
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self) -> None:
        try:
            for number, payload in enumerate(self.payloads):
                self.append.put(number, payload)
                self.answers += 1
            self.append.commit(BATCHES)
            self.answers += 1
        except LOST:
            pass


def test_kill_the_gateway(gateway: DuckDbGateway) -> None:
    rng, states = random.Random(6), {}
    gateway.http.sql("CREATE TABLE k (seed BIGINT, n BIGINT)")
    for seed in range(KILLS):
        sending, moment = Sending(Append(gateway.http, "k"), seed), rng.randrange(BATCHES + 2)
        eventually(lambda: sending.answers >= moment, f"{moment} requests are answered")
        sending.thread.join(rng.uniform(0, 0.005))
        gateway.kill()
        sending.thread.join()
        gateway.start()
        states[seed] = Append(gateway.http, "k", sending.append.id).status()["state"]
        assert states[seed] in ("committed", "gone")
        assert states[seed] == "committed" or sending.answers <= BATCHES, "a commit that was answered is kept"
    expected = {seed: state == "committed" for seed, state in states.items()}
    query = "SELECT seed, count(*), min(n), max(n) FROM k GROUP BY seed ORDER BY seed FORMAT TSV"
    stored = {int(line.split("\t")[0]): line.split("\t")[1:] for line in gateway.http.sql(query).splitlines()}
    whole = [str(BATCHES * ROWS), "0", str(BATCHES * ROWS - 1)]
    assert stored == {seed: whole for seed, is_there in expected.items() if is_there}
    assert len(set(expected.values())) == 2, "kills came before and after commits"


def test_what_was_left_in_files_is_removed(gateway: DuckDbGateway, tmp_path: Path) -> None:
    spool = gateway.data_dir / "appends" / "spool"
    (spool / "left").mkdir()
    (spool / "left" / "0").write_bytes(b"x")
    gateway.kill()
    gateway.start()
    assert list(spool.iterdir()) == []
