"""The database goes away and comes back, whoever does what meanwhile."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.adbc import DRIVERS, AdbcGateway, counted
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.paths import gateway_binary
from harness.ports import free_port
from harness.postgres import Postgres
from harness.process import inherited_environment

DISK = {"wait_for_async_insert": 0}


class Pair:
    def __init__(self, folder: Path):
        self.postgres = Postgres(folder / "postgres")
        self.gateway = AdbcGateway(folder / "gateway", self.postgres.url)

    @property
    def http(self) -> Endpoint:
        return self.gateway.http

    def stop(self) -> None:
        self.gateway.stop()
        self.postgres.stop()


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Pair]:
    started = Pair(tmp_path)
    yield started
    started.stop()


def test_what_comes_while_the_server_is_away_is_stored_later(pair: Pair) -> None:
    pair.http.sql("CREATE TABLE t (id bigint)")
    assert pair.http.insert("INSERT INTO t FORMAT CSV", "0\n").status == 200
    pair.postgres.kill()
    for number in range(1, 21):
        reply = pair.http.insert("INSERT INTO t FORMAT CSV", f"{number}\n", **DISK)
        assert reply.status == 200, reply.text
    assert pair.http.request(None, b"SELECT 1").code == 210
    eventually(lambda: "Connection refused" in pair.gateway.ready().text, "the gateway says that its database is away")
    # Also after a crash of the gateway, with the server still away.
    pair.gateway.kill()
    pair.gateway.start()
    pair.postgres.start()
    eventually(lambda: pair.gateway.ready().text.strip() == "ready", "the gateway sees it again")
    eventually(lambda: counted(pair.http, "t") == 21, "all is stored")
    assert pair.http.sql("SELECT sum(id), count(DISTINCT id) FROM t") == f"{sum(range(21))}\t21"


def test_connections_that_were_cut_are_opened_again(pair: Pair) -> None:
    pair.http.sql("CREATE TABLE t (id bigint)")
    others = "FROM pg_stat_activity WHERE pid <> pg_backend_pid() AND backend_type = 'client backend'"
    for number in range(10):
        assert pair.http.insert("INSERT INTO t FORMAT CSV", f"{number}\n").status == 200
        pair.postgres.sql(f"SELECT count(pg_terminate_backend(pid)) {others}")
    assert counted(pair.http, "t") == 10


def test_a_table_that_is_locked_holds_up_no_other(pair: Pair) -> None:
    for table in ("held", "free"):
        pair.http.sql(f"CREATE TABLE {table} (id bigint)")
        assert pair.http.insert(f"INSERT INTO {table} FORMAT CSV", "0\n").status == 200
    with pair.postgres.connect() as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("LOCK TABLE held")
        assert pair.http.insert("INSERT INTO held FORMAT CSV", "1\n", **DISK).status == 200
        for number in range(1, 6):
            assert pair.http.insert("INSERT INTO free FORMAT CSV", f"{number}\n").status == 200
        cursor.execute("ROLLBACK")
    eventually(lambda: counted(pair.http, "held") == 2, "the other goes on")


def test_a_commit_whose_answer_is_lost_is_stored_once(pair: Pair) -> None:
    """A trigger that is checked at the commit ends its own connection there, after or before all is written, once each."""
    pair.http.sql("CREATE TABLE t (id bigint)")
    pair.http.sql("CREATE SEQUENCE tries")
    pair.postgres.sql(
        "CREATE FUNCTION cut() RETURNS trigger LANGUAGE plpgsql AS "
        "'BEGIN IF nextval(''tries'') % 3 <> 0 THEN PERFORM pg_terminate_backend(pg_backend_pid()); END IF; RETURN NEW; END'"
    )
    pair.postgres.sql(
        "CREATE CONSTRAINT TRIGGER cuts AFTER INSERT ON t DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION cut()"
    )
    for number in range(5):
        assert pair.http.insert("INSERT INTO t FORMAT CSV", f"{number}\n").status == 200
    assert pair.http.sql("SELECT count(*), count(DISTINCT id) FROM t") == "5\t5"


def test_an_id_that_another_attempt_holds_is_waited_for(pair: Pair) -> None:
    """An attempt whose connection is lost may still be under way: its id is in nobody's sight, but in everybody's way."""
    pair.http.sql("CREATE TABLE t (id bigint)")
    assert pair.http.insert("INSERT INTO t FORMAT CSV", "0\n").status == 200
    with pair.postgres.connect() as connection, connection.cursor() as cursor:
        cursor.execute("BEGIN")
        cursor.execute("LOCK TABLE windrow_batches IN SHARE MODE")
        assert pair.http.insert("INSERT INTO t FORMAT CSV", "1\n", **DISK).status == 200
        waiting = "SELECT count(*) FROM pg_locks WHERE NOT granted"
        eventually(lambda: pair.postgres.sql(waiting) != [(0,)], "the batch's transaction waits")
        pair.gateway.kill()
        pair.gateway.start()
        cursor.execute("ROLLBACK")
    eventually(lambda: counted(pair.http, "t") == 2, "it is stored")
    assert pair.http.sql("SELECT count(DISTINCT id) FROM t") == "2"


def test_passwords_are_not_told(tmp_path: Path) -> None:
    gateway = AdbcGateway(tmp_path / "gateway", f"postgresql://joe:geheim@127.0.0.1:{free_port()}/d?sslmode=disable")
    try:
        assert gateway.http.request(None, b"SELECT 1").code == 210
        assert gateway.http.insert("INSERT INTO t FORMAT CSV", "1\n", wait_for_async_insert_timeout=1).status == 503
        assert "joe:(set)@" in gateway.child.log()
        assert "geheim" not in gateway.child.log()
    finally:
        gateway.stop()


@pytest.mark.parametrize(
    ("backend", "words"),
    [
        ("adbc:sqlite:a.db --otlp-http 127.0.0.1:0", "make tables of your own, and say in `[[otlp.mappings]]`"),
        ("adbc:", "must be followed by the database's address"),
        ("adbc:nosuch://x", "pip install adbc-driver-nosuch"),
        ("adbc:sqlite::memory:", "must be followed by a file"),
    ],
)
def test_mistakes_are_told_at_the_start(backend: str, words: str, tmp_path: Path) -> None:
    environment = {"WINDROW_ADBC_DRIVER": DRIVERS["sqlite"]()} if "sqlite" in backend else {}
    ports = ["--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--native", "127.0.0.1:0", "--flight", ""]
    command = [str(gateway_binary()), "serve", "--backend", *backend.split(), "--data-dir", str(tmp_path), *ports]
    done = subprocess.run(command, capture_output=True, text=True, env={**inherited_environment(), **environment}, timeout=60)
    assert done.returncode != 0
    assert words in done.stdout + done.stderr
