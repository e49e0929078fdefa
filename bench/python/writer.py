"""The writer: rows taken per second into memory, disk and Redis, from Python and from Rust, and rows stored end to end beside
a program that gathers lists itself and calls clickhouse-connect's insert. Prints Markdown.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import socket
import statistics
import subprocess
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any

import clickhouse_connect
from clients import execute
from measure import Server, cpu_seconds, figure, goals, table, verdict

import windrow

TABLE = "bench.written"
COLUMNS = ["id", "uuid", "insert_ts"]
#: Far more than is written: nothing is sent while rows are taken.
NEVER = {"batch_rows": 1_000_000_000, "flush_interval": 3600.0, "max_bytes": 2 << 30}
CALL_ROWS = 1000


def rows_of(count: int) -> list[tuple[int, str, str]]:
    """The three columns of the article on client-side buffers."""
    return [(n, f"00000000-0000-4000-8000-{n:012d}", "02 Jan 06 15:04 MST") for n in range(count)]


@contextmanager
def redis_server() -> Any:
    """A Redis of the benchmark's own, on a free port, that keeps nothing on disk."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        while True:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
        yield port
    finally:
        process.terminate()
        process.wait()


def one_by_one(writer: Any, rows: list[tuple[int, str, str]]) -> None:
    write_row = writer.write_row
    for row in rows:
        write_row(row)


def by_the_thousand(writer: Any, rows: list[tuple[int, str, str]]) -> None:
    for start in range(0, len(rows), CALL_ROWS):
        writer.write_rows(rows[start : start + CALL_ROWS])


CALLS: dict[str, Callable[[Any, list[tuple[int, str, str]]], None]] = {
    "write_row": one_by_one,
    f"write_rows, {CALL_ROWS} each": by_the_thousand,
}


def taken(server: Server, buffer: str, call: str, count: int) -> tuple[float, float]:
    """Rows per second that the calls took, and that were stored by the end of close(), which sends all at once."""
    rows = rows_of(count)
    with windrow.get_client(**server.arguments()) as client:
        writer = client.writer(TABLE, COLUMNS, buffer=buffer, **NEVER)
        began = time.perf_counter()
        CALLS[call](writer, rows)
        seconds = time.perf_counter() - began
        writer.close(timeout=120)
        stored = time.perf_counter() - began
    return count / seconds, count / stored


async def taken_async(server: Server, count: int) -> float:
    """The same by `await writer.write_row(row)`."""
    rows = rows_of(count)
    async with await windrow.get_async_client(**server.arguments()) as client:
        writer = await client.writer(TABLE, COLUMNS, **NEVER)
        began = time.perf_counter()
        for row in rows:
            await writer.write_row(row)
        seconds = time.perf_counter() - began
        await writer.close(timeout=120)
    return count / seconds


def end_to_end(server: Server, count: int) -> dict[str, tuple[float, float]]:
    """Rows/s until all are stored, and CPU seconds of this process for a million rows; batches of 5,000."""
    rows = rows_of(count)
    found = {}
    with windrow.get_client(**server.arguments()) as client:
        cpu, began = cpu_seconds(), time.perf_counter()
        with client.writer(TABLE, COLUMNS) as writer:
            for row in rows:
                writer.write_row(row)
        found["windrow writer"] = time.perf_counter() - began, cpu_seconds() - cpu
    with clickhouse_connect.get_client(**server.arguments()) as client:
        cpu, began = cpu_seconds(), time.perf_counter()
        batch: list[tuple[int, str, str]] = []
        for row in rows:
            batch.append(row)
            if len(batch) == 5000:
                client.insert(TABLE, batch, column_names=COLUMNS)
                batch.clear()
        if batch:
            client.insert(TABLE, batch, column_names=COLUMNS)
        found["a list, and clickhouse-connect's insert"] = time.perf_counter() - began, cpu_seconds() - cpu
    return {way: (count / seconds, cpu * 1e6 / count) for way, (seconds, cpu) in found.items()}


def rust(folder: str) -> dict[tuple[str, str], float]:
    """The Rust library in a program of its own, which prints a line per case."""
    printed = subprocess.run([os.environ["BENCH_WRITER_ROWS"], folder], check=True, capture_output=True, text=True).stdout
    cases = re.findall(r"^(\w+), (write_rows?)\b.*?(\d+) rows/s", printed, re.MULTILINE)
    return {(buffer, call): float(rate) for buffer, call, rate in cases}


def measure(server: Server, rounds: int, count: int) -> tuple[str, dict[tuple[str, str], float]]:
    found: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    ends: dict[str, list[tuple[float, float]]] = defaultdict(list)
    with redis_server() as port:
        for round_number in range(rounds):
            folder = tempfile.mkdtemp(prefix="windrow-bench-")
            buffers = {
                "memory": ("memory", count),
                "disk": (f"disk:{folder}/python", count),
                "redis": (f"redis://127.0.0.1:{port}/0?bucket=b{round_number}", count // 5),
            }
            for name, (buffer, rows) in buffers.items():
                for call in CALLS:
                    # A round trip for each row is what it is: fewer rows do to see it.
                    few = rows // 10 if name == "redis" and call == "write_row" else rows
                    found["Python", name, call].append(taken(server, buffer, call, few)[0])
            found["Python", "memory", "await write_row"].append(asyncio.run(taken_async(server, count)))
            for (name, call), rate in rust(f"{folder}/rust").items():
                found["Rust", name, call].append(rate)
            for way, values in end_to_end(server, count).items():
                ends[way].append(values)
            shutil.rmtree(folder)
    middle = {key: statistics.median(values) for key, values in found.items()}
    rows = [[language, buffer, call, figure(rate)] for (language, buffer, call), rate in middle.items()]
    text = table(["", "buffer", "call", "rows/s taken"], rows, words=3)
    stored = [
        [way, figure(statistics.median(v[0] for v in values)), figure(statistics.median(v[1] for v in values))]
        for way, values in ends.items()
    ]
    text += "\nRow by row, batches of 5,000, until the last is stored:\n\n"
    text += table(["", "rows/s stored", "CPU µs/row"], stored)
    best: dict[tuple[str, str], float] = {}
    for (language, buffer, call), rate in middle.items():
        kind = "write_rows" if call.startswith("write_rows") else "write_row"
        best.setdefault((f"{language} {buffer}", kind), rate)
    return text, best


def checked(best: dict[tuple[str, str], float]) -> list[tuple[str, str, str, str]]:
    def goal(where: str, call: str, wanted: float) -> tuple[str, str, str, str]:
        rate = best[where, call]
        return verdict(f"{where}, {call}", f"≥ {wanted:,.0f} rows/s", f"{figure(rate)}", rate >= wanted)

    return [
        goal("Python memory", "write_row", 1e6),
        goal("Python memory", "write_rows", 4e6),
        goal("Rust memory", "write_row", 15e6),
        goal("Python disk", "write_row", 5e5),
        goal("Python redis", "write_rows", 2e5),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    server = Server.from_environment()
    execute(server, "CREATE DATABASE IF NOT EXISTS bench")
    execute(server, f"DROP TABLE IF EXISTS {TABLE} SYNC")
    execute(server, f"CREATE TABLE {TABLE} (id Int32, uuid String, insert_ts String) ENGINE = Null")
    text, best = measure(server, options.rounds, options.rows)
    print(text)
    print(goals(checked(best)))


if __name__ == "__main__":
    main()
