"""OpenTelemetry's own SDK sends, over both protocols, and nothing about it knows of Windrow."""

from __future__ import annotations

import http.client
import ssl
from collections.abc import Callable
from pathlib import Path

import grpc
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
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor, InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, StatusCode

from harness.certificate import Certificate, made_in
from harness.gateway import Gateway

PORTS = ("--otlp-grpc", "127.0.0.1:0", "--otlp-http", "127.0.0.1:0")
RESOURCE = Resource.create({"service.name": "shop", "service.version": "3"})


def test_senders_may_have_to_show_a_certificate(
    start_gateway: Callable[..., Gateway], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # For the SDK over HTTP they would count more than the certificate that it is given.
    for name in ("REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("server", "known", "stranger"):
        (tmp_path / name).mkdir()
    server, known, stranger = (made_in(tmp_path / name, "DNS:localhost") for name in ("server", "known", "stranger"))
    config = (
        f'[http]\ntls_certificate = "{server.cert}"\ntls_key = "{server.key}"\n'
        f'[otlp]\nack = "stored"\ntls_client_ca = "{known.cert}"\n'
    )
    gateway = start_gateway(config, PORTS)
    grpc_port, http_port = gateway.otlp_ports

    def sent(body: str, shown: Certificate | None) -> list[bool]:
        """Over gRPC, and over HTTP."""
        key, chain = (shown.key.read_bytes(), shown.cert.read_bytes()) if shown else (None, None)
        files = {"client_key_file": str(shown.key), "client_certificate_file": str(shown.cert)} if shown else {}
        exporters = [
            grpc_logs.OTLPLogExporter(
                endpoint=f"https://localhost:{grpc_port}", timeout=3,
                credentials=grpc.ssl_channel_credentials(server.cert.read_bytes(), key, chain),
            ),
            http_logs.OTLPLogExporter(
                endpoint=f"https://localhost:{http_port}/v1/logs", certificate_file=str(server.cert), timeout=3, **files
            ),
        ]  # fmt: skip
        outcomes = []
        for exporter in exporters:
            provider = LoggerProvider(resource=RESOURCE)
            finished = InMemoryLogRecordExporter()
            provider.add_log_record_processor(SimpleLogRecordProcessor(finished))
            provider.get_logger("own").emit(body=body)
            outcomes.append(exporter.export(finished.get_finished_logs()).name == "SUCCESS")
            exporter.shutdown()
            provider.shutdown()
        return outcomes

    assert sent("known", known) == [True, True]
    assert sent("nobody", None) == [False, False]
    assert sent("stranger", stranger) == [False, False]
    assert gateway.direct.sql("SELECT Body, count() FROM otel_logs GROUP BY Body") == "known\t2"
    # The data port asks for none.
    context = ssl.create_default_context(cafile=str(server.cert))
    data = http.client.HTTPSConnection("localhost", gateway.http.port, timeout=60, context=context)
    data.request("GET", "/ping")
    assert data.getresponse().status == 200
    data.close()


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
