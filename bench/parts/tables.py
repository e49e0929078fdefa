"""Small inserts spread over many tables: what is left of the speed of one table, what ClickHouse is asked besides, and what memory the
gateway takes.

All tables are made before anything is measured and stay: runs into the same tables are told apart by the numbers of their
connections. Few tables are inserted into evenly, one number after the other. Very many are inserted into by Zipf, as real ones are,
and get a gateway and a ClickHouse of their own, so that the memory is theirs alone.
"""

import sys
import threading
import time
from argparse import Namespace
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from harness.endpoint import Endpoint

from bench.base.check import Ids, RowsIn, Stored, check
from bench.base.document import prose
from bench.base.figures import NONE, Column, Goals, Rows, columns, count, figure, of, table
from bench.base.part import Option, part
from bench.base.scenario import MODES, OneTable, Scenario, run, stride_over, tell
from bench.base.stack import Stack

# From so many tables on, inserts are spread by Zipf.
ZIPF_FROM = 10_000
# All targets have been inserted into once by then, also on a machine that others use as well.
TOUCHED_WITHIN_SECONDS = 300
# What a run before has left to merge is no cost of the next; but merging may take long.
MERGED_WITHIN_SECONDS = 3
# Long enough for what ends by itself after a moment.
RESTS_FOR_SECONDS = 3
# Each statement waits for files to be made: a few at once are faster, many are not.
CREATING_AT_ONCE = 8


def merged(tables: int) -> str:
    """As many tables as may be needed at once to read all of so many. It may be a few more."""
    return f"merge('bench', '^t[0-9]{{1,{len(str(max(0, tables - 1)))}}}$')"


class ManyTables:
    """`bench.t0` and so on: a ground as `OneTable` is, that stays for all runs."""

    def __init__(self, sql: Endpoint, tables: int, zipf: bool, connections: int) -> None:
        self.sql, self.count, self.zipf, self.connections = sql, tables, zipf, connections
        # The numbers in rows of the present run's connections, what all runs brought, and what may have come later.
        self.conns, self.rows, self.uncertain, self.stride = range(0), 0, 0, 0

    def create(self) -> None:
        """In place of those that an earlier run may have left: nobody here sent their rows."""
        left = "SELECT name FROM system.tables WHERE database = 'bench' AND match(name, '^t[0-9]+$') FORMAT TSV"
        for name in self.sql.sql(left).splitlines():
            self.sql.sql(f"DROP TABLE bench.{name} SYNC")
        with ThreadPoolExecutor(CREATING_AT_ONCE) as threads:
            list(threads.map(lambda name: self.sql.sql(OneTable(name).ddl), self.tables()))

    def tables(self) -> list[str]:
        return [f"bench.t{number}" for number in range(self.count)]

    def prepare(self, sql: Endpoint) -> None:
        self.conns = range(self.conns.stop, self.conns.stop + self.connections)
        until = time.monotonic() + MERGED_WITHIN_SECONDS
        while int(sql.sql("SELECT count() FROM system.merges")) and time.monotonic() < until:
            time.sleep(0.05)

    def plan(self) -> dict[str, Any]:
        stride = self.stride or (0 if self.zipf else stride_over(self.count))
        return {"first_conn": self.conns.start, "stride": stride}

    def check(self, sql: Endpoint, ids: list[Ids]) -> Stored:
        stored = check(sql, RowsIn(merged(self.count), self.conns, "toUInt64(substring(_table, 2))"), ids)
        self.rows += stored.rows
        self.uncertain += sum(len(of.unacknowledged) for of in ids)
        return stored

    def parts(self, sql: Endpoint) -> None:
        """A window has its own."""

    def drop(self, sql: Endpoint) -> None:
        """They stay."""

    def refuse_rows_of_nobody(self, most_tables: int) -> None:
        """A run's own rows are looked for by its numbers; rows with other numbers show here."""
        there = int(self.sql.sql(f"SELECT count() FROM {merged(most_tables)}"))
        if not self.rows <= there <= self.rows + self.uncertain:
            raise SystemExit(f"{there} rows are in the tables, {self.rows} were found run by run")


@dataclass(frozen=True)
class Reading:
    """Totals since the server was started, or the tables were made."""

    at: float
    parts: int
    selects: int
    inserts: int


# Parts of all tables at once, as `parts_created` counts them in one, and the questions.
READ = (
    "SELECT (SELECT toUInt64(sum(last)) FROM (SELECT max(max_block_number) AS last FROM system.parts WHERE database = 'bench' "
    "GROUP BY table)), toUInt64(sumIf(value, event = 'SelectQuery')), toUInt64(sumIf(value, event = 'InsertQuery')) "
    "FROM system.events FORMAT TSV"
)


def read(sql: Endpoint) -> Reading:
    numbers = [int(field) for field in sql.sql(READ).split()]
    # A busy server lets the query wait before it runs, not after.
    return Reading(time.monotonic(), *numbers)


def between(before: Reading, after: Reading, own_selects: int) -> dict[str, float]:
    """Per second. INSERTs that brought no rows: with these, a gateway asks whether a user may insert."""
    seconds, parts = max(0.001, after.at - before.at), max(0, after.parts - before.parts)
    selects = max(0, after.selects - before.selects - own_selects) / seconds
    empty = max(0, after.inserts - before.inserts - parts) / seconds
    return {"parts_per_second": parts / seconds, "selects": selects, "empty": empty, "questions": selects + empty}


class Window:
    """What ClickHouse was asked, and what came into its tables, between the moments at which a run's window opens and closes."""

    def __init__(self, stack: Stack, scenario: Scenario) -> None:
        self.stack, self.found = stack, {}
        self.moments = (scenario.warmup_seconds, scenario.seconds)
        # How many SELECTs one reading counts as. Others may ask meanwhile, so the least of a few is it.
        readings = [read(stack.clickhouse) for _ in range(4)]
        self.own_selects = min(after.selects - before.selects for before, after in zip(readings, readings[1:]))

    def _watch(self) -> None:
        time.sleep(self.moments[0])
        before = read(self.stack.clickhouse)
        time.sleep(self.moments[1])
        self.found["memory_mb"] = self.stack.snapshot().gateway.resident_bytes / 1e6
        self.found |= between(before, read(self.stack.clickhouse), self.own_selects)

    def __enter__(self) -> None:
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()

    def __exit__(self, *_: object) -> None:
        self.thread.join()


@part(
    "tables", "Many tables", quick={"seconds": 1.0, "warmup_seconds": 1.0, "tables": [1, 10, 100]},
    seconds=Option(6.0, "how long each run is measured"), warmup_seconds=Option(2.0),
    rounds=Option(1, "how often each mode is run; the medians are reported"),
    tables=Option([1, 10, 100, 1000, 10_000], "numbers of tables; from 10,000 on, inserts are spread by Zipf"),
    connections=Option(200), modes=Option(["stored", "disk", "direct"], choices=("direct", "stored", "disk", "memory")),
)  # fmt: skip
def tables(stack: Stack, options: Namespace) -> str:
    """One-row inserts spread over many tables: about five minutes."""
    few = [number for number in options.tables if number < ZIPF_FROM]
    rows, at_rest = Rows(), []
    if few:
        ground = ManyTables(stack.clickhouse, max(few), False, options.connections)
        ground.create()
        for ground.count in few:
            touch(stack, ground)
            rows += measure(stack, ground, options)
        ground.refuse_rows_of_nobody(max(few))
    for number in options.tables:
        if number >= ZIPF_FROM:
            own = Stack(options)
            ground = ManyTables(own.clickhouse, number, True, options.connections)
            ground.create()
            at_rest.append(rest(own, ground))
            rows += measure(own, ground, options)
            ground.refuse_rows_of_nobody(number)
            own.close()
    text = prose("tables") + columns([group for _, group in rows.groups("tables", "mode")], shown(rows))
    return text + ("\n" + prose("tables at rest") + rest_table(at_rest) if at_rest else "") + f"\n{goals_of(rows, at_rest)}"


def touch(stack: Stack, ground: ManyTables) -> dict[str, float]:
    """Inserts into each table once, with as few inserts as can be, so that nothing of a run is anybody's first time."""
    ground.stride = ground.connections
    most = -(-ground.count // ground.connections)
    load = {"inserts_per_connection": most, "seconds": TOUCHED_WITHIN_SECONDS}
    began = time.monotonic()
    row = run(stack, Scenario("disk", ground.connections, 0, warmup_seconds=0, load=load), ground)
    ground.stride = 0
    if row["refused"] or row["acknowledged"] < ground.count:
        raise SystemExit(f"only {row['acknowledged']} of {ground.count} tables were reached; first error: {row['error']}")
    return {"seconds": time.monotonic() - began - row["flush_seconds"], "flush_seconds": row["flush_seconds"]}


def rest(stack: Stack, ground: ManyTables) -> dict[str, float]:
    """What a fresh gateway keeps in memory of tables that were inserted into once and have rested since."""
    memory = lambda: stack.snapshot().gateway.resident_bytes / 1e6
    before = memory()
    found = touch(stack, ground)
    time.sleep(RESTS_FOR_SECONDS)
    found |= {"tables": ground.count, "before_mb": before, "after_mb": memory()}
    print(f"at rest: {found}", file=sys.stderr)
    return found


def rest_table(at_rest: list[dict[str, float]]) -> str:
    head = ["tables at rest", "first inserts took, s", "stored so long after, s", "gateway's memory before, MB", "at rest, MB"]
    lines = []
    for one in at_rest:
        per_table = max(0.0, one["after_mb"] - one["before_mb"]) * 1000 / one["tables"]
        figures = [figure(one[key]) for key in ("seconds", "flush_seconds", "before_mb", "after_mb")]
        lines.append([count(one["tables"]), *figures, figure(per_table)])
    return table([*head, "per table, kB"], lines)


def measure(stack: Stack, ground: ManyTables, options: Namespace) -> Rows:
    rows = Rows()
    for _ in range(options.rounds):
        for mode in options.modes:
            labels = {"tables": ground.count, "spread": "Zipf" if ground.zipf else "even"}
            scenario = Scenario(mode, options.connections, options.seconds, options.warmup_seconds, labels=labels)
            window = Window(stack, scenario)
            rows.append(run(stack, scenario, ground, window) | window.found)
            tell(f"{ground.count} tables", rows[-1])
    return rows


def shown(rows: Rows) -> list[Column]:
    def ratio(group: Rows, **to: object) -> float | None:
        return group.ratio(rows.where(**{"tables": group[0]["tables"], "mode": group[0]["mode"], **to}), "per_second")

    def of_gateway(key: str) -> object:
        return lambda group: group.median(key) if MODES[group[0]["mode"]].target == "gateway" else NONE

    return [
        ("tables", lambda group: count(group[0]["tables"])), ("spread", of("spread")), ("way", of("mode")),
        ("inserts/s", of("per_second")), ("× one table", lambda group: ratio(group, tables=1)),
        ("× direct", lambda group: ratio(group, mode="direct")), ("p50 ms", of("p50_ms")), ("p99 ms", of("p99_ms")),
        ("ClickHouse's CPU, us per insert", of("clickhouse_us")), ("gateway's CPU, us per insert", of("server_us")),
        ("parts/s", of("parts_per_second")), ("SELECTs/s", of_gateway("selects")), ("empty INSERTs/s", of_gateway("empty")),
        ("gateway's memory, MB", of_gateway("memory_mb")), ("failed", lambda group: count(group.median("refused") or 0)),
    ]  # type: ignore[list-item]  # fmt: skip


# Tables, ack level, what of one table's speed is to be left.
TO_ONE_TABLE = ((10, "stored", 0.5), (100, "disk", 0.8), (1000, "disk", 0.5), (10_000, "disk", 0.3))
TO_DIRECT = ((100, 10), (1000, 3))


def goals_of(rows: Rows, at_rest: list[dict[str, float]]) -> Goals:
    goals = Goals()
    runs = lambda number, mode: rows.where(tables=number, mode=mode)
    for number, mode, goal in TO_ONE_TABLE:
        ratio = runs(number, mode).ratio(runs(1, mode), "per_second")
        goals.at_least(f"{number:,} tables, {mode}, inserts/s to one table's", goal, ratio)
    for number, goal in TO_DIRECT:
        ratio = runs(number, "stored").ratio(runs(number, "direct"), "per_second")
        goals.at_least(f"{number:,} tables, stored, inserts/s to direct", goal, ratio)
    disk = runs(1000, "disk")
    goals.at_most("1,000 tables, disk, p99 ms", 100, disk.median("p99_ms"))
    cpu = disk.ratio(runs(1000, "direct"), "clickhouse_us")
    goals.at_most("1,000 tables, disk, ClickHouse's CPU per insert to direct's", 0.1, cpu)
    for mode in ("stored", "disk"):
        many = runs(ZIPF_FROM, mode)
        goals.at_most(f"10,000 tables, {mode}, failed inserts", 0, many.most("refused"))
        goals.at_most(f"10,000 tables, {mode}, gateway's memory, MB", 300, many.most("memory_mb"))
        goals.at_most(f"10,000 tables, {mode}, questions/s", 20, many.median("questions"))
    for one in at_rest:
        goals.at_most(f"{one['tables']:,} tables at rest, gateway's memory, MB", 150, one["after_mb"])
    return goals
