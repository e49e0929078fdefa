"""OpenTelemetry's logs and spans in tables of one's own: the exporter's are made in ClickHouse alone."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest

from harness.adbc import AdbcGateway, counted
from harness.eventually import eventually
from harness.otlp import OverGrpc, OverHttp, all_metrics, logs, spans
from harness.sql_store import SqlStore

CONFIG = """
[otlp]
grpc_listen = "127.0.0.1:0"
http_listen = "127.0.0.1:0"
logs_table = "logs"
traces_table = "spans"

[[otlp.mappings]]
kind = "logs"
columns = { moment = "Timestamp", message = "Body", level = "SeverityNumber", resource = "ResourceAttributes" }

[[otlp.mappings]]
kind = "traces"
columns = { moment = "Timestamp", name = "SpanName", took = "Duration", service = "ServiceName" }
"""
RESOURCE = {"postgresql": "jsonb", "sqlite": "text", "duckdb": "JSON"}


@pytest.fixture(scope="module", params=["postgresql", "sqlite", "duckdb"])
def gateway(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdbcGateway]:
    store = SqlStore(request.param, tmp_path_factory.mktemp("store"))
    started = store.gateway(tmp_path_factory.mktemp("otlp") / "gateway", CONFIG)
    columns = f"moment timestamp, message text NOT NULL, level integer, resource {RESOURCE[request.param]}, more text"
    started.http.sql(f"CREATE TABLE logs ({columns})")
    yield started
    assert started.stop() == 0
    store.stop()


def test_a_mapping_fills_a_table_of_ones_own(gateway: AdbcGateway) -> None:
    for way in (OverHttp(gateway), OverGrpc(gateway)):
        told = way.send("logs", logs(["one", "two"]))
        assert told.is_taken, told
    eventually(lambda: counted(gateway.http, "logs") == 4, "all are stored")
    columns = "CAST(moment AS VARCHAR), message, level, CAST(resource AS VARCHAR), more"
    rows = gateway.http.sql(f"SELECT {columns} FROM logs ORDER BY message FORMAT JSONCompactEachRow")
    moment, message, level, resource, more = json.loads(rows.splitlines()[0])
    assert (moment.replace("T", " ")[:19], message, int(level), more) == ("2026-01-01 12:00:00", "one", 9, None)
    assert json.loads(resource) == {"service.name": "shop"}


def test_a_table_that_is_missing_is_asked_for(gateway: AdbcGateway) -> None:
    told = OverHttp(gateway).send("traces", spans(["a"]))
    assert (told.status, "is missing" in told.message) == (404, True), told
    gateway.http.sql("CREATE TABLE spans (moment timestamp NOT NULL, name text, took bigint, service text)")
    eventually(lambda: OverHttp(gateway).send("traces", spans(["a"])).is_taken, "it is seen")
    eventually(lambda: counted(gateway.http, "spans") >= 1, "they are stored")
    assert gateway.http.sql("SELECT name, took, service FROM spans LIMIT 1") == "a\t1000\tshop"


def test_what_has_no_mapping_is_told_what_to_do(gateway: AdbcGateway) -> None:
    told = OverHttp(gateway).send("metrics", all_metrics())
    assert told.status == 404, told
    assert "make one of your own, and say in [[otlp.mappings]] what its columns are filled with" in told.message, told
