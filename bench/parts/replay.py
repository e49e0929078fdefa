"""What a killed gateway left in its journal: how fast the next start stores it, and in how much memory.

ClickHouse is held still while inserts are acknowledged on disk, then both processes are killed. The table is of engine Null, so that
ClickHouse does no more than read what it is sent.
"""

import os
import signal
import time
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor

from harness.eventually import eventually
from harness.quick_http import QuickConnection

from bench.base.check import DECLARED
from bench.base.document import prose
from bench.base.figures import Goals, count, figure, table
from bench.base.part import Option, part
from bench.base.processes import descendants, peak_bytes
from bench.base.scenario import flush
from bench.base.stack import Stack
from bench.parts.bulk import body_of

TABLE = "bench.replay"
JOURNAL_BYTES = "windrow_journal_live_bytes"
# Far below what is replayed: what is read from the journal has to wait for room in the buffers.
BUFFERS = {"WINDROW_GATHER_MAX_BUFFER_BYTES": "128MiB"}
# Between two looks: the journal knows best what inserts take.
INSERTS_AT_ONCE = 50


@part(
    "replay", "Replay of the journal", quick={"megabytes": 100},
    megabytes=Option(1000, "what inserts take in the journal before the kill"),
    rows=Option(1000, "of each insert; a row takes 37 bytes in the journal"), connections=Option(8),
)  # fmt: skip
def replay(stack: Stack, options: Namespace) -> str:
    """What a killed gateway left in its journal."""
    own = Stack(options, BUFFERS)
    own.clickhouse.sql(f"CREATE TABLE {TABLE} ({DECLARED}) ENGINE = Null")
    inserts, megabytes = fill(own, options), own.metric(JOURNAL_BYTES) / 1e6
    began = time.monotonic()
    own.kill_and_start()
    ready = time.monotonic() - began
    eventually(lambda: own.metric(JOURNAL_BYTES) == 0, "the journal is replayed", 300)
    seconds = time.monotonic() - began - ready
    after, peak = own.snapshot(), peak_bytes(own.gateway_pid)
    rows = inserts * options.rows
    if (stored := own.metric("windrow_rows_total")) != rows:
        raise SystemExit(f"{stored} rows were stored, {rows} acknowledged")
    own.close()
    line = {
        "inserts": count(inserts), "rows of each": count(options.rows), "MB in the journal": figure(megabytes),
        "ready after, ms": count(ready * 1000), "stored after that, s": figure(seconds),
        "MB/s": figure(megabytes / seconds), "rows/s": count(rows / seconds),
        "gateway's CPU, s": figure(after.gateway.cpu_seconds),
        "ClickHouse's CPU, s": figure(after.clickhouse.cpu_seconds), "gateway's peak memory, MB": figure(peak / 1e6),
    }  # fmt: skip
    goals = Goals()
    goals.at_least("replay, MB/s", 200, megabytes / seconds)
    return f"{prose('replay')}{table(list(line), [list(line.values())])}\n{goals}"


def fill(stack: Stack, options: Namespace) -> int:
    """Returns how many inserts were acknowledged, none of them stored. ClickHouse is still held: what follows kills it."""
    target = stack.gateway.target(f"INSERT INTO {TABLE} FORMAT JSONEachRow", {"async_insert": 1, "wait_for_async_insert": 0})

    def insert(connection: QuickConnection, body: bytes, times: int) -> None:
        for _ in range(times):
            reply = connection.post(target, body)
            if reply.status != 200:
                raise SystemExit(f"an insert was refused: {reply.text}")

    connections = [QuickConnection(stack.gateway) for _ in range(options.connections)]
    # The gateway asks ClickHouse about the user, the table and the statement while it can.
    insert(connections[0], body_of(1), 1)
    flush(stack.gateway)
    for pid in descendants(stack.gateway_pid):
        os.kill(pid, signal.SIGSTOP)
    body, inserts = body_of(options.rows), 0
    with ThreadPoolExecutor(options.connections) as threads:
        while stack.metric(JOURNAL_BYTES) < options.megabytes * 1e6:
            list(threads.map(lambda connection: insert(connection, body, INSERTS_AT_ONCE), connections))
            inserts += options.connections * INSERTS_AT_ONCE
    return inserts
