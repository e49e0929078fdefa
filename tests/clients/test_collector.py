"""The OpenTelemetry collector's own exporter for ClickHouse, over HTTP and over the native protocol."""

from __future__ import annotations

from pathlib import Path

import pytest

from clients.expected_routes import COLLECTOR
from clients.routes import Routes
from clients.run_program import CLIENTS, built_once, expect_all, prepare, run_program
from harness.endpoint import Endpoint
from harness.eventually import eventually

FOLDER = CLIENTS / "otel"
VARIANTS = ("default", "json", "none", "not_waiting", "sync", "zstd")
# What the program exports of each kind, as ClickHouse shows it.
LANDED = {
    "logs": (
        "(toString(Timestamp), TraceId, SpanId, SeverityText, SeverityNumber, ServiceName, Body, ScopeName, ScopeVersion)",
        r"""[('2024-02-29 12:34:56.789012345','01020300000000000000000000000000','0900000000000000','WARN',13,'windrow',"""
        r"""'line 0 ‘quoted’ \\ \t\n','tests','1.0'),"""
        r"""('2024-02-29 12:34:57.789012345','01020301000000000000000000000000','0901000000000000','WARN',13,'windrow',"""
        r"""'line 1 ‘quoted’ \\ \t\n','tests','1.0'),"""
        r"""('2024-02-29 12:34:58.789012345','01020302000000000000000000000000','0902000000000000','WARN',13,'windrow',"""
        r"""'line 2 ‘quoted’ \\ \t\n','tests','1.0')]""",
    ),
    "traces": (
        "(TraceId, SpanName, SpanKind, ServiceName, Duration, StatusCode, StatusMessage, Events.Name, Links.TraceId)",
        "[('01020300000000000000000000000000','span 0','Server','windrow',1000000000,'Error','it failed',[],"
        "['07000000000000000000000000000000']),"
        "('01020301000000000000000000000000','span 1','Server','windrow',1000000000,'Error','it failed',['event 0'],"
        "['07000000000000000000000000000000']),"
        "('01020302000000000000000000000000','span 2','Server','windrow',1000000000,'Error','it failed',['event 0','event 1'],"
        "['07000000000000000000000000000000'])]",
    ),
    "gauge": ("(MetricName, MetricUnit, Value, Exemplars.Value)", "[('gauge','s',0.5,[0.25]),('gauge','s',1.5,[0.25]),('gauge','s',2.5,[0.25])]"),
    "sum": ("(MetricName, Value, AggregationTemporality, IsMonotonic)", "[('sum',0.5,2,true),('sum',1.5,2,true),('sum',2.5,2,true)]"),
    "summary": (
        "(Count, ValueAtQuantiles.Quantile, ValueAtQuantiles.Value)",
        "[(0,[0.5],[0]),(1,[0.5],[1]),(2,[0.5],[2])]",
    ),
    "histogram": ("(Count, BucketCounts, ExplicitBounds)", "[(0,[1,2,0],[0.1,1]),(1,[1,2,1],[0.1,1]),(2,[1,2,2],[0.1,1])]"),
    "exponential": ("(Scale, PositiveOffset, PositiveBucketCounts)", "[(0,1,[0,4]),(1,1,[1,4]),(2,1,[2,4])]"),
}
# What is a map, or an object where the exporter is told to write JSON.
ATTRIBUTES = {
    "logs": "(ResourceAttributes['host.name'], ScopeAttributes['whole'], LogAttributes['n'], LogAttributes['a.b'])",
    "traces": "(ResourceAttributes['host.name'], SpanAttributes['method'], Links.Attributes[1]['linked'])",
}
OBJECTS = {
    "logs": "(ResourceAttributes.host.name::String, ScopeAttributes.whole::String, LogAttributes.n::String, LogAttributes.a.b::String)",
    "traces": "(ResourceAttributes.host.name::String, SpanAttributes.method::String, Links.Attributes[1].linked::String)",
}
LANDED_ATTRIBUTES = {
    "logs": """[('it\\'s "here"','true','0','nested'),('it\\'s "here"','true','1','nested'),('it\\'s "here"','true','2','nested')]""",
    "traces": """[('it\\'s "here"','GET','yes'),('it\\'s "here"','GET','yes'),('it\\'s "here"','GET','yes')]""",
}
ORDER = {"logs": "Timestamp", "traces": "Timestamp"}


def program() -> Path:
    with built_once("otel") as cache:
        built = cache / "otel-exporter"
        prepare(["go", "build", "-trimpath", "-o", str(built), "."], FOLDER)
    return built


def test_over_http(server, tested: Endpoint, direct: Endpoint, subtests: pytest.Subtests) -> None:
    exports(server, tested, direct, "http", COLLECTOR, subtests)


def test_natively(server, native: Endpoint, direct: Endpoint, subtests: pytest.Subtests) -> None:
    exports(server, native, direct, "native", COLLECTOR, subtests)


def exports(server, endpoint: Endpoint, direct: Endpoint, protocol: str, expected: dict[str, str], subtests: pytest.Subtests) -> None:
    built, routes = program(), Routes(server, endpoint)
    report = run_program([str(built)], FOLDER, endpoint, protocol)
    expect_all(report, 3 * len(VARIANTS), subtests)
    routes.expect(report, expected, subtests)
    for variant in VARIANTS:
        for kind, (columns, landed) in LANDED.items():
            table = f"{variant}_{kind}"
            eventually(lambda: direct.sql(f"SELECT count() FROM {table}") == "3", f"rows in {table}")
            with subtests.test(f"rows of {table}"):
                assert rows(direct, table, kind, columns) == landed
            if kind in ATTRIBUTES:
                with subtests.test(f"attributes of {table}"):
                    wanted = (OBJECTS if variant == "json" else ATTRIBUTES)[kind]
                    assert rows(direct, table, kind, wanted) == LANDED_ATTRIBUTES[kind]
        with subtests.test(f"times of {variant}_traces"):
            counted = direct.sql(f"SELECT count(), uniqExact(TraceId) FROM {variant}_traces_trace_id_ts")
            assert counted == "3\t3"


def rows(direct: Endpoint, table: str, kind: str, columns: str) -> str:
    order = ORDER.get(kind, "TimeUnix")
    return direct.sql(f"SELECT toString(groupArray({columns})) FROM (SELECT * FROM {table} ORDER BY {order}) FORMAT TSVRaw")
