"""Who sends telemetry: Python's and Go's SDKs, the collector, telemetrygen. Each knows what it was told is kept."""

from __future__ import annotations

import itertools
import json
import socket
import subprocess
import threading
from collections import defaultdict
from pathlib import Path
from typing import Any

from opentelemetry.exporter.otlp.proto.grpc._log_exporter import OTLPLogExporter as GrpcLogs
from opentelemetry.exporter.otlp.proto.grpc.metric_exporter import OTLPMetricExporter as GrpcPoints
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter as GrpcSpans
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter as HttpLogs
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter as HttpPoints
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter as HttpSpans
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.paths import TESTS
from harness.process import inherited_environment

SENDERS = TESTS / "otlp" / "senders"
TELEMETRYGEN = "github.com/open-telemetry/opentelemetry-collector-contrib/cmd/telemetrygen"
# No request is given up before a test is.
PATIENCE_SECONDS = 600
ONLY_WHEN_TOLD = 1e9

Names = dict[str, list[str]]


def built(folder: Path, name: str, package: str) -> Path:
    """The program of a package of the module of senders."""
    program = folder / name
    subprocess.run(["go", "build", "-trimpath", "-o", str(program), package], cwd=SENDERS, check=True, timeout=600)
    return program


class PythonSdk:
    """Sends a log record, a span and a point of a gauge after the other by each protocol, until `stop`."""

    def __init__(self, grpc: str, http: str, token: str):
        self.acknowledged: Names = defaultdict(list)
        self._lock, self._stopping = threading.Lock(), threading.Event()
        self._exporters: list[Any] = []
        common: dict[str, Any] = {"timeout": PATIENCE_SECONDS, "headers": {"authorization": f"Bearer {token}"}}
        over_grpc = {**common, "endpoint": grpc, "insecure": True}
        over_http = lambda signal: {**common, "endpoint": f"http://{http}/v1/{signal}"}  # noqa: E731
        ways = (
            ("grpc", GrpcLogs, GrpcSpans, GrpcPoints, lambda _: over_grpc),
            ("http", HttpLogs, HttpSpans, HttpPoints, over_http),
        )
        self._threads = [
            threading.Thread(target=send, args=(f"python {name}", kind, options(signal)), daemon=True)
            for name, logs, spans, points, options in ways
            for signal, kind, send in (("logs", logs, self._logs), ("traces", spans, self._spans), ("metrics", points, self._points))
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> Names:
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        return self.acknowledged

    def kill(self) -> None:
        """Nobody waits for an answer any more."""
        self._stopping.set()
        for exporter in self._exporters:
            exporter.shutdown()

    def _telling(self, signal: str, exporter: type, names: Any, options: dict[str, Any]) -> Any:
        """The exporter, which keeps the names of what it was told is kept."""
        known = self._acknowledge

        class Telling(exporter):  # type: ignore[misc]
            def export(self, exported: Any, *more: Any, **others: Any) -> Any:
                result = super().export(exported, *more, **others)
                if result.name == "SUCCESS":
                    known(signal, names(exported))
                return result

        self._exporters.append(Telling(**options))
        return self._exporters[-1]

    def _acknowledge(self, signal: str, names: list[str]) -> None:
        with self._lock:
            self.acknowledged[signal] += names

    def _logs(self, name: str, exporter: type, options: dict[str, Any]) -> None:
        told = self._telling("logs", exporter, lambda batch: [each.log_record.body for each in batch], options)
        provider = LoggerProvider()
        provider.add_log_record_processor(SimpleLogRecordProcessor(told))
        logger = provider.get_logger("senders")
        for number in itertools.takewhile(lambda _: not self._stopping.is_set(), itertools.count()):
            logger.emit(body=f"{name} {number}")
        provider.shutdown()

    def _spans(self, name: str, exporter: type, options: dict[str, Any]) -> None:
        told = self._telling("spans", exporter, lambda batch: [each.name for each in batch], options)
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(told))
        tracer = provider.get_tracer("senders")
        for number in itertools.takewhile(lambda _: not self._stopping.is_set(), itertools.count()):
            tracer.start_span(f"{name} {number}").end()
        provider.shutdown()

    def _points(self, name: str, exporter: type, options: dict[str, Any]) -> None:
        told = self._telling("points", exporter, points_of, options)
        reader = PeriodicExportingMetricReader(told, ONLY_WHEN_TOLD, PATIENCE_SECONDS * 1000)
        # Its end would send the last point once more.
        provider = MeterProvider([reader], shutdown_on_exit=False)
        gauge = provider.get_meter("senders").create_gauge(name.replace(" ", "_"))
        for number in itertools.takewhile(lambda _: not self._stopping.is_set(), itertools.count()):
            gauge.set(number)
            reader.force_flush(PATIENCE_SECONDS * 1000)


def points_of(exported: Any) -> list[str]:
    metrics = [metric for resource in exported.resource_metrics for scope in resource.scope_metrics for metric in scope.metrics]
    return [f"{metric.name} {point.value}" for metric in metrics for point in metric.data.data_points]


class GoSdk:
    """The same by Go's SDK, in batches."""

    def __init__(self, program: Path, grpc: str, http: str, token: str):
        command = [str(program), "sdk", grpc, http]
        environment = {**inherited_environment(), "OTEL_EXPORTER_OTLP_HEADERS": f"authorization=Bearer%20{token}"}
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)

    def stop(self) -> Names:
        said, _ = self._process.communicate(timeout=PATIENCE_SECONDS)
        assert self._process.returncode == 0
        return json.loads(said)

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()


class Collector:
    """The collector, which takes OTLP at `address` and sends it on until it is taken."""

    def __init__(self, program: Path, folder: Path, address: str, exporter: str):
        folder.mkdir(parents=True)
        config = folder / "collector.yaml"
        exporters = f"receivers: [otlp], exporters: [{exporter.split(':')[0]}]"
        pipelines = "".join(f"    {signal}: {{{exporters}}}\n" for signal in ("logs", "traces", "metrics"))
        config.write_text(
            f"receivers:\n  otlp:\n    protocols:\n      grpc: {{endpoint: '{address}'}}\n"
            f"exporters:\n  {exporter}\n"
            f"service:\n  telemetry: {{metrics: {{level: none}}, logs: {{level: error}}}}\n  pipelines:\n{pipelines}"
        )
        self.address = address
        self._process = subprocess.Popen([str(program), "collector", str(config)], env=inherited_environment())

    @property
    def pid(self) -> int:
        return self._process.pid

    def is_ready(self) -> None:
        """Waits until it takes connections."""
        host, _, port = self.address.partition(":")
        eventually(lambda: is_open(host, int(port)), "the collector listens")

    def stop(self) -> None:
        """It sends what it has."""
        self._process.terminate()
        assert self._process.wait(PATIENCE_SECONDS) == 0

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()


def is_open(host: str, port: int) -> bool:
    try:
        socket.create_connection((host, port), timeout=10).close()
    except OSError:
        return False
    return True


RETRIES = "retry_on_failure: {enabled: true, initial_interval: 50ms, max_interval: 1s, max_elapsed_time: 0s}"


def otlp_exporter(address: str, token: str) -> str:
    """As docs/otlp.md has it."""
    packed = "tls: {insecure: true}, compression: zstd"
    return f"otlp: {{endpoint: '{address}', {packed}, headers: {{authorization: 'Bearer {token}'}}, {RETRIES}}}"


def otlphttp_exporter(address: str, token: str) -> str:
    return f"otlphttp: {{endpoint: 'http://{address}', headers: {{authorization: 'Bearer {token}'}}, {RETRIES}}}"


def clickhouse_exporter(direct: Endpoint, native_port: int, options: dict[str, Any]) -> str:
    """Natively, into tables that it makes."""
    login = {"username": direct.user, "password": direct.password}
    return "clickhouse: " + json.dumps({"endpoint": f"tcp://{direct.host}:{native_port}", **login, **options})


def telemetrygen(program: Path, signal: str, count: int, address: str) -> None:
    """Sends so many of a signal, over gRPC."""
    number = f"--{signal}={count}"
    command = [str(program), signal, "--otlp-endpoint", address, "--otlp-insecure", "--rate", "0", "--workers", "1", number]
    subprocess.run(command, check=True, timeout=PATIENCE_SECONDS, capture_output=True, env=inherited_environment())
