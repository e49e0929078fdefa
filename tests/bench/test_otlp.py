"""The benchmark of OTLP: the load generator says what a server told it, and what is missing afterwards is noticed."""

from __future__ import annotations

import threading
from argparse import Namespace
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import grpc
import pytest
from harness.telemetry import built
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2 as messages
from opentelemetry.proto.collector.logs.v1 import logs_service_pb2_grpc as service

from bench.base.processes import Program
from bench.parts.otlp import COLLECTOR, FULL, HALF, WINDROW, Load, loaded, of_services, started

CONNECTIONS, RECORDS, FROM_NS = 3, 7, 1_709_210_096_000_000_000
OPTIONS = Namespace(connections=CONNECTIONS, records=RECORDS, seconds=0.3, batch_rows=1000, services=3, service_records=5)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built(tmp_path_factory.mktemp("otlp"), "senders", ".")


class Sometimes(service.LogsServiceServicer):
    """Every third request has to come again, and each answer holds a partial success, which says whether a record was rejected."""

    rejecting = False

    def __init__(self) -> None:
        self.lock, self.calls, self.taken = threading.Lock(), 0, list[int]()

    def Export(self, request: messages.ExportLogsServiceRequest, context: grpc.ServicerContext) -> messages.ExportLogsServiceResponse:
        records = [record for of in request.resource_logs for scope in of.scope_logs for record in scope.log_records]
        with self.lock:
            self.calls += 1
            if self.calls % 3 == 0:
                context.abort(grpc.StatusCode.UNAVAILABLE, "later")
            self.taken += [record.time_unix_nano for record in records]
        partial = messages.ExportLogsPartialSuccess(rejected_log_records=int(self.rejecting))
        return messages.ExportLogsServiceResponse(partial_success=partial)


@pytest.fixture
def server() -> Iterator[tuple[Sometimes, str]]:
    serving, known = grpc.server(ThreadPoolExecutor(4)), Sometimes()
    service.add_LogsServiceServicer_to_server(known, serving)
    port = serving.add_insecure_port("127.0.0.1:0")
    serving.start()
    yield known, f"127.0.0.1:{port}"
    serving.stop(None).wait()


def asked(program: Path, address: str) -> Program:
    load = Program([str(program), "load", address, str(CONNECTIONS), str(RECORDS), str(FROM_NS)])
    assert load.answer() == "ready"
    return load


def test_what_it_counts_is_what_the_server_took(program: Path, server: tuple[Sometimes, str]) -> None:
    known, address = server
    with asked(program, address) as load:
        closed = load.ask({"seconds": 0.3, "requests_per_second": 0})
        assert (closed["rows"], closed["refused"]) == (len(known.taken), known.calls // 3)
        steady = load.ask({"seconds": 0.5, "requests_per_second": 100})
        load.end()
    assert steady["rows"] == 50 * RECORDS and closed["refused"] + steady["refused"] == known.calls // 3 > 0
    # A record is named by its time, microseconds after each other, in whatever order they came.
    assert sorted(known.taken) == [FROM_NS + 1000 * number for number in range(closed["rows"] + steady["rows"])]
    assert closed["p50_ms"] <= closed["p99_ms"] <= closed["max_ms"] and closed["cpu_seconds"] > 0


def test_rejected_records_are_no_success(program: Path, server: tuple[Sometimes, str]) -> None:
    known, address = server
    known.rejecting = True
    with asked(program, address) as load, pytest.raises(SystemExit, match="ended with 1$"):
        load.ask({"seconds": 1, "requests_per_second": 0})


@pytest.mark.parametrize("title", [WINDROW, COLLECTOR])
def test_both_sides_are_measured(program: Path, title: str) -> None:
    full, half = loaded(title, program, OPTIONS)
    assert (full["load"], half["load"]) == (FULL, HALF)
    for row in (full, half):
        assert min(row[figure] for figure in ("per_second", "taker_us", "clickhouse_us", "parts_per_second", "peak_mb")) > 0
    many = of_services(title, program, OPTIONS)
    assert many["refused"] == 0 and many["peak_mb"] > 0


def test_what_is_not_there_is_noticed(program: Path) -> None:
    with started(WINDROW, program, OPTIONS.batch_rows) as side:
        load = Load(side, program, OPTIONS)
        with load.program:
            load.run(0.1)
            load.check()
            load.taken += 1
            with pytest.raises(SystemExit, match="should be"):
                load.check()
            load.program.end()
