"""ClickHouse's native protocol: small inserts beside HTTP's, batches, a large answer, connections that do nothing."""

import json
import subprocess
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
from clients.run_program import CLIENTS, environment_of, prepare
from harness.endpoint import Endpoint
from harness.native import EXCEPTION, Native, numbers, text, varint

from bench.base.document import prose
from bench.base.figures import Column, Goals, Rows, columns, figure, of, table
from bench.base.part import Option, part
from bench.base.processes import peak_bytes, raise_open_files, reset_peak, usage
from bench.base.scenario import MODES, OneTable, Scenario, flush, generate, head, rounds
from bench.base.stack import Stack, binary
from bench.parts.inserts import CONNECTIONS, ROUNDS, SECONDS

WAYS = [
    ("direct", "native"), ("stored", "http"), ("stored", "native"), ("disk", "http"), ("disk", "native"), ("disk", "native at once"),
]  # fmt: skip


@part(
    "native", "The native protocol", quick={"seconds": 1.0, "rounds": 1},
    seconds=SECONDS, connections=CONNECTIONS, rounds=ROUNDS,
)  # fmt: skip
def native(stack: Stack, options: Namespace) -> str:
    """One-row inserts over the native protocol, straight and gathered, beside HTTP's."""
    scenarios = [
        Scenario(mode, options.connections, options.seconds, format="Native", protocol=protocol) for mode, protocol in WAYS
    ]
    rows = rounds(stack, scenarios, options.rounds)
    runs = lambda mode, protocol: rows.where(mode=mode, protocol=protocol)
    straight = runs("direct", "native")
    shown: list[Column] = [
        ("way", of("way")), ("protocol", of("protocol")), ("inserts/s", of("per_second")),
        ("× straight", lambda group: group.ratio(straight, "per_second")), ("p50 ms", of("p50_ms")), ("p99 ms", of("p99_ms")),
        ("rows/part", of("rows_per_part")), ("gateway's CPU, us per insert", of("server_us")),
        ("ClickHouse's CPU, us per insert", of("clickhouse_us")),
    ]  # fmt: skip
    goals = Goals()
    goals.at_least("stored, inserts/s to straight", 20, runs("stored", "native").ratio(straight, "per_second"))
    goals.at_least(
        "disk, inserts/s to those over HTTP", 0.6, runs("disk", "native at once").ratio(runs("disk", "http"), "per_second")
    )
    return f"{prose('native')}{columns([group for _, group in rows.groups('mode', 'protocol')], shown)}\n{goals}"


@part(
    "native-go", "clickhouse-go over the native protocol", quick={"seconds": 1.0, "rounds": 1},
    seconds=SECONDS, goroutines=Option(200, "each with a connection"), rounds=ROUNDS,
)  # fmt: skip
def native_go(stack: Stack, options: Namespace) -> str:
    """One-row batches of clickhouse-go, straight and gathered."""
    folder = CLIENTS / "go"
    program = Path(stack.folder.name) / "go-client"
    prepare(["go", "build", "-trimpath", "-o", str(program), "."], folder)
    rows = Rows()
    for _ in range(options.rounds):
        for mode in ("direct", "stored", "disk"):
            rows.append(go_load(stack, program, mode, options))
    runs = lambda mode: rows.where(mode=mode)
    shown: list[Column] = [
        ("way", of("way")), ("inserts/s", of("per_second")),
        ("× straight", lambda group: group.ratio(runs("direct"), "per_second")), ("p50 ms", of("p50_ms")), ("p99 ms", of("p99_ms")),
        ("client's CPU, us per insert", of("client_us")), ("gateway's CPU, us per insert", of("server_us")),
        ("ClickHouse's CPU, us per insert", of("clickhouse_us")),
    ]  # fmt: skip
    goals = Goals()
    goals.at_least("stored, inserts/s to straight", 20, runs("stored").ratio(runs("direct"), "per_second"))
    return f"{prose('native-go', goroutines=options.goroutines)}{columns([group for _, group in rows.groups('mode')], shown)}\n{goals}"


def go_load(stack: Stack, program: Path, mode: str, options: Namespace) -> dict[str, Any]:
    through, table = mode != "direct", OneTable()
    server = stack.gateway if through else stack.clickhouse
    table.prepare(stack.clickhouse)
    plan = {
        "goroutines": options.goroutines, "seconds": options.seconds, "table": table.name,
        "settings": dict(setting.split("=", 1) for setting in MODES[mode].settings),
    }  # fmt: skip
    native = replace(server, port=stack.native_port(through))
    before = stack.snapshot()
    done = subprocess.run(
        [str(program), "load", json.dumps(plan)], env=environment_of(native, "native"), stdout=subprocess.PIPE, check=True
    )
    load = json.loads(done.stdout)
    if through:
        flush(server)
    gateway, clickhouse = stack.snapshot().cpu_since(before)
    stored = stack.clickhouse.sql(f"SELECT count(), uniqExact(conn, seq) FROM {table.name}").split("\t")
    if load["first_error"] or set(stored) != {str(load["acknowledged"])}:
        raise SystemExit(f"{mode}: {load['acknowledged']} acknowledged, {stored} there; {load['first_error']}")
    table.drop(stack.clickhouse)
    per_insert = lambda seconds: seconds * 1e6 / max(1, load["acknowledged"])
    return {
        "mode": mode, "way": MODES[mode].title, "per_second": load["acknowledged"] / load["seconds"],
        "p50_ms": load["p50_ms"], "p99_ms": load["p99_ms"], "client_us": per_insert(load["cpu_seconds"]),
        "server_us": per_insert(gateway) if through else None, "clickhouse_us": per_insert(clickhouse),
    }  # fmt: skip


ROWS = 1_000_000
COLUMNS = ", ".join([*(f"u{n} UInt64" for n in range(4)), *(f"f{n} Float64" for n in range(3)), "i Int32", "d DateTime", "s String"])
# Of all columns.
ROW_BYTES = 80
FILLED = (
    "INSERT INTO bench.result SELECT cityHash64(number) % 1099511627776, number, number * 17, number % 1000, rand() / 7, number / 3, number, "
    "number % 100, toDateTime(number), leftPad(toString(number), 15, '0') FROM numbers({})"
)


@part(
    "native-large", "Large batches and results over the native protocol", quick={"rounds": 1, "megabytes": 200},
    rounds=Option(5, "of each way, alternately"), megabytes=Option(1000, "about how large the result is"),
)  # fmt: skip
def native_large(stack: Stack, options: Namespace) -> str:
    """A million rows in one block, and a large result, over one native connection, straight and through the gateway."""
    rows, goals = Rows(), Goals()
    stack.clickhouse.sql("DROP TABLE IF EXISTS bench.large")
    stack.clickhouse.sql(f"CREATE TABLE bench.large ({COLUMNS}) ENGINE = MergeTree ORDER BY u1")
    # Merges would fall on whichever way comes next.
    stack.clickhouse.sql("SYSTEM STOP MERGES bench.large")
    stack.clickhouse.sql("DROP TABLE IF EXISTS bench.result")
    stack.clickhouse.sql(f"CREATE TABLE bench.result ({COLUMNS}) ENGINE = MergeTree ORDER BY u1")
    stack.clickhouse.sql(FILLED.format(options.megabytes * 1_000_000 // ROW_BYTES))
    file = Path(stack.folder.name) / "block"
    file.write_bytes(block(ROWS))
    statements = {
        "insert of a million rows": ("INSERT INTO bench.large VALUES", str(file)),
        "result": ("SELECT * FROM bench.result", None),
    }
    for _ in range(options.rounds):
        for what, (statement, path) in statements.items():
            for way in ("straight", "gateway"):
                before = stack.snapshot()
                reset_peak(stack.gateway_pid)
                took = large(stack, way == "gateway", statement, path)
                after = stack.snapshot()
                gateway, clickhouse = after.cpu_since(before)
                rows.append({
                    "what": what, "way": way, "megabytes": took["bytes"] / 1e6,
                    "speed": took["bytes"] / 1e6 / min(took["seconds"]), "gateway_s": gateway, "clickhouse_s": clickhouse,
                    "grown": max(0, peak_bytes(stack.gateway_pid) - before.gateway.resident_bytes) / 1e6,
                })  # fmt: skip
    stack.clickhouse.sql("DROP TABLE bench.large SYNC")
    stack.clickhouse.sql("DROP TABLE bench.result SYNC")
    shown: list[Column] = [
        ("what", of("what")), ("way", of("way")), ("MB", of("megabytes")), ("MB/s", of("speed")),
        ("gateway's CPU, s", of("gateway_s")), ("ClickHouse's CPU, s", of("clickhouse_s")), ("gateway grew by, MB", of("grown")),
    ]  # fmt: skip
    runs = lambda what, way: rows.where(what=what, way=way)
    for what, least in (("insert of a million rows", 0.9), ("result", 0.85)):
        straight, through = runs(what, "straight"), runs(what, "gateway")
        goals.at_least(f"{what}: speed to straight", least, through.ratio(straight, "speed"))
        goals.at_most(f"{what}: ClickHouse's CPU to straight", 1.05, through.ratio(straight, "clickhouse_s"))
    return f"{prose('native-large')}{columns([group for _, group in rows.groups('what', 'way')], shown)}\n{goals}"


def block(rows: int) -> bytes:
    """As `FORMAT Native` has it."""
    random = numpy.random.default_rng(1)
    out = [b"\x0a" + varint(rows)]
    for name, kind in (column.split(" ") for column in COLUMNS.split(", ")):
        match kind:
            case "UInt64":
                values = random.integers(0, 1 << 40, rows, dtype="<u8").tobytes()
            case "Float64":
                values = random.random(rows).astype("<f8").tobytes()
            case "String":
                values = b"".join(b"\x0f%015d" % number for number in range(rows))
            case _:
                values = random.integers(0, 1 << 30, rows, dtype="<u4").tobytes()
        out.append(text(name) + text(kind) + values)
    return b"".join(out)


def large(stack: Stack, through: bool, statement: str, path: str | None, times: int = 3) -> dict[str, Any]:
    server = stack.gateway if through else stack.clickhouse
    login = {"user": server.user, "password": server.password, "settings": [], "waits": True}
    address = f"{server.host}:{stack.native_port(through)}"
    plan = {"address": address, "login": login, "statement": statement, "block_file": path, "times": times}
    done = subprocess.run([str(binary("windrow-bench")), "native"], input=json.dumps(plan).encode(), stdout=subprocess.PIPE)
    if done.returncode:
        raise SystemExit("the load generator failed")
    return json.loads(done.stdout)


FLUSH_BYTES = 160_000_000


@part("native-flush", "Flushes over the native protocol", quick={"rounds": 1}, rounds=Option(5, "of each way, alternately"))
def native_flush(stack: Stack, options: Namespace) -> str:
    """Batches as the gateway flushes them, straight into ClickHouse, over HTTP and natively: which of the two costs less."""
    rows = Rows()
    server = stack.clickhouse
    for number in range(options.rounds):
        for batch_rows in (100, 1_000, 10_000):
            # Stored nowhere: what the protocol costs is to show beside everything that a part takes.
            for engine in ("Null", "MergeTree ORDER BY u1"):
                for protocol in ("http", "native at once"):
                    rows.append(flushes(stack, server, batch_rows, engine, protocol))
    shown: list[Column] = [
        ("rows", of("rows")), ("engine", of("engine")), ("protocol", of("protocol")), ("ms per flush", of("ms")),
        ("ClickHouse's CPU, us per flush", of("clickhouse_us")), ("sender's CPU, us per flush", of("sender_us")),
    ]  # fmt: skip
    return f"{prose('native-flush')}{columns([group for _, group in rows.groups('rows', 'engine', 'protocol')], shown)}"


def flushes(stack: Stack, server: Endpoint, rows: int, engine: str, protocol: str) -> dict[str, Any]:
    """Over one connection, one after the other."""
    stack.clickhouse.sql("DROP TABLE IF EXISTS bench.flushed SYNC")
    stack.clickhouse.sql(f"CREATE TABLE bench.flushed ({COLUMNS}) ENGINE = {engine}")
    merges = engine != "Null"
    if merges:
        stack.clickhouse.sql("SYSTEM STOP MERGES bench.flushed")
    inserts = min(1_000 if engine == "Null" else 200, FLUSH_BYTES // (rows * ROW_BYTES))
    scenario = Scenario("direct", 1, 3600, 0, "Native", protocol=protocol)
    more: dict[str, Any] = {"row": [list(block(rows))], "inserts_per_connection": inserts}
    heads, port = [head(server, scenario.query("bench.flushed"))], server.port
    if protocol != "http":
        more["native"] = {
            "user": server.user, "password": server.password, "settings": [["async_insert", "0"]], "waits": False,
        }  # fmt: skip
        heads, port = ["INSERT INTO bench.flushed FORMAT Native"], stack.native_port(False)
    before = stack.snapshot()
    load = generate(f"{server.host}:{port}", heads, scenario, more)
    _, clickhouse = stack.snapshot().cpu_since(before)
    if load["first_error"] or merges and int(stack.clickhouse.sql("SELECT count() FROM bench.flushed")) != rows * inserts:
        raise SystemExit(f"not all was stored: {load['first_error']}")
    stack.clickhouse.sql("DROP TABLE bench.flushed SYNC")
    return {
        "rows": rows, "engine": engine.split(" ")[0], "protocol": "HTTP" if protocol == "http" else "native",
        "ms": load["p50_ms"], "clickhouse_us": clickhouse * 1e6 / inserts, "sender_us": load["cpu_seconds"] * 1e6 / inserts,
    }  # fmt: skip


@part("native-idle", "Idle native connections", quick={"connections": 1000}, connections=Option(10000))
def native_idle(stack: Stack, options: Namespace) -> str:
    """Memory of native connections that do nothing."""
    if (limit := raise_open_files()) < options.connections + 100:
        raise SystemExit(f"only {limit} files may be open: raise `ulimit -n` or use fewer connections")
    memory = lambda: usage(stack.gateway_pid).resident_bytes / 1e6
    server, before = replace(stack.gateway, port=stack.native_port(True)), memory()
    stack.clickhouse.sql("CREATE TABLE bench.idle (n UInt64) ENGINE = Null")
    opened = [Native(server, 54460).start() for _ in range(options.connections)]
    # Each inserts once, so that the gateway has made whatever it keeps for one.
    for connection in opened:
        last = connection.insert("INSERT INTO bench.idle VALUES", [numbers("n", [1])], 1, {"wait_for_async_insert": "0"})[-1]
        if last.kind == EXCEPTION:
            raise SystemExit(f"an insert failed: {last.message}")
    after = memory()
    behind = int(stack.clickhouse.sql("SELECT value FROM system.metrics WHERE metric = 'TCPConnection'"))
    for connection in opened:
        connection.socket.close()
    per_connection = max(0.0, after - before) * 1000 / options.connections
    line = [f"{options.connections:,}", *map(figure, (before, after, per_connection)), str(behind)]
    head = ["idle native connections", "before, MB", "with them, MB", "per connection, kB", "at ClickHouse"]
    goals = Goals()
    goals.at_most("the gateway with 10,000 idle native connections, MB", 200, after)
    goals.at_most("native connections at ClickHouse", 0, behind)
    return f"{prose('native-idle')}{table(head, [line])}\n{goals}"
