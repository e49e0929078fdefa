"""Log records by OTLP over gRPC into ClickHouse: through the gateway, and through OpenTelemetry's collector with its own exporter for
ClickHouse. And services in great number, each with an SDK that sends a request a second.

Each side has a ClickHouse of its own, started for it, and makes its table there. A record's time is its number, so that what is there
afterwards can be told from what was taken.
"""

import tempfile
import time
from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.eventually import eventually
from harness.ports import free_port
from harness.telemetry import Collector, built, clickhouse_exporter

from bench.base.document import prose
from bench.base.figures import Column, Goals, Rows, columns, of
from bench.base.part import Option, part
from bench.base.processes import TICKS_PER_SECOND, Program, descendants, peak_bytes, reset_peak, usage
from bench.base.scenario import parts_created, tell
from bench.base.stack import Server, Stack

WINDROW, COLLECTOR = "Windrow", "collector"
# Both hold a batch for a second, which is the gateway's default.
CONFIG = '[otlp]\ngrpc_listen = "127.0.0.1:0"\nack = "disk"\n'
FULL, HALF = "as much as it takes", "half of that"
TABLE = "default.otel_logs"
WARM_UP_SECONDS = 1.0
STORED_WITHIN_SECONDS = 300
DAY_SECONDS = 86400


def exporter_options(rows: int) -> dict[str, Any]:
    """As its documentation has it for high rates: batches are made in its queue, which makes senders wait where it is full, instead of
    dropping what they send."""
    batch = {"min_size": rows, "flush_timeout": "1s"}
    queue = {"sizer": "items", "queue_size": 10 * rows, "block_on_overflow": True, "num_consumers": 10, "batch": batch}
    return {"async_insert": False, "compress": "none", "timeout": "60s", "sending_queue": queue}


def noon_ns() -> int:
    """Of this day: all rows are of one partition."""
    return int((time.time() // DAY_SECONDS + 0.5) * DAY_SECONDS) * 1_000_000_000


@dataclass(frozen=True)
class Side:
    """One of the two while it runs: who takes requests at `address`, and the ClickHouse behind."""

    title: str
    server: Server
    address: str
    pid: int

    def cpu_seconds(self) -> tuple[float, float]:
        """Of who takes the requests, and of ClickHouse."""
        return usage(self.pid).cpu_seconds, sum(usage(pid).cpu_seconds for pid in descendants(self.server.child.pid))

    def rows(self) -> int:
        if self.server.direct.sql(f"EXISTS TABLE {TABLE}") == "0":
            return 0
        return int(self.server.direct.sql(f"SELECT count() FROM {TABLE}"))

    def await_stored(self, rows: int) -> None:
        eventually(lambda: self.rows() >= rows, f"{rows} rows are stored", STORED_WITHIN_SECONDS)

    def parts(self) -> int:
        """0 of a table that is not there yet."""
        return parts_created(self.server.direct, TABLE)


@contextmanager
def started(title: str, program: Path, batch_rows: int) -> Iterator[Side]:
    """The gateway that starts ClickHouse does nothing else where the collector is measured."""
    with tempfile.TemporaryDirectory(prefix="windrow-bench-") as name:
        server = Server(Path(name) / "gateway", config=CONFIG if title == WINDROW else "")
        if title == WINDROW:
            yield Side(title, server, f"127.0.0.1:{server.otlp_ports[0]}", server.child.pid)
        else:
            assert server.direct_native_port is not None, "ClickHouse listens natively"
            exporter = clickhouse_exporter(server.direct, server.direct_native_port, exporter_options(batch_rows))
            collector = Collector(program, Path(name) / "collector", f"127.0.0.1:{free_port()}", exporter)
            try:
                collector.is_ready()
                yield Side(title, server, collector.address, collector.pid)
            finally:
                collector.stop()
        server.end()


class Load:
    """Requests that were made beforehand, sent to one side, and how many rows it has taken of them."""

    def __init__(self, side: Side, program: Path, options: Namespace):
        self.side, self.options, self.taken, self.from_ns = side, options, 0, noon_ns()
        words = [side.address, options.connections, options.records, self.from_ns]
        self.program = Program([str(program), "load", *map(str, words)])
        self.program.line()

    def run(self, seconds: float, requests_per_second: float = 0) -> dict[str, Any]:
        """Until all is stored. CPU is that of a row."""
        reset_peak(self.side.pid)
        before, parts, began = self.side.cpu_seconds(), self.side.parts(), time.monotonic()
        said = self.program.ask({"seconds": seconds, "requests_per_second": requests_per_second})
        self.taken += said["rows"]
        self.side.await_stored(self.taken)
        took = time.monotonic() - began
        taker, clickhouse = (after - earlier for after, earlier in zip(self.side.cpu_seconds(), before))
        us = lambda seconds: seconds * 1e6 / said["rows"]
        return {
            "per_second": said["rows"] / took, "parts_per_second": (self.side.parts() - parts) / took,
            "taker_us": us(taker), "clickhouse_us": us(clickhouse), "load_us": us(said["cpu_seconds"]),
            "per_cpu_second": said["rows"] / max(taker, 1 / TICKS_PER_SECOND), "peak_mb": peak_bytes(self.side.pid) / 1e6,
            **{key: said[key] for key in ("p50_ms", "p99_ms", "max_ms", "refused")}, "error": "to come again",
            "row_bytes": said["request_bytes"] / self.options.records,
        }  # fmt: skip

    def check(self) -> None:
        """Each of them is there once, under its own time, and no other."""
        figures = "count(), uniqExact(Timestamp), min(toUnixTimestamp64Nano(Timestamp)), max(toUnixTimestamp64Nano(Timestamp))"
        attributes = "countIf(length(LogAttributes) = 5 AND length(ResourceAttributes) = 6 AND Body LIKE '% answered with %')"
        found = self.side.server.direct.sql(f"SELECT {figures}, {attributes} FROM {TABLE} FORMAT TSV").split("\t")
        last_ns = self.from_ns + (self.taken - 1) * 1000
        wanted = [str(number) for number in (self.taken, self.taken, self.from_ns, last_ns, self.taken)]
        if found != wanted:
            raise SystemExit(f"{self.side.title}: {found} are there, {wanted} should be")


def loaded(title: str, program: Path, options: Namespace) -> Iterator[dict[str, Any]]:
    """As much as it takes, and then half of that."""
    with started(title, program, options.batch_rows) as side:
        load = Load(side, program, options)
        with load.program:
            load.run(WARM_UP_SECONDS)
            full = load.run(options.seconds)
            yield {"way": title, "load": FULL, **full}
            yield {"way": title, "load": HALF, **load.run(options.seconds, full["per_second"] / 2 / options.records)}
            load.check()
            load.program.end()


def of_services(title: str, program: Path, options: Namespace) -> dict[str, Any]:
    with started(title, program, options.batch_rows) as side:
        words = ["services", side.address, str(options.services), str(options.service_records)]
        with Program([str(program), *words]) as services:
            services.line()
            reset_peak(side.pid)
            before, parts, rows, began = side.cpu_seconds(), side.parts(), side.rows(), time.monotonic()
            time.sleep(options.seconds)
            seconds, after, stored = time.monotonic() - began, side.cpu_seconds(), side.rows() - rows
            row = {
                "way": title, "services": options.services, "per_second": stored / seconds, "peak_mb": peak_bytes(side.pid) / 1e6,
                "parts_per_second": (side.parts() - parts) / seconds,
                "taker_percent": (after[0] - before[0]) * 100 / seconds, "clickhouse_percent": (after[1] - before[1]) * 100 / seconds,
            }  # fmt: skip
            services.input.close()
            told = services.answer()
            side.await_stored(told["taken"])
            there = side.server.direct.sql(f"SELECT count(), uniqExact(Body) FROM {TABLE} FORMAT TSV").split("\t")
            if there != [str(told["taken"])] * 2:
                raise SystemExit(f"{title}: {told['taken']} records were taken, {there} are there")
        return row | {"refused": told["made"] - told["taken"], "error": "dropped by their SDKs"}


@part(
    "otlp", "OpenTelemetry's logs", quick={"seconds": 1.0, "rounds": 1, "services": 100},
    seconds=Option(10.0), rounds=Option(3), connections=Option(64), records=Option(100, "of a request"),
    batch_rows=Option(100_000, "of the collector's batches"), services=Option(1000, "each with an SDK and a connection"),
    service_records=Option(10, "of a request of these"),
)  # fmt: skip
def otlp(stack: Stack, options: Namespace) -> str:
    """Log records by OTLP over gRPC, through the gateway and through the collector."""
    program, rows, services = built(Path(stack.folder.name), "senders", "."), Rows(), Rows()
    for number in range(options.rounds):
        for title in (WINDROW, COLLECTOR):
            for row in loaded(title, program, options):
                rows.append(row)
                tell(f"round {number + 1}, {row['load']}", row)
            services.append(of_services(title, program, options))
            tell(f"round {number + 1}, {options.services} services", services[-1])
    return text_of(rows, services, options)


def text_of(rows: Rows, services: Rows, options: Namespace) -> str:
    shown: list[Column] = [
        ("way", of("way")), ("load", of("load")), ("rows/s", of("per_second")), ("rows per CPU second", of("per_cpu_second")),
        ("its CPU, us per row", of("taker_us")), ("ClickHouse's", of("clickhouse_us")), ("load generator's", of("load_us")),
        ("p50 ms", of("p50_ms")), ("p99 ms", of("p99_ms")), ("max ms", of("max_ms")),
        ("its peak memory, MB", of("peak_mb")), ("parts/s", of("parts_per_second")), ("refused", of("refused")),
    ]  # fmt: skip
    shown_of_services: list[Column] = [
        ("way", of("way")), ("services", of("services")), ("rows/s", of("per_second")), ("its peak memory, MB", of("peak_mb")),
        ("parts/s", of("parts_per_second")), ("its CPU, %", of("taker_percent")), ("ClickHouse's", of("clickhouse_percent")),
        ("dropped by SDKs", of("refused")),
    ]  # fmt: skip
    bytes_per_row = round(rows.median("row_bytes") or 0)
    text = prose("otlp", records=options.records, bytes=bytes_per_row, rows=options.batch_rows)
    text += columns([group for _, group in rows.groups("way", "load")], shown)
    text += "\n" + prose("otlp services", services=options.services, records=options.service_records)
    text += columns([group for _, group in services.groups("way")], shown_of_services)
    full, goals = rows.where(load=FULL), Goals()
    ours, half = full.where(way=WINDROW), rows.where(way=WINDROW, load=HALF)
    goals.at_least("rows per CPU second, to the collector's", 5, ours.ratio(full.where(way=COLLECTOR), "per_cpu_second"))
    goals.at_least("rows per CPU second", 500_000, ours.median("per_cpu_second"))
    goals.at_most("at half of the load, p99 ms", 50, half.median("p99_ms"))
    many = services.where(way=WINDROW)
    goals.at_most(f"{options.services} services, memory, MB", 150, many.most("peak_mb"))
    goals.at_most(f"{options.services} services, parts/s", 2, many.median("parts_per_second"))
    return f"{text}\n{goals}"
