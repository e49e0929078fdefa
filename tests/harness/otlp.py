"""Requests of OTLP as bytes, over HTTP and over gRPC, and what is answered to them."""

from __future__ import annotations

import gzip
import http.client
import json
import ssl
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import grpc
from backports import zstd
from google.protobuf.message import Message
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest, ExportLogsServiceResponse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
    ExportMetricsServiceResponse,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest, ExportTraceServiceResponse
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, InstrumentationScope, KeyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.metrics.v1 import metrics_pb2 as metrics
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from harness.gateway import Gateway

NOON_NS = 1_767_268_800_000_000_000
PROTOBUF, JSON = "application/x-protobuf", "application/json"
SERVICES = {"logs": "logs.v1.LogsService", "traces": "trace.v1.TraceService", "metrics": "metrics.v1.MetricsService"}
ANSWERS = {
    "logs": ExportLogsServiceResponse,
    "traces": ExportTraceServiceResponse,
    "metrics": ExportMetricsServiceResponse,
}


@dataclass
class Told:
    """An answer, whatever it came by."""

    # Of HTTP, or of gRPC by its name.
    status: int | str
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    message: str = ""
    # `google.rpc.Status`, of a refusal.
    refusal: Status | None = None
    partial: Any = None

    @property
    def retry_after_seconds(self) -> float | None:
        for detail in self.refusal.details if self.refusal else ():
            info = RetryInfo()
            if detail.Unpack(info):
                return info.retry_delay.seconds + info.retry_delay.nanos / 1e9
        return None

    @property
    def is_taken(self) -> bool:
        return self.status in (200, "OK")


class OverHttp:
    def __init__(
        self,
        gateway: Gateway,
        kind: str = PROTOBUF,
        headers: dict[str, str] | None = None,
        authority: bytes | None = None,
    ):
        """`authority`: PEM, where TLS is to be spoken."""
        self.gateway, self.kind, self.headers, self.authority = gateway, kind, headers or {}, authority

    def connection(self) -> http.client.HTTPConnection:
        port = self.gateway.otlp_ports[1]
        if self.authority is None:
            return http.client.HTTPConnection("127.0.0.1", port, timeout=120)
        context = ssl.create_default_context(cadata=self.authority.decode())
        return http.client.HTTPSConnection("localhost", port, timeout=120, context=context)

    def send(self, signal: str, payload: bytes, headers: dict[str, str] | None = None, packing: str = "") -> Told:
        fields = {"Content-Type": self.kind, **self.headers, **(headers or {})}
        if packing:
            payload, fields["Content-Encoding"] = PACK[packing](payload), packing
        connection = self.connection()
        try:
            connection.request("POST", f"/v1/{signal}", payload, fields)
            answer = connection.getresponse()
            return self.told(signal, answer.status, answer.read(), {k.lower(): v for k, v in answer.getheaders()})
        finally:
            connection.close()

    def told(self, signal: str, status: int, body: bytes, headers: dict[str, str]) -> Told:
        kind = headers.get("content-type")
        if status == 200:
            partial = json_or_message(body, kind, ANSWERS[signal]())
            return Told(status, body, headers, partial=partial.partial_success)
        refusal = json_or_message(body, kind, Status())
        return Told(status, body, headers, refusal.message, refusal)


class OverGrpc:
    def __init__(self, gateway: Gateway, headers: dict[str, str] | None = None, authority: bytes | None = None):
        self.gateway, self.headers, self.authority = gateway, headers or {}, authority

    def channel(self) -> grpc.Channel:
        port = self.gateway.otlp_ports[0]
        if self.authority is None:
            return grpc.insecure_channel(f"127.0.0.1:{port}")
        return grpc.secure_channel(f"localhost:{port}", grpc.ssl_channel_credentials(self.authority))

    def send(self, signal: str, payload: bytes, headers: dict[str, str] | None = None, packing: str = "") -> Told:
        fields = {name.lower(): value for name, value in {**self.headers, **(headers or {})}.items()}
        packings = {"": None, "gzip": grpc.Compression.Gzip, "deflate": grpc.Compression.Deflate}
        with self.channel() as channel:
            call = channel.unary_unary(f"/opentelemetry.proto.collector.{SERVICES[signal]}/Export")
            try:
                body = call(payload, timeout=120, metadata=list(fields.items()), compression=packings[packing])
            except grpc.RpcError as error:
                details = dict(error.trailing_metadata() or ()).get("grpc-status-details-bin")
                refusal = Status.FromString(details) if details else None
                return Told(error.code().name, b"", {}, error.details(), refusal)
        return Told("OK", body, partial=ANSWERS[signal].FromString(body).partial_success)


PACK: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "zstd": zstd.compress}


def json_or_message(body: bytes, kind: str | None, message: Message) -> Any:
    if kind == JSON:
        from google.protobuf.json_format import ParseDict

        return ParseDict(json.loads(body), message, ignore_unknown_fields=True)
    message.ParseFromString(body)
    return message


def text(key: str, value: str) -> KeyValue:
    return KeyValue(key=key, value=AnyValue(string_value=value))


def resource(service: str = "shop", **more: str) -> Resource:
    return Resource(attributes=[text("service.name", service), *(text(key, value) for key, value in more.items())])


SCOPE = InstrumentationScope(name="scope", version="1")


def logs(bodies: list[str], of: Resource | None = None, at_ns: int = NOON_NS) -> bytes:
    records = [
        LogRecord(time_unix_nano=at_ns + n, severity_number=9, severity_text="INFO", body=AnyValue(string_value=body))
        for n, body in enumerate(bodies)
    ]
    scopes = [ScopeLogs(scope=SCOPE, log_records=records)]
    return ExportLogsServiceRequest(resource_logs=[ResourceLogs(resource=of or resource(), scope_logs=scopes)]).SerializeToString()


def spans(names: list[str]) -> bytes:
    made = [
        Span(
            name=name, trace_id=bytes([n + 1]) * 16, span_id=bytes([n + 1]) * 8, kind=Span.SPAN_KIND_SERVER,
            start_time_unix_nano=NOON_NS, end_time_unix_nano=NOON_NS + 1_000 * (n + 1),
            events=[Span.Event(time_unix_nano=NOON_NS, name="event", attributes=[text("a", "b")])],
        )
        for n, name in enumerate(names)
    ]  # fmt: skip
    of = ResourceSpans(resource=resource(), scope_spans=[ScopeSpans(scope=SCOPE, spans=made)])
    return ExportTraceServiceRequest(resource_spans=[of]).SerializeToString()


def all_metrics(name: str = "m") -> bytes:
    """A point for each of the tables."""
    at = {"start_time_unix_nano": NOON_NS, "time_unix_nano": NOON_NS}
    kinds = [
        {"gauge": metrics.Gauge(data_points=[metrics.NumberDataPoint(as_double=1.5, **at)])},
        {"sum": metrics.Sum(data_points=[metrics.NumberDataPoint(as_int=2, **at)], is_monotonic=True)},
        {"summary": metrics.Summary(data_points=[metrics.SummaryDataPoint(count=3, sum=4.5, **at)])},
        {
            "histogram": metrics.Histogram(
                data_points=[metrics.HistogramDataPoint(count=3, sum=4.5, bucket_counts=[1, 2], explicit_bounds=[1.0], **at)]
            )
        },
        {
            "exponential_histogram": metrics.ExponentialHistogram(
                data_points=[metrics.ExponentialHistogramDataPoint(count=3, sum=4.5, scale=1, **at)]
            )
        },
    ]
    made = [metrics.Metric(name=name, **kind) for kind in kinds]
    of = metrics.ResourceMetrics(resource=resource(), scope_metrics=[metrics.ScopeMetrics(scope=SCOPE, metrics=made)])
    return ExportMetricsServiceRequest(resource_metrics=[of]).SerializeToString()


METRIC_TABLES = [f"otel_metrics_{kind}" for kind in ("gauge", "sum", "summary", "histogram", "exponential_histogram")]
