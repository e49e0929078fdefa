"""ClickHouse's native protocol: small inserts beside HTTP's, batches, a large answer, connections that do nothing."""

from argparse import Namespace

from bench.base.document import prose
from bench.base.figures import Column, Goals, Rows, columns, of
from bench.base.part import part
from bench.base.scenario import Scenario, rounds
from bench.base.stack import Stack
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
