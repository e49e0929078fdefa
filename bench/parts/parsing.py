"""Payloads into blocks: the gateway's readers, in a process of their own, against ClickHouse's on the same bytes, by the CPU time that
each takes. ClickHouse writes into a table that keeps nothing, so that reading is nearly all it does; what receiving the bytes costs it
is measured by a format that doesn't look at them, and shown."""

import tempfile
from argparse import Namespace

from bench.base.figures import Goals, Rows, columns, of
from bench.base.part import Option, part
from bench.base.processes import Program
from bench.base.stack import Stack, binary

TABLE = "bench.parsing"
# One core, nothing queued, nothing guessed.
SETTINGS = {"async_insert": 0, "max_threads": 1, "max_insert_threads": 1, "input_format_parallel_parsing": 0}
# How many times as fast as ClickHouse.
WANTED = {"JSONEachRow": 1.5, "CSV": 1.2, "TSV": 1.2, "RowBinary": 2, "Native": 2}
# Of each kind of rows the columns: name, type, and SQL over `number`.
ROWS = {
    "numbers and text": [
        ("id", "UInt64", "number"),
        ("name", "String", "concat('name ', toString(number % 9973))"),
        ("value", "Float64", "number / 8"),
        ("at", "DateTime('UTC')", "toDateTime(1700000000 + number, 'UTC')"),
    ],
    "nested and nullable": [
        ("id", "UUID", "reinterpretAsUUID(sipHash128(number))"),
        ("host", "LowCardinality(String)", "concat('host-', toString(number % 50))"),
        ("at", "DateTime64(3, 'UTC')", "toDateTime64(1700000000 + number / 1000, 3, 'UTC')"),
        ("labels", "Map(String, String)", "map('region', toString(number % 7), 'zone', 'b')"),
        ("code", "Nullable(Int32)", "if(number % 3 = 0, NULL, toInt32(number % 600))"),
        ("steps", "Array(UInt32)", "range(toUInt32(number % 4))"),
    ],
}


@part(
    "parsing", "Reading payloads", quick={"rounds": 1, "megabytes": 20},
    rows=Option(100_000), rounds=Option(5, "of each reader, alternately"),
    megabytes=Option(80, "what ClickHouse reads per round; Windrow four times as much. The kernel counts CPU in steps of 10 ms"),
)  # fmt: skip
def parsing(stack: Stack, options: Namespace) -> str:
    """Payloads into blocks, against ClickHouse's own readers."""
    found, goals = Rows(), Goals()
    for name, rows in ROWS.items():
        stack.clickhouse.sql(f"DROP TABLE IF EXISTS {TABLE} SYNC")
        declared = ", ".join(f"{column} {kind}" for column, kind, _ in rows)
        stack.clickhouse.sql(f"CREATE TABLE {TABLE} ({declared}) ENGINE = Null")
        for format, wanted in WANTED.items():
            runs = measure(stack, name, format, options)
            found += runs
            times = runs.ratio(Rows({"clickhouse_ms": row["reader_ms"]} for row in runs), "clickhouse_ms")
            goals.at_least(f"{format}, {name}, times ClickHouse's speed", wanted, times)
    shown = columns([group for _, group in found.groups("rows", "format")], [
        ("rows", of("rows")), ("format", of("format")), ("MB", of("megabytes")),
        ("ClickHouse, CPU ms", of("clickhouse_ms")), ("of it receiving", of("receiving_ms")),
        ("Windrow's reader, CPU ms", of("reader_ms")),
        ("MB/s", lambda group: group.median("megabytes") * 1000 / group.median("reader_ms")),
        ("times as fast", lambda group: group.median("clickhouse_ms") / group.median("reader_ms")),
        ("without receiving",
         lambda group: (group.median("clickhouse_ms") - group.median("receiving_ms")) / group.median("reader_ms")),
    ])  # fmt: skip
    return f"{shown}\n{goals}"


def measure(stack: Stack, name: str, format: str, options: Namespace) -> Rows:
    quoted = lambda kind: kind.replace("'", "\\'")
    values = ", ".join(f"CAST({value}, '{quoted(kind)}') AS {column}" for column, kind, value in ROWS[name])
    query = f"SELECT {values} FROM numbers({options.rows}) FORMAT {format}"
    payload = stack.clickhouse.request(None, query.encode()).body
    times = -(-options.megabytes * 1_000_000 // max(1, len(payload)))

    def clickhouse_ms(statement: str) -> float:
        before = stack.snapshot()
        for _ in range(times):
            reply = stack.clickhouse.insert(statement, payload, **SETTINGS)
            if reply.status != 200:
                raise SystemExit(reply.text)
        return stack.snapshot().cpu_since(before)[1] * 1000 / times

    found, command = Rows(), [str(binary("windrow-bench")), "parse"]
    with tempfile.NamedTemporaryFile() as file:
        file.write(payload)
        file.flush()
        named = [(column, kind) for column, kind, _ in ROWS[name]]
        plan = {"format": format, "columns": named, "payload_file": file.name, "rows": options.rows, "times": 4 * times}
        for number in range(options.rounds + 1):
            with Program(command) as reader:
                row = {
                    "rows": name, "format": format, "megabytes": len(payload) / 1e6,
                    "clickhouse_ms": clickhouse_ms(f"INSERT INTO {TABLE} FORMAT {format}"),
                    "receiving_ms": clickhouse_ms("INSERT INTO FUNCTION null('x String') FORMAT RawBLOB"),
                    "reader_ms": reader.ask(plan)["cpu_ms"],
                }  # fmt: skip
            # The first warms both.
            found += [row] if number else []
    return found
