"""The synchronous writer: threads, forks, signals, and the end of the program."""

from __future__ import annotations

import concurrent.futures
import json
import os
import subprocess
import sys
import threading
from typing import Any

import pytest
import windrow
from harness.endpoint import Endpoint
from harness.eventually import eventually
from windrow import exceptions
from windrow._shared import errors

COLUMNS = ["n", "text"]


def count(table: Endpoint) -> int:
    return int(table.sql("SELECT count() FROM t"))


def test_many_threads_write(client: windrow.Client, table: Endpoint, threads_unchanged: None) -> None:
    with client.writer("t", COLUMNS, batch_rows=100) as writer:

        def write(start: int) -> None:
            for n in range(start, start + 500):
                writer.write_row((n, "x"))

        threads = [threading.Thread(target=write, args=(10_000 * number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert table.sql("SELECT count(), uniqExact(n) FROM t").split() == ["2000", "2000"]


def test_wait_and_futures(client: windrow.Client, table: Endpoint) -> None:
    with client.writer("t", COLUMNS, flush_interval=0.02) as writer:
        writer.write_row((1, "x"), wait=True)
        assert count(table) == 1
        with pytest.raises(windrow.WriteError, match="VIOLATED_CONSTRAINT") as raised:
            writer.write_rows([(2, "good"), (999, "bad")], wait=True)
        assert raised.value.rows == [(999, "bad")]
        future = writer.write_row((3, "x"), future=True)
        assert isinstance(future, concurrent.futures.Future)
        assert future.result(30) is None
        bad = writer.write_row((1999, "bad"), future=True)
        assert isinstance(bad.exception(30), windrow.WriteError)
    assert table.sql("SELECT groupArray(n) FROM (SELECT n FROM t ORDER BY n)").strip() == "[1,2,3]"


def test_errors_from_a_thread_of_its_own(client: windrow.Client, table: Endpoint) -> None:
    told: list[tuple[str, Any]] = []
    entered, leave = threading.Event(), threading.Event()

    def on_error(error: windrow.WriteError) -> None:
        told.append((threading.current_thread().name, error.rows))
        entered.set()
        leave.wait(60)

    with client.writer("t", COLUMNS, on_error=on_error, flush_interval=0.01) as writer:
        writer.write_row((999, "bad"))
        assert entered.wait(60)
        writer.write_row((1, "good"), wait=True)
        assert count(table) == 1, "a callback that takes its time holds up nobody"
        leave.set()
    assert told == [("windrow-writer-errors", [(999, "bad")])]


def test_a_full_writer_waits(client: windrow.Client, table: Endpoint) -> None:
    with client.writer("t", COLUMNS, max_bytes=20_000, batch_rows=5, flush_interval=0.01) as writer:
        for n in range(200):
            writer.write_row((n, "x" * 2000))
            assert writer.statistics().bytes_held <= 20_000
    assert count(table) == 200


def test_memory_is_bounded_while_the_server_is_away(
    start_engine: Any, where: dict[str, Any], threads_unchanged: None
) -> None:
    engine = start_engine()
    direct = engine.direct
    direct.sql("CREATE TABLE default.t (n UInt64, text String) ENGINE = MergeTree ORDER BY n")
    arguments = {**where, "host": direct.host, "port": direct.port, "database": "default"}
    with windrow.get_client(**arguments) as client:
        writer = client.writer("t", COLUMNS, max_bytes=50_000, batch_rows=10, flush_interval=0.01)
        engine.kill()
        taken = 0
        while writer.try_write_row((taken, "x" * 1000)):
            taken += 1
        assert writer.statistics().bytes_held <= 50_000
        blocked = threading.Thread(target=lambda: writer.write_row((taken, "x" * 1000)))
        blocked.start()
        eventually(lambda: writer.statistics().retries > 1, "batches are tried again")
        assert blocked.is_alive()
        engine.start()
        blocked.join(60)
        writer.close()
    assert direct.sql("SELECT count(), uniqExact(n) FROM default.t").split() == [str(taken + 1)] * 2


def test_close_is_bounded_and_hands_over_what_it_held(start_engine: Any, where: dict[str, Any]) -> None:
    engine = start_engine()
    direct = engine.direct
    direct.sql("CREATE TABLE default.t (n UInt64, text String) ENGINE = MergeTree ORDER BY n")
    arguments = {**where, "host": direct.host, "port": direct.port, "database": "default"}
    with windrow.get_client(**arguments) as client:
        writer = client.writer("t", COLUMNS, batch_rows=10, flush_interval=0.01)
        engine.kill()
        writer.write_rows([(n, "x") for n in range(25)])
        with pytest.raises(exceptions.OperationalError, match="25 rows"):
            writer.close(timeout=0.2)
        errors = list(writer.errors())
        assert sorted(row for error in errors for row in error.rows) == [(n, "x") for n in range(25)]
        # Of an attempt that is under way at that moment, nobody knows what becomes of it.
        assert {error.reason for error in errors} <= {"closed", "maybe_stored"}


def test_retries_end_where_they_were_told_to(client: windrow.Client, table: Endpoint) -> None:
    """The count of attempts belongs to a batch: others before it use up nothing."""
    retry = windrow.Retry(first=0.001, longest=0.002, attempts=3)
    with client.writer("t", COLUMNS, retry=retry, flush_interval=0.01) as writer:
        for round_number in range(5):
            writer._client = Refusing(client, table)
            with pytest.raises(windrow.WriteError) as raised:
                writer.write_row((round_number, "given up"), wait=True)
            assert raised.value.reason == "gave_up"
            assert writer._client.attempts == 3
            writer._client = client
            writer.write_row((100 + round_number, "stored"), wait=True)
        assert writer.statistics().retries == 10
    assert count(table) == 5


class Refusing:
    """A client whose inserts don't reach the server."""

    def __init__(self, client: windrow.Client, table: Endpoint) -> None:
        self.client = client
        self.attempts = 0

    def get_client_setting(self, name: str) -> str | None:
        return self.client.get_client_setting(name)

    def raw_insert(self, *arguments: Any, **options: Any) -> None:
        self.attempts += 1
        raise exceptions.OperationalError("the network is away")


def test_a_retry_has_the_same_id_and_rows(client: windrow.Client, table: Endpoint) -> None:
    """The answer is lost after ClickHouse has stored the batch: the token makes the repeat harmless."""
    sent: list[tuple[str, bytes]] = []

    class Losing(Refusing):
        def raw_insert(self, *arguments: Any, **options: Any) -> None:
            sent.append((options["settings"]["insert_deduplication_token"], bytes(arguments[2])))
            self.client.raw_insert(*arguments, **options)
            if len(sent) < 3:
                raise exceptions.OperationalError("the answer was lost")

    with client.writer("t", COLUMNS, retry=windrow.Retry(first=0.001)) as writer:
        writer._client = Losing(client, table)
        writer.write_rows([(n, "x") for n in range(10)], wait=True)
    assert len(sent) == 3 and len(set(sent)) == 1
    assert count(table) == 10


def test_a_policy_of_ones_own(client: windrow.Client, table: Endpoint) -> None:
    asked: list[tuple[Any, ...]] = []

    class Policy:
        def again_after(
            self, code: int | None, message: str, attempts: int, elapsed: float, survives: bool
        ) -> float | None:
            asked.append((code, "away" in message, attempts, survives))
            return 0.001 if attempts < 3 else None

    with client.writer("t", COLUMNS, retry=Policy(), flush_interval=0.01) as writer:
        writer._client = Refusing(client, table)
        with pytest.raises(windrow.WriteError, match="given up"):
            writer.write_row((1, "x"), wait=True)
    assert asked == [(None, True, 1, False), (None, True, 2, False), (None, True, 3, False)]


def test_a_policy_may_ask_the_writer(client: windrow.Client, table: Endpoint) -> None:
    held: list[int] = []

    class Policy:
        def again_after(
            self, code: int | None, message: str, attempts: int, elapsed: float, survives: bool
        ) -> float | None:
            held.append(writer.statistics().batches_in_flight)
            return None

    with client.writer("t", COLUMNS, retry=Policy(), flush_interval=0.01) as writer:
        writer._client = Refusing(client, table)
        with pytest.raises(windrow.WriteError, match="given up"):
            writer.write_row((1, "x"), wait=True)
    assert held == [1]


def test_errors_of_others_are_no_answers_of_clickhouse(client: windrow.Client, table: Endpoint) -> None:
    """An exception may have a `code` of any kind, and a proxy's page may speak of codes: both pass."""

    class OfOthers(Exception):
        def code(self) -> str:
            return "UNAVAILABLE"

    class Failing(Refusing):
        def raw_insert(self, *arguments: Any, **options: Any) -> None:
            self.attempts += 1
            if self.attempts == 1:
                raise OfOthers("the token is not to be had \ud800")
            if self.attempts == 2:
                raise errors.of_response(502, {}, b"<html>Error Code: 36</html>")
            self.client.raw_insert(*arguments, **options)

    with client.writer("t", COLUMNS, retry=windrow.Retry(first=0.001), flush_interval=0.01) as writer:
        writer._client = Failing(client, table)
        writer.write_rows([(1, "x"), (2, "x")], wait=True)
        assert (writer.statistics().retries, writer.statistics().batches_split) == (2, 0)
    assert count(table) == 2


def test_a_fork_may_not_use_its_parents_writer(client: windrow.Client, table: Endpoint) -> None:
    with client.writer("t", COLUMNS, flush_interval=60) as writer:
        writer.write_row((1, "parent's"))
        reader, said = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                try:
                    writer.write_row((2, "child's"))
                except exceptions.InterfaceError as error:
                    os.write(said, str(error).encode())
                writer.close()
            finally:
                os._exit(0)
        os.close(said)
        os.waitpid(pid, 0)
        with os.fdopen(reader) as heard:
            assert "before the fork" in heard.read()
        writer.write_row((3, "parent's"))
    assert table.sql("SELECT groupArray(n) FROM (SELECT n FROM t ORDER BY n)").strip() == "[1,3]"


PROGRAM = """
import sys, json, windrow
client = windrow.get_client(**json.loads(sys.argv[1]))
writer = client.writer("t", ["n", "text"], flush_interval=60)
for n in range(100):
    writer.write_row((n, "x"))
"""


def test_a_program_that_ends_without_closing_loses_nothing(where: dict[str, Any], table: Endpoint) -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "-c", PROGRAM, json.dumps(where)], check=True, timeout=60, env=environment)
    assert count(table) == 100
