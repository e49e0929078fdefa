"""Records what a release leaves on disk, for `test_upgrade.py` of all later ones:

    PYTHONPATH=tests:$(scripts/python-package) .venv/bin/python -m packages.record

It makes `upgrades/vVERSION.tar.zst`: the data directories of two gateways that were killed with work left, one on the embedded ClickHouse
and one on a DuckDB, the disk buffer of a Python program that was killed, and `expected.json`, which says what has to come of them.
docs/releasing.md says when it is run. `WINDROW_BINARY` names the program, if it is not target/release/windrow.
"""

from __future__ import annotations

import io
import json
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path

from backports import zstd

from harness.dead_letters import DeadLetters
from harness.duckdb import DuckDbGateway
from harness.endpoint import Endpoint
from harness.gate import Gate
from harness.gateway import Gateway
from harness.inserts import HELD_NOT_WAITING, INTO_T, ids, make_table, rows
from harness.ordered import LOST, Append, native
from harness.otlp import OverHttp, logs
from harness.paths import ROOT, TESTS, gateway_binary
from harness.process import wait_gone
from harness.users import TESTER

RECORDINGS = TESTS / "packages" / "upgrades"
NOT_WAITING = {"async_insert": 1, "wait_for_async_insert": 0}
WAITING = {"async_insert": 1, "wait_for_async_insert": 1}
BY_ROWS = {"async_insert_deduplicate": 1}
WINDOW = "SETTINGS non_replicated_deduplication_window = 1000"
# Requests of OTLP wait in their buffer.
LONG_HOLD = '[[tables]]\ntable = "otel_*"\nflush_policy = "fixed"\nbusy_timeout_max_ms = 3600000\n'
OTLP = ("--otlp-http", "127.0.0.1:0", "--otlp-grpc", "127.0.0.1:0")


def token(name: str) -> dict[str, object]:
    return {"insert_deduplication_token": name}


@dataclass
class Left:
    """What a gateway has to give after the next start."""

    # The rows that a query finds, once all that was acknowledged is stored.
    found: dict[str, str] = field(default_factory=dict)
    # Inserts that were acknowledged and come again: as they were sent, and by what they are known.
    repeats: list[dict[str, object]] = field(default_factory=list)
    # By id, what is known of each, and the rows that are found when all of them were retried.
    dead_letters: list[dict[str, object]] = field(default_factory=list)
    mended_by: str = ""
    after_retry: dict[str, str] = field(default_factory=dict)
    # By id: the table, how many batches, and what becomes of it.
    appends: dict[str, dict[str, object]] = field(default_factory=dict)

    def insert(self, tested: Endpoint, payload: str, known_by: dict[str, object], **settings: object) -> None:
        reply = tested.insert(INTO_T, payload, **known_by, **settings)
        assert reply.status == 200, reply.text
        self.repeats.append({"query": INTO_T, "payload": payload, "settings": known_by})

    def letters(self, found: list[dict]) -> None:
        known = ("id", "table", "code", "rows", "query_id", "error", "attempts")
        self.dead_letters = [{name: letter[name] for name in known} for letter in found]


def on_clickhouse(folder: Path) -> Left:
    left = Left()
    gateway = Gateway(folder, LONG_HOLD, OTLP)
    direct, tested = gateway.direct, gateway.http.as_user(TESTER.name, TESTER.password)
    make_table(direct, settings=WINDOW)
    left.insert(tested, rows(1, 2), token("stored at once"), **WAITING)
    left.insert(tested, rows(3), BY_ROWS, **WAITING)
    assert ids(direct) == [1, 2, 3]
    left.insert(tested, rows(4, 5), token("in the journal"), **HELD_NOT_WAITING)
    left.insert(tested, rows(6), BY_ROWS, **HELD_NOT_WAITING)
    assert tested.insert("INSERT INTO t FORMAT CSV", "7\n8\n", **HELD_NOT_WAITING).status == 200
    left.found["SELECT groupArray(a) FROM (SELECT a FROM t ORDER BY a)"] = "[1,2,3,4,5,6,7,8]"

    # Kept as the text that came.
    make_table(direct, "a UInt64, v Variant(String, UInt64)", "texts")
    for payload in ('{"a":1,"v":"x"}\n', '{"a":2,"v":7}\n'):
        assert tested.insert(INTO_T.replace(" t ", " texts "), payload, **HELD_NOT_WAITING).status == 200
    left.found["SELECT groupArray((a, v)) FROM (SELECT * FROM texts ORDER BY a)"] = "[(1,'x'),(2,7)]"

    make_table(direct, "a UInt64, CONSTRAINT small CHECK a < 1000", "refused")
    for number in (1000, 1001):
        reply = tested.insert(
            INTO_T.replace(" t ", " refused "), rows(number), query_id=f"q-{number}", **NOT_WAITING
        )
        assert reply.status == 200, reply.text
    left.letters(DeadLetters(gateway, "default").come(2))
    left.mended_by = "ALTER TABLE refused DROP CONSTRAINT small"
    left.after_retry["SELECT groupArray(a) FROM (SELECT a FROM refused ORDER BY a)"] = "[1000,1001]"

    sender = OverHttp(gateway, headers={"Authorization": tested.basic_auth()})
    assert sender.send("logs", logs(["one", "two", "three"])).is_taken
    left.found["SELECT groupArray(Body) FROM (SELECT Body FROM otel_logs ORDER BY Timestamp)"] = "['one','two','three']"

    make_table(direct, "n UInt64, text String", "written", WINDOW)
    written_and_not_sent(folder / "written", tested)
    left.found["SELECT groupArray((n, text)) FROM (SELECT * FROM written ORDER BY n)"] = (
        "[" + ",".join(f"({n},'row {n}')" for n in range(10)) + "]"
    )

    make_table(direct, "a Int64", "appended", WINDOW)
    done, half = Append(tested, "appended"), Append(tested, "appended")
    assert done.put(0, native(a=[1, 2])).status == done.put(1, native(a=[3])).status == done.commit(2).status == 200
    assert half.put(0, native(a=[10])).status == 200
    # One that is committed is known by its id for a week: of that one only the rows are asked for.
    left.appends[half.id] = {"table": "appended", "state": "gone", "payloads": [[10], [11, 12]], "rows": 3}
    left.found["SELECT groupArray(a) FROM (SELECT a FROM appended ORDER BY a)"] = "[1,2,3]"

    make_table(direct, "a Int64", "halted", WINDOW)
    with Gate() as gate:
        gate.stand_behind(direct, "halted")
        committing = Append(tested, "halted")
        assert committing.put(0, native(a=[1, 2, 3])).status == 200
        commit = threading.Thread(target=commit_in_vain, args=(committing,))
        commit.start()
        gate.await_insert()
        direct.sql("DROP TABLE through_halted")
        kill(gateway)
        commit.join()
    left.appends[committing.id] = {"table": "halted", "state": "committed", "batches": 1, "rows": 3}
    left.found["SELECT groupArray(a) FROM halted"] = "[1,2,3]"
    return left


def commit_in_vain(append: Append) -> None:
    try:
        append.commit(1)
    except LOST:
        pass


def on_duckdb(folder: Path) -> Left:
    left = Left()
    gateway = DuckDbGateway(folder, f"duckdb://{folder}/database.db")
    tested = gateway.http
    for statement in ("CREATE TABLE t (a BIGINT)", "CREATE TABLE refused (a BIGINT CHECK (a < 1000))", "CREATE TABLE appended (a BIGINT)"):
        tested.sql(statement)
    # A token is known for an hour after its rows were stored, which is long over when a recording is used. Those in the journal are
    # stored then. The index itself is the same before every database.
    assert tested.insert(INTO_T, rows(1, 2), **WAITING).status == 200
    left.insert(tested, rows(3, 4), token("in the journal"), **HELD_NOT_WAITING)
    assert tested.insert("INSERT INTO t FORMAT CSV", "5\n6\n", **HELD_NOT_WAITING).status == 200
    left.found["SELECT list(a ORDER BY a) FROM t"] = "[1,2,3,4,5,6]"
    for number in (1000, 1001):
        assert tested.insert(INTO_T.replace(" t ", " refused "), rows(number), query_id=f"q-{number}", **NOT_WAITING).status == 200
    left.letters(DeadLetters(gateway, "default").come(2))
    left.mended_by = "CREATE OR REPLACE TABLE refused (a BIGINT)"
    left.after_retry["SELECT list(a ORDER BY a) FROM refused"] = "[1000,1001]"
    done, half = Append(tested, "appended"), Append(tested, "appended")
    assert done.put(0, native(a=[1, 2])).status == done.commit(1).status == 200
    assert half.put(0, native(a=[10])).status == 200
    left.appends[half.id] = {"table": "appended", "state": "gone", "payloads": [[10], [11, 12]], "rows": 3}
    left.found["SELECT list(a ORDER BY a) FROM appended"] = "[1,2]"
    kill(gateway)
    return left


def kill(gateway: Gateway) -> None:
    """And what it started, which ends by itself."""
    started = [] if isinstance(gateway, DuckDbGateway) else [gateway.engine_pid()]
    gateway.kill()
    for pid in started:
        wait_gone(pid)


WRITER = """
import json, os, sys, windrow
where, folder = json.loads(sys.argv[1]), sys.argv[2]
writer = windrow.get_client(**where).writer("written", ["n", "text"], buffer=f"disk:{folder}", batch_rows=1000, flush_interval=3600)
for n in range(10):
    writer.write_row((n, f"row {n}"))
os.kill(os.getpid(), 9)
"""


def written_and_not_sent(folder: Path, tested: Endpoint) -> None:
    where = json.dumps({"host": tested.host, "port": tested.port, "username": tested.user, "password": tested.password})
    ended = subprocess.run([sys.executable, "-c", WRITER, where, str(folder)], capture_output=True, text=True, check=False)
    assert ended.returncode == -signal.SIGKILL, ended.stderr


KINDS = {"clickhouse": on_clickhouse, "duckdb": on_duckdb}
# In a data directory, what says nothing of it: the log, and settings that a test writes itself.
LEFT_OUT = ("*.log", "windrow.toml")


def packed(folder: Path) -> bytes:
    """The same bytes for the same files: most of them are zeros, which zstd takes away."""
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.add(folder, arcname=".")
    return zstd.compress(into.getvalue(), 19)


def main() -> None:
    version = subprocess.run([str(gateway_binary()), "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    with tempfile.TemporaryDirectory() as scratch:
        expected = {kind: vars(leave(Path(scratch) / kind)) for kind, leave in KINDS.items()}
        (Path(scratch) / "expected.json").write_text(json.dumps(expected, indent=1))
        for pattern in LEFT_OUT:
            for file in Path(scratch).glob(f"*/{pattern}"):
                file.unlink()
        recording = RECORDINGS / f"v{version}.tar.zst"
        recording.write_bytes(packed(Path(scratch)))
    print(f"{recording.relative_to(ROOT)}: {recording.stat().st_size} bytes")


if __name__ == "__main__":
    main()
