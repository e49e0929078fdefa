"""What several gateways cost: parts and waiting times of one gateway and of four at the same load, and the CPU of a hop.

    PYTHONPATH=tests .venv/bin/python bench/gateways.py

The simulation of the flush policy has the parts at every rate, and asserts them (`core/engine/tests/engine/policy/several_gateways.rs`);
this is the whole system at one rate, which a busy machine can upset.
"""

from __future__ import annotations

import http.client
import itertools
import os
import random
import sys
import tempfile
import threading
import time
from pathlib import Path

from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.eventually import eventually
from harness.inserts import INTO_T, ids, parts_made, rows
from harness.metrics import metrics_of
from harness.several_gateways import MemberGateway, member, names

RATE, SECONDS, WRITERS = 200, 20, 16
HOPS = 4_000
WINDOW = "SETTINGS non_replicated_deduplication_window = 1000000"


def cpu_seconds(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Connection:
    """One that is kept."""

    def __init__(self, endpoint: Endpoint):
        self.endpoint, self.connection = endpoint, http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=120)

    def insert(self, number: int, **settings: object) -> None:
        target = self.endpoint.target(INTO_T, settings)
        self.connection.request("POST", target, rows(number).encode(), self.endpoint.with_auth())
        answer = self.connection.getresponse()
        text = answer.read()
        assert answer.status == 200, text


def fresh_table(engine: Engine, settings: str = "") -> Endpoint:
    engine.direct.sql("DROP TABLE IF EXISTS t SYNC")
    engine.direct.sql(f"CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a {settings}")
    return engine.direct


def started(folder: Path, engine: Engine, count: int, more: str = "") -> list[MemberGateway]:
    gateways = names(count)
    running = [member(folder / f"{time.monotonic_ns()}", gateways, own, engine.direct, more=more) for own in gateways]
    for gateway in running:
        eventually(lambda gateway=gateway: all(other["up"] for other in gateway.shown()["gateways"]), "they see each other")
    return running


def steady(endpoints: list[Endpoint]) -> list[float]:
    """Inserts at random moments, whoever has answered or not; how long each waited, in ms."""
    rng, waits, threads = random.Random(7), [], []
    begin = at = time.monotonic()

    def one(number: int, endpoint: Endpoint) -> None:
        sent = time.monotonic()
        Connection(endpoint).insert(number, async_insert=1)
        waits.append((time.monotonic() - sent) * 1000)

    for number in itertools.count():
        at += rng.expovariate(RATE)
        if at > begin + SECONDS:
            break
        time.sleep(max(at - time.monotonic(), 0))
        threads.append(threading.Thread(target=one, args=(number, rng.choice(endpoints))))
        threads[-1].start()
    for thread in threads:
        thread.join()
    return sorted(waits)


def parts_of(folder: Path, engine: Engine, count: int, more: str, name: str) -> None:
    gateways = started(folder, engine, count, more)
    direct = fresh_table(engine)
    waits = steady([gateway.http for gateway in gateways])
    parts = parts_made(direct)
    print(f"| {name} | {len(waits) / SECONDS:.0f} | {parts / SECONDS:.1f} | {len(waits) / parts:.1f} "
          f"| {waits[len(waits) // 2]:.0f} | {waits[len(waits) * 99 // 100]:.0f} |", flush=True)  # fmt: skip
    for gateway in gateways:
        gateway.stop()


def closed(endpoint: Endpoint, **settings: object) -> float:
    """Inserts with tokens, by writers that wait; how long all took."""
    numbers, lock = iter(range(HOPS)), threading.Lock()

    def write() -> None:
        connection = Connection(endpoint)
        while True:
            with lock:
                number = next(numbers, None)
            if number is None:
                return
            connection.insert(number, insert_deduplication_token=f"token {number}", **settings)

    began, threads = time.monotonic(), [threading.Thread(target=write) for _ in range(WRITERS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.monotonic() - began


def hops_of(folder: Path, engine: Engine, count: int, name: str) -> None:
    gateways = started(folder, engine, count) if count else []
    direct = fresh_table(engine, WINDOW)
    pids = [gateway.child.pid for gateway in gateways]
    before, engine_before = [cpu_seconds(pid) for pid in pids], cpu_seconds(engine.child.pid)
    seconds = closed(gateways[0].http, async_insert=1) if gateways else closed(direct, async_insert=0)
    used = sum(cpu_seconds(pid) for pid in pids) - sum(before)
    engine_used, parts = cpu_seconds(engine.child.pid) - engine_before, parts_made(direct)
    assert len(ids(direct)) == HOPS
    hops = sum(metrics_of(gateway).sum("windrow_cluster_hops_total") for gateway in gateways)
    print(f"| {name} | {HOPS / seconds:.0f} | {hops / HOPS:.2f} | {used / HOPS * 1e6:.0f} | {engine_used / HOPS * 1e6:.0f} "
          f"| {parts} | {parts / seconds:.0f} |", flush=True)  # fmt: skip
    for gateway in gateways:
        gateway.stop()


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        engine = Engine(folder / "engine")
        try:
            print(f"{RATE} inserts/s for {SECONDS} s, each waited for, at a random gateway\n")
            print("| gateways | inserts/s | parts/s | inserts/part | p50 ms | p99 ms |\n|---|---|---|---|---|---|")
            parts_of(folder, engine, 1, "", "one")
            parts_of(folder, engine, 4, "stretch_holds = false\n", "four, not stretched")
            parts_of(folder, engine, 4, "", "four")
            print(f"\n{HOPS} inserts with tokens, {WRITERS} writers that wait\n")
            print("| way | inserts/s | hops per insert | gateways' CPU, µs per insert | ClickHouse's CPU, µs per insert | parts | parts/s |")
            print("|---|---|---|---|---|---|---|")
            hops_of(folder, engine, 1, "one gateway")
            hops_of(folder, engine, 2, "one of two gateways")
            hops_of(folder, engine, 4, "one of four gateways")
            hops_of(folder, engine, 0, "each its own block, ClickHouse's window")
        finally:
            engine.stop()


if __name__ == "__main__":
    sys.exit(main())
