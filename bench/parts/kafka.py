"""ClickHouse's Kafka engine and ours on the same broker, the same topics, the same tables: the article's table of formats and engines, what
exactly once costs, and how late rows are under a steady load."""

import sys
from argparse import Namespace
from typing import Any

from bench.base.document import prose
from bench.base.figures import NONE, Column, Goals, Rows, columns, count, figure, of, table
from bench.base.part import Option, part
from bench.base.stack import Stack
from bench.kafka.peak import measure
from bench.kafka.running import steady, sustained
from bench.kafka.stage import AT_LEAST_ONCE, ENGINE, FORMATS, SHARED_ENGINE, WINDROW, WITHIN_A_SECOND, Format, Side, Stage

TABLES = {"null": "Null", "merge-tree": "MergeTree", "aggregating-merge-tree": "AggregatingMergeTree"}
MERGE_TREE = TABLES["merge-tree"]
# Whose peaks the steady loads are shares of, and the shares.
LOADED = FORMATS["json-each-row"]
SHARES = (0.25, 0.5, 0.75)
# How many times the engine's speed into MergeTree.
TIMES = {"json-each-row": 3, "protobuf-single": 5, "protobuf": 2}
MEMORY_MB = 256
SUSTAINED, FULL_TOPIC = "{share:.0%} of what {who} sustains", "{share:.0%} of {who}'s peak"


@part(
    "kafka", "Kafka",
    quick={"rounds": 1, "rows": 2_000_000, "seconds": 5.0, "formats": ["json-each-row"], "engines": ["merge-tree"]},
    seconds=Option(12.0, "how long each steady load runs, and the Kafka engine when it reads a full topic"),
    rows=Option(20_000_000, "in a full topic; the fastest format is read at millions a second"),
    rounds=Option(2, "of peaks into MergeTree, alternately; the other tables are read into once"),
    sides=Option(["engine", "windrow"], choices=("engine", "windrow"), rare=True),
    formats=Option(list(FORMATS), choices=tuple(FORMATS), rare=True),
    engines=Option(list(TABLES), choices=tuple(TABLES), rare=True),
    no_latency=Option(False, "no steady loads: peaks alone"),
)  # fmt: skip
def kafka(stack: Stack, options: Namespace) -> str:
    """Topics of a real broker into tables, beside ClickHouse's Kafka engine."""
    stage = Stage(stack, options.rows)
    peaks, kept, loads = Rows(), Rows(), Rows()
    try:
        for name in options.formats:
            peaks += peaks_of(stage, FORMATS[name], options)
        if not options.no_latency:
            kept, loads = under_load(stage, peaks, options)
    finally:
        stage.close()
    return report(peaks, kept, loads, options)


kafka.environment = lambda options: {"WINDROW_EMBEDDED_SYSTEM_LOGS": "true"}


def peaks_of(stage: Stage, format: Format, options: Namespace) -> Rows:
    """Into MergeTree several rounds of all there is, alternately. The first one finds which of its two ways is the engine's better one,
    which the others keep to. The other tables can't tell what comes twice from what comes once."""
    rows, engine = Rows(), ENGINE
    peak = lambda side, table: measure(stage, side, format, table, options.seconds)
    chosen = lambda *sides: [side for side in sides if side.chosen_as in options.sides]
    for number in range(options.rounds if "merge-tree" in options.engines else 0):
        if both := [peak(side, MERGE_TREE) for side in chosen(*((ENGINE, SHARED_ENGINE) if number == 0 else (engine,)))]:
            rows.append(max(both, key=lambda row: row["per_second"]))
            engine = rows[-1]["side"]
        rows += [peak(side, MERGE_TREE) for side in chosen(WINDROW, AT_LEAST_ONCE)]
    for name in options.engines:
        # A blob has nothing that could be aggregated.
        if name != "merge-tree" and (name, format.name) != ("aggregating-merge-tree", "RawBLOB"):
            rows += [peak(side, TABLES[name]) for side in chosen(engine, WINDROW)]
    return rows


def under_load(stage: Stage, peaks: Rows, options: Namespace) -> tuple[Rows, Rows]:
    """Shares of what both sides sustain. The engine is spared what is more than it can read."""
    kept, loads = Rows(), Rows()
    of_loaded = peaks.where(format=LOADED.title, table=MERGE_TREE)
    if not of_loaded:
        return kept, loads
    engine = next((row["side"] for row in of_loaded if row["side"].is_engine), ENGINE)
    for who, readers in ((engine, (engine, WITHIN_A_SECOND)), (WITHIN_A_SECOND, (WITHIN_A_SECOND,))):
        readers = [side for side in readers if side.chosen_as in options.sides]
        if who not in readers:
            continue
        kept.append(sustained(stage, who, LOADED, options.seconds))
        rate = kept[-1]["per_second"]
        print(f"kafka: {who.title} sustains {rate:,.0f} rows/s", file=sys.stderr)
        cases = [(SUSTAINED, share, False) for share in SHARES] + [(SUSTAINED, 0.5, True)]
        if not who.is_engine:
            cases += [(FULL_TOPIC, 0.5, False), (FULL_TOPIC, 0.5, True)]
        for peak, share, with_queries in cases:
            most = rate if peak is SUSTAINED else of_loaded.where(side=WINDROW).median("per_second")
            name = peak.format(share=share, who="the engine" if who.is_engine else "Windrow").replace("%", " %")
            labels = {"load": name, "half": peak if share == 0.5 and not who.is_engine else None}
            loads += [loaded(stage, side, (most or 0) * share, with_queries, options) | labels for side in readers]
    return kept, loads


def loaded(stage: Stage, side: Side, rate: float, with_queries: bool, options: Namespace) -> dict[str, Any]:
    row = steady(stage, side, LOADED, rate, with_queries, options.seconds)
    shown = ", ".join(f"{key} {figure(row[key])}" for key in ("p50_ms", "p99_ms", "parts_per_second", "sent_late_ms"))
    print(f"kafka: {side.title}, {rate:,.0f} rows/s{' with queries' if with_queries else ''}: {shown}", file=sys.stderr)
    return row


COUNTED: Column = ("rows/s", lambda rows: count(rows.median("per_second") or 0))
MEMORY: Column = ("gateway's peak memory, MB", lambda rows: rows.most("peak_mb"))
CPU: list[Column] = [("gateway's CPU", of("gateway_cpu")), ("ClickHouse's", of("clickhouse_cpu")), ("broker's", of("broker_cpu"))]


def report(peaks: Rows, kept: Rows, loads: Rows, options: Namespace) -> str:
    text = prose("kafka")
    engines = Rows(row for row in peaks if row["side"].is_engine)
    if peaks:
        text += prose("kafka peak").rstrip() + "\n"
        for title, rows in (("Kafka engine", engines), ("Windrow", peaks.where(side=WINDROW))):
            text += f"\n{title}, rows/s:\n\n{formats_by_tables(rows)}" if rows else ""
        shown = [group for _, group in peaks.groups("format", "table", "reader") if group[0]["side"] is not AT_LEAST_ONCE]
        cpu = [("gateway's CPU, s per million rows", of("gateway_cpu")), *CPU[1:]]
        same = lambda group: engines.where(format=group[0]["format"], table=group[0]["table"])
        times: Column = ("× the engine", lambda group: group.ratio(same(group), "per_second"))
        named: list[Column] = [("format", of("format")), ("table", of("table")), ("reader", of("reader"))]
        text += "\n" + columns(shown, [*named, COUNTED, times, *cpu, MEMORY])
    once = [(title, group, cost) for (title,), group in peaks.groups("format") if (cost := cost_of_once(group)) is not None]
    if once:
        lines = [[title, *(count(group.where(side=side, table=MERGE_TREE).median("per_second") or 0)
                           for side in (WINDROW, AT_LEAST_ONCE)), f"{figure(cost)} %"] for title, group, cost in once]  # fmt: skip
        text += "\n" + prose("kafka once") + table(["format", "exactly once, rows/s", "at least once, rows/s", "cost"], lines)
    producer: Column = ("producer's", of("producer_cpu"))
    if kept:
        shown = [Rows([row]) for row in kept]
        text += "\n" + prose("kafka sustained") + columns(shown, [("reader", of("reader")), COUNTED, *CPU, producer, MEMORY])
    if loads:
        late: list[Column] = [(f"{share} ms", of(f"{share}_ms")) for share in ("p50", "p95", "p99", "max")]
        asked: list[Column] = [(f"queries' {share} ms", of(f"queries_{share}_ms")) for share in ("p50", "p99")]
        text += "\n" + prose("kafka latency", seconds=options.seconds) + columns(
            [Rows([row]) for row in loads],
            [
                ("reader", of("reader")), ("load", of("load")), COUNTED, ("queries/s", of("queries_per_second")), *late,
                ("parts/s", of("parts_per_second")), *CPU, producer, ("sent late by at most, ms", of("sent_late_ms")), *asked,
                MEMORY,
            ],
        )  # fmt: skip
    return f"{text}\n{goals_of(peaks, kept, loads)}"


def formats_by_tables(rows: Rows) -> str:
    """The article's own table."""
    cell = lambda group, table: count(rate) if (rate := group.where(table=table).median("per_second")) else NONE
    lines = [[title, *(cell(group, name) for name in TABLES.values())] for (title,), group in rows.groups("format")]
    return table(["format", *TABLES.values()], lines)


def cost_of_once(rows: Rows) -> float | None:
    """In % of the speed without it."""
    ratio = rows.where(side=WINDROW, table=MERGE_TREE).ratio(rows.where(side=AT_LEAST_ONCE), "per_second")
    return None if ratio is None else 100 * (1 - ratio)


def goals_of(peaks: Rows, kept: Rows, loads: Rows) -> Goals:
    goals = Goals()
    for name, wanted in TIMES.items():
        rows = peaks.where(format=FORMATS[name].title, table=MERGE_TREE)
        times = rows.where(side=WINDROW).ratio(Rows(row for row in rows if row["side"].is_engine), "per_second")
        goals.at_least(f"{FORMATS[name].title} into MergeTree, times the engine's rows/s", wanted, times)
    for (title,), rows in peaks.groups("format"):
        goals.at_most(f"{title}, what exactly once costs, %", 10, cost_of_once(rows))
    for peak, half in ((SUSTAINED, "half of what we sustain"), (FULL_TOPIC, "half of our peak")):
        alone, asked = (loads.where(half=peak, with_queries=with_queries) for with_queries in (False, True))
        goals.at_most(f"at {half}, p99 ms", 1000, alone.median("p99_ms"))
        goals.at_most(f"at {half}, parts/s", 2, alone.median("parts_per_second"))
        goals.at_most(f"at {half}, with queries, p99 ms", 2000, asked.median("p99_ms"))
    goals.at_most("at the peaks, gateway's memory, MB", MEMORY_MB, peaks.most("peak_mb"))
    goals.at_most("at what we sustain, gateway's memory, MB", MEMORY_MB, kept.most("peak_mb"))
    return goals
