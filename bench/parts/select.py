"""A large answer, straight and forwarded by the gateway: how much of the speed is left, and whether the gateway holds more of it than
it has to."""

from argparse import Namespace

from bench.base.figures import Goals, Rows, columns, of
from bench.base.part import Option, part
from bench.base.processes import peak_bytes, reset_peak, usage
from bench.base.stack import Stack, read_all

# Text that ClickHouse has to format, and bytes that it hardly touches, which is the hardest for whoever stands in between: what a row
# is made of, the format, and about what a row takes.
ANSWERS = {
    "text: TabSeparated, six columns": (
        "number, number * 17, number % 1000, toString(cityHash64(number)), toDateTime(number), 'https://example.com/'",
        "TabSeparated",
        85,
    ),
    "bytes: RowBinary, strings of 1 kB": ("repeat('windrow ', 125)", "RowBinary", 1002),
}


@part(
    "select", "A large answer, forwarded", quick={"rounds": 1, "megabytes": 200},
    megabytes=Option(1000, "about how large the answer is"), rounds=Option(5, "of each way, alternately"),
)  # fmt: skip
def select(stack: Stack, options: Namespace) -> str:
    """A large answer, forwarded."""
    rows, goals = Rows(), Goals()
    for name, (what, format, row_bytes) in ANSWERS.items():
        query = f"SELECT {what} FROM numbers({options.megabytes * 1_000_000 // row_bytes}) FORMAT {format}"
        for _ in range(options.rounds):
            direct_bytes, direct_seconds = read_all(stack.clickhouse, query)
            before = usage(stack.gateway_pid).resident_bytes
            reset_peak(stack.gateway_pid)
            forwarded_bytes, forwarded_seconds = read_all(stack.gateway, query)
            if direct_bytes != forwarded_bytes:
                raise SystemExit(f"one answer had {direct_bytes} bytes, the other {forwarded_bytes}")
            megabytes = direct_bytes / 1e6
            rows.append({
                "answer": name, "megabytes": megabytes, "direct": megabytes / direct_seconds,
                "forwarded": megabytes / forwarded_seconds, "ratio": direct_seconds / forwarded_seconds,
                "grown": max(0, peak_bytes(stack.gateway_pid) - before) / 1e6,
            })  # fmt: skip
        kind, runs = name.partition(":")[0], rows.where(answer=name)
        goals.at_least(f"{kind}: forwarded speed to direct", 0.9, runs.median("ratio"))
        goals.at_most(f"{kind}: growth of the gateway, MB", 64, runs.most("grown"))
    shown = columns([group for _, group in rows.groups("answer")], [
        ("answer", of("answer")), ("MB", of("megabytes")), ("direct MB/s", of("direct")),
        ("forwarded MB/s", of("forwarded")), ("ratio", of("ratio")),
        ("gateway grew by MB", lambda group: group.most("grown")),
    ])  # fmt: skip
    return f"{shown}\n{goals}"
