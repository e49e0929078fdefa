"""The experiments of "Asynchronous Data Inserts in ClickHouse" (Schreiber and Bonuccelli, 2023) on this product, with time compressed.
Every duration of theirs is multiplied by one factor: the probes' interval, the flush time, and how long ClickHouse keeps merged parts
and when it looks for them. So the parts' curves keep their shape, while the load grows by the same factor. Synchronous inserts go
straight into ClickHouse, the others through the gateway."""

import os
import sys
import threading
import time
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from bench.base.document import prose
from bench.base.figures import Goals, Rows, columns, count, figure, of
from bench.base.part import Option, part
from bench.base.scenario import OneTable, Scenario, of_table, run
from bench.base.stack import Stack
from bench.base.svg import chart

TABLE = "bench.upclick"
# The article's own figures.
PROBE_INTERVAL_SECONDS, OLD_PARTS_LIFETIME_SECONDS, CLEANUP_DELAY_SECONDS = 10, 480, 30
# ClickHouse's default in 2023; today's is ten times as high.
TOO_MANY_PARTS = 300
# CPU is counted in steps of 10 ms; over this many samples the steps no longer make a saw of the curve.
CPU_SAMPLES_PER_POINT = 4
# What an insert of each kind sets: the article's 1 MB or 450 inserts for those who wait, no such limits for those who don't.
LIMITS = {True: (1, 1_000_000, 450), False: (0, 100_000_000, 450_000)}


@dataclass(frozen=True)
class Experiment:
    name: str
    # Beside a line of a chart.
    short_name: str
    writers: int
    # The article's, uncompressed; 0 where ClickHouse or the gateway decides.
    flush_seconds: int = 0
    is_straight: bool = False
    waits: bool = True

    @property
    def at_full_speed(self) -> bool:
        """Not the article's: everyone inserts again as soon as it is answered, with settings as they come."""
        return "full speed" in self.name


EXPERIMENTS = (
    Experiment("200 writers, synchronous", "200 writers, straight", 200, is_straight=True),
    Experiment("200 writers, waiting, flush after 1 s", "200 through Windrow, waiting", 200, 1),
    Experiment("500 writers, waiting, flush after 1 s", "500 through Windrow, waiting", 500, 1),
    Experiment("500 writers, not waiting, flush after 5 s", "500 …, not waiting, 5 s", 500, 5, waits=False),
    Experiment("500 writers, not waiting, flush after 30 s", "500 …, not waiting, 30 s", 500, 30, waits=False),
    Experiment("200 writers at full speed, straight", "straight: {rate} inserts/s", 200, is_straight=True),
    Experiment("200 writers at full speed, through Windrow", "through Windrow: {rate} inserts/s", 200),
)


class Sampler:
    """Looks at parts and CPU at regular moments while something else runs."""

    def __init__(self, stack: Stack, every_seconds: float) -> None:
        self.stack, self.every_seconds, self.samples = stack, every_seconds, list[dict[str, float]]()

    def __enter__(self) -> None:
        self.over = threading.Event()
        self.thread = threading.Thread(target=self._sample)
        self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()

    def _sample(self) -> None:
        start = at = time.monotonic()
        before = self.stack.snapshot()
        query = f"SELECT countIf(active), count() FROM system.parts WHERE {of_table(TABLE)} FORMAT TSV"
        while not self.over.wait(self.every_seconds):
            active, everything = self.stack.clickhouse.sql(query).split()
            now, after = time.monotonic(), self.stack.snapshot()
            gateway, clickhouse = (100 * cpu / (now - at) / (os.cpu_count() or 1) for cpu in after.cpu_since(before))
            self.samples.append({
                "seconds": now - start, "active": int(active), "all": int(everything), "clickhouse": clickhouse,
                "gateway": gateway,
            })  # fmt: skip
            at, before = now, after


@part(
    "article", "The article's experiments", quick={"seconds": 8.0},
    scale=Option(0.1, "what the article's durations are multiplied by"), seconds=Option(40.0, "how long each experiment runs"),
    policy=Option("fixed", "of the gateway; the article's ClickHouse had only `fixed`", ("fixed", "adaptive", "balanced")),
    sample_ms=Option(250, "between two looks at system.parts and /proc", rare=True),
)  # fmt: skip
def article(stack: Stack, options: Namespace) -> tuple[str, dict[str, str]]:
    """The experiments of the article on asynchronous inserts, time-compressed."""
    rows = Rows()
    for experiment in EXPERIMENTS:
        print(f"{experiment.name} for {options.seconds:g} s", file=sys.stderr)
        rows.append(observe(stack, experiment, options))
    goals = Goals()
    for row in rows:
        if row["experiment"].flush_seconds:
            goals.at_most(f"active parts, {row['name']}", 10, most(row, "active"))
    pictures = "".join(f"\n![{one.alternative}](benchmarks/{one.file})\n" for one in FIGURES)
    scale = options.scale
    said = prose(
        "article", scale=scale, interval=figure(PROBE_INTERVAL_SECONDS * scale), flush=1000 * scale, policy=options.policy,
        kept=OLD_PARTS_LIFETIME_SECONDS * scale, times=figure(1 / scale), seconds=options.seconds,
    )  # fmt: skip
    text = f"{said}{columns([Rows([row]) for row in rows], COLUMNS)}\n{goals}{pictures}"
    return text, {one.file: one.svg(rows, options.scale) for one in FIGURES}


article.environment = lambda options: {"WINDROW_GATHER_FLUSH_POLICY": options.policy}


def observe(stack: Stack, experiment: Experiment, options: Namespace) -> dict[str, Any]:
    scaled = lambda seconds: max(1, round(seconds * options.scale))
    delay = scaled(CLEANUP_DELAY_SECONDS)
    table_settings = (
        f"old_parts_lifetime = {scaled(OLD_PARTS_LIFETIME_SECONDS)}, cleanup_delay_period = {delay}, max_cleanup_delay_period = "
        f"{delay}, cleanup_delay_period_random_add = 0, parts_to_throw_insert = {TOO_MANY_PARTS}, parts_to_delay_insert = "
        f"{TOO_MANY_PARTS}"
    )
    settings: tuple[str, ...] | None = () if experiment.at_full_speed and not experiment.is_straight else None
    if experiment.flush_seconds:
        wait, data_size, number = LIMITS[experiment.waits]
        settings = (
            "async_insert=1", f"wait_for_async_insert={wait}",
            f"async_insert_busy_timeout_ms={scaled(experiment.flush_seconds * 1000)}",
            f"async_insert_max_data_size={data_size}", f"async_insert_max_query_number={number}",
        )  # fmt: skip
    interval = None if experiment.at_full_speed else PROBE_INTERVAL_SECONDS * options.scale
    scenario = Scenario(
        "direct" if experiment.is_straight else "stored", experiment.writers, options.seconds, warmup_seconds=0,
        only_settings=settings, load={"interval_seconds": interval},
    )  # fmt: skip
    sampler = Sampler(stack, options.sample_ms / 1000)
    row = run(stack, scenario, OneTable(TABLE, "" if experiment.at_full_speed else table_settings), sampler)
    return row | {"experiment": experiment, "name": experiment.name, "samples": sampler.samples}


def most(row: dict[str, Any], key: str) -> float:
    return max((sample[key] for sample in row["samples"]), default=0)


def mean(row: dict[str, Any], key: str) -> float:
    return fmean(sample[key] for sample in row["samples"]) if row["samples"] else 0.0


COLUMNS = [
    ("experiment", of("name")), ("rows", lambda one: count(one[0]["rows"])), ("refused", lambda one: count(one[0]["refused"])),
    ("late", lambda one: count(one[0]["missed"])), ("p50 ms", of("p50_ms")), ("p99 ms", of("p99_ms")),
    ("parts/s", lambda one: one[0]["parts"] / one[0]["seconds"]),
    ("most active parts", lambda one: count(most(one[0], "active"))), ("most parts at all", lambda one: count(most(one[0], "all"))),
    ("ClickHouse CPU %", lambda one: mean(one[0], "clickhouse")), ("gateway CPU %", lambda one: mean(one[0], "gateway")),
]  # fmt: skip


@dataclass(frozen=True)
class Figure:
    """A chart of all experiments on the same axes."""

    file: str
    # For those who can't see it.
    alternative: str
    title: str
    y_label: str
    key: str
    # Of a number of parts the largest counts; of a share the mean does.
    of_one: Callable[[dict[str, Any], str], float]
    # Which of the experiments it shows.
    at_full_speed: bool = False

    def svg(self, rows: Rows, scale: float) -> str:
        shown = [row for row in rows if row["experiment"].at_full_speed == self.at_full_speed]
        together = 1 if self.of_one is most else CPU_SAMPLES_PER_POINT
        largest = [
            count(max((self.of_one(row, self.key) for row in shown if row["experiment"].is_straight == straight), default=0))
            for straight in (True, False)
        ]
        series = {}
        for row in shown:
            chunks = [row["samples"][at : at + together] for at in range(0, len(row["samples"]), together)]
            points = [(chunk[-1]["seconds"], fmean(sample[self.key] for sample in chunk)) for chunk in chunks]
            series[row["experiment"].short_name.format(rate=figure(row["rows"] / row["seconds"]))] = points
        title = f"{self.title}: {largest[0]} straight, {largest[1]} through Windrow"
        x_label = "seconds" if self.at_full_speed else f"seconds; the article's are {1 / scale:g} times as long"
        return chart(title, x_label, self.y_label, series, self.of_one is most)


FIGURES = (
    Figure(
        "active-parts.svg", "Active parts while 200 writers insert row by row, straight into ClickHouse and through Windrow",
        "200 writers, a row at a time. Active parts, at most", "active parts of the table, log scale", "active", most, True,
    ),
    Figure(
        "all-parts.svg", "All parts over time, active and merged ones", "Parts on the disk, at most",
        "all parts of the table, also merged ones, log scale", "all", most,
    ),
    Figure(
        "clickhouse-cpu.svg", "ClickHouse's CPU over time", "ClickHouse's CPU, % on average",
        "ClickHouse's CPU, % of the machine", "clickhouse", mean,
    ),
)  # fmt: skip
