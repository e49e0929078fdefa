"""One shard of two replicas, of which the first, that gets everything, is killed in the middle of a load at ack level `disk`.

The load has a pace, which leaves the machine some air: how long an insert waits is asked, not how many there can be. The generator counts
latencies after its warm-up alone, so three runs answer: nobody dies; the replica dies when the warm-up ends, or a second before that. Then
it is started again, and both replicas have to have each acknowledged row once.
"""

import itertools
import sys
import threading
from argparse import Namespace
from pathlib import Path
from typing import Any

from harness.eventually import eventually
from harness.replicas import ReplicatedCluster

from bench.base.check import DECLARED, RowsIn, check
from bench.base.document import prose
from bench.base.figures import Goals, Rows, columns, count, figure, of
from bench.base.scenario import MODES, Scenario, generate, head, refuse_losses
from bench.parts.cluster_servers import flush, gateway_before, servers

TABLE = "bench.inserts"
MADE = f"CREATE TABLE {TABLE} ({DECLARED}) ENGINE = ReplicatedMergeTree('/bench/inserts', '{{replica}}') ORDER BY (conn, seq)"
INTERVAL_SECONDS = 0.1
WARMUP_SECONDS = 3.0
# So long the generator needs at most until its clock starts. The kill is late by it, and what is counted "after the first second" begins
# rather too early than too late.
STARTS_WITHIN_SECONDS = 0.2
# What is counted, and how long before that the replica is killed.
RUNS = {"both are there": None, "from the kill on": 0.0, "after its first second": 1.0}
NUMBERS = itertools.count()
LAST = "after its first second"


def dead_replica(folder: Path, options: Namespace, goals: Goals) -> str:
    rows = Rows()
    with servers(folder, shards=1, replicas=2) as cluster, gateway_before(cluster, folder / "gateway", options) as gateway:
        for _ in range(options.rounds):
            for name, before_window in RUNS.items():
                rows.append(run(cluster, gateway, name, before_window, options))
                shown = {key: figure(rows[-1][key]) for key in ("p50_ms", "p99_ms", "max_ms", "errors", "missed")}
                print(f"{name}: {shown}", file=sys.stderr)
    shown = columns([rows.where(counted=name) for name in RUNS], [
        ("counted", of("counted")), ("inserts", of("inserts")), ("p50 ms", of("p50_ms")), ("p99 ms", of("p99_ms")),
        ("longest, ms", lambda group: group.most("max_ms")), ("errors", lambda group: count(sum(group.values("errors")))),
    ])  # fmt: skip
    goals.at_most("disk, a replica is killed: longest insert after its first second, ms", 200, rows.where(counted=LAST).most("max_ms"))
    goals.at_most("disk, a replica is killed: inserts that fail", 0, sum(rows.values("errors")))
    return prose("cluster dead replica", connections=options.connections, per_second=f"{1 / INTERVAL_SECONDS:g}") + shown


def run(cluster: ReplicatedCluster, gateway: Any, name: str, before_window: float | None, options: Namespace) -> dict[str, Any]:
    cluster.everywhere(f"DROP TABLE IF EXISTS {TABLE} SYNC")
    cluster.everywhere(MADE)
    scenario = Scenario("disk", options.connections, options.seconds, WARMUP_SECONDS, load={"interval_seconds": INTERVAL_SECONDS})
    server, first = gateway.http, cluster.all[0]
    if before_window is not None:
        killing = threading.Timer(WARMUP_SECONDS - before_window + STARTS_WITHIN_SECONDS, first.kill)
        killing.start()
    # Other inserts than in other runs: they would be repeats.
    first_conn = next(NUMBERS) * options.connections
    load = generate(f"{server.host}:{server.port}", [head(server, scenario.query(TABLE))], scenario, {"first_conn": first_conn})
    if before_window is not None:
        killing.join()
    flush(gateway)
    if not first.child.running():
        first.start()
    for replica in cluster.all:
        read_only = "SELECT max(is_readonly) FROM system.replicas WHERE database = 'bench'"
        eventually(lambda: replica.direct.sql(read_only) == "0", "the replica is whole again")
    cluster.sync(TABLE)
    for replica in cluster.all:
        stored = check(replica.direct, RowsIn(TABLE, range(first_conn, first_conn + options.connections)), load["ids"])
        refuse_losses(MODES["disk"].title, load, stored)
    errors = sum(len(of.unacknowledged) for of in load["ids"])
    if errors:
        print(f"{name}: {errors} inserts failed, first: {load['first_error']}", file=sys.stderr)
    latencies = {key: load[key] for key in ("p50_ms", "p99_ms", "max_ms")}
    return {"counted": name, "inserts": load["in_window"], "errors": errors, "missed": load["missed_intervals"], **latencies}
