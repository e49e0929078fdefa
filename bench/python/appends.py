"""Appends into a DuckDB on the other side of a network: quack, adbc_ingest over Flight SQL, and ordered appends. Prints Markdown.

In each round every way appends once over each distance, in random order, into a table of its own that is emptied before. What was stored
is counted and its order looked at after every job, outside of the time that is measured.
"""

from __future__ import annotations

import argparse
import json
import random
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from append_servers import HERE, Empty, Gateway, Process, Quack, Relay, free_port
from measure import figure, goals, table, verdict

WAYS = {"quack": "quack 1.5.5", "flight": "adbc_ingest over Flight SQL", "windrow": "client.append"}
ROUND_TRIPS_MS = (0.0, 3.0, 18.0)
# Of quack's time: how many times ours has to go into it.
WANTED = {("one", 0.0): 15, ("one", 3.0): 30, ("one", 18.0): 40, ("twenty", 18.0): 10}


@dataclass(frozen=True)
class Scenario:
    name: str
    title: str
    rows: int
    times: int

    @property
    def total(self) -> int:
        return self.rows * self.times


SCENARIOS = (
    Scenario("one", "1,000,000 BIGINT in one append", 1_000_000, 1),
    Scenario("twenty", "20 appends of 50,000", 50_000, 20),
)
Times = dict[tuple[str, str, float], list[float]]


def distance(round_trip_ms: float) -> str:
    return "loopback" if round_trip_ms == 0 else f"{round_trip_ms:g} ms"


class Distances:
    """A server's addresses: its own, and one for each relay in front of it."""

    def __init__(self, address: str, stack: ExitStack) -> None:
        self.addresses = {0.0: address}
        for round_trip_ms in ROUND_TRIPS_MS[1:]:
            self.addresses[round_trip_ms] = stack.enter_context(Relay(address, round_trip_ms)).address


class Child(Process):
    def __init__(self, way: str, address: str) -> None:
        super().__init__([sys.executable, str(HERE / "append_child.py"), way, address])
        self.line()

    def run(self, scenario: Scenario, name: str, ordered: bool = True) -> float:
        job = {"rows": scenario.rows, "times": scenario.times, "table": name, "ordered": ordered}
        return float(self.ask(json.dumps(job)))


def check(server: Quack | Gateway, scenario: Scenario, name: str) -> None:
    """All rows, and in the order in which they were sent."""
    stored = int(server.sql(f"SELECT count(*) FROM {name}"))
    numbered = f"SELECT i, (row_number() OVER () - 1) % {scenario.rows} AS expected FROM {name}"
    displaced = int(server.sql(f"SELECT count(*) FROM ({numbered}) WHERE i != expected"))
    if (stored, displaced) != (scenario.total, 0):
        raise SystemExit(f"{name}: {stored} rows instead of {scenario.total}, {displaced} out of place")


def make_tables(servers: dict[str, Quack | Gateway]) -> None:
    """Before anybody attaches: a client of quack doesn't see tables that come later."""
    for way, server in servers.items():
        for scenario in SCENARIOS:
            server.sql(f"CREATE TABLE {way}_{scenario.name} (i BIGINT)")
    servers["windrow"].sql("CREATE TABLE o (i BIGINT)")


def limit_seconds(address: str, scenario: Scenario) -> float:
    """The same bytes as plain requests to a handler that only reads them: eight connections, opened before."""
    connections = 8 if scenario.times == 1 else 1
    body = bytes(scenario.rows * 8 // connections)
    head = f"POST / HTTP/1.1\r\nHost: bench\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    host, _, port = address.rpartition(":")
    sockets = [socket.create_connection((host, int(port))) for _ in range(connections)]

    def send(connection: socket.socket) -> None:
        for _ in range(scenario.times):
            connection.sendall(head + body)
            if not connection.recv(4096).startswith(b"HTTP/1.1 200"):
                raise SystemExit("the empty handler did not answer")

    begun = time.perf_counter()
    threads = [threading.Thread(target=send, args=(connection,)) for connection in sockets]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.perf_counter() - begun
    for connection in sockets:
        connection.close()
    return took


def measure_numbers(folder: Path, gateway: Gateway, rounds: int) -> Times:
    times: Times = defaultdict(list)
    with ExitStack() as stack:
        quack = stack.enter_context(Quack(folder))
        servers: dict[str, Quack | Gateway] = {"quack": quack, "flight": gateway, "windrow": gateway}
        reached = {
            "quack": Distances(quack.address, stack),
            "flight": Distances(gateway.flight, stack),
            "windrow": Distances(gateway.address, stack),
        }
        empty = Distances(stack.enter_context(Empty()).address, stack)
        make_tables(servers)
        children = {
            (way, ms): stack.enter_context(Child(way, address))
            for way, distances in reached.items()
            for ms, address in distances.addresses.items()
        }
        jobs = [(way, scenario, ms) for way in WAYS for scenario in SCENARIOS for ms in ROUND_TRIPS_MS]
        # The first round is for caches and allocators.
        for number in range(rounds + 1):
            random.shuffle(jobs)
            for way, scenario, ms in jobs:
                name = f"{way}_{scenario.name}"
                print(f"{way} {scenario.name} {distance(ms)}: ", end="", file=sys.stderr, flush=True)
                servers[way].sql(f"DELETE FROM {name}")
                took = children[way, ms].run(scenario, name)
                check(servers[way], scenario, name)
                print(f"{took:.3f} s", file=sys.stderr)
                if number > 0:
                    times[way, scenario.name, ms].append(took)
            for scenario in SCENARIOS:
                for ms, address in empty.addresses.items():
                    times["limit", scenario.name, ms].append(limit_seconds(address, scenario))
        scenario = SCENARIOS[0]
        for _ in range(2 * rounds):
            for ordered in (True, False):
                gateway.sql("DELETE FROM o")
                times["ordered" if ordered else "unordered", "one", 0.0].append(
                    children["windrow", 0.0].run(scenario, "o", ordered)
                )
    return times


def make_parquet(path: Path, rows: int) -> None:
    import duckdb

    columns = (
        "i AS id, TIMESTAMP '2026-01-01' + to_seconds(i) AS seen, 'user ' || (i % 100000) AS name, "
        "(hash(i) % 1000000) / 7 AS value, (i % 97)::INTEGER AS kind"
    )
    duckdb.execute(f"COPY (SELECT {columns} FROM range({rows}) t(i)) TO '{path}' (FORMAT parquet)")


MIXED = "(id BIGINT, seen TIMESTAMP, name VARCHAR, value DOUBLE, kind INTEGER)"


def local_insert(folder: Path, file: Path) -> float:
    """What DuckDB takes without any network, in a process of its own."""
    program = (
        "import duckdb, sys, time\n"
        f"c = duckdb.connect(sys.argv[1]); c.execute('SET enable_progress_bar = false; CREATE TABLE m {MIXED}')\n"
        "t = time.perf_counter(); c.execute(f\"INSERT INTO m SELECT * FROM '{sys.argv[2]}'\"); print(time.perf_counter() - t)"
    )
    target = folder / f"local{free_port()}.db"
    done = subprocess.run([sys.executable, "-c", program, target, file], capture_output=True, text=True, check=True)
    target.unlink()
    return float(done.stdout)


@dataclass
class Files:
    local: list[float]
    ours: list[float]
    unordered: list[float]
    peak_mb: float


def measure_files(folder: Path, gateway: Gateway, rounds: int, rows: int) -> Files:
    import os

    file = folder / "mixed.parquet"
    make_parquet(file, rows)
    files = Files([], [], [], 0.0)
    gateway.forget_peak()
    for _ in range(rounds):
        files.local.append(local_insert(folder, file))
        for ordered in (True, False):
            gateway.sql("DROP TABLE IF EXISTS mixed")
            gateway.sql(f"CREATE TABLE mixed {MIXED}")
            command = [os.environ["BENCH_WINDROW"], "append", "--to", f"http://{gateway.address}", "--table", "mixed"]
            begun = time.perf_counter()
            subprocess.run([*command, *([] if ordered else ["--unordered"]), "--quiet", str(file)], check=True)
            (files.ours if ordered else files.unordered).append(time.perf_counter() - begun)
            if int(gateway.sql("SELECT count(*) FROM mixed")) != rows:
                raise SystemExit("the file was not stored whole")
            print(f"parquet: ordered {ordered}, {files}", file=sys.stderr)
    files.peak_mb = gateway.peak_bytes() / 1e6
    return files


def report(times: Times, files: Files, rows: int) -> str:
    def median(way: str, scenario: str, ms: float) -> float:
        return statistics.median(times[way, scenario, ms])

    lines = []
    for scenario in SCENARIOS:
        for ms in ROUND_TRIPS_MS:
            limit = median("limit", scenario.name, ms)
            lines.append([scenario.title, distance(ms), "the way itself", f"{limit * 1000:,.0f}", "–"])
            for way, title in WAYS.items():
                took = median(way, scenario.name, ms)
                ratio = median("quack", scenario.name, ms) / took
                lines.append([scenario.title, distance(ms), title, f"{took * 1000:,.0f}", figure(ratio)])
    text = table(["work", "round trip", "way", "ms", "× quack"], lines, words=3) + "\n"
    local, ours = statistics.median(files.local), statistics.median(files.ours)
    mixed = f"{rows:,} rows of 5 columns, Parquet"
    text += table(
        ["work", "way", "s", "rows/s"],
        [
            [mixed, "DuckDB's own INSERT ... FROM parquet, local", figure(local), figure(rows / local)],
            [mixed, "windrow append, loopback", figure(ours), figure(rows / ours)],
            [mixed, "the same, --unordered", figure(statistics.median(files.unordered)), ""],
        ],
        words=2,
    )
    text += f"\nThe gateway's largest resident memory during the latter: {files.peak_mb:,.0f} MB, DuckDB's own included.\n\n"
    rows_of_goals = []
    for (name, ms), wanted in WANTED.items():
        ratio = median("quack", name, ms) / median("windrow", name, ms)
        title = next(scenario.title for scenario in SCENARIOS if scenario.name == name)
        rows_of_goals.append(
            verdict(f"{title}, {distance(ms)}: times quack", f"≥ {wanted}", figure(ratio), ratio >= wanted)
        )
    share = local / ours
    rows_of_goals.append(verdict("Parquet: of DuckDB's own local speed", "≥ 0.6", figure(share), share >= 0.6))
    ordered, unordered = median("ordered", "one", 0.0), median("unordered", "one", 0.0)
    cost = ordered / unordered - 1
    rows_of_goals.append(verdict("1,000,000 BIGINT: what order costs", "≤ 10 %", f"{cost:.0%}", cost <= 0.10))
    cost = ours / statistics.median(files.unordered) - 1
    rows_of_goals.append(verdict("Parquet: what order costs", "≤ 10 %", f"{cost:.0%}", cost <= 0.10))
    return text + goals(rows_of_goals)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--file-rounds", type=int, default=3)
    parser.add_argument("--rows", type=int, default=20_000_000, help="of the Parquet file")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="windrow-bench-") as name:
        folder = Path(name)
        with Gateway(folder) as gateway:
            times = measure_numbers(folder, gateway, options.rounds)
            files = measure_files(folder, gateway, options.file_rounds, options.rows)
    print(report(times, files, options.rows))


if __name__ == "__main__":
    main()
