"""Ordered appends, as far as a database's locks are in their way, or they in the way of others."""

from __future__ import annotations

import io
import json
import os
import signal
import sqlite3
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pytest

from harness.adbc import AdbcGateway, counted, create
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.ordered import Append, native
from harness.postgres import Postgres

# Few locks, and nobody who takes transaction ids or looks for deadlocks beside the tests.
SERVER = "max_locks_per_transaction = 10\nmax_connections = 20\nautovacuum = off\ndeadlock_timeout = '1h'"
# Batches of half that size are written one by one.
GATEWAY = "[append]\nwindow_bytes = 65536\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    started = Postgres(tmp_path_factory.mktemp("few_locks") / "cluster", SERVER)
    yield started
    started.stop()


@pytest.fixture
def gateway(server: Postgres, tmp_path: Path) -> Iterator[AdbcGateway]:
    started = AdbcGateway(tmp_path / "gateway", server.new_database(), GATEWAY)
    yield started
    started.stop()


def documents(number: int) -> bytes:
    """A batch of one large document."""
    document = json.dumps({"n": number, "fill": "x" * 40_000})
    batch = pa.RecordBatch.from_pydict({"n": pa.array([number], pa.int64()), "more": [document]})
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, batch.schema) as writer:
        writer.write_batch(batch)
    return sink.getvalue()


def with_appends(http: Endpoint) -> str:
    """A table that an append has been stored in."""
    table = create(http, "n bigint")
    append = Append(http, table)
    assert append.put(0, native(n=[1])).status == append.commit(1).status == 200
    return table


def test_an_append_has_more_batches_than_the_server_has_locks(gateway: AdbcGateway) -> None:
    table = create(gateway.http, "n bigint, more jsonb")
    append, batches = Append(gateway.http, table), 300
    for number in range(batches):
        reply = append.put(number, documents(number), format="ArrowStream")
        assert reply.status == 200, reply.text
    reply = append.commit(batches)
    assert reply.status == 200, reply.text
    query = f"SELECT count(DISTINCT n), count(*), sum((more->>'n')::bigint - n)::bigint FROM {table}"
    assert gateway.http.sql(query) == f"{batches}\t{batches}\t0"


def test_a_question_about_an_append_writes_nothing(gateway: AdbcGateway, server: Postgres) -> None:
    with_appends(gateway.http)
    next_id = "SELECT txid_snapshot_xmax(txid_current_snapshot())"
    before = server.sql(next_id)
    for _ in range(20):
        assert Append(gateway.http, "nothing").status()["state"] == "gone"
    assert server.sql(next_id) == before


def test_questions_that_wait_for_a_commit_hold_up_no_insert(gateway: AdbcGateway, server: Postgres) -> None:
    with_appends(gateway.http)
    table, ids = create(gateway.http, "n bigint"), [str(uuid.uuid4()) for _ in range(4)]
    waiting = "SELECT pid FROM pg_locks WHERE NOT granted"
    with server.connect(gateway.url) as connection, connection.cursor() as cursor, ThreadPoolExecutor(len(ids)) as pool:
        # Another gateway commits these appends, and doesn't come to an end.
        cursor.execute("BEGIN")
        for one in ids:
            cursor.execute(f"INSERT INTO windrow_appends VALUES ('{one}', 'default', 't', 1, 1, 1, 1, CURRENT_TIMESTAMP)")
        asking = [pool.submit(lambda one=one: Append(gateway.http, table, one).ask("GET")) for one in ids]
        eventually(lambda: len(server.sql(waiting)) == len(ids), "all questions wait")
        stopped = [pid for (pid,) in server.sql(waiting)]
        for pid in stopped:
            os.kill(pid, signal.SIGSTOP)
        try:
            reply = gateway.http.insert(f"INSERT INTO {table} FORMAT CSV", "1\n")
            assert reply.status == 200, reply.text
        finally:
            for pid in stopped:
                os.kill(pid, signal.SIGCONT)
            cursor.execute("COMMIT")
        for question in asking:
            question.result()
    assert all(Append(gateway.http, table, one).status()["state"] == "committed" for one in ids)


def test_an_append_waits_for_a_lock_of_others(tmp_path: Path) -> None:
    file = tmp_path / "a.db"
    gateway = AdbcGateway(tmp_path / "gateway", f"sqlite://{file}")
    try:
        table = create(gateway.http, "n bigint")
        append = Append(gateway.http, table)
        # One whose commit has made Windrow's own tables.
        with_appends(gateway.http)
        assert append.put(0, native(n=[1, 2])).status == 200
        other = sqlite3.connect(file, isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with ThreadPoolExecutor(3) as pool:
            committing = pool.submit(lambda: append.commit(1))
            # After the 10 seconds for which SQLite waits by itself.
            waits = "an ordered append waits for a lock"
            waited = lambda times: gateway.child.log().count(waits) >= times or committing.done()
            eventually(lambda: waited(1), "the append goes on waiting")
            updating = pool.submit(lambda: gateway.http.sql(f"UPDATE {table} SET n = n + 10"))
            # An update that did not wait for the append would be refused before that.
            eventually(lambda: waited(3), "the append goes on waiting while others write")
            inserting = pool.submit(lambda: gateway.http.insert(f"INSERT INTO {table} FORMAT CSV", "3\n"))
            other.execute("ROLLBACK")
            assert committing.result().status == inserting.result().status == 200, committing.result().text
            updating.result()
        other.close()
        assert counted(gateway.http, table) == 3
        # The append's rows were there when it was its turn.
        assert gateway.http.sql(f"SELECT count(*) FROM {table} WHERE n IN (11, 12)") == "2"
    finally:
        gateway.stop()
