"""A client that reads slowly: the database waits for it, and not for ever."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pyarrow
import pytest
from adbc_driver_manager import OperationalError

from harness.duckdb import DuckDbGateway
from harness.eventually import eventually
from harness.flight import Service
from harness.process import resident_bytes

ENDLESS = "SELECT range AS a, repeat('x', 1000) AS s FROM range(1000000000000)"


@pytest.fixture
def gateway(tmp_path: Path) -> Iterator[DuckDbGateway]:
    started = DuckDbGateway(tmp_path, config="[flight]\nidle_timeout_ms = 1500\n[duckdb]\nmax_result_connections = 1\n")
    yield started
    assert started.stop() == 0


def test_a_reader_that_takes_nothing_is_told_and_its_place_is_free(gateway: DuckDbGateway) -> None:
    service = Service(gateway.flight, "default", "", "main", gateway.http, True)
    before = resident_bytes(gateway.child.pid)
    with service.cursor() as stalled, service.cursor() as other:
        stalled.execute(ENDLESS)
        reader = stalled.fetch_record_batch()
        assert reader.read_next_batch().num_rows > 0
        # It waits for the one place that there is.
        other.execute("SELECT 1 AS a")
        assert other.fetchall() == [(1,)]
        assert resident_bytes(gateway.child.pid) - before < 200 << 20
        with pytest.raises((OSError, pyarrow.ArrowException, OperationalError), match="flight.idle_timeout_ms"):
            for _ in reader:
                pass
    eventually(lambda: service.sql("SELECT 2 FORMAT TSV").strip() == "2", "the data port has the place as well")
