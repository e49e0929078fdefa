"""Clients that send nothing for long: one that is there is waited for, one that is gone leaves nothing."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.duckdb import DuckDbGateway
from harness.eventually import eventually
from harness.ordered import PATH, Append, native
from harness.raw_http import RawConnection, head

# Sends three rows, and three more when it is told to.
PAUSES = """
import sys
import adbc_driver_flightsql.dbapi as flight, pyarrow

uri, table = sys.argv[1:]
batch = pyarrow.record_batch({"a": [1, 2, 3]})

def rows():
    yield batch
    sys.stdin.readline()
    yield batch

options = {"username": "default", "password": ""}
with flight.connect(uri, db_kwargs=options, autocommit=True) as connection, connection.cursor() as cursor:
    print(cursor.adbc_ingest(table, pyarrow.RecordBatchReader.from_batches(batch.schema, rows()), mode="create"))
"""


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[DuckDbGateway]:
    started = DuckDbGateway(tmp_path, config="[append]\nidle_timeout_ms = 10000\n")
    yield started
    assert started.stop() == 0


def client(gateway: DuckDbGateway, table: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", PAUSES, gateway.flight, table]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def opened(gateway: DuckDbGateway) -> set[str]:
    """Tables of appends that a batch has come of."""
    with RawConnection(gateway.http) as connection:
        listed = json.loads(connection.exchange(head("GET", PATH, (("Host", "x"),)), "GET").body)["appends"]
    return {append["table"].split(".")[1] for append in listed if append["next"] == 1}


def test_a_client_that_is_there_may_be_silent_and_one_that_is_frozen_is_not(gateway: DuckDbGateway) -> None:
    with client(gateway, "patient") as patient, client(gateway, "frozen") as frozen:
        try:
            eventually(lambda: opened(gateway) == {"patient", "frozen"}, "both ingests are under way")
            # Its kernel still takes what it is sent; it answers no ping.
            frozen.send_signal(signal.SIGSTOP)
            gateway.http.sql("CREATE TABLE silent (a BIGINT)")
            silent = Append(gateway.http, "silent")
            silent.put(0, native(a=[1]))
            eventually(lambda: silent.status()["state"] == "failed", "an append of as much silence is dropped")
            eventually(lambda: opened(gateway) == {"patient"}, "the one that answers no ping is dropped")
            eventually(lambda: "frozen" not in gateway.http.sql("SHOW TABLES FORMAT TSV"), "and its table")
            said, _ = patient.communicate("go on\n", timeout=60)
            assert (patient.returncode, said) == (0, "6\n")
        finally:
            frozen.kill()
            patient.kill()
    assert gateway.http.sql("SELECT count(*), sum(a) FROM patient FORMAT TSV").split() == ["6", "12"]
