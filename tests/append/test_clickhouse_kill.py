"""An append is stored whole or not at all, whatever is killed while it goes on, and its client can ask which."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from harness.engine import Engine
from harness.eventually import eventually
from harness.gate import Gate
from harness.ordered import LOST, Append, native
from harness.remote import RemoteGateway
from harness.users import TESTER

KILLS = 50
ROWS = 400


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A ClickHouse that outlives the gateways in front of it."""
    engine = Engine(tmp_path_factory.mktemp("backend"))
    yield engine
    engine.stop()


@pytest.fixture
def remote(tmp_path: Path, backend: Engine) -> Iterator[RemoteGateway]:
    url = f"http://{quote(TESTER.name)}:{quote(TESTER.password)}@127.0.0.1:{backend.direct.port}"
    gateway = RemoteGateway(tmp_path / "gateway", url, backend.direct)
    yield gateway
    gateway.stop()


def append_of(gateway: RemoteGateway, table: str, append_id: str | None = None) -> Append:
    endpoint = gateway.http.as_user(TESTER.name, TESTER.password)
    return Append(endpoint, table, append_id) if append_id else Append(endpoint, table)


def in_background(append: Append, seed: int) -> threading.Thread:
    payloads = [native(seed=[seed] * 40, n=range(b * 40, b * 40 + 40)) for b in range(ROWS // 40)]

    def work() -> None:
        try:
            for number, payload in enumerate(payloads):
                append.put(number, payload)
            append.commit(len(payloads))
        except LOST:
            pass

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def settled(append: Append) -> str:
    """What the gateway says of an append, when it is certain."""
    state = no_longer_committing(append)
    assert state in ("committed", "unknown"), state
    return state


def no_longer_committing(append: Append) -> str:
    return eventually(lambda: (s := append.status()["state"]) != "committing" and s, "the append is settled")


@pytest.mark.parametrize("partition", ["", "PARTITION BY n % 5"])
def test_kill_the_gateway(remote: RemoteGateway, backend: Engine, partition: str) -> None:
    direct, rng = backend.direct, random.Random(len(partition))
    direct.sql("DROP TABLE IF EXISTS k")
    direct.sql(f"CREATE TABLE k (seed Int64, n Int64) ENGINE = MergeTree {partition} ORDER BY tuple()")
    states = {}
    for seed in range(KILLS // 2):
        append = append_of(remote, "k")
        thread = in_background(append, seed)
        # A moment chosen at random, anywhere from the first batch to after the commit.
        thread.join(rng.uniform(0, 0.15))
        remote.kill()
        thread.join()
        remote.start()
        states[seed] = settled(append_of(remote, "k", append.id))
    rows = dict(line.split("\t") for line in direct.sql("SELECT seed, count() FROM k GROUP BY seed").splitlines())
    expected = {str(seed): str(ROWS) for seed, state in states.items() if state == "committed"}
    assert rows == expected
    assert direct.sql("SELECT count() FROM (SELECT DISTINCT seed, n FROM k)") == str(ROWS * len(expected))
    query = "SELECT count() FROM system.tables WHERE name LIKE '%windrow_append%'"
    eventually(lambda: direct.sql(query) == "0", "the staging tables are gone")


def test_kill_clickhouse(remote: RemoteGateway, backend: Engine) -> None:
    direct, rng = backend.direct, random.Random(7)
    direct.sql("DROP TABLE IF EXISTS k")
    direct.sql("CREATE TABLE k (seed Int64, n Int64) ENGINE = MergeTree PARTITION BY n % 5 ORDER BY tuple()")
    appends = {}
    for seed in range(8):
        appends[seed] = append_of(remote, "k")
        thread = in_background(appends[seed], seed)
        thread.join(rng.uniform(0, 0.12))
        backend.kill()
        backend.start()
        thread.join()
    # What is being committed may come into the table at any moment.
    states = {seed: no_longer_committing(append) for seed, append in appends.items()}
    rows = dict(line.split("\t") for line in direct.sql("SELECT seed, count() FROM k GROUP BY seed").splitlines())
    assert set(rows.values()) <= {str(ROWS)}
    for seed, state in states.items():
        assert (state == "committed") == (str(seed) in rows), (seed, state, rows)


def test_rows_that_views_hold_up_come_once(remote: RemoteGateway, backend: Engine) -> None:
    """The gateway dies while ClickHouse writes; what ClickHouse had begun ends, and is not written again."""
    direct = backend.direct
    direct.sql("CREATE TABLE held (a Int64) ENGINE = MergeTree ORDER BY tuple() "
               "SETTINGS non_replicated_deduplication_window = 100")
    with Gate() as gate:
        gate.stand_behind(direct, "held")
        append = append_of(remote, "held")
        assert append.put(0, native(a=[1, 2, 3])).status == 200
        commit = threading.Thread(target=lambda: ignore_loss(append))
        commit.start()
        gate.await_insert()
        remote.kill()
        commit.join()
        remote.start()
        append = append_of(remote, "held", append.id)
        assert append.status()["state"] == "committing"
        gate.open()
        assert settled(append) == "committed"
    assert direct.sql("SELECT groupArray(a) FROM held") == "[1,2,3]"
    assert json.loads(append.commit(1).body)["rows"] == 3


def ignore_loss(append: Append) -> None:
    try:
        append.commit(1)
    except LOST:
        pass
