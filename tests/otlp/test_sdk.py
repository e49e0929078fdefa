"""OpenTelemetry's own SDK sends, over both protocols, and nothing about it knows of Windrow."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from opentelemetry._logs import SeverityNumber
from opentelemetry.exporter.otlp.proto.grpc import _log_exporter as grpc_logs
from opentelemetry.exporter.otlp.proto.grpc import metric_exporter as grpc_metrics
from opentelemetry.exporter.otlp.proto.grpc import trace_exporter as grpc_traces
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http import _log_exporter as http_logs
from opentelemetry.exporter.otlp.proto.http import metric_exporter as http_metrics
from opentelemetry.exporter.otlp.proto.http import trace_exporter as http_traces
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, StatusCode

from harness.gateway import Gateway

PORTS = ("--otlp-grpc", "127.0.0.1:0", "--otlp-http", "127.0.0.1:0")
RESOURCE = Resource.create({"service.name": "shop", "service.version": "3"})


@pytest.mark.parametrize("protocol", ["grpc", "http"])
def test_the_sdk_sends_all_three_signals(start_gateway: Callable[..., Gateway], protocol: str) -> None:
    gateway = start_gateway('[otlp]\nack = "stored"\n', PORTS)
    if protocol == "grpc":
        where = {"endpoint": f"http://127.0.0.1:{gateway.otlp_ports[0]}", "insecure": True}
        logs, traces, metrics = (
            grpc_logs.OTLPLogExporter(**where), grpc_traces.OTLPSpanExporter(**where), grpc_metrics.OTLPMetricExporter(**where),
        )  # fmt: skip
    else:
        base, packed = f"http://127.0.0.1:{gateway.otlp_ports[1]}/v1", {"compression": Compression.Gzip}
        logs = http_logs.OTLPLogExporter(endpoint=f"{base}/logs", **packed)
        traces = http_traces.OTLPSpanExporter(endpoint=f"{base}/traces", **packed)
        metrics = http_metrics.OTLPMetricExporter(endpoint=f"{base}/metrics", **packed)

    logger_provider = LoggerProvider(resource=RESOURCE)
    logger_provider.add_log_record_processor(BatchLogRecordProcessor(logs))
    logger_provider.get_logger("own").emit(
        body="paid", severity_number=SeverityNumber.WARN, severity_text="WARN", attributes={"amount": 12, "items": ["a", "b"]}
    )
    tracer_provider = TracerProvider(resource=RESOURCE)
    tracer_provider.add_span_processor(BatchSpanProcessor(traces))
    with tracer_provider.get_tracer("own").start_as_current_span("GET /", kind=SpanKind.CLIENT) as span:
        span.add_event("sent", {"bytes": 3})
        span.set_status(StatusCode.ERROR, "too late")
    reader = PeriodicExportingMetricReader(metrics, export_interval_millis=3_600_000)
    meter_provider = MeterProvider(resource=RESOURCE, metric_readers=[reader])
    meter = meter_provider.get_meter("own")
    meter.create_counter("orders", unit="1").add(5, {"country": "pl"})
    meter.create_histogram("seconds").record(0.25)
    meter.create_gauge("depth").set(7)

    for provider in (logger_provider, tracer_provider, meter_provider):
        assert provider.force_flush(60_000)
        provider.shutdown()

    def row(question: str) -> list[str]:
        """Metrics come again when their provider ends."""
        return gateway.direct.sql(f"{question} LIMIT 1").split("\t")

    assert row("SELECT Body, SeverityText, SeverityNumber, ServiceName, ScopeName, LogAttributes FROM otel_logs") == [
        "paid", "WARN", "13", "shop", "own", """{'amount':'12','items':'["a","b"]'}""",
    ]  # fmt: skip
    assert row("SELECT SpanName, SpanKind, StatusCode, StatusMessage, Events.Name, ResourceAttributes['service.version'] FROM otel_traces") == [
        "GET /", "Client", "Error", "too late", "['sent']", "3",
    ]  # fmt: skip
    assert row("SELECT MetricName, Value, IsMonotonic, Attributes FROM otel_metrics_sum WHERE MetricName = 'orders'") == [
        "orders", "5", "true", "{'country':'pl'}",
    ]  # fmt: skip
    assert row("SELECT MetricName, Value FROM otel_metrics_gauge") == ["depth", "7"]
    assert row("SELECT MetricName, Count, Sum FROM otel_metrics_histogram WHERE MetricName = 'seconds'") == ["seconds", "1", "0.25"]
    assert not [event for event in gateway.log_events() if event.get("level") == "ERROR"]
