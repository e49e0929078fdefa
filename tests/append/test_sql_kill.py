"""kill -9 at any moment of an append in one transaction: all of it or nothing, and its client can ask which."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.ordered import LOST, Append, native
from harness.sql_store import SqlStore

KILLS = {"duckdb": 50, "postgresql": 15, "sqlite": 15}
BATCHES, ROWS = 10, 200


@pytest.fixture
def gateway(store: SqlStore, tmp_path: Path) -> Iterator[Gateway]:
    started = store.gateway(tmp_path / "gateway")
    yield started
    started.stop()


class Sending:
    """An append on its way: `answers` counts its batches that were answered, and its commit. Before batch `pause` it waits."""

    def __init__(self, append: Append, seed: int, pause: int | None = None):
        self.append, self.answers, self.status, self.pause = append, 0, 0, pause
        self.goes_on = threading.Event()
        self.payloads = [native(seed=[seed] * ROWS, n=range(b * ROWS, b * ROWS + ROWS)) for b in range(BATCHES)]
        self.thread = threading.Thread(target=self.work)
        self.thread.start()

    def work(self) -> None:
        try:
            for number, payload in enumerate(self.payloads):
                if number == self.pause:
                    self.goes_on.wait()
                # While its database is away no append is opened: the same again may work.
                eventually(lambda n=number, p=payload: self.append.put(n, p).status != 503, "it is let in")
                self.answers += 1
            self.status = self.append.commit(BATCHES).status
            self.answers += 1
        except LOST:
            pass


def expect_whole_appends(endpoint: Endpoint, expected: dict[int, bool]) -> None:
    query = "SELECT seed, count(*), min(n), max(n) FROM k GROUP BY seed ORDER BY seed FORMAT TSV"
    stored = {int(line.split("\t")[0]): line.split("\t")[1:] for line in endpoint.sql(query).splitlines()}
    whole = [str(BATCHES * ROWS), "0", str(BATCHES * ROWS - 1)]
    assert stored == {seed: whole for seed, is_there in expected.items() if is_there}
    assert len(set(expected.values())) == 2, "kills came before and after commits"


def test_kill_the_gateway(store: SqlStore, gateway: Gateway) -> None:
    rng, states = random.Random(6), {}
    gateway.http.sql("CREATE TABLE k (seed BIGINT, n BIGINT)")
    for seed in range(KILLS[store.name]):
        sending, moment = Sending(Append(gateway.http, "k"), seed), rng.randrange(BATCHES + 2)
        eventually(lambda: sending.answers >= moment, f"{moment} requests are answered")
        sending.thread.join(rng.uniform(0, 0.005))
        gateway.kill()
        sending.thread.join()
        gateway.start()
        states[seed] = Append(gateway.http, "k", sending.append.id).status()["state"]
        assert states[seed] in ("committed", "gone")
        assert states[seed] == "committed" or sending.answers <= BATCHES, "a commit that was answered is kept"
    expect_whole_appends(gateway.http, {seed: state == "committed" for seed, state in states.items()})


@pytest.mark.parametrize("store", ["postgresql"], indirect=True)
def test_kill_the_server(store: SqlStore, gateway: Gateway) -> None:
    """Whoever commits is told in the end, and what is told is true."""
    postgres, expected = store.postgres, {}
    gateway.http.sql("CREATE TABLE k (seed BIGINT, n BIGINT)")
    open_transactions = "SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'"
    for seed, moment in enumerate(["at its end", "between batches", "while it commits"] * 3):
        sending = Sending(Append(gateway.http, "k"), seed, None if moment == "at its end" else BATCHES // 2)
        if moment == "at its end":
            eventually(lambda: sending.answers >= BATCHES, "all batches are answered")
            sending.thread.join(0.005 * seed)
        else:
            eventually(lambda: postgres.sql(open_transactions) == [(1,)], "the first batches are written")
        with postgres.connect(gateway.url) as connection, connection.cursor() as cursor:
            if moment == "while it commits":
                cursor.execute("BEGIN")
                cursor.execute("LOCK TABLE windrow_appends IN SHARE MODE")
                sending.goes_on.set()
                waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
                eventually(lambda: postgres.sql(waiting) == [(1,)], "the commit is under way")
            postgres.kill()
        postgres.start()
        sending.goes_on.set()
        sending.thread.join()
        expected[seed] = sending.status == 200
        assert sending.append.status()["state"] == ("committed" if expected[seed] else "failed")
    # A connection that was refused while the server began is believed for a moment.
    eventually(lambda: gateway.http.request(None, b"SELECT 1").status == 200, "the gateway sees its database again")
    expect_whole_appends(gateway.http, expected)


@pytest.mark.parametrize("store", ["postgresql"], indirect=True)
def test_a_commit_that_the_server_breaks_off_is_looked_up(store: SqlStore, gateway: Gateway) -> None:
    """A trigger that is checked at the commit ends its own connection there."""
    gateway.http.sql("CREATE TABLE cut_off (n BIGINT)")
    body = "BEGIN PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NEW; END"
    store.postgres.sql(f"CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS '{body}'", gateway.url)
    when = "AFTER INSERT ON cut_off DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION cut()"
    store.postgres.sql(f"CREATE CONSTRAINT TRIGGER cuts {when}", gateway.url)
    append = Append(gateway.http, "cut_off")
    assert append.put(0, native(n=[1])).status == 200
    reply = append.commit(1)
    assert (reply.code, "nothing of the append is stored" in reply.text) == (210, True), reply.text
    assert gateway.http.sql("SELECT count(*) FROM cut_off") == "0"


@pytest.mark.parametrize("store", ["postgresql"], indirect=True)
def test_two_gateways_know_of_each_others_commits(store: SqlStore, gateway: Gateway, tmp_path: Path) -> None:
    other = store.beside(gateway, tmp_path / "other")
    try:
        gateway.http.sql("CREATE TABLE both_know (n BIGINT)")
        appends = [Append(one.http, "both_know", "61f0c404-5cb3-11e7-907b-a6006ad3dba0") for one in (gateway, other)]
        # Both have it open, as where a client goes on at another gateway; one comes first.
        assert all(append.put(0, native(n=[1, 2])).status == 200 for append in appends)
        answers = [json.loads(append.commit(1).body) for append in appends]
        assert answers[0]["rows"] == answers[1]["rows"] == 2
        assert gateway.http.sql("SELECT count(*) FROM both_know") == "2"
        late = Append(other.http, "both_know")
        assert late.put(0, native(n=[3])).status == late.commit(1).status == 200
        assert Append(gateway.http, "both_know", late.id).status()["state"] == "committed"
    finally:
        other.stop()


@pytest.mark.parametrize("store", ["duckdb"], indirect=True)
def test_what_was_left_in_files_is_removed(gateway: Gateway) -> None:
    spool = gateway.data_dir / "appends" / "spool"
    (spool / "left").mkdir()
    (spool / "left" / "0").write_bytes(b"x")
    gateway.kill()
    gateway.start()
    assert list(spool.iterdir()) == []
