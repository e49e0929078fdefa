"""Four gateways before one ClickHouse, beside one: the parts that they make, and the CPU that they take, at the same load.

The load has a pace and is spread evenly: each gateway has a load generator of its own with its share of the connections. A connection
inserts less often than a gateway holds at most: who waits for one insert before the next is due can't be held for longer than that, at any
number of gateways, and the pace would not be the same. Inserts are without tokens, so they stay where they come. What a hop costs is
another question: `bench/gateways.py`.
"""

import sys
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import product
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

LEVELS, INTERVAL_SECONDS = ("stored", "disk"), 1.0
# How many gateways, and how many times the connections: one gateway with a quarter of them, one with all, and four.
CASES = ((1, 1), (1, 4), (4, 4))
TABLE = OneTable()


def gateways(folder: Path, options: Namespace, goals: Goals) -> str:
    rows, engine = Rows(), Engine(folder / "engine")
    try:
        engine.direct.sql("CREATE DATABASE bench")
        for number, level, (count, quarters) in product(range(options.rounds), LEVELS, CASES):
            rows.append(run(folder / f"{level}-{count}-{quarters}-{number}", engine, Load(level, count, quarters * options.connections), options.seconds))
            print(f"gateways: {rows[-1]}", file=sys.stderr)
    finally:
        engine.stop()
    groups = [group for _, group in rows.groups("level", "gateways", "connections")]
    shown = columns(groups, [
        ("ack level", lambda group: group[0]["level"]), ("gateways", lambda group: str(group[0]["gateways"])),
        ("inserts/s", of("per_second")), ("inserts per part", of("per_part")),
        ("gateways' CPU, us per insert", of("gateway_us")), ("ClickHouse's CPU, us per insert", of("clickhouse_us")),
        ("longest p50 of a gateway, ms", of("p50_ms")), ("longest p99, ms", of("p99_ms")),
    ])  # fmt: skip
    for at, level in enumerate(LEVELS):
        quarter, one, four = groups[at * len(CASES) :][: len(CASES)]
        goals.at_most(f"four gateways to one, `{level}`: parts at the same load", 2, one.ratio(four, "per_part"))
        goals.at_most(f"four gateways to one, `{level}`: their CPU per insert, each with as many inserts", 1.15, four.ratio(quarter, "gateway_us"))
        goals.at_most(f"four gateways to one, `{level}`: their CPU per insert at the same load", 1.15, four.ratio(one, "gateway_us"))
    return prose("cluster gateways", connections=options.connections, seconds=f"{INTERVAL_SECONDS:g}") + shown


@dataclass(frozen=True)
class Load:
    level: str
    gateways: int
    connections: int


def run(folder: Path, engine: Engine, case: Load, seconds: float) -> dict[str, Any]:
    TABLE.prepare(engine.direct)
    addresses = names(case.gateways)
    running = [member(folder / str(number), addresses, own, engine.direct) for number, own in enumerate(addresses)]
    for gateway in running:
        eventually(lambda gateway=gateway: all(other["up"] for other in gateway.shown()["gateways"]), "they see each other")
    share = case.connections // case.gateways
    scenario = Scenario(case.level, share, seconds, load={"interval_seconds": INTERVAL_SECONDS})
    cpu = lambda: (sum(usage(gateway.child.pid).cpu_seconds for gateway in running), usage(engine.child.pid).cpu_seconds)

    def send(number: int) -> dict[str, Any]:
        server = running[number].http
        heads = [head(server, scenario.query(TABLE.name))]
        return generate(f"{server.host}:{server.port}", heads, scenario, {"first_conn": number * share})

    before = cpu()
    with ThreadPoolExecutor(case.gateways) as threads:
        loads = list(threads.map(send, range(case.gateways)))
    by_gateways, by_clickhouse = (after - earlier for earlier, after in zip(before, cpu()))
    # They store what they have before they end.
    for gateway in running:
        gateway.stop()
    for number, load in enumerate(loads):
        stored = check(engine.direct, RowsIn(TABLE.name, range(number * share, (number + 1) * share)), load["ids"])
        refuse_losses(MODES[case.level].title, load, stored)
        if load["first_error"]:
            raise SystemExit(f"{case.gateways} gateways: inserts failed, first: {load['first_error']}")
    inserts, parts = sum(of.acknowledged for load in loads for of in load["ids"]), parts_created(engine.direct, TABLE.name)
    TABLE.drop(engine.direct)
    return {
        **asdict(case), "per_second": sum(load["in_window"] / load["window_seconds"] for load in loads), "per_part": inserts / parts,
        "gateway_us": by_gateways * 1e6 / inserts, "clickhouse_us": by_clickhouse * 1e6 / inserts,
        **{key: max(load[key] for load in loads) for key in ("p50_ms", "p99_ms")},
    }  # fmt: skip
