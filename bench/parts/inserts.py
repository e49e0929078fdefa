"""One-row inserts: at each ack level beside ClickHouse and beside handlers that do nothing; in binary formats; acknowledged on
disk beside memory and one sync each; and into DuckDB."""

import os
import tempfile
import time
from argparse import Namespace

from bench.base.document import prose
from bench.base.figures import NONE, Column, Goals, Rows, columns, count, figure, median, of, paired_ratio, table
from bench.base.part import Option, part
from bench.base.scenario import MODES, OneTable, Scenario, rounds
from bench.base.stack import Stack, binary

# ClickHouse takes 100 to 300 synchronous inserts a second here. So that every connection has its turn within the window, the direct
# way is measured for longer the more connections there are.
DIRECT_SECONDS_PER_CONNECTION = 0.008
# ClickHouse's own asynchronous inserts can't be measured here: the embedded engine has no queue for them. Under load its flush comes
# after async_insert_busy_timeout_max_ms, 200 ms, and a waiting connection has one insert in it.
ASYNCHRONOUS_FLUSHES_PER_SECOND = 5
SECONDS = Option(2.0, "how long each run is measured")
CONNECTIONS = Option(200, "of the load generator")
ROUNDS = Option(5, "how often each way is run, alternately; medians are reported")


@part(
    "inserts", "Many small inserts", quick={"seconds": 1.0, "rounds": 1},
    seconds=SECONDS, rounds=ROUNDS, connections=Option([16, 200, 1000]),
    modes=Option("empty,axum,direct,stored,disk,memory".split(","), f"of {', '.join(MODES)}", choices=tuple(MODES)),
    count=Option(None, "end each run already when every connection has inserted so many rows"),
    warmup_seconds=Option(0.5, rare=True), setting=Option([], "added to the URL of inserts through the gateway: name=value"),
    format=Option("JSONEachRow", choices=("JSONEachRow", "RowBinary", "Native"), rare=True),
)  # fmt: skip
def inserts(stack: Stack, options: Namespace) -> str:
    """One-row inserts from many connections, at each ack level."""
    rows = Rows()
    for connections in options.connections:
        rows += rounds(stack, [scenario(options, mode, connections, stack) for mode in options.modes
                               if MODES[mode].target != "gateway" or stack.has_gateway], options.rounds)  # fmt: skip
    groups = [group for _, group in rows.groups("connections", "mode")]
    with_bounds = [one for group in groups for one in (group, *bound_below(group))]
    speed, costs = columns(with_bounds, [*NAMED, *speed_columns(rows)]), prose("costs") + columns(groups, COSTS)
    return f"{prose('inserts')}{speed}\n{costs}\n{goals_of_inserts(rows)}"


def bound_below(group: Rows) -> list[Rows]:
    """Below ClickHouse's synchronous inserts, what bounds its asynchronous ones."""
    connections, way = group[0]["connections"], "(bound of ClickHouse's own async_insert)"
    row = {"connections": connections, "way": way, "per_second": connections * ASYNCHRONOUS_FLUSHES_PER_SECOND}
    return [Rows([row])] if group[0]["mode"] == "direct" else []


def scenario(options: Namespace, mode: str, connections: int, stack: Stack) -> Scenario:
    seconds = options.seconds
    if mode == "direct":
        seconds = max(seconds, connections * DIRECT_SECONDS_PER_CONNECTION)
    through = MODES[mode].target == "gateway"
    return Scenario(
        mode, connections, seconds, options.warmup_seconds, options.format,
        settings=tuple(options.setting) if through else (), load={"inserts_per_connection": options.count},
    )  # fmt: skip


NAMED: list[Column] = [("connections", lambda rows: str(rows[0]["connections"])), ("way", of("way"))]
COSTS: list[Column] = [
    *NAMED, ("gateway or handler", of("server_us")), ("ClickHouse", of("clickhouse_us")), ("load generator", of("load_us")),
    ("together", of("all_us")), ("gateway's memory, MB", of("memory_mb")),
]  # fmt: skip


def speed_columns(rows: Rows) -> list[Column]:
    def to(mode: str, of_handlers: bool) -> object:
        def ratio(group: Rows) -> object:
            known = MODES.get(group[0].get("mode", ""))
            peers = rows.where(connections=group[0]["connections"], mode=mode)
            return group.ratio(peers, "per_second") if known and (of_handlers or not known.is_handler) else NONE

        return ratio

    counted = lambda key: lambda group: NONE if (number := group.median(key)) is None else count(number)
    return [
        ("requests/s", of("per_second")), ("of the limit", to("empty", True)), ("× direct", to("direct", False)),
        *((f"{share} ms", of(f"{share}_ms")) for share in ("p50", "p95", "p99", "max")),
        ("parts", counted("parts")), ("rows/part", of("rows_per_part")), ("refused", counted("refused")),
    ]  # type: ignore[return-value]  # fmt: skip


def goals_of_inserts(rows: Rows) -> Goals:
    goals = Goals()
    runs = lambda mode, connections=200: rows.where(mode=mode, connections=connections)
    speed = lambda mode, to, connections=200: runs(mode, connections).ratio(runs(to, connections), "per_second")
    goals.at_least("memory, 200 connections, requests/s to the limit's", 0.7, speed("memory", "empty"))
    goals.at_least("disk, 200 connections, requests/s to the empty handler's on axum", 0.75, speed("disk", "axum"))
    goals.at_most("memory, 200 connections, p99 to the limit's", 3, runs("memory").ratio(runs("empty"), "p99_ms"))
    goals.at_least("stored, 200 connections, requests/s to direct", 4, speed("stored", "direct"))
    goals.at_least("stored, 200 connections, rows per part", 100, runs("stored").median("rows_per_part"))
    goals.at_least("stored, 1,000 connections, requests/s to direct", 12, speed("stored", "direct", 1000))
    for (connections,), group in rows.where(mode="stored").groups("connections"):
        what = f"stored, {connections} connections, requests/s to the bound of ClickHouse's async_insert"
        bound = connections * ASYNCHRONOUS_FLUSHES_PER_SECOND
        goals.at_least(what, 1, group.median("per_second") / bound)
    return goals


@part(
    "formats", "One row in binary formats", quick={"seconds": 1.0, "rounds": 1},
    seconds=SECONDS, connections=CONNECTIONS, rounds=Option(7, ROUNDS.help),
)  # fmt: skip
def formats(stack: Stack, options: Namespace) -> str:
    """One-row inserts in binary formats through the gateway, beside the same rows in JSONEachRow."""
    names = {"JSONEachRow": 97, "RowBinary": 37, "Native": 118}
    rows = rounds(stack, [Scenario("memory", options.connections, options.seconds, format=name) for name in names], options.rounds)
    json = rows.where(format="JSONEachRow")
    shown: list[Column] = [
        ("format", of("format")), ("bytes", lambda group: str(names[group[0]["format"]])),
        ("requests/s", lambda group: count(group.median("per_second") or 0)),
        ("× JSONEachRow", lambda group: group.ratio(json, "per_second")), ("gateway's CPU, us per insert", of("server_us")),
    ]  # fmt: skip
    goals = Goals()
    for name in ("RowBinary", "Native"):
        goals.at_least(f"{name}, requests/s to JSONEachRow's", 1, rows.where(format=name).ratio(json, "per_second"))
    text = columns([group for _, group in rows.groups("format")], shown)
    return f"{prose('formats', connections=options.connections)}{text}\n{goals}"


@part(
    "duckdb", "Small inserts into DuckDB", quick={"seconds": 1.0, "rounds": 1},
    seconds=SECONDS, connections=CONNECTIONS, rounds=ROUNDS,
)  # fmt: skip
def duckdb(stack: Stack, options: Namespace) -> str:
    """One-row inserts that are stored in DuckDB."""
    own = Stack(options, duckdb=True)
    scenarios = [Scenario(mode, options.connections, options.seconds) for mode in ("stored", "disk", "memory")]
    rows = rounds(own, scenarios, options.rounds, OneTable(duckdb=True))
    own.close()
    shown: list[Column] = [
        ("ack level", of("mode")), NAMED[0], ("inserts/s", lambda group: count(group.median("per_second") or 0)),
        ("p50 ms", of("p50_ms")), ("p99 ms", of("p99_ms")), ("gateway's CPU, us per insert", of("server_us")),
    ]  # fmt: skip
    goals = Goals()
    on_disk = rows.where(mode="disk").median("per_second")
    goals.at_least("inserts/s into DuckDB, acknowledged as disk", 20_000, on_disk)
    return f"{prose('duckdb')}{columns([group for _, group in rows.groups('mode')], shown)}\n{goals}"


@part(
    "durability", "Acknowledged on disk", quick={"seconds": 1.0, "rounds": 1}, seconds=SECONDS, connections=CONNECTIONS,
    rounds=ROUNDS, added_sync_us=Option([0, 1000], "added to every sync of a file: 0 is the disk as it is"),
)  # fmt: skip
def durability(stack: Stack, options: Namespace) -> str:
    """One-row inserts at ack level disk, beside memory, beside one sync per insert, and beside the disk itself."""
    text, goals = prose("durability"), Goals()
    for added in options.added_sync_us:
        if added:
            # A gateway and a peer of their own, under which every sync takes longer.
            slow = [f"LD_PRELOAD={binary('slow_sync.so')}", f"SLOW_SYNC_US={added}"]
            own = Stack(Namespace(**{**vars(options), "env": [*options.env, *slow]}))
            text += disk(own, options, added, goals) + "\n"
            own.close()
        else:
            text += disk(stack, options, added, goals) + "\n"
    return f"{text}{goals}"


def disk(stack: Stack, options: Namespace, added_us: int, goals: Goals) -> str:
    rows, syncs = Rows(), []
    ways = [("memory", options.connections), ("disk", options.connections), ("sync-each", options.connections), ("disk", 1)]
    for _ in range(options.rounds):
        rows += rounds(stack, [Scenario(mode, connections, options.seconds) for mode, connections in ways], 1)
        syncs.append(syncs_per_second(options.seconds, added_us=added_us))
    group = {way: rows.where(mode=way[0], connections=way[1]) for way in ways}
    memory, on_disk, each, alone = (group[way] for way in ways)
    takes = f"{figure(1e6 / max(1, median(syncs)))} us"
    lines = []
    for (mode, connections), runs in group.items():
        shown = [takes, MODES[mode].title.removeprefix("gateway, "), str(connections), count(runs.median("per_second") or 0)]
        more = [figure(runs.ratio(memory, "per_second")), *(figure(runs.median(key)) for key in ("p50_ms", "p99_ms", "server_us"))]
        lines.append([*shown, *(more if runs is not alone else [NONE] * 4)])
    lines.append([takes, "the disk itself: syncs/s", NONE, count(median(syncs)), *[NONE] * 4])
    named = f"syncs {added_us} us longer" if added_us else "this disk"
    if not added_us:
        goals.at_least(f"{named}: disk's inserts/s to memory's", 0.75, on_disk.ratio(memory, "per_second"))
        above = (on_disk.median("p99_ms") or 0) - (memory.median("p99_ms") or 0)
        goals.at_most(f"{named}: p99 above memory's, ms", 5, above)
    ratio = paired_ratio(alone.values("per_second"), syncs)
    goals.at_least(f"{named}: one blocking loop's inserts/s to the disk's syncs/s", 0.5, ratio)
    goals.at_least(f"{named}: disk's inserts/s to one sync per insert", 20, on_disk.ratio(each, "per_second"))
    head = ["sync takes", "way", "connections", "inserts/s", "× memory", "p50 ms", "p99 ms", "gateway's CPU, us per insert"]
    return table(head, lines)


def syncs_per_second(seconds: float, record_bytes: int = 128, added_us: int = 0, folder: str | None = None) -> float:
    """What one thread reaches that appends and syncs, by default in the folder for temporary files, where the gateway's data are
    too. The best of several moments: a file system that still discards what others deleted slows some of them down."""
    moments, best, at, file_bytes = 10, 0.0, 0, 16 << 20
    with tempfile.TemporaryFile(dir=folder) as file:
        file.write(bytes(file_bytes))
        file.flush()
        os.fsync(file.fileno())
        for _ in range(moments):
            syncs, began = 0, time.perf_counter()
            while time.perf_counter() - began < seconds / moments:
                os.pwrite(file.fileno(), b"\1" * record_bytes, at)
                at = (at + record_bytes) % (file_bytes - record_bytes)
                if added_us:
                    time.sleep(added_us / 1e6)
                os.fdatasync(file.fileno())
                syncs += 1
            best = max(best, syncs / (time.perf_counter() - began))
    return best
