"""Export requests with everything that a sender can put into one, by OpenTelemetry's own messages for Python."""

from __future__ import annotations

import base64
import json
import math
import random
from collections.abc import Callable

from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, ArrayValue, InstrumentationScope, KeyValue, KeyValueList
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs
from opentelemetry.proto.metrics.v1 import metrics_pb2 as metrics
from opentelemetry.proto.resource.v1.resource_pb2 import Resource
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span, Status

SIGNALS = ("logs", "traces", "metrics")
# Python's messages hold no text that is not UTF-8: these bytes of a request take the place of others, as many of them.
STANDS_FOR_BYTES, NOT_UTF_8 = "‹not UTF-8›", b"a\xffb\xe2\x82c\xf0\x9f\x98\xc0\xaf\xed\xa0\x80z"
BEGAN_NS = 1_709_210_096_789_012_345
SECOND_NS = 1_000_000_000
# Beyond them seconds are no DateTime.
LAST_SECOND = 2**32 - 1

TEXTS = (
    "", "plain", "a<b>&c'd\"e\\f/g", "\x00\x01\b\t\n\f\r\x1f\x7f", "line\u2028paragraph\u2029end", "żółć 🦔 \u0301", "NaN", "\ufffd",
    STANDS_FOR_BYTES, "k" * 200,
)  # fmt: skip
INTEGERS = (0, 1, -1, 255, 2**31, 2**53 + 1, 2**63 - 1, -(2**63))
DOUBLES = (
    0.0, -0.0, 1.0, 1.5, 100.0, 0.1 + 0.2, 1e20, 1e21, -1e21, 1.5e300, 123456789012345680.0, 1e-6, 9.999e-7, 1e-7, 2.5e-10, 5e-324,
    1.7976931348623157e308, math.pi,
)  # fmt: skip
NOT_FINITE = (math.nan, math.inf, -math.inf)
# The exporter writes them so that ClickHouse takes them for integers that are too large, and refuses them.
TOO_LARGE_IN_JSON = (1e20,)
BYTES = (b"", b"\x00", b"\xff\xfe\xfd", b"hello?>", bytes(range(40)))
KEYS = ("a", "b", "a.b", "service.name", "http.status_code", "", "ключ", "a<b", "z" * 130, "\u2028", STANDS_FOR_BYTES)


def value(of: object) -> AnyValue:
    """What Python's value is called in OTLP; `None` is a value that is empty."""
    match of:
        case None:
            return AnyValue()
        case bool():
            return AnyValue(bool_value=of)
        case int():
            return AnyValue(int_value=of)
        case float():
            return AnyValue(double_value=of)
        case str():
            return AnyValue(string_value=of)
        case bytes():
            return AnyValue(bytes_value=of)
        case list():
            return AnyValue(array_value=ArrayValue(values=[value(element) for element in of]))
        case dict():
            return AnyValue(kvlist_value=KeyValueList(values=attributes(*of.items())))
    raise TypeError(of)


def attributes(*pairs: tuple[str, object]) -> list[KeyValue]:
    return [KeyValue(key=key, value=value(of)) for key, of in pairs]


def doubled(*pairs: tuple[str, object]) -> AnyValue:
    """A map, in which keys may be there twice."""
    return AnyValue(kvlist_value=KeyValueList(values=attributes(*pairs)))


def values(finite: bool) -> list[AnyValue]:
    """Every kind of value, alone and within others."""
    doubles = [double for double in DOUBLES if not (finite and double in TOO_LARGE_IN_JSON)]
    scalars = [None, True, False, *INTEGERS, *doubles, *TEXTS, *BYTES]
    nested: list[object] = [
        [], {}, [[]], [{}], {"": {}}, scalars, {"z": 1, "a": [None, {"y": b"", "x": b"\x01"}], "m": {"q": 1e21, "p": "<&>"}},
        [[[["deep"]]]],
    ]  # fmt: skip
    odd: list[object] = [] if finite else [*NOT_FINITE, [1, math.nan], {"a": math.inf, "b": 1}]
    sorted_keys = doubled(*((key, number) for number, key in enumerate(("b", "a", "B", "aa", "é", "")))),
    return [*map(value, [*scalars, *nested, *odd]), *sorted_keys, doubled(("k", 1), ("j", 2), ("k", 3), ("k", "last"))]


class Maker:
    """Makes requests; with only `finite` numbers they fit into columns of JSON, in which no key may be there twice either."""

    def __init__(self, rng: random.Random, finite: bool):
        self.rng, self.finite = rng, finite
        self.values = values(finite)
        self.records = 0

    def requests(self, signal: str, random_ones: int) -> list[Message]:
        every = {"logs": self.every_log, "traces": self.every_trace, "metrics": self.every_metric}[signal]
        some = {"logs": self.some_logs, "traces": self.some_traces, "metrics": self.some_metrics}[signal]
        return [every(), *(some() for _ in range(random_ones))]

    # Logs.

    def every_log(self) -> Message:
        records = [LogRecord(time_unix_nano=self.time(), body=each) for each in self.values]
        records += [LogRecord(time_unix_nano=self.time(), attributes=[KeyValue(key="k", value=each)]) for each in self.values]
        records += [
            LogRecord(), LogRecord(observed_time_unix_nano=self.time()), LogRecord(time_unix_nano=2**63 - 1, flags=2**32 - 1),
            LogRecord(time_unix_nano=self.time(), severity_number=24, severity_text="FATAL"),
            LogRecord(time_unix_nano=self.time(), severity_number=300), LogRecord(time_unix_nano=self.time(), severity_number=-1),
            LogRecord(time_unix_nano=self.time(), trace_id=bytes(16), span_id=bytes(8)),
            LogRecord(time_unix_nano=self.time(), trace_id=bytes(15) + b"\x01", span_id=b"\xab" * 8, event_name="e"),
            LogRecord(time_unix_nano=self.time(), attributes=[KeyValue(key="no value"), KeyValue()]),
        ]  # fmt: skip
        empty = ResourceLogs(resource=Resource(attributes=attributes(("service.name", "unused"))))
        named = [self.resource_of(each) for each in ("text", 7, None, ["list"])]
        services = [ResourceLogs(resource=each, scope_logs=[ScopeLogs(log_records=[LogRecord(flags=1)])]) for each in named]
        return ExportLogsServiceRequest(
            resource_logs=[ResourceLogs(scope_logs=[ScopeLogs(log_records=records)]), empty, *services]
        )

    def some_logs(self) -> Message:
        return ExportLogsServiceRequest(resource_logs=self.some(lambda: ResourceLogs(
            resource=self.resource(), schema_url=self.text(), scope_logs=self.some(lambda: ScopeLogs(
                scope=self.scope(), schema_url=self.text(), log_records=self.some(self.log)))
        )))  # fmt: skip

    def log(self) -> LogRecord:
        return LogRecord(
            time_unix_nano=self.time(), observed_time_unix_nano=self.time(), severity_number=self.rng.randrange(25),
            severity_text=self.text(), body=self.any(), attributes=self.attributes(), flags=self.rng.randrange(2**32),
            trace_id=self.id(16), span_id=self.id(8), event_name=self.text(),
        )  # fmt: skip

    # Traces.

    def every_trace(self) -> Message:
        spans = [Span(start_time_unix_nano=self.time(), attributes=[KeyValue(key="k", value=each)]) for each in self.values]
        spans += [Span(start_time_unix_nano=self.time(), kind=kind) for kind in (-1, *range(8))]
        spans += [Span(start_time_unix_nano=self.time(), status=Status(code=code, message="m")) for code in (-1, *range(5))]
        spans += [
            Span(), Span(start_time_unix_nano=9, end_time_unix_nano=8),
            Span(events=[Span.Event(attributes=[KeyValue(key="k", value=each)]) for each in self.values]),
            Span(links=[Span.Link(attributes=[KeyValue(key="k", value=each)]) for each in self.values]),
            Span(events=[Span.Event()], links=[Span.Link(), Span.Link(trace_id=bytes(16), span_id=bytes(8))]),
        ]  # fmt: skip
        return ExportTraceServiceRequest(resource_spans=[ResourceSpans(scope_spans=[ScopeSpans(spans=spans)])])

    def some_traces(self) -> Message:
        return ExportTraceServiceRequest(resource_spans=self.some(lambda: ResourceSpans(
            resource=self.resource(), schema_url=self.text(), scope_spans=self.some(lambda: ScopeSpans(
                scope=self.scope(), schema_url=self.text(), spans=self.some(self.span)))
        )))  # fmt: skip

    def span(self) -> Span:
        start = self.time()
        return Span(
            trace_id=self.id(16), span_id=self.id(8), parent_span_id=self.id(8), trace_state=self.text(), name=self.text(),
            kind=self.rng.randrange(6), start_time_unix_nano=start, end_time_unix_nano=start + self.rng.randrange(2**40),
            attributes=self.attributes(), status=Status(code=self.rng.randrange(3), message=self.text()), flags=self.rng.randrange(2**32),
            events=self.some(lambda: Span.Event(time_unix_nano=self.time(), name=self.text(), attributes=self.attributes())),
            links=self.some(lambda: Span.Link(
                trace_id=self.id(16), span_id=self.id(8), trace_state=self.text(), attributes=self.attributes())),
        )  # fmt: skip

    # Metrics.

    def every_metric(self) -> Message:
        points = [metrics.NumberDataPoint(time_unix_nano=self.time(), attributes=[KeyValue(key="k", value=each)]) for each in self.values]
        points += [metrics.NumberDataPoint(time_unix_nano=self.time(), as_int=each) for each in INTEGERS]
        points += [metrics.NumberDataPoint(time_unix_nano=self.time(), as_double=each) for each in (*DOUBLES, *NOT_FINITE)]
        points += [metrics.NumberDataPoint(), metrics.NumberDataPoint(flags=1, exemplars=[metrics.Exemplar()])]
        points += [metrics.NumberDataPoint(time_unix_nano=time) for time in (LAST_SECOND * SECOND_NS, 2**62, 2**63, 2**64 - 1)]
        all_kinds = [
            metrics.Metric(name="empty", gauge=metrics.Gauge()),
            metrics.Metric(name="gauge", gauge=metrics.Gauge(data_points=points)),
            metrics.Metric(sum=metrics.Sum(data_points=points[:2], aggregation_temporality=1, is_monotonic=True)),
            metrics.Metric(sum=metrics.Sum(data_points=points[:2], aggregation_temporality=77)),
            metrics.Metric(summary=metrics.Summary(data_points=[metrics.SummaryDataPoint()])),
            metrics.Metric(histogram=metrics.Histogram(data_points=[
                metrics.HistogramDataPoint(), metrics.HistogramDataPoint(sum=0.0, min=-1.0, max=math.nan)])),
            metrics.Metric(exponential_histogram=metrics.ExponentialHistogram(data_points=[
                metrics.ExponentialHistogramDataPoint(),
                metrics.ExponentialHistogramDataPoint(
                    scale=-(2**31), positive=metrics.ExponentialHistogramDataPoint.Buckets(offset=2**31 - 1, bucket_counts=[0, 2**64 - 1]),
                )])),
        ]  # fmt: skip
        scopes = [metrics.ScopeMetrics(metrics=all_kinds)]
        return ExportMetricsServiceRequest(resource_metrics=[metrics.ResourceMetrics(scope_metrics=scopes)])

    def some_metrics(self) -> Message:
        return ExportMetricsServiceRequest(resource_metrics=self.some(lambda: metrics.ResourceMetrics(
            resource=self.resource(), schema_url=self.text(), scope_metrics=self.some(lambda: metrics.ScopeMetrics(
                scope=self.scope(), schema_url=self.text(), metrics=self.some(self.metric)))
        )))  # fmt: skip

    def metric(self) -> metrics.Metric:
        named = {"name": self.text(), "description": self.text(), "unit": self.text()}
        temporality = self.rng.randrange(3)
        match self.rng.randrange(5):
            case 0:
                return metrics.Metric(**named, gauge=metrics.Gauge(data_points=self.some(self.number)))
            case 1:
                points = self.some(self.number)
                monotonic = self.rng.random() < 0.5
                of = metrics.Sum(data_points=points, aggregation_temporality=temporality, is_monotonic=monotonic)
                return metrics.Metric(**named, sum=of)
            case 2:
                return metrics.Metric(**named, summary=metrics.Summary(data_points=self.some(self.summary)))
            case 3:
                of = metrics.Histogram(data_points=self.some(self.histogram), aggregation_temporality=temporality)
                return metrics.Metric(**named, histogram=of)
            case _:
                points = self.some(self.exponential)
                of = metrics.ExponentialHistogram(data_points=points, aggregation_temporality=temporality)
                return metrics.Metric(**named, exponential_histogram=of)

    def number(self) -> metrics.NumberDataPoint:
        number = {"as_int": self.rng.choice(INTEGERS)} if self.rng.random() < 0.5 else {"as_double": self.double()}
        return metrics.NumberDataPoint(**self.point(), **number, exemplars=self.some(self.exemplar))

    def summary(self) -> metrics.SummaryDataPoint:
        quantile = metrics.SummaryDataPoint.ValueAtQuantile
        quantiles = self.some(lambda: quantile(quantile=self.rng.random(), value=self.double()))
        return metrics.SummaryDataPoint(**self.point(), count=self.count(), sum=self.double(), quantile_values=quantiles)

    def histogram(self) -> metrics.HistogramDataPoint:
        return metrics.HistogramDataPoint(
            **self.point(), **self.moments(), bucket_counts=self.some(self.count), explicit_bounds=self.some(self.double),
            exemplars=self.some(self.exemplar),
        )  # fmt: skip

    def exponential(self) -> metrics.ExponentialHistogramDataPoint:
        of_buckets = metrics.ExponentialHistogramDataPoint.Buckets
        buckets = lambda: of_buckets(offset=self.rng.randrange(-(2**31), 2**31), bucket_counts=self.some(self.count))  # noqa: E731
        return metrics.ExponentialHistogramDataPoint(
            **self.point(), **self.moments(), scale=self.rng.randrange(-10, 20), zero_count=self.count(), positive=buckets(),
            negative=buckets(), exemplars=self.some(self.exemplar),
        )  # fmt: skip

    def exemplar(self) -> metrics.Exemplar:
        number = {"as_int": self.rng.choice(INTEGERS)} if self.rng.random() < 0.5 else {"as_double": self.double()}
        return metrics.Exemplar(
            **number, time_unix_nano=self.time(), filtered_attributes=self.attributes(), span_id=self.id(8), trace_id=self.id(16)
        )

    def point(self) -> dict:
        times = {"time_unix_nano": self.time(), "start_time_unix_nano": self.time()}
        return {**times, "attributes": self.attributes(), "flags": self.rng.randrange(2)}

    def moments(self) -> dict:
        some = {name: self.double() for name in ("sum", "min", "max") if self.rng.random() < 0.6}
        return {"count": self.count(), **some}

    # What all of them have.

    def resource(self) -> Resource:
        return Resource(attributes=[*attributes(("service.name", self.text())), *self.attributes()])

    def resource_of(self, service: object) -> Resource:
        return Resource(attributes=attributes(("before", 1), ("service.name", service)))

    def scope(self) -> InstrumentationScope:
        return InstrumentationScope(
            name=self.text(), version=self.text(), attributes=self.attributes(), dropped_attributes_count=self.rng.randrange(2**32)
        )

    def attributes(self) -> list[KeyValue]:
        if self.finite:
            # No part of a key is a key of its own: in JSON it can't be both.
            keys = self.rng.sample([key for key in KEYS if key not in ("", "a.b")], self.rng.randrange(4))
        else:
            keys = self.rng.choices(KEYS, k=self.rng.randrange(5))
        return [KeyValue(key=key, value=self.any()) for key in keys]

    def some(self, make: Callable) -> list:
        return [make() for _ in range(self.rng.choice((0, 1, 1, 2, 3)))]

    def any(self) -> AnyValue:
        return self.rng.choice(self.values)

    def text(self) -> str:
        return self.rng.choice(TEXTS)

    def double(self) -> float:
        return self.rng.choice((*DOUBLES, *NOT_FINITE))

    def count(self) -> int:
        return self.rng.choice((0, 1, 2**32, 2**64 - 1))

    def id(self, length: int) -> bytes:
        return self.rng.choice((b"", bytes(length), self.rng.randbytes(length)))

    def time(self) -> int:
        self.records += 1
        return BEGAN_NS + self.records * SECOND_NS + self.rng.randrange(SECOND_NS)


def protobuf(request: Message) -> bytes:
    stands_for = STANDS_FOR_BYTES.encode()
    return request.SerializeToString().replace(stands_for, NOT_UTF_8.ljust(len(stands_for), b".")[: len(stands_for)])


def as_json(request: Message) -> bytes:
    """By OTLP's rules: ids are hexadecimal, and enums are numbers."""
    return json.dumps(hexadecimal(MessageToDict(request, use_integers_for_enums=True))).encode()


def hexadecimal(node: object) -> object:
    match node:
        case dict():
            return {name: as_hex(of) if is_id(name, of) else hexadecimal(of) for name, of in node.items()}
        case list():
            return [hexadecimal(element) for element in node]
    return node


def is_id(name: str, of: object) -> bool:
    return name in ("traceId", "spanId", "parentSpanId") and isinstance(of, str)


def as_hex(text: str) -> str:
    return base64.b64decode(text).hex()
