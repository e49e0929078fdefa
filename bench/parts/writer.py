"""The writer: rows taken per second into memory, disk and Redis, from Python, Rust and Go, and rows stored end to end beside a
program that gathers lists itself and calls clickhouse-connect's insert."""

import asyncio
import os
import re
import socket
import subprocess
import tempfile
import time
from argparse import Namespace
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from harness.eventually import eventually
from harness.paths import ROOT
from harness.ports import free_port

from bench.base.document import prose
from bench.base.figures import Goals, Rows, columns, of
from bench.base.part import Option, part
from bench.base.processes import own_cpu_seconds
from bench.base.stack import Stack, binary
from bench.parts.clients import arguments_of

TABLE, COLUMNS = "bench.written", ["id", "uuid", "insert_ts"]
#: Far more than is written: nothing is sent while rows are taken.
NEVER = {"batch_rows": 1_000_000_000, "flush_interval": 3600.0, "max_bytes": 2 << 30}
CALL_ROWS, BATCH_ROWS = 1000, 5000
Written = list[tuple[int, str, str]]
WANTED = (
    ("Python", "memory", "write_row", 1e6), ("Python", "memory", "write_rows", 4e6), ("Rust", "memory", "write_row", 15e6),
    ("Python", "disk", "write_row", 5e5), ("Python", "redis", "write_rows", 2e5),
    ("Go", "memory", "Write", 5e6), ("Go", "memory", "Write, lists", 5e6), ("Go", "disk", "Write", 1e6),
    ("Go", "redis", "Write", 2e5),
)  # fmt: skip
#: What Go allocates for a row, spread over many of them.
MOST_ALLOCATIONS = 0.1


def rows_of(count: int) -> Written:
    """The three columns of the article on client-side buffers."""
    return [(n, f"00000000-0000-4000-8000-{n:012d}", "02 Jan 06 15:04 MST") for n in range(count)]


@contextmanager
def redis_server() -> Iterator[int]:
    """A Redis of the benchmark's own, on a free port, that keeps nothing on disk."""
    port = free_port()
    command = ["redis-server", "--port", str(port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)

    def answers() -> bool:
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    try:
        eventually(answers, "Redis answers", 30)
        yield port
    finally:
        process.terminate()
        process.wait()


def one_by_one(writer: Any, rows: Written) -> None:
    write_row = writer.write_row
    for row in rows:
        write_row(row)


def by_the_thousand(writer: Any, rows: Written) -> None:
    for start in range(0, len(rows), CALL_ROWS):
        writer.write_rows(rows[start : start + CALL_ROWS])


CALLS: dict[str, Callable[[Any, Written], None]] = {"write_row": one_by_one, "write_rows": by_the_thousand}


def taken(given: dict[str, Any], buffer: str, call: str, count: int) -> float:
    """Rows per second that the calls took. close() sends all at once."""
    import windrow

    rows = rows_of(count)
    with windrow.get_client(**given) as client:
        writer = client.writer(TABLE, COLUMNS, buffer=buffer, **NEVER)
        began = time.perf_counter()
        CALLS[call](writer, rows)
        seconds = time.perf_counter() - began
        writer.close(timeout=120)
    return count / seconds


async def taken_async(given: dict[str, Any], count: int) -> float:
    """The same by `await writer.write_row(row)`."""
    import windrow

    rows = rows_of(count)
    async with await windrow.get_async_client(**given) as client:
        writer = await client.writer(TABLE, COLUMNS, **NEVER)
        began = time.perf_counter()
        for row in rows:
            await writer.write_row(row)
        seconds = time.perf_counter() - began
        await writer.close(timeout=120)
    return count / seconds


def with_windrow(given: dict[str, Any], rows: Written) -> None:
    import windrow

    with windrow.get_client(**given) as client, client.writer(TABLE, COLUMNS) as writer:
        for row in rows:
            writer.write_row(row)


def with_a_list(given: dict[str, Any], rows: Written) -> None:
    import clickhouse_connect

    with clickhouse_connect.get_client(**given) as client:
        batch: Written = []
        for row in rows:
            batch.append(row)
            if len(batch) == BATCH_ROWS:
                client.insert(TABLE, batch, column_names=COLUMNS)
                batch.clear()
        if batch:
            client.insert(TABLE, batch, column_names=COLUMNS)


ENDS = {"windrow writer": with_windrow, "a list, and clickhouse-connect's insert": with_a_list}


def end_to_end(given: dict[str, Any], way: str, count: int) -> dict[str, object]:
    """Until all are stored; CPU is this process's."""
    rows = rows_of(count)
    cpu, began = own_cpu_seconds(), time.perf_counter()
    ENDS[way](given, rows)
    seconds = time.perf_counter() - began
    return {"way": way, "per_second": count / seconds, "cpu_us": (own_cpu_seconds() - cpu) * 1e6 / count}


def rust() -> Iterator[tuple[str, str, float]]:
    """The Rust library in a program of its own, which prints a line per case."""
    printed = subprocess.run([str(binary("examples/writer_rows"))], check=True, capture_output=True, text=True).stdout
    for buffer, call, rate in re.findall(r"^(\w+), (write_rows?)\b.*?(\d+) rows/s", printed, re.MULTILINE):
        yield buffer, call, float(rate)


@dataclass(frozen=True)
class GoBenchmark:
    """One of Go's own benchmarks: its folder within go/, its name, and what it measures."""

    folder: str
    name: str
    buffer: str
    call: str


GO_BENCHMARKS = (
    GoBenchmark(".", "Memory/Struct", "memory", "Write"), GoBenchmark(".", "Memory/Row", "memory", "Write, lists"),
    GoBenchmark("diskbuffer", "Disk/Interval10ms", "disk", "Write"), GoBenchmark("tests", "Redis", "redis", "Write"),
)  # fmt: skip


def go(of: GoBenchmark, redis_port: int, *more: str) -> dict[str, float]:
    """Figures by their units. One processor of Go's, so all that the writer does beside the calls is in them."""
    environment = {**os.environ, "WINDROW_TEST_REDIS": f"127.0.0.1:{redis_port}"}
    pattern = "/".join(f"^{part}$" for part in f"Benchmark{of.name}".split("/"))
    command = ["go", "test", "-run", "^$", "-bench", pattern, "-cpu", "1", *more, "."]
    ended = subprocess.run(command, cwd=ROOT / "go" / of.folder, env=environment, check=True, capture_output=True, text=True)
    return go_figures(ended.stdout)


def go_figures(printed: str) -> dict[str, float]:
    """Those of the only benchmark that ran."""
    lines = re.findall(r"^Benchmark\S+\s+\d+\s+(.*)$", printed, re.MULTILINE)
    if len(lines) != 1:
        raise SystemExit(f"one benchmark was to run:\n{printed}")
    return {unit: float(figure) for figure, unit in re.findall(r"(\S+) (\S+)", lines[0])}


@part(
    "writer", "The writer", quick={"rounds": 1, "rows": 200_000},
    rounds=Option(5), rows=Option(1_000_000, "of each case"),
)  # fmt: skip
def writer(stack: Stack, options: Namespace) -> str:
    """The writer, in Python, Rust and Go."""
    stack.clickhouse.sql(f"CREATE TABLE {TABLE} (id Int32, uuid String, insert_ts String) ENGINE = Null")
    given, found, ends = arguments_of(stack.clickhouse), Rows(), Rows()

    def add(language: str, buffer: str, call: str, rate: float, allocations: float | None = None) -> None:
        title = f"write_rows, {CALL_ROWS} each" if (language, call) == ("Python", "write_rows") else call
        row = {"language": language, "buffer": buffer, "call": call, "title": title, "per_second": rate}
        found.append(row if allocations is None else {**row, "allocations": allocations})

    with redis_server() as port:
        for number in range(options.rounds):
            with tempfile.TemporaryDirectory(prefix="windrow-bench-") as folder:
                redis = f"redis://127.0.0.1:{port}/0?bucket=b{number}"
                for name, buffer in (("memory", "memory"), ("disk", f"disk:{folder}/python"), ("redis", redis)):
                    for call in CALLS:
                        # A round trip for each row is what it is: fewer rows do to see it.
                        fewer = {"write_row": 50, "write_rows": 5}[call] if name == "redis" else 1
                        add("Python", name, call, taken(given, buffer, call, options.rows // fewer))
            add("Python", "memory", "await write_row", asyncio.run(taken_async(given, options.rows)))
            for buffer, call, rate in rust():
                add("Rust", buffer, call, rate)
            for benchmark in GO_BENCHMARKS:
                figures = go(benchmark, port)
                add("Go", benchmark.buffer, benchmark.call, figures["rows/s"], figures["allocs/row"])
            ends += [end_to_end(given, way, options.rows) for way in ENDS]
    groups = [group for _, group in found.groups("language", "buffer", "call")]
    rate = lambda group: f"{group.median('per_second'):,.0f}"
    allocations = ("allocations a row", of("allocations"))
    shown = [("from", of("language")), ("buffer", of("buffer")), ("call", of("title")), ("rows/s taken", rate), allocations]
    text = columns(groups, shown)
    text += "\n" + prose("writer in Go") + prose("writer", rows=BATCH_ROWS)
    stored = [group for _, group in ends.groups("way")]
    text += columns(stored, [("way", of("way")), ("rows/s stored", rate), ("CPU µs/row", of("cpu_us"))])
    goals = Goals()
    for language, buffer, call, wanted in WANTED:
        runs = found.where(language=language, buffer=buffer, call=call)
        goals.at_least(f"{language} {buffer}, {call}, rows/s", wanted, runs.median("per_second"))
        if language == "Go":
            goals.at_most(f"{language} {buffer}, {call}, allocations a row", MOST_ALLOCATIONS, runs.median("allocations"))
    return f"{text}\n{goals}"
