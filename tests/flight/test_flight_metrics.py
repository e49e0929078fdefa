"""What is counted of Flight SQL."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator

import pyarrow
import pytest
from adbc_driver_manager import Error

from harness.duckdb import DuckDbGateway
from harness.eventually import eventually
from harness.flight import Service
from harness.raw_http import RawConnection, head


@pytest.fixture(scope="module")
def counting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDbGateway]:
    """One that nobody else calls."""
    started = DuckDbGateway(tmp_path_factory.mktemp("counting"))
    yield started
    assert started.stop() == 0


def service_of(gateway: DuckDbGateway) -> Service:
    return Service(gateway.flight, "default", "", "main", gateway.http, True)


def shown(gateway: DuckDbGateway) -> str:
    with RawConnection(gateway.admin) as connection:
        return connection.exchange(head("GET", "/metrics", (("Host", "x"),)), "GET").text


def counted(gateway: DuckDbGateway) -> dict[str, float]:
    """Samples of Flight SQL by name and labels; what is not shown is 0."""
    samples = re.findall(r"^(windrow_flight_[^ ]+) ([^ ]+)$", shown(gateway), re.MULTILINE)
    return {name: float(value) for name, value in samples}


def call(method: str, outcome: str) -> str:
    return f'windrow_flight_calls_total{{method="{method}",outcome="{outcome}"}}'


def test_calls_streams_rows_and_bytes(counting: DuckDbGateway) -> None:
    with service_of(counting).cursor() as cursor:
        # With what the driver asks of its own accord.
        cursor.execute("SELECT 1")
        cursor.fetchall()
        before = counted(counting)
        cursor.adbc_ingest("t", pyarrow.table({"a": range(1_000)}), mode="create")
        cursor.execute("SELECT a FROM t")
        assert len(cursor.fetchall()) == 1_000
        with pytest.raises(Error):
            cursor.adbc_ingest("t", pyarrow.table({"a": [1]}), mode="create")
        cursor.execute("SELECT range AS a FROM range(1000000000000)")
        cursor.fetch_record_batch().read_next_batch()
        # A stream that was read to its end may be open for a moment longer.
        eventually(lambda: counted(counting)['windrow_flight_streams{direction="out"}'] == 1, "one stream is open")
        assert counted(counting)["windrow_flight_connections"] >= 1
    cancelled, durations = call("DoGet", "cancelled"), 'windrow_flight_call_duration_seconds_count{method="DoGet"}'

    def have_ended() -> bool:
        """Both queries, in every respect."""
        now = counted(counting)
        is_open = any(now[f'windrow_flight_streams{{direction="{direction}"}}'] for direction in ("in", "out"))
        return now.get(cancelled, 0) > before.get(cancelled, 0) and now[durations] >= before[durations] + 2 and not is_open

    eventually(have_ended, "the endless query has ended")
    after = counted(counting)
    grown = {name: after[name] - before.get(name, 0) for name in after}
    assert (grown[call("DoPut", "ok")], grown[call("DoPut", "already_exists")]) == (1, 1)
    assert (grown[call("DoGet", "ok")], grown[cancelled]) == (1, 1)
    assert grown['windrow_flight_rows_total{direction="in"}'] >= 1_000
    assert grown['windrow_flight_rows_total{direction="out"}'] > 1_000
    for direction in ("in", "out"):
        assert grown[f'windrow_flight_payload_bytes_total{{direction="{direction}"}}'] > 8_000
        assert after[f'windrow_flight_streams{{direction="{direction}"}}'] == 0
    assert grown[durations] == 2


def test_they_pass_promtool(counting: DuckDbGateway) -> None:
    with service_of(counting).cursor() as cursor:
        cursor.execute("SELECT 1")
        cursor.fetchall()
    promtool = shutil.which("promtool")
    assert promtool, "promtool is missing: it comes with Debian's package prometheus"
    text = shown(counting).encode()
    assert b"windrow_flight_calls_total{" in text
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stdout.decode() + checked.stderr.decode()
