"""Appends into a DuckDB on the other side of a network: quack, adbc_ingest over Flight SQL, and ordered appends.

In each round every way appends once over each distance, in random order, into a table of its own that is emptied before. What was stored
is counted and its order looked at after every job, outside of the time that is measured.
"""

import random
import subprocess
import sys
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from harness.endpoint import Endpoint
from harness.paths import gateway_binary
from harness.ports import free_port
from harness.quick_http import QuickConnection

from bench.base.document import prose
from bench.base.figures import NONE, Column, Goals, Rows, columns, count, figure, of
from bench.base.part import Option, part
from bench.base.processes import Program, peak_bytes, reset_peak
from bench.base.stack import Server, Stack, empty_handler

LIMIT, QUACK, OURS = "the way itself", "quack 1.5.5", "client.append"
WAYS = {"quack": QUACK, "flight": "adbc_ingest over Flight SQL", "windrow": OURS}
ROUND_TRIPS_MS = (0.0, 3.0, 18.0)


@dataclass(frozen=True)
class Work:
    name: str
    title: str
    rows: int
    times: int
    # At which round trip, how many times quack's time has to hold ours.
    wanted: dict[float, int]


WORK = (
    Work("one", "1,000,000 BIGINT in one append", 1_000_000, 1, {0.0: 15, 3.0: 30, 18.0: 40}),
    Work("twenty", "20 appends of 50,000", 50_000, 20, {18.0: 10}),
)
MIXED = "(id BIGINT, seen TIMESTAMP, name VARCHAR, value DOUBLE, kind INTEGER)"
MIXED_ROWS = (
    "i AS id, TIMESTAMP '2026-01-01' + to_seconds(i) AS seen, 'user ' || (i % 100000) AS name, (hash(i) % 1000000) / 7 AS value, "
    "(i % 97)::INTEGER AS kind"
)
# What DuckDB takes without any network, in a process of its own.
LOCAL = (
    "import duckdb, sys, time\n"
    f"c = duckdb.connect(sys.argv[1]); c.execute('SET enable_progress_bar = false; CREATE TABLE m {MIXED}')\n"
    "t = time.perf_counter(); c.execute(f\"INSERT INTO m SELECT * FROM '{sys.argv[2]}'\"); print(time.perf_counter() - t)"
)
LOCALLY, BY_WINDROW, UNORDERED = "DuckDB's own INSERT ... FROM parquet, local", "windrow append, loopback", "the same, --unordered"
# Appended by turns with what is unordered.
ORDERED = "in order"
Sql = Callable[[str], object]


def distance(round_trip_ms: float) -> str:
    return f"{round_trip_ms:g} ms" if round_trip_ms else "loopback"


def distances(address: str, open_: ExitStack) -> dict[float, str]:
    """The server's own address, and one for each relay in front of it that makes the way longer."""
    addresses = {0.0: address}
    for round_trip_ms in ROUND_TRIPS_MS[1:]:
        command = [sys.executable, "-m", "bench.clients.relay", address, str(round_trip_ms)]
        addresses[round_trip_ms] = open_.enter_context(Program(command)).answer()
    return addresses


@part(
    "appends", "Ordered appends into DuckDB", quick={"rounds": 1, "file_rounds": 1, "rows": 2_000_000},
    rounds=Option(5), file_rounds=Option(3, "of the Parquet file"), rows=Option(20_000_000, "of the Parquet file"),
)  # fmt: skip
def appends(stack: Stack, options: Namespace) -> str:
    """Ordered appends into DuckDB over a network, beside quack and Flight SQL."""
    with tempfile.TemporaryDirectory(prefix="windrow-bench-") as name:
        folder = Path(name)
        flight = f"127.0.0.1:{free_port()}"
        gateway = stack.another_gateway("", folder, flight, f"duckdb://{folder / 'stored.duckdb'}")
        runs = measure_numbers(folder, gateway, flight, options.rounds)
        reset_peak(gateway.child.pid)
        files = measure_files(folder, gateway, options.file_rounds, options.rows)
        peak_mb = peak_bytes(gateway.child.pid) / 1e6
        gateway.end()
    return report(runs, files, options.rows, peak_mb)


def measure_numbers(folder: Path, gateway: Server, flight: str, rounds: int) -> Rows:
    with ExitStack() as open_:
        port, appending = free_port(), [sys.executable, "-m", "bench.clients.append"]
        quack = open_.enter_context(Program([*appending, "quack-server", str(folder / "quack.db"), str(port)]))
        quack.answer()
        servers: dict[str, Sql] = {"quack": quack.ask, "flight": gateway.http.sql, "windrow": gateway.http.sql}
        addresses = {"quack": f"127.0.0.1:{port}", "flight": flight, "windrow": f"127.0.0.1:{gateway.http.port}"}
        # Before anybody attaches: a client of quack doesn't see tables that come later.
        for way, sql in servers.items():
            for work in WORK:
                sql(f"CREATE TABLE {way}_{work.name} (i BIGINT)")
        empty, empty_address = empty_handler("examples/empty_axum", [])
        limits = distances(empty_address, open_)
        open_.enter_context(empty)
        children = {}
        for way, address in addresses.items():
            for ms, there in distances(address, open_).items():
                children[way, ms] = open_.enter_context(Program([*appending, way, there]))
                children[way, ms].answer()
        rows = Rows()

        def append(way: str, work: Work, ms: float, title: str = "") -> None:
            table, ordered, title = f"{way}_{work.name}", title != UNORDERED, title or WAYS[way]
            servers[way](f"DELETE FROM {table}")
            took = children[way, ms].ask({"rows": work.rows, "times": work.times, "table": table, "ordered": ordered})
            check(servers[way], work, table, ordered)
            rows.append({"work": work.title, "ms": ms, "distance": distance(ms), "way": title, "took_ms": took * 1000})
            print(f"{title}, {work.name}, {distance(ms)}: {took:.3f} s", file=sys.stderr)

        jobs = [(way, work, ms) for way in WAYS for work in WORK for ms in ROUND_TRIPS_MS]
        for number in range(rounds + 1):
            for job in random.sample(jobs, len(jobs)):
                append(*job)
            # The first round is for caches and allocators.
            rows = rows if number else Rows()
            for work in WORK:
                for ms, address in limits.items():
                    row = {"work": work.title, "ms": ms, "distance": distance(ms), "way": LIMIT}
                    rows.append(row | {"took_ms": limit_seconds(address, work) * 1000})
        for _ in range(2 * rounds):
            for title in (ORDERED, UNORDERED):
                append("windrow", WORK[0], 0.0, title)
    return rows


def check(sql: Sql, work: Work, table: str, ordered: bool) -> None:
    """All rows, and in the order in which they were sent."""
    stored = int(str(sql(f"SELECT count(*) FROM {table}")))
    numbered = f"SELECT i, (row_number() OVER () - 1) % {work.rows} AS expected FROM {table}"
    displaced = int(str(sql(f"SELECT count(*) FROM ({numbered}) WHERE i != expected"))) if ordered else 0
    if (stored, displaced) != (work.rows * work.times, 0):
        raise SystemExit(f"{table}: {stored} rows instead of {work.rows * work.times}, {displaced} out of place")


def limit_seconds(address: str, work: Work) -> float:
    """The same bytes as plain requests to a handler that only reads them: eight connections, opened before."""
    (host, _, port), count = address.rpartition(":"), 8 if work.times == 1 else 1
    body, connections = bytes(work.rows * 8 // count), [QuickConnection(Endpoint(host, int(port), "", "")) for _ in range(count)]
    send = lambda connection: [connection.post("/", body).status for _ in range(work.times)]
    with ThreadPoolExecutor(count) as threads:
        list(threads.map(lambda connection: connection.post("/", b""), connections))
        begun = time.perf_counter()
        statuses = sum(threads.map(send, connections), [])
        took = time.perf_counter() - begun
    for connection in connections:
        connection.close()
    if set(statuses) != {200}:
        raise SystemExit(f"the empty handler answered {set(statuses)}")
    return took


def measure_files(folder: Path, gateway: Server, rounds: int, rows: int) -> Rows:
    import duckdb

    file, found = folder / "mixed.parquet", Rows()
    duckdb.execute(f"COPY (SELECT {MIXED_ROWS} FROM range({rows}) t(i)) TO '{file}' (FORMAT parquet)")
    for number in range(rounds):
        command = [sys.executable, "-c", LOCAL, str(folder / f"local{number}.db"), str(file)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        (folder / f"local{number}.db").unlink()
        found.append({"way": LOCALLY, "seconds": float(done.stdout)})
        for way, flags in ((BY_WINDROW, []), (UNORDERED, ["--unordered"])):
            gateway.http.sql("DROP TABLE IF EXISTS mixed")
            gateway.http.sql(f"CREATE TABLE mixed {MIXED}")
            command = [str(gateway_binary()), "append", "--to", gateway.http.url, "--table", "mixed", *flags, "--quiet", str(file)]
            begun = time.perf_counter()
            subprocess.run(command, check=True)
            found.append({"way": way, "seconds": time.perf_counter() - begun})
            if int(gateway.http.sql("SELECT count(*) FROM mixed")) != rows:
                raise SystemExit("the file was not stored whole")
            print(f"{way}: {found[-1]['seconds']:.3f} s", file=sys.stderr)
    return found


def report(runs: Rows, files: Rows, rows: int, peak_mb: float) -> str:
    took = lambda work, ms, way: runs.where(work=work.title, ms=ms, way=way).median("took_ms") or 1.0
    groups = [
        runs.where(work=work.title, ms=ms, way=way) for work in WORK for ms in ROUND_TRIPS_MS for way in (LIMIT, *WAYS.values())
    ]
    quack = lambda group: runs.where(work=group[0]["work"], ms=group[0]["ms"], way=QUACK).median("took_ms")
    shown: list[Column] = [
        ("work", of("work")), ("round trip", of("distance")), ("way", of("way")), ("ms", lambda group: count(group.median("took_ms"))),
        ("× quack", lambda group: NONE if group[0]["way"] == LIMIT else quack(group) / group.median("took_ms")),
    ]  # fmt: skip
    seconds = lambda way: files.where(way=way).median("seconds") or 1.0
    of_files: list[Column] = [
        ("work", lambda group: f"{rows:,} rows of 5 columns, Parquet"), ("way", of("way")), ("s", of("seconds")),
        ("rows/s", lambda group: NONE if group[0]["way"] == UNORDERED else rows / group.median("seconds")),
    ]  # fmt: skip
    goals = Goals()
    for work in WORK:
        for ms, wanted in work.wanted.items():
            goals.at_least(f"{work.title}, {distance(ms)}: times quack", wanted, took(work, ms, QUACK) / took(work, ms, OURS))
    goals.at_least("Parquet: of DuckDB's own local speed", 0.6, seconds(LOCALLY) / seconds(BY_WINDROW))
    ratio = runs.where(way=ORDERED).ratio(runs.where(way=UNORDERED), "took_ms") or 1.0
    goals.at_most("1,000,000 BIGINT: what order costs, %", 10, 100 * (ratio - 1))
    goals.at_most("Parquet: what order costs, %", 10, 100 * (seconds(BY_WINDROW) / seconds(UNORDERED) - 1))
    memory = prose("appends", megabytes=figure(peak_mb))
    parquet = columns([files.where(way=way) for way in (LOCALLY, BY_WINDROW, UNORDERED)], of_files)
    return f"{columns(groups, shown)}\n{parquet}\n{memory}{goals}"
