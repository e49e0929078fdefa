"""Rows that Windrow makes of OTLP requests are those that the collector's own exporter makes.

The same requests go both ways into the same ClickHouse: through the exporter, and as blocks that `windrow-otlp` has written. All
rows are compared, byte by byte. The tables themselves are compared as well.
"""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import pytest

from differential.budget import SEED, generator, scaled
from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.paths import example_binary
from otlp.exporter_program import export
from otlp.messages import SIGNALS, Maker, as_json, attributes, protobuf, value
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs

TABLES = {
    "logs": {"logs": "otel_logs"},
    "traces": {"traces": "otel_traces"},
    "metrics": {
        kind: f"otel_metrics_{kind}" for kind in ("gauge", "sum", "summary", "histogram", "exponential_histogram")
    },
}
RANDOM_REQUESTS = 60
TTL_SECONDS = {"720h": 30 * 86400, "5h": 5 * 3600, "90s": 90}


def database(engine: Engine, name: str) -> Endpoint:
    engine.direct.sql(f"DROP DATABASE IF EXISTS {name}")
    engine.direct.sql(f"CREATE DATABASE {name}")
    return engine.direct.using(name)


def columns(endpoint: Endpoint, table: str) -> str:
    """Those that an insert may have, as the layout is made of them."""
    where = f"database = '{endpoint.database}' AND table = '{table}' AND default_kind NOT IN ('MATERIALIZED', 'ALIAS')"
    return endpoint.sql(f"SELECT name, type FROM system.columns WHERE {where} ORDER BY position FORMAT TSVRaw")


def insert(endpoint: Endpoint, kind: str, table: str, request: bytes, encoding: str) -> str:
    """What the program has said, beside the block, of rows that are not in it."""
    told = f"{columns(endpoint, table).rstrip()}\n\n".encode() + request
    ended = subprocess.run([example_binary("otlp_block"), kind, encoding], input=told, capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr.decode()
    names, _, block = ended.stdout.partition(b"\n")
    if block:
        reply = endpoint.insert(f"INSERT INTO {table} ({names.decode()}) FORMAT Native", block)
        assert reply.status == 200, reply.text
    return ended.stderr.decode()


def rows(endpoint: Endpoint, table: str) -> Counter[bytes]:
    reply = endpoint.request(None, f"SELECT * FROM {table} FORMAT TSVWithNames".encode())
    assert reply.status == 200, reply.text
    return Counter(reply.body.splitlines())


def compare(theirs: Endpoint, ours: Endpoint, table: str) -> None:
    expected, found = rows(theirs, table), rows(ours, table)
    missing, more = list((expected - found).elements()), list((found - expected).elements())
    shown = "\n".join(row.decode(errors="backslashreplace") for row in [*sorted(missing)[:3], *sorted(more)[:3]])
    assert not missing and not more, f"seed {SEED}, {table}: {len(missing)} rows differ\n{shown}"
    assert expected.total() > 20, f"{table} has few rows"


@pytest.mark.parametrize("encoding", ["protobuf", "json"])
@pytest.mark.parametrize("json", [False, True], ids=["maps", "objects"])
@pytest.mark.parametrize("signal", SIGNALS)
def test_rows_are_the_exporters(engine: Engine, tmp_path: Path, signal: str, json: bool, encoding: str) -> None:
    name = f"{signal}_{json}_{encoding}".lower()
    theirs, ours = database(engine, f"theirs_{name}"), database(engine, f"ours_{name}")
    is_finite = json and signal != "metrics"
    maker = Maker(generator("otlp", name), is_finite)
    write = {"protobuf": protobuf, "json": as_json}[encoding]
    payloads = [write(request) for request in maker.requests(signal, scaled(RANDOM_REQUESTS))]
    files = [tmp_path / f"{at}.{encoding}" for at in range(len(payloads))]
    for file, payload in zip(files, payloads, strict=True):
        file.write_bytes(payload)
    outcomes = export(signal, files, theirs, {"json": json})
    assert not [outcome for outcome in outcomes if outcome.decode or outcome.export]
    for kind, table in TABLES[signal].items():
        ours.sql(f"CREATE TABLE {table} AS {theirs.database}.{table}")
        for payload in payloads:
            assert insert(ours, kind, table, payload, encoding) == ""
        compare(theirs, ours, table)


def test_texts_that_are_no_unicode_are_the_exporters(engine: Engine, tmp_path: Path) -> None:
    """Halves of surrogate pairs, as JavaScript writes a text that was cut, and bytes that are no UTF-8."""
    theirs, ours = database(engine, "theirs_cut"), database(engine, "ours_cut")
    random = generator("otlp", "cut")
    parts = [rb"\ud83d", rb"\ude00", rb"\u0041", rb"\n", rb"\\", rb"\u00e9", b"a", "é".encode(), b"\xff", b"\xed\xa0\xbd", b"\xf0\x9f"]
    bodies = [b"".join(random.choices(parts, k=random.randint(1, 6))) for _ in range(200)]
    records = b",".join(b'{"body":{"stringValue":"%s"},"attributes":[{"key":"%s"}]}' % (body, body) for body in bodies)
    payload = b'{"resourceLogs":[{"scopeLogs":[{"logRecords":[%s]}]}]}' % records
    file = tmp_path / "request.json"
    file.write_bytes(payload)
    [outcome] = export("logs", [file], theirs, {})
    assert not outcome.decode and not outcome.export, outcome
    ours.sql(f"CREATE TABLE otel_logs AS {theirs.database}.otel_logs")
    assert insert(ours, "logs", "otel_logs", payload, "json") == ""
    compare(theirs, ours, "otel_logs")


def test_what_json_has_no_form_for_is_rejected_row_by_row(engine: Engine, tmp_path: Path) -> None:
    """The exporter fails, and its collector drops all rows of the request; here it is the one row."""
    theirs, ours = database(engine, "theirs_rejected"), database(engine, "ours_rejected")
    records = [LogRecord(attributes=attributes(("k", [1.0, of]))) for of in (1.5, float("nan"), 2.5)]
    scope = ScopeLogs(log_records=[*records, LogRecord(body=value(float("nan")))])
    payload = ExportLogsServiceRequest(resource_logs=[ResourceLogs(scope_logs=[scope])]).SerializeToString()
    file = tmp_path / "request.protobuf"
    file.write_bytes(payload)
    assert "unsupported value: NaN" in export("logs", [file], theirs, {"json": True})[0].export
    ours.sql(f"CREATE TABLE otel_logs AS {theirs.database}.otel_logs")
    told = insert(ours, "logs", "otel_logs", payload, "protobuf")
    assert told.startswith("1 rejected: ") and "NaN" in told
    assert ours.sql("SELECT count() FROM otel_logs") == "3"


@pytest.mark.parametrize("json", [False, True], ids=["maps", "objects"])
@pytest.mark.parametrize("ttl", ["", *TTL_SECONDS])
def test_tables_are_the_exporters(engine: Engine, json: bool, ttl: str) -> None:
    theirs, ours = database(engine, "theirs_tables"), database(engine, "ours_tables")
    options = {"json": json, **({"ttl": ttl} if ttl else {})}
    version = ".".join(engine.direct.sql("SELECT version()").split(".")[:2])
    for signal in SIGNALS:
        export(signal, [], theirs, options)
        for kind, table in TABLES[signal].items():
            seconds = str(TTL_SECONDS.get(ttl, 0))
            command = [example_binary("otlp_tables"), kind, ours.database, table, seconds, version, *(["json"] if json else [])]
            statements = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            for statement in statements.split("\0")[:-1]:
                # A second time it does nothing.
                ours.sql(statement)
                ours.sql(statement)
    assert described(ours) == described(theirs)


def described(endpoint: Endpoint) -> list[str]:
    """All tables as ClickHouse shows them, but for the exporter's comments and the database's name."""
    tables = endpoint.sql(f"SELECT name FROM system.tables WHERE database = '{endpoint.database}' ORDER BY name").splitlines()
    for table in tables:
        where = f"database = '{endpoint.database}' AND table = '{table}' AND comment != ''"
        for column in endpoint.sql(f"SELECT name FROM system.columns WHERE {where} FORMAT TSVRaw").splitlines():
            endpoint.sql(f"ALTER TABLE {table} COMMENT COLUMN `{column}` ''")
    shown = [endpoint.sql(f"SHOW CREATE TABLE {table} FORMAT TSVRaw") for table in tables]
    return [text.replace(endpoint.database, "db") for text in shown]
