"""One-row inserts as data: a scenario says what is sent where, `run` does it, and a row of figures comes of it.

Every benchmark of small inserts is a list of scenarios and a table made of their rows. In each the load generator's ids are looked
up afterwards: a figure for rows that did not arrive is no figure.
"""

import json
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Iterable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import count
from math import gcd
from typing import Any

from harness.endpoint import Endpoint

from bench.base.check import COLUMNS, DECLARED, NUMBERS, Ids, RowsIn, Stored, check
from bench.base.figures import Rows, figure
from bench.base.processes import usage
from bench.base.stack import NOBODY, Snapshot, Stack, binary, empty_handler

GRACE_SECONDS = 30
FLUSHED_WITHIN_SECONDS = 300
IN_DUCKDB = {"UInt32": "UINTEGER", "UInt64": "UBIGINT", "DateTime": "TIMESTAMP_S", "String": "VARCHAR"}


@dataclass(frozen=True)
class Mode:
    """A way that rows take."""

    title: str
    # Straight into ClickHouse, through the gateway, or to a handler that stores nothing, which is an example's name.
    target: str
    settings: tuple[str, ...] = ("async_insert=0",)

    @property
    def is_handler(self) -> bool:
        return self.target.startswith("examples/")


MODES = {
    "empty": Mode("limit: empty handler", "examples/empty"),
    "axum": Mode("empty handler on axum", "examples/empty_axum"),
    "direct": Mode("direct: ClickHouse, synchronous", "straight"),
    # A handler on the gateway's HTTP layer that appends each row to a file and syncs it.
    "sync-each": Mode("one sync per insert", "examples/empty sync"),
    "stored": Mode("gateway, ack stored", "gateway", ("async_insert=1", "wait_for_async_insert=1")),
    "disk": Mode("gateway, ack disk", "gateway", ("async_insert=1", "wait_for_async_insert=0", "windrow_ack=disk")),
    "memory": Mode(
        "gateway, ack memory", "gateway", ("async_insert=1", "wait_for_async_insert=0", "windrow_ack=memory")
    ),
}


@dataclass(frozen=True)
class Scenario:
    mode: str
    connections: int
    seconds: float
    warmup_seconds: float = 0.5
    format: str = "JSONEachRow"
    # Instead of the mode's, and in addition to them.
    only_settings: tuple[str, ...] | None = None
    settings: tuple[str, ...] = ()
    # `http`; `native`; or `native at once`, when a client sends its rows before it has seen the columns.
    protocol: str = "http"
    # What else the load generator is to know: `bench/src/load.rs` has it all.
    load: dict[str, Any] = field(default_factory=dict)
    # What the row of figures says of the scenario besides.
    labels: dict[str, Any] = field(default_factory=dict)

    def all_settings(self) -> tuple[str, ...]:
        return (*(MODES[self.mode].settings if self.only_settings is None else self.only_settings), *self.settings)

    def query(self, table: str) -> str:
        statement = urllib.parse.quote(f"INSERT INTO {table} FORMAT {self.format}", safe="")
        return "&".join([f"query={statement}", *self.all_settings()])


def head(server: Endpoint, query: str) -> str:
    """Everything of a POST's head up to the value of Content-Length."""
    login = f"X-ClickHouse-User: {server.user}\r\nX-ClickHouse-Key: {server.password}\r\n"
    known = "" if (server.user, server.password) == NOBODY else login
    return f"POST /?{query} HTTP/1.1\r\nHost: {server.host}:{server.port}\r\n{known}Content-Length: "


class OneTable:
    """A table that did not exist before, so that its parts count from 1. Other grounds than this have the same methods."""

    def __init__(self, name: str = "bench.inserts", settings: str = "", more: str = "", duckdb: bool = False) -> None:
        self.name, self.duckdb = name, duckdb
        self.ddl = f"CREATE TABLE {name} ({DECLARED}{more}) ENGINE = MergeTree ORDER BY (conn, seq)"
        self.ddl += f" SETTINGS {settings}" if settings else ""
        if duckdb:
            columns = ", ".join(f"{n} {IN_DUCKDB[kind]} NOT NULL" for n, kind, _ in COLUMNS)
            self.ddl = f"CREATE TABLE {name} ({columns})"

    def prepare(self, sql: Endpoint) -> None:
        self.drop(sql)
        sql.sql(self.ddl)

    def tables(self) -> list[str]:
        return [self.name]

    def plan(self) -> dict[str, Any]:
        return {}

    def check(self, sql: Endpoint, ids: list[Ids]) -> Stored:
        return check(sql, RowsIn(self.name), ids)

    def parts(self, sql: Endpoint) -> int | None:
        return None if self.duckdb else parts_created(sql, self.name)

    def drop(self, sql: Endpoint) -> None:
        sql.sql(f"DROP TABLE IF EXISTS {self.name}{'' if self.duckdb else ' SYNC'}")


def of_table(table: str) -> str:
    database, _, name = table.partition(".")
    return f"database = '{database}' AND table = '{name}'"


def parts_created(sql: Endpoint, table: str) -> int:
    """How many parts inserts made in a fresh table without partitions: each took the next block number, and a merged part keeps
    the range of those it was made of."""
    return int(sql.sql(f"SELECT toUInt64(max(max_block_number)) FROM system.parts WHERE {of_table(table)}"))


def row_of_format(format: str) -> list[list[int] | str]:
    """For the load generator: bytes, and what differs from row to row."""
    pieces: list[list[int] | str] = []
    native, is_text = format == "Native", format == "JSONEachRow"
    # Six columns, one row. A text stands behind its length, of which one byte is enough here.
    written = b"{" if is_text else b"\6\1" if native else b""
    text = lambda value: bytes([len(value)]) + value.encode()
    for at, (name, kind, value) in enumerate(COLUMNS):
        written += f'{"," if at else ""}"{name}":'.encode() if is_text else text(name) + text(kind) if native else b""
        if value in NUMBERS:
            pieces += [list(written), str(value)]
            written = b""
        else:
            binary = value.to_bytes(4, "little") if isinstance(value, int) else text(value)
            written += json.dumps(value).encode() if is_text else binary
    return [*pieces, list(written + (b"}\n" if is_text else b""))]


def stride_over(targets: int) -> int:
    """Coprime with their number, so that a connection reaches all of them before it comes to one again, and about 0.62 of it, so
    that connections whose numbers are neighbours don't meet at the same target one insert later."""
    return next(stride for stride in count(max(1, int(targets * 0.618))) if gcd(stride, targets) == 1)


def generate(address: str, heads: list[str], scenario: Scenario, more: dict[str, Any]) -> dict[str, Any]:
    """Runs the load generator, and returns what it says."""
    plan = {
        "address": address, "heads": heads, "stride": stride_over(len(heads)), "row": row_of_format(scenario.format),
        "is_binary": scenario.format != "JSONEachRow", "zipf": more.get("stride") == 0, "format": scenario.format,
        "connections": scenario.connections, "first_conn": 0, "warmup_seconds": scenario.warmup_seconds,
        "seconds": scenario.seconds, "native": None, "inserts_per_connection": None, "interval_seconds": None, "in_step": False,
        "grace_seconds": GRACE_SECONDS, **scenario.load, **more,
    }  # fmt: skip
    command = [str(binary("windrow-bench")), "load"]
    done = subprocess.run(command, input=json.dumps(plan).encode(), stdout=subprocess.PIPE)
    if done.returncode:
        raise SystemExit("the load generator failed")
    load = json.loads(done.stdout)
    load["ids"] = [Ids(sent, tuple(not_)) for sent, not_ in zip(load.pop("sent"), load.pop("unacknowledged"))]
    return load


def run(
    stack: Stack, scenario: Scenario, ground: Any = None, watch: AbstractContextManager[object] | None = None
) -> dict[str, Any]:
    """`watch` is entered for as long as the load lasts."""
    mode, watch = MODES[scenario.mode], watch or nullcontext()
    ground = ground or OneTable()
    if mode.is_handler:
        program, address = empty_handler(mode.target, stack.options.env)
        with program:
            load = generate(address, [head(Endpoint("localhost", 0, *NOBODY), scenario.query("t"))], scenario, {})
            if load["first_error"]:
                raise SystemExit(f"{scenario.mode}: inserts failed, first: {load['first_error']}")
            return row_of(scenario, load, Snapshot(), Snapshot(usage(program.pid)))
    through = mode.target == "gateway"
    server = stack.gateway if through else stack.clickhouse
    ground.prepare(stack.clickhouse)
    port, more = server.port, ground.plan()
    if scenario.protocol != "http":
        heads = [f"INSERT INTO {table} FORMAT Native" for table in ground.tables()]
        settings = [setting.split("=", 1) for setting in scenario.all_settings()]
        more = {**more, "native": {"user": server.user, "password": server.password, "settings": settings,
                                   "waits": scenario.protocol == "native"}}
        port = stack.native_port(through)
    else:
        heads = [head(server, scenario.query(table)) for table in ground.tables()]
    before = stack.snapshot()
    with watch:
        load = generate(f"{server.host}:{port}", heads, scenario, more)
    began = time.monotonic()
    if through:
        flush(server)
    flush_seconds, after = time.monotonic() - began, stack.snapshot()
    stored = ground.check(stack.clickhouse, load["ids"])
    refuse_losses(scenario.mode, load, stored)
    row = row_of(scenario, load, before, after) | {"flush_seconds": flush_seconds, "rows": stored.rows}
    row["parts"] = ground.parts(stack.clickhouse)
    if row["parts"] is not None:
        row["rows_per_part"] = stored.rows / max(1, row["parts"])
    ground.drop(stack.clickhouse)
    return row


def row_of(scenario: Scenario, load: dict[str, Any], before: Snapshot, after: Snapshot) -> dict[str, Any]:
    acknowledged = sum(of.acknowledged for of in load["ids"])
    gateway, clickhouse = after.cpu_since(before)
    mode = MODES[scenario.mode]
    per_insert = lambda seconds: seconds * 1e6 / max(1, acknowledged)
    return {
        "mode": scenario.mode, "way": mode.title, "connections": scenario.connections, "format": scenario.format,
        "protocol": scenario.protocol,
        **scenario.labels, **{key: load[key] for key in ("p50_ms", "p95_ms", "p99_ms", "max_ms", "steps_ms")},
        "per_second": load["in_window"] / load["window_seconds"], "acknowledged": acknowledged,
        "seconds": load["window_seconds"], "missed": load["missed_intervals"], "error": load["first_error"],
        "refused": sum(len(of.unacknowledged) for of in load["ids"]),
        "server_us": None if mode.target == "straight" else per_insert(gateway),
        "clickhouse_us": None if mode.is_handler else per_insert(clickhouse),
        "load_us": per_insert(load["cpu_seconds"]),
        "all_us": per_insert(gateway + clickhouse + load["cpu_seconds"]),
        "memory_mb": None if mode.target == "straight" else after.gateway.resident_bytes / 1e6,
    }  # fmt: skip


def flush(server: Endpoint) -> None:
    """Until what was acknowledged before is stored. What waits for thousands of tables takes longer than any other statement."""
    reply = server.request("SYSTEM FLUSH ASYNC INSERT QUEUE", timeout_seconds=FLUSHED_WITHIN_SECONDS)
    if reply.status != 200:
        raise SystemExit(f"the gateway was not flushed: {reply.text}")


def refuse_losses(mode: str, load: dict[str, Any], stored: Stored) -> None:
    """Refusals are shown instead: they are an answer."""
    acknowledged = sum(of.acknowledged for of in load["ids"])
    if not stored.is_exact or not acknowledged:
        error = load["first_error"]
        raise SystemExit(f"{mode}: of {acknowledged} acknowledged rows: {stored}; first error: {error}")


def rounds(stack: Stack, scenarios: Iterable[Scenario], times: int, ground: Any = None) -> Rows:
    """The scenarios one after the other, and again: whatever else the machine does falls on all of them."""
    scenarios, rows = list(scenarios), Rows()
    for number in range(times):
        for scenario in scenarios:
            rows.append(run(stack, scenario, ground))
            tell(f"round {number + 1}", rows[-1])
    return rows


def tell(what: str, row: dict[str, Any]) -> None:
    """For those who watch."""
    named = [str(row[key]) for key in ("way", "connections", "format") if key in row]
    shown = [f"{key} {figure(row[key])}" for key in ("per_second", "p50_ms", "p99_ms", "parts") if key in row]
    refused = f", {row['refused']} refused, first: {row['error']}" if row["refused"] else ""
    print(f"{what}: {', '.join(named)}: {', '.join(shown)}{refused}", file=sys.stderr)
