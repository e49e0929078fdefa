"""What ClickHouse's servers have to do for a row of a Distributed table: all of them together, two shards of one replica each.

Many small inserts come to two gateways by turns: one cuts their rows by the sharding key and stores them straight in the shards, the other
one leaves that to the Distributed table. Afterwards the rows that the first one stored are inserted without any gateway: in the order in
which they came, in FORMAT Native as gateways flush them, in batches so large that each shard gets as many parts as it got from the first
gateway; through the Distributed table, which has to store them before it answers (`distributed_foreground_insert`), and, as the limit, cut
beforehand and straight into the shards.

The tables are made anew for every run. Merges are stopped: each way's would fall on whichever comes next. So parts can be counted as they
are, after every run, and all rows are looked for: each once, as it was sent, on the shard that its key says. A second replica of each shard
would fetch the same parts, whoever stored them.
"""

import itertools
import sys
from argparse import Namespace
from pathlib import Path
from time import monotonic, sleep
from typing import Any

from harness.endpoint import Endpoint
from harness.metrics import metrics_of
from harness.quick_http import QuickConnection
from harness.remote import RemoteGateway
from harness.replicas import CLUSTER, ReplicatedCluster

from bench.base.document import prose
from bench.base.figures import Goals, Rows, columns, figure, of
from bench.base.processes import usage
from bench.base.scenario import Scenario, generate, head
from bench.parts.cluster_servers import BY_SHARDS, cpu_seconds, gateway_before, servers

EVENTS, LOCAL, COPY = "bench.events", "bench.local", "bench.copy"
KEY = "cityHash64(user_id)"
# Which insert a row is of, and which of its rows; the rest as of a website.
DECLARED = (
    "user_id UInt64, conn UInt32, seq UInt64, n UInt16, time DateTime, event LowCardinality(String), url String, duration_us UInt32"
)
NAMES = ", ".join(column.split()[0] for column in DECLARED.split(", "))
EVENT_NAMES = ("view", "click", "search", "purchase", "login")
FIRST_TIME = 1_700_000_000
# As `piece_of_row` makes it of the insert's number.
IS_AS_SENT = (
    "user_id = toUInt64(concat(toString(100 + n), toString(duration_us))) AND duration_us = (conn * 7919 + seq * 104729) % 1000000 "
    f"AND event = {list(EVENT_NAMES)}[n % 5 + 1] AND url = concat('/articles/', toString(duration_us), '?from=', toString(n)) "
    f"AND time = toDateTime({FIRST_TIME} + n)"
)
# Parts stay, and nobody is held up for their number.
SORTED = "ORDER BY (user_id, time) SETTINGS parts_to_delay_insert = 1000000, parts_to_throw_insert = 1000000"
NULL = "Null"
ENGINES = {
    "ReplicatedMergeTree": f"ReplicatedMergeTree('/bench/local/{{shard}}', '{{replica}}') {SORTED}",
    "MergeTree": f"MergeTree {SORTED}",
    NULL: NULL,
}
STORED = ("async_insert=1", "wait_for_async_insert=1", "distributed_foreground_insert=1")
DIRECT = {"async_insert": 0, "distributed_foreground_insert": 1}
# No run's inserts are another one's: in a replicated table they would be repeats, which gateways know again, whatever became of the table.
RUNS = itertools.count()
WARMUP_SECONDS, RESTS_FOR_SECONDS = 0.5, 2.0

LIMIT, DISTRIBUTED = "limit: cut beforehand, straight into the shards", "direct: through the Distributed table"
THROUGH, CUT = "gateway, through the Distributed table", "gateway, `backend.cluster`"


def shards(folder: Path, options: Namespace, goals: Goals) -> str:
    rows = Rows()
    with servers(folder, shards=2, replicas=1) as cluster:
        with (
            gateway_before(cluster, folder / "cutting", options, BY_SHARDS) as cutting,
            gateway_before(cluster, folder / "plain", options) as plain,
        ):
            # The first round is for caches, allocators and what is compiled.
            for number in range(options.rounds + 1):
                for engine in options.engines:
                    of_round = around(cluster, engine, {CUT: cutting, THROUGH: plain}, options)
                    rows += of_round if number else []
            at_rest = rest(cluster)
    return report(rows, at_rest, options, goals)


def around(cluster: ReplicatedCluster, engine: str, gateways: dict[str, RemoteGateway], options: Namespace) -> Rows:
    """Every way once."""
    rows, batch_rows = Rows(), 0
    for way in (CUT, THROUGH, DISTRIBUTED, LIMIT):
        make(cluster, engine)
        gateway = gateways.get(way)
        found = small_inserts(cluster, way, gateway, options) if gateway else large_inserts(cluster, way, batch_rows)
        if engine != NULL:
            # All parts, whoever made them, and so all rows, those of the warm-up as well.
            found["part_rows"] = found["stored"] / parts(cluster, way, found["stored"])
        if way == CUT:
            batch_rows = round(found["batch_rows"])
        if way == CUT and engine != NULL:
            copy(cluster)
        rows.append({"engine": engine, "way": way, **found})
        shown = [f"{key} {figure(found.get(key))}" for key in ("clickhouse_us", "gateway_us", "batch_rows", "part_rows")]
        print(f"{engine}: {way}: {', '.join(shown)}", file=sys.stderr)
    return rows


def make(cluster: ReplicatedCluster, engine: str) -> None:
    for server in cluster.all:
        for table in (EVENTS, LOCAL):
            server.direct.sql(f"DROP TABLE IF EXISTS {table} SYNC")
        server.direct.sql(f"CREATE TABLE {LOCAL} ({DECLARED}) ENGINE = {ENGINES[engine]}")
        if engine != NULL:
            server.direct.sql(f"SYSTEM STOP MERGES {LOCAL}")
        server.direct.sql(f"CREATE TABLE {EVENTS} ({DECLARED}) ENGINE = Distributed('{CLUSTER}', 'bench', 'local', {KEY})")


def piece_of_row(n: int) -> list[list[int] | str]:
    """For the load generator: bytes, and what differs from insert to insert."""
    text = lambda text: list(text.encode())
    return [
        text(f'{{"user_id":{100 + n}'), "value", text(',"conn":'), "conn", text(',"seq":'), "seq",
        text(f',"n":{n},"time":{FIRST_TIME + n},"event":"{EVENT_NAMES[n % 5]}","url":"/articles/'), "value",
        text(f'?from={n}","duration_us":'), "value", text("}\n"),
    ]  # fmt: skip


def small_inserts(cluster: ReplicatedCluster, way: str, gateway: RemoteGateway, options: Namespace) -> dict[str, Any]:
    # What the gateway asks about a new table is not counted.
    warm = send(gateway, options, WARMUP_SECONDS)
    refuse_errors(way, warm)
    batches = lambda: metrics_of(gateway).sum("windrow_flushes_total")
    batches_before, before, gateway_before = batches(), cpu_seconds(cluster), usage(gateway.child.pid)
    load = send(gateway, options, options.seconds)
    used, by_gateway = cpu_seconds(cluster) - before, usage(gateway.child.pid).cpu_seconds - gateway_before.cpu_seconds
    refuse_errors(way, load)
    # A batch that was cut is one shard's.
    batches_of_shard = (batches() - batches_before) / (len(cluster.servers) if way == CUT else 1)
    rows, seconds = rows_of(load, options), load["window_seconds"]
    return {
        "rows": rows, "stored": rows + rows_of(warm, options), "clickhouse_us": used * 1e6 / rows,
        "gateway_us": by_gateway * 1e6 / rows, "per_second": options.rows * load["in_window"] / seconds,
        "batch_rows": rows / batches_of_shard,
    }  # fmt: skip


def send(gateway: RemoteGateway, options: Namespace, seconds: float) -> dict[str, Any]:
    scenario = Scenario("stored", options.connections, seconds, warmup_seconds=0, only_settings=STORED)
    row = [piece for n in range(options.rows) for piece in piece_of_row(n)]
    server, more = gateway.http, {"row": row, "first_conn": next(RUNS) * options.connections}
    return generate(f"{server.host}:{server.port}", [head(server, scenario.query(EVENTS))], scenario, more)


def refuse_errors(way: str, load: dict[str, Any]) -> None:
    if load["first_error"]:
        raise SystemExit(f"{way}: inserts failed, first: {load['first_error']}")


def rows_of(load: dict[str, Any], options: Namespace) -> int:
    return options.rows * sum(of.acknowledged for of in load["ids"])


def parts(cluster: ReplicatedCluster, way: str, stored: int) -> int:
    """After all rows were looked for."""
    figures = f"count(), uniqExact(conn, seq, n), countIf({IS_AS_SENT}), countIf({KEY} % {len(cluster.servers)} = _shard_num - 1)"
    found = cluster.all[0].direct.sql(f"SELECT {figures} FROM {EVENTS} FORMAT TSV")
    if set(map(int, found.split())) != {stored}:
        raise SystemExit(f"{way}: of {stored} rows there are, all, different, as sent, where they belong: {found}")
    counted = "SELECT count() FROM system.parts WHERE active AND database = 'bench' AND table = 'local'"
    return sum(int(server.direct.sql(counted)) for server in cluster.all)


def copy(cluster: ReplicatedCluster) -> None:
    """Of what is stored, in the order in which it came."""
    sql = cluster.all[0].direct.sql
    sql(f"DROP TABLE IF EXISTS {COPY} SYNC")
    numbered = f"SELECT row_number() OVER (ORDER BY seq, conn, n) - 1 AS number, {NAMES} FROM {EVENTS}"
    sql(f"CREATE TABLE {COPY} ENGINE = MergeTree ORDER BY number AS {numbered}")


def large_inserts(cluster: ReplicatedCluster, way: str, batch_rows: int) -> dict[str, Any]:
    """Batches of `batch_rows`, of which a shard gets its part."""
    first = cluster.all[0].direct
    rows, used = int(first.sql(f"SELECT count() FROM {COPY}")), 0.0
    table, connections = EVENTS if way == DISTRIBUTED else LOCAL, [QuickConnection(server.direct) for server in cluster.all]
    for number, begin in enumerate(range(0, rows, batch_rows)):
        condition = f"number >= {begin} AND number < {begin + batch_rows}"
        if way == DISTRIBUTED:
            work = [(connections[0], batch_of(first, condition, batch_rows))]
        else:
            of_shards = [f"{condition} AND {KEY} % {len(connections)} = {shard}" for shard in range(len(connections))]
            work = [(connection, batch_of(first, of_shard, batch_rows)) for connection, of_shard in zip(connections, of_shards)]
        # A token like a gateway's.
        settings = DIRECT | {"insert_deduplication_token": f"{way} {number}"}
        before = cpu_seconds(cluster)
        for connection, body in work:
            reply = connection.post(first.target(f"INSERT INTO {table} ({NAMES}) FORMAT Native", settings), body)
            if reply.status != 200:
                raise SystemExit(f"{way}: {reply.text}")
        used += cpu_seconds(cluster) - before
    for connection in connections:
        connection.close()
    return {
        "rows": rows, "stored": rows, "clickhouse_us": used * 1e6 / rows, "gateway_us": None, "per_second": None,
        "batch_rows": batch_rows,
    }  # fmt: skip


def batch_of(server: Endpoint, condition: str, batch_rows: int) -> bytes:
    """One block, with plain values in columns of type LowCardinality, as gateways send them."""
    query = f"SELECT {NAMES} FROM {COPY} WHERE {condition} ORDER BY number FORMAT Native"
    settings = {"max_block_size": batch_rows, "max_threads": 1, "low_cardinality_allow_in_native_format": 0}
    reply = server.request(None, query.encode(), settings)
    if reply.status != 200:
        raise SystemExit(reply.text)
    return reply.body


def rest(cluster: ReplicatedCluster) -> float:
    """The share of a CPU that the servers take when nobody inserts; both gateways ask after them."""
    before, began = cpu_seconds(cluster), monotonic()
    sleep(RESTS_FOR_SECONDS)
    return (cpu_seconds(cluster) - before) / (monotonic() - began)


def report(rows: Rows, at_rest: float, options: Namespace, goals: Goals) -> str:
    ways = (LIMIT, DISTRIBUTED, THROUGH, CUT)
    groups = [rows.where(engine=engine, way=way) for engine in options.engines for way in ways]
    ratio = lambda engine, way, key="clickhouse_us", to=DISTRIBUTED: rows.where(engine=engine, way=way).ratio(
        rows.where(engine=engine, way=to), key
    )
    shown = columns(groups, [
        ("shards' tables", of("engine")), ("way", of("way")), ("ClickHouse's CPU, us per row", of("clickhouse_us")),
        ("× direct", lambda group: ratio(group[0]["engine"], group[0]["way"])),
        ("× limit", lambda group: ratio(group[0]["engine"], group[0]["way"], to=LIMIT)), ("gateway's CPU, us per row", of("gateway_us")),
        ("rows/s", of("per_second")), ("rows of a batch", of("batch_rows")), ("rows of a part", of("part_rows")),
    ])  # fmt: skip
    for engine in options.engines:
        goals.at_most(f"{engine}: ClickHouse's CPU per row with `backend.cluster` to direct", 0.6, ratio(engine, CUT))
        if engine != NULL:
            more_parts = ratio(engine, THROUGH, "part_rows", CUT)
            goals.at_most(f"{engine}: parts for as many rows with `backend.cluster` to without it", 1.1, more_parts)
    text = prose("cluster shards", connections=options.connections, rows=options.rows, rest=figure(100 * at_rest))
    return f"{text}{shown}"
