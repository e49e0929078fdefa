"""Large inserts: 100,000 rows of JSONEachRow in one request, straight and through the gateway. The gateway parses them and sends
blocks, so ClickHouse should have less to do, and the whole should not be slower."""

import json
import time
from argparse import Namespace

from bench.base.document import prose
from bench.base.figures import Goals, Rows, columns, figure, of
from bench.base.part import Option, part
from bench.base.scenario import OneTable
from bench.base.stack import Stack

TABLE = OneTable("bench.bulk")
WAYS = {
    "direct": {"async_insert": 0},
    "through the gateway": {"async_insert": 1, "wait_for_async_insert": 1},
}


def body_of(rows: int) -> bytes:
    """As the load generator writes them, of one connection."""
    kept = {"time": 1_700_000_000, "site": "example.com", "city": "Oslo"}
    row = lambda seq: {"conn": 0, "seq": seq, **kept, "latency_us": seq * 104_729 % 1_000_000}
    return "".join(json.dumps(row(seq), separators=(",", ":")) + "\n" for seq in range(rows)).encode()


@part(
    "bulk", "Large inserts", quick={"rounds": 3}, rows=Option(100_000), rounds=Option(6, "of each way, alternately"),
    inserts=Option(10, "per round, one after the other: enough for the first, which has to be admitted, not to count"),
)  # fmt: skip
def bulk(stack: Stack, options: Namespace) -> str:
    """Inserts of 100,000 rows."""
    body, rows = body_of(options.rows), Rows()
    for number in range(options.rounds + 1):
        for way in WAYS:
            row = insert(stack, way, body, options)
            # One of each does not count: code paths and caches are warm for both.
            rows += [row] if number else []
    direct, through = (rows.where(way=way) for way in WAYS)
    # The kernel counts CPU in steps of 10 ms: their mean is good where a single round's figure is not.
    shown = columns([direct, through], [
        ("way", of("way")),
        ("rows/s", lambda group: options.rows * 1000 / group.median("ms")),
        ("ms per insert", of("ms")),
        ("CPU ms in ClickHouse", lambda group: group.mean("clickhouse_ms")),
        ("CPU ms in the gateway", lambda group: group.mean("gateway_ms")),
    ])  # fmt: skip
    goals = Goals()
    goals.at_least("rows/s through the gateway to direct", 1, direct.ratio(through, "ms"))
    cpu = (through.mean("clickhouse_ms") or 0) / (direct.mean("clickhouse_ms") or 1)
    goals.at_most("ClickHouse's CPU through the gateway to direct", 1, cpu)
    return f"{prose('bulk', rows=options.rows, megabytes=figure(len(body) / 1e6))}{shown}\n{goals}"


def insert(stack: Stack, way: str, body: bytes, options: Namespace) -> dict[str, object]:
    server = stack.clickhouse if way == "direct" else stack.gateway
    TABLE.prepare(stack.clickhouse)
    # Merges would fall on whichever way comes next.
    stack.clickhouse.sql(f"SYSTEM STOP MERGES {TABLE.name}")
    before, began = stack.snapshot(), time.perf_counter()
    for _ in range(options.inserts):
        reply = server.insert(f"INSERT INTO {TABLE.name} FORMAT JSONEachRow", body, **WAYS[way])
        if reply.status != 200:
            raise SystemExit(f"{way}: {reply.text}")
    seconds = time.perf_counter() - began
    cpu = stack.snapshot().cpu_since(before)
    stored, sent = int(stack.clickhouse.sql(f"SELECT count() FROM {TABLE.name}")), options.rows * options.inserts
    if stored != sent:
        raise SystemExit(f"{sent} rows were acknowledged, {stored} are there")
    TABLE.drop(stack.clickhouse)
    gateway_ms, clickhouse_ms = (seconds * 1000 / options.inserts for seconds in cpu)
    return {"way": way, "ms": seconds * 1000 / options.inserts, "gateway_ms": gateway_ms, "clickhouse_ms": clickhouse_ms}
