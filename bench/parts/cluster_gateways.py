"""Four gateways before one ClickHouse, beside one: the parts that they make, and the CPU that they take, at the same load.

The load has a pace and is spread evenly: each gateway has a load generator of its own with its share of the connections. All inserts wait
to be stored and are without tokens, so they stay where they come. What a hop costs is another question: `bench/gateways.py`.
"""

import sys
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from harness.engine import Engine
from harness.eventually import eventually
from harness.several_gateways import member, names

from bench.base.check import RowsIn, check
from bench.base.document import prose
from bench.base.figures import Goals, Rows, columns, of
from bench.base.processes import usage
from bench.base.scenario import MODES, OneTable, Scenario, generate, head, parts_created, refuse_losses

COUNTS, INTERVAL_SECONDS = (1, 4), 0.25
TABLE = OneTable()


def gateways(folder: Path, options: Namespace, goals: Goals) -> str:
    rows, engine = Rows(), Engine(folder / "engine")
    try:
        engine.direct.sql("CREATE DATABASE bench")
        for number in range(options.rounds):
            for count in COUNTS:
                rows.append(run(folder / f"{count}-{number}", engine, count, options))
                print(f"gateways: {rows[-1]}", file=sys.stderr)
    finally:
        engine.stop()
    groups = [rows.where(gateways=count) for count in COUNTS]
    shown = columns(groups, [
        ("gateways", lambda group: str(group[0]["gateways"])), ("inserts/s", of("per_second")), ("inserts per part", of("per_part")),
        ("gateways' CPU, us per insert", of("gateway_us")), ("ClickHouse's CPU, us per insert", of("clickhouse_us")),
        ("longest p50 of a gateway, ms", of("p50_ms")), ("longest p99, ms", of("p99_ms")),
    ])  # fmt: skip
    one, four = groups
    goals.at_most("four gateways to one: their CPU per insert", 1.15, four.ratio(one, "gateway_us"))
    goals.at_most("four gateways to one: parts at the same load", 2, one.ratio(four, "per_part"))
    return prose("cluster gateways", per_second=f"{options.connections / INTERVAL_SECONDS:g}", connections=options.connections) + shown


def run(folder: Path, engine: Engine, count: int, options: Namespace) -> dict[str, Any]:
    TABLE.prepare(engine.direct)
    addresses = names(count)
    running = [member(folder / str(number), addresses, own, engine.direct) for number, own in enumerate(addresses)]
    for gateway in running:
        eventually(lambda gateway=gateway: all(other["up"] for other in gateway.shown()["gateways"]), "they see each other")
    share = options.connections // count
    scenario = Scenario("stored", share, options.seconds, load={"interval_seconds": INTERVAL_SECONDS})
    cpu = lambda: (sum(usage(gateway.child.pid).cpu_seconds for gateway in running), usage(engine.child.pid).cpu_seconds)

    def send(number: int) -> dict[str, Any]:
        server = running[number].http
        heads = [head(server, scenario.query(TABLE.name))]
        return generate(f"{server.host}:{server.port}", heads, scenario, {"first_conn": number * share})

    before = cpu()
    with ThreadPoolExecutor(count) as threads:
        loads = list(threads.map(send, range(count)))
    by_gateways, by_clickhouse = (after - earlier for earlier, after in zip(before, cpu()))
    for number, load in enumerate(loads):
        stored = check(engine.direct, RowsIn(TABLE.name, range(number * share, (number + 1) * share)), load["ids"])
        refuse_losses(MODES["stored"].title, load, stored)
        if load["first_error"]:
            raise SystemExit(f"{count} gateways: inserts failed, first: {load['first_error']}")
    for gateway in running:
        gateway.stop()
    inserts, parts = sum(of.acknowledged for load in loads for of in load["ids"]), parts_created(engine.direct, TABLE.name)
    TABLE.drop(engine.direct)
    gateway_us, clickhouse_us = by_gateways * 1e6 / inserts, by_clickhouse * 1e6 / inserts
    return {
        "gateways": count, "per_second": sum(load["in_window"] / load["window_seconds"] for load in loads), "per_part": inserts / parts,
        "gateway_us": gateway_us, "clickhouse_us": clickhouse_us,
        **{key: max(load[key] for load in loads) for key in ("p50_ms", "p99_ms")},
    }  # fmt: skip
