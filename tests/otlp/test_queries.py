"""What dashboards ask of the exporter's tables has the same answers, whether the exporter has filled them or Windrow."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.metrics.v1 import metrics_pb2 as metrics
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

from differential.budget import SEED
from harness.endpoint import Endpoint
from harness.gateway import Gateway
from harness.otlp import NOON_NS, SCOPE, OverGrpc, OverHttp, resource, text
from harness.users import TESTER
from otlp.exporter_program import export

PORTS = ("--otlp-grpc", "127.0.0.1:0", "--otlp-http", "127.0.0.1:0")
CONFIG = '[otlp]\ndatabase = "ours"\nack = "stored"\n'
HEADERS = {"X-ClickHouse-User": TESTER.name, "X-ClickHouse-Key": TESTER.password}
SERVICES = ("cart", "checkout", "frontend", "payment")
SEVERITIES = ((9, "INFO"), (13, "WARN"), (17, "ERROR"))
TRACES, MINUTE_NS, MS_NS = 60, 60_000_000_000, 1_000_000
BOUNDS = [5.0, 10.0, 50.0, 100.0]

# Ordered, so that equal tables give equal text.
QUERIES = {
    "logs by severity and minute": """
        SELECT toStartOfInterval(Timestamp, INTERVAL 1 MINUTE) AS t, SeverityText, count() FROM otel_logs
        GROUP BY ALL ORDER BY ALL""",
    "a search in the text": """
        SELECT Timestamp, ServiceName, SeverityText, Body FROM otel_logs WHERE hasToken(lower(Body), 'declined')
        ORDER BY Timestamp DESC, Body LIMIT 50""",
    "an attribute as a filter": """
        SELECT Timestamp, Body, LogAttributes FROM otel_logs WHERE LogAttributes['http.route'] = '/pay' AND SeverityNumber >= 13
        ORDER BY Timestamp, Body""",
    "the values of an attribute": """
        SELECT ResourceAttributes['k8s.pod.name'] AS pod, count() FROM otel_logs GROUP BY pod ORDER BY count() DESC, pod LIMIT 20""",
    "which attributes there are": """
        SELECT arrayJoin(mapKeys(LogAttributes)) AS name, count() FROM otel_logs GROUP BY name ORDER BY name""",
    "a column made of a resource": """
        SELECT `__otel_materialized_k8s.pod.name` AS pod, max(Timestamp) FROM otel_logs GROUP BY pod ORDER BY pod""",
    "a trace's spans": """
        SELECT SpanId, ParentSpanId, SpanName, ServiceName, SpanKind, Duration, StatusCode, StatusMessage, Events.Name, Links.TraceId
        FROM otel_traces WHERE TraceId = '{trace}' ORDER BY Timestamp, SpanId""",
    "when a trace was": "SELECT min(Start), max(End) FROM otel_traces_trace_id_ts WHERE TraceId = '{trace}'",
    "a trace by its time": """
        WITH '{trace}' AS id, (SELECT min(Start) FROM otel_traces_trace_id_ts WHERE TraceId = id) AS begun,
            (SELECT max(End) + 1 FROM otel_traces_trace_id_ts WHERE TraceId = id) AS ended
        SELECT SpanName, SpanAttributes FROM otel_traces
        WHERE TraceId = id AND Timestamp >= begun AND Timestamp <= ended ORDER BY SpanId""",
    "latency by service": """
        SELECT ServiceName, count(), quantilesExact(0.5, 0.95, 0.99)(Duration / 1e6), countIf(StatusCode = 'Error') / count()
        FROM otel_traces WHERE SpanKind = 'Server' GROUP BY ServiceName ORDER BY ServiceName""",
    "slowest operations": """
        SELECT ServiceName, SpanName, max(Duration) AS longest FROM otel_traces GROUP BY ALL
        ORDER BY longest DESC, ServiceName, SpanName LIMIT 10""",
    "who calls whom": """
        SELECT caller.ServiceName, called.ServiceName, count() FROM otel_traces AS called
        JOIN otel_traces AS caller ON called.TraceId = caller.TraceId AND called.ParentSpanId = caller.SpanId GROUP BY ALL ORDER BY ALL""",
    "exceptions": """
        SELECT Events.Attributes[1]['exception.type'] AS type, count() FROM otel_traces WHERE has(Events.Name, 'exception')
        GROUP BY type ORDER BY type""",
    "logs of failed traces": """
        SELECT Timestamp, Body FROM otel_logs WHERE TraceId IN (SELECT TraceId FROM otel_traces WHERE StatusCode = 'Error')
        ORDER BY Timestamp, Body""",
    "a gauge over time": """
        SELECT toStartOfMinute(TimeUnix) AS t, Attributes['cpu'] AS cpu, round(avg(Value), 9), max(Value)
        FROM otel_metrics_gauge WHERE MetricName = 'cpu.load' GROUP BY ALL ORDER BY ALL""",
    "a counter's rate": """
        SELECT ServiceName, toStartOfMinute(TimeUnix) AS t, max(Value) - min(Value), any(IsMonotonic), any(AggregationTemporality)
        FROM otel_metrics_sum WHERE MetricName = 'requests' GROUP BY ALL ORDER BY ALL""",
    "a histogram's buckets": """
        SELECT ServiceName, sumForEach(BucketCounts), any(ExplicitBounds), sum(Count), round(sum(Sum), 6), min(Min), max(Max)
        FROM otel_metrics_histogram WHERE MetricName = 'latency' GROUP BY ServiceName ORDER BY ServiceName""",
    "an exponential histogram": """
        SELECT ServiceName, Scale, PositiveOffset, sumForEach(PositiveBucketCounts), sum(ZeroCount) FROM otel_metrics_exponential_histogram
        GROUP BY ALL ORDER BY ALL""",
    "a summary's quantiles": """
        SELECT ServiceName, arrayZip(ValueAtQuantiles.Quantile, ValueAtQuantiles.Value) AS quantiles, count() FROM otel_metrics_summary
        GROUP BY ALL ORDER BY ALL""",
    "exemplars lead to traces": """
        SELECT MetricName, arrayJoin(Exemplars.TraceId) AS trace, count() FROM otel_metrics_histogram
        WHERE trace IN (SELECT TraceId FROM otel_traces) GROUP BY ALL ORDER BY ALL""",
    "metrics there are": """
        SELECT MetricName, MetricUnit, MetricDescription, count() FROM merge(currentDatabase(), '^otel_metrics')
        GROUP BY ALL ORDER BY ALL""",
}


def trace_id(number: int) -> bytes:
    return number.to_bytes(16, "big")


def whole(key: str, value: int) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(int_value=value))


def declined(at_ns: int) -> Span.Event:
    return Span.Event(time_unix_nano=at_ns, name="exception", attributes=[text("exception.type", "Declined")])


class Recording:
    """Requests of a shop's services, of all signals."""

    def __init__(self, rng: Random):
        self.rng = rng
        numbers = range(1, TRACES + 1)
        self.requests = [("traces", self.trace(number)) for number in numbers]
        self.requests += [("logs", self.logs(number)) for number in numbers]
        self.requests += [("metrics", self.points(number, service)) for number in range(20) for service in SERVICES]

    def at(self, number: int) -> int:
        return NOON_NS + number * 7_000_000_000

    def of(self, service: str) -> object:
        return resource(service, **{"k8s.pod.name": f"{service}-{self.rng.randrange(3)}"})

    def trace(self, number: int) -> bytes:
        """A span in each service, the one below the other."""
        of = []
        for depth, service in enumerate(SERVICES):
            fails = self.rng.random() < 0.2
            begun = self.at(number) + depth * MS_NS
            span = Span(
                name=f"{service} {self.rng.choice(['read', 'write'])}", trace_id=trace_id(number), span_id=bytes([depth + 1]) * 8,
                parent_span_id=bytes([depth]) * 8 if depth else b"", kind=Span.SPAN_KIND_SERVER, start_time_unix_nano=begun,
                end_time_unix_nano=begun + self.rng.randrange(1, 300) * MS_NS,
                attributes=[text("http.route", "/pay"), whole("retries", depth)],
                status=Status(code=Status.STATUS_CODE_ERROR, message="declined") if fails else None,
                events=[declined(begun)] if fails else [],
                links=[Span.Link(trace_id=trace_id(number - 1), span_id=b"\1" * 8)] if depth == 1 else [],
            )  # fmt: skip
            of.append(ResourceSpans(resource=self.of(service), scope_spans=[ScopeSpans(scope=SCOPE, spans=[span])]))
        return ExportTraceServiceRequest(resource_spans=of).SerializeToString()

    def logs(self, number: int) -> bytes:
        records = []
        for line in range(self.rng.randrange(1, 12)):
            severity, name = self.rng.choice(SEVERITIES)
            body = f"order {number}.{line}: {self.rng.choice(['accepted', 'Declined by the bank', 'late'])}"
            records.append(LogRecord(
                time_unix_nano=self.at(number) + line, severity_number=severity, severity_text=name, body=AnyValue(string_value=body),
                trace_id=trace_id(number), span_id=b"\1" * 8,
                attributes=[text("http.route", self.rng.choice(["/pay", "/cart"])), whole("line", line)],
            ))  # fmt: skip
        of = ResourceLogs(resource=self.of(self.rng.choice(SERVICES)), scope_logs=[ScopeLogs(scope=SCOPE, log_records=records)])
        return ExportLogsServiceRequest(resource_logs=[of]).SerializeToString()

    def points(self, number: int, service: str) -> bytes:
        time = {"start_time_unix_nano": NOON_NS, "time_unix_nano": NOON_NS + number * MINUTE_NS // 4}
        counts = [self.rng.randrange(9) for _ in range(len(BOUNDS) + 1)]
        exemplar = metrics.Exemplar(time_unix_nano=NOON_NS, as_double=1.5, trace_id=trace_id(1 + number), span_id=b"\1" * 8)
        gauge = metrics.NumberDataPoint(as_double=self.rng.random(), attributes=[text("cpu", str(self.rng.randrange(2)))], **time)
        buckets = metrics.HistogramDataPoint(
            count=sum(counts), sum=self.rng.random() * 100, min=0.5, max=200, bucket_counts=counts, explicit_bounds=BOUNDS,
            exemplars=[exemplar], **time,
        )  # fmt: skip
        positive = metrics.ExponentialHistogramDataPoint.Buckets(offset=2, bucket_counts=counts)
        exponential = metrics.ExponentialHistogramDataPoint(count=sum(counts) + 1, sum=7, scale=3, zero_count=1, positive=positive, **time)
        quantile = metrics.SummaryDataPoint.ValueAtQuantile(quantile=0.5, value=float(self.rng.randrange(4)))
        cumulative = metrics.AGGREGATION_TEMPORALITY_CUMULATIVE
        counter = metrics.NumberDataPoint(as_int=number * 10 + self.rng.randrange(10), **time)
        waited = metrics.SummaryDataPoint(count=3, sum=4, quantile_values=[quantile], **time)
        summed = metrics.Sum(data_points=[counter], is_monotonic=True, aggregation_temporality=cumulative)
        latency = metrics.Histogram(data_points=[buckets], aggregation_temporality=cumulative)
        made = [
            metrics.Metric(name="cpu.load", unit="1", description="how busy", gauge=metrics.Gauge(data_points=[gauge])),
            metrics.Metric(name="requests", sum=summed),
            metrics.Metric(name="latency", unit="ms", histogram=latency),
            metrics.Metric(name="size", exponential_histogram=metrics.ExponentialHistogram(data_points=[exponential])),
            metrics.Metric(name="wait", summary=metrics.Summary(data_points=[waited])),
        ]
        of = metrics.ResourceMetrics(resource=self.of(service), scope_metrics=[metrics.ScopeMetrics(scope=SCOPE, metrics=made)])
        return ExportMetricsServiceRequest(resource_metrics=[of]).SerializeToString()


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Endpoint, Endpoint]]:
    """The exporter's tables and Windrow's, of one recording, in the same ClickHouse."""
    folder = tmp_path_factory.mktemp("queries")
    gateway = Gateway(folder / "gateway", CONFIG, PORTS)
    gateway.direct.sql("CREATE DATABASE theirs")
    recording = Recording(Random(SEED))
    over: list[OverGrpc | OverHttp] = [OverGrpc(gateway, HEADERS), OverHttp(gateway, headers=HEADERS)]
    for number, (signal, payload) in enumerate(recording.requests):
        assert over[number % 2].send(signal, payload).is_taken
    for signal in ("logs", "traces", "metrics"):
        files = []
        for number, (of, payload) in enumerate(recording.requests):
            if of == signal:
                files.append(folder / f"{number}.protobuf")
                files[-1].write_bytes(payload)
        outcomes = export(signal, files, gateway.direct.using("theirs"), {})
        assert not [outcome for outcome in outcomes if outcome.decode or outcome.export]
    yield gateway.direct.using("theirs"), gateway.direct.using("ours")
    assert gateway.stop() == 0


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
def test_answers_are_the_same(filled: tuple[Endpoint, Endpoint], query: str) -> None:
    theirs, ours = (each.sql(query.format(trace=trace_id(7).hex())) for each in filled)
    assert theirs == ours
    assert theirs, "it asks for something that is there"
