"""The Python package beside clickhouse-connect: the article's eight scenarios with async clients and 32 threads; and a million rows of ten
columns in every form of result, the time to the first block, memory while a gigabyte streams, and how long other tasks wait.

Every client has a process of its own; scenarios and, within a scenario, clients run in random order.
"""

import json
import math
import random
import statistics
import sys
from argparse import Namespace
from collections.abc import Iterable

from harness.endpoint import Endpoint

from bench.base.document import prose
from bench.base.figures import Goals, Rows, columns, figure, of
from bench.base.part import Option, part
from bench.base.processes import Program
from bench.base.stack import Stack, read_all
from bench.clients.scenarios import MILLION, SCENARIOS, SETUP

TITLES = {
    "windrow": "windrow, async",
    "connect": "clickhouse-connect, async",
    "connect_uncompressed": "the same, compress=False",
    "connect_threads": "clickhouse-connect, 32 threads",
}
OURS, PEER = "windrow", "connect"
SEED = 1


def arguments_of(server: Endpoint) -> dict[str, object]:
    """For get_client and get_async_client, of either package."""
    return {"host": server.host, "port": server.port, "username": server.user, "password": server.password}


def child(way: str, server: Endpoint) -> Program:
    program = Program([sys.executable, "-m", "bench.clients.child", way, json.dumps(arguments_of(server))])
    program.answer()
    return program


def geometric_mean(values: Iterable[float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values))


@part("clients", "Python clients: the article's scenarios", quick={"rounds": 1}, rounds=Option(5))
def clients(stack: Stack, options: Namespace) -> str:
    """Python clients in the eight scenarios of the article on the async client."""
    for statement in SETUP:
        stack.clickhouse.sql(statement)
    for way in TITLES:
        stack.clickhouse.sql(f"CREATE TABLE bench.inserts_{way} AS bench.events ENGINE = MergeTree ORDER BY id")
    chance, children = random.Random(SEED), {way: child(way, stack.clickhouse) for way in TITLES}
    rows = Rows()
    for number in range(options.rounds + 1):
        for scenario in chance.sample(SCENARIOS, len(SCENARIOS)):
            for way in chance.sample(list(children), len(children)):
                stack.clickhouse.sql(f"TRUNCATE TABLE bench.inserts_{way} SYNC")
                answer = children[way].ask({"scenario": scenario.name})
                took = sorted(answer["took"])
                row = {
                    "scenario": scenario.title, "way": way, "in_flight": str(scenario.in_flight),
                    "per_second": scenario.operations / answer["seconds"],
                    "p95_ms": took[max(0, math.ceil(0.95 * len(took)) - 1)] * 1000,
                    "cpu_ms": answer["cpu"] * 1000 / scenario.operations,
                }  # fmt: skip
                # The first round warms up: caches of the server, connections, imports.
                rows += [row] if number else []
    for program in children.values():
        program.end()
    groups = [rows.where(scenario=scenario.title, way=way) for scenario in SCENARIOS for way in TITLES]
    spread = lambda key: lambda group: f"{figure(group.median(key))} ± {figure(deviation(group, key))}"
    shown = columns(groups, [
        ("scenario", of("scenario")), ("client", lambda group: TITLES[group[0]["way"]]), ("in flight", of("in_flight")),
        ("op/s", spread("per_second")), ("× connect", lambda group: beside(rows, group, "per_second")),
        ("p95 ms", spread("p95_ms")), ("CPU ms/op", of("cpu_ms")),
        ("× connect", lambda group: beside(rows, group, "cpu_ms")),
    ])  # fmt: skip
    plain = geometric_mean(beside(rows, group, "per_second", "connect_uncompressed") for group in groups if group[0]["way"] == OURS)
    return f"{shown}\n{prose('clients', plain=figure(plain))}{goals_of_clients(rows)}"


def deviation(rows: Rows, key: str) -> float:
    return statistics.stdev(rows.values(key)) if len(rows) > 1 else 0.0


def beside(rows: Rows, group: Rows, key: str, peer: str = PEER) -> float:
    return (group.median(key) or 0) / (rows.where(scenario=group[0]["scenario"], way=peer).median(key) or 1)


def goals_of_clients(rows: Rows) -> Goals:
    ours = {title: group for (title,), group in rows.where(way=OURS).groups("scenario")}
    ratios = lambda key: {title: beside(rows, group, key) for title, group in ours.items()}
    speed, cpu, p95 = ratios("per_second"), ratios("cpu_ms"), ratios("p95_ms")
    peers = {title: rows.where(scenario=title, way=PEER) for title in ours}
    widest = {title: deviation(ours[title], "p95_ms") / max(deviation(peers[title], "p95_ms"), 1e-9) for title in ours}
    goals = Goals()
    goals.at_least("op/s, geometric mean, × connect", 1.5, geometric_mean(speed.values()))
    least = min(speed, key=lambda title: speed[title])
    goals.at_least(f"op/s in every scenario, × connect ({least})", 1, speed[least])
    for what, goal, found in (
        ("CPU per operation in every scenario", 0.5, cpu), ("p95 in every scenario", 1, p95),
        ("deviation of p95 between rounds", 1, widest),
    ):  # fmt: skip
        most = max(found, key=lambda title: found[title])
        goals.at_most(f"{what}, × connect ({most})", goal, found[most])
    return goals


WORK = {
    "whole": ("1,000,000 rows", ("query", "query_np", "query_df", "query_arrow", "query_df_arrow")),
    "first": ("first block of them", ("query_row_block_stream", "query_column_block_stream", "query_df_stream")),
    "stream": ("1 GB streamed", ("query_row_block_stream", "query_df_stream", "query_arrow_stream")),
}


@part("results", "Python clients: large results", quick={"rounds": 1}, rounds=Option(3))
def results(stack: Stack, options: Namespace) -> str:
    """Python clients with a million rows."""
    chance, rows = random.Random(SEED), Rows()
    work = [(kind, method) for kind, (_, methods) in WORK.items() for method in methods]
    for _ in range(options.rounds):
        for kind, method in chance.sample(work, len(work)):
            for way in chance.sample([OURS, PEER], 2):
                program = child(way, stack.clickhouse)
                for _ in range(1 if kind == "stream" else 3):
                    answer = program.ask({"kind": kind, "method": method})
                    rows.append({"kind": kind, "work": WORK[kind][0], "method": f"`{method}`", "way": way, **answer})
                program.end()
    runs = lambda kind, method, way: rows.where(kind=kind, method=f"`{method}`", way=way)
    seconds = lambda kind, method, way: runs(kind, method, way).median("seconds") or 1.0
    limit = statistics.median(read_all(stack.clickhouse, f"{MILLION} FORMAT Native")[1] for _ in range(options.rounds))
    faster = lambda group: seconds(group[0]["kind"], group[0]["method"].strip("`"), PEER) / group.median("seconds")
    scaled = lambda key, scale: lambda group: scale * group.median(key)
    shown = columns([runs(kind, method, way) for kind, method in work for way in (OURS, PEER)], [
        ("work", of("work")), ("method", of("method")), ("client", of("way")), ("ms", scaled("seconds", 1000)),
        ("× as fast as connect", faster), ("CPU ms", scaled("cpu", 1000)),
        ("longest delay of a task, ms", lambda group: 1000 * group.most("delay")),
        ("memory over the start, MB", lambda group: group.most("memory") / 1e6),
    ])  # fmt: skip
    goals, first = Goals(), seconds("first", "query_row_block_stream", OURS)
    for what, method, goal in (("pandas", "query_df", 3), ("Arrow", "query_arrow", 3), ("Python rows", "query", 1.5)):
        goals.at_least(f"to {what}, × connect", goal, seconds("whole", method, PEER) / seconds("whole", method, OURS))
    goals.at_most("first block of rows, × connect", 0.1, first / seconds("first", "query_row_block_stream", PEER))
    goals.at_most("first block of rows, of the whole", 0.1, first / seconds("whole", "query", OURS))
    goals.at_most("memory while 1 GB streams, MB", 64, (rows.where(kind="stream", way=OURS).most("memory") or 0) / 1e6)
    goals.at_most("longest delay of another task, ms", 5, 1000 * (rows.where(way=OURS).most("delay") or 0))
    return f"{shown}\n{prose('results', limit=figure(limit * 1000))}{goals}"
