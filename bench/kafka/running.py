"""What a reader does while others write: what it sustains, and how late rows are under a steady load.

*Sustained*: the producer writes as fast as it can, but is never more than so many rows ahead of what is stored. So the rate at which it
writes is the one at which the reader just keeps up, whatever the reader is, and neither of them is given more of the machine than it
takes.

*Late* is from a message's timestamp until its row can be found. Every row is looked at, and nothing is asked while they come. ClickHouse
notes in `system.part_log` when it has added a part to its table, from when on queries see its rows; a row knows by its block's number
which part brought it, also after merges.
"""

import json
import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from harness.eventually import eventually

from bench.base.figures import median
from bench.base.scenario import of_table
from bench.kafka.peak import Commit, messages_per_second, together
from bench.kafka.stage import (
    MAX_BATCH_BYTES, PARTITIONS, ROUNDS, TICK_SECONDS, Format, Reader, Side, Stage, Target,
)  # fmt: skip

# Several times what the readers take for a batch.
ROWS_AHEAD = 3_000_000
# Of one round of batches of a producer that is only bound by that: as many as are due in 10 ms at this rate.
ROWS_PER_SECOND = 1e6
# The first so many rows are written faster than the reader stores them.
SUSTAINED_WARM_UP_SECONDS = 8
STEADY_WARM_UP_SECONDS = 5
POLL_SECONDS = 0.01
JOINED_WITHIN_SECONDS, CAUGHT_UP_WITHIN_SECONDS = 90, 120
# Each asks, looks at the answer for a while, and asks again.
DASHBOARDS, LOOKS_FOR_SECONDS = 4, 0.5


class Running:
    """A reader in front of an empty topic and an empty table, both its own, and a producer of so many rows a second."""

    def __init__(self, stage: Stage, side: Side, format: Format, rows_per_second: float) -> None:
        self.stage, self.format = stage, format
        self.name = f"steady-{next(stage.runs)}"
        stage.topics.create(self.name, PARTITIONS)
        self.target = Target(stage, f"bench.kafka_{self.name.replace('-', '_')}", "MergeTree", format, stamped=True)
        self.reader = Reader(stage, side, self.target, self.name, self.name)
        eventually(lambda: stage.is_stable(self.name), "the reader has its partitions", JOINED_WITHIN_SECONDS)
        messages_per_second = rows_per_second / format.rows_per_message
        batch = max(1, min(round(TICK_SECONDS * messages_per_second / PARTITIONS), MAX_BATCH_BYTES // format.message_bytes))
        self.rows_per_round = batch * PARTITIONS * format.rows_per_message
        steady = {"messages_per_second": messages_per_second, "batch_messages": batch}
        self.producer = stage.producer(format, self.name, ROUNDS * self.rows_per_round, steady)
        self.sent: dict[str, Any] = self.producer.answer()

    def order(self, what: object) -> dict[str, Any]:
        self.sent = self.producer.ask(what)
        return self.sent

    def committed(self) -> int:
        return self.stage.committed(self.name, self.name)

    def cpu(self) -> tuple[float, dict[str, float]]:
        return time.monotonic(), self.stage.cpu(self.reader, self.producer)

    def percent_since(self, before: tuple[float, dict[str, float]]) -> dict[str, float]:
        """Of one CPU."""
        at, now = self.cpu()
        return {f"{who}_cpu": 100 * (cpu - before[1][who]) / (at - before[0]) for who, cpu in now.items()}

    def end(self) -> float | None:
        """When all that was sent is stored, which is looked up, the reader ends. Returns what memory it took at most, in MB."""
        self.producer.tell("end")
        self.producer.end()
        messages = self.sent["messages"]
        eventually(lambda: self.committed() >= messages, "all rows are stored", CAUGHT_UP_WITHIN_SECONDS)
        peak_mb = self.reader.peak_mb()
        self.reader.stop()
        rows = messages * self.format.rows_per_message
        # Those of full circles, and those of the last one.
        circles, rest = divmod(rows, ROUNDS * self.rows_per_round)
        views = circles * self.stage.views_of(ROUNDS * self.rows_per_round) + self.stage.views_of(rest)
        self.target.check(rows, views)
        self.stage.topics.drop(self.name)
        return peak_mb


def sustained(stage: Stage, side: Side, format: Format, seconds: float) -> dict[str, Any]:
    running = Running(stage, side, format, ROWS_PER_SECOND)
    began, before, commits = time.monotonic(), None, list[Commit]()
    while (at := time.monotonic()) - began < SUSTAINED_WARM_UP_SECONDS + seconds:
        committed = running.committed()
        if at - began >= SUSTAINED_WARM_UP_SECONDS:
            before = before or running.cpu()
            if not commits or commits[-1][1] < committed:
                commits.append((at, committed))
        running.order({"until": committed + ROWS_AHEAD // format.rows_per_message})
        time.sleep(max(0.0, at + POLL_SECONDS - time.monotonic()))
    assert before is not None
    cpu = running.percent_since(before)
    rate = messages_per_second(commits, together(side), math.inf) * format.rows_per_message
    peak_mb = running.end()
    running.target.drop()
    return {"side": side, "reader": side.title, "per_second": rate, "peak_mb": peak_mb, **cpu}


def steady(
    stage: Stage, side: Side, format: Format, rows_per_second: float, with_queries: bool, seconds: float
) -> dict[str, Any]:
    running = Running(stage, side, format, rows_per_second)
    running.order({"run_for": STEADY_WARM_UP_SECONDS})
    begin, before = dict(running.sent), running.cpu()
    with Dashboards(stage, running.target.name, DASHBOARDS if with_queries else 0) as dashboards:
        end = running.order({"run_for": seconds})
    cpu = running.percent_since(before)
    peak_mb = running.end()
    rows = (end["messages"] - begin["messages"]) * format.rows_per_message
    late = lateness(stage, running.target, begin["next_ms"], end["next_ms"], rows)
    running.target.drop()
    return {
        "side": side, "reader": side.title, "per_second": rows_per_second, "with_queries": with_queries, "peak_mb": peak_mb,
        "sent_late_ms": end["late_ms"], **late, **cpu, **dashboards.figures(),
    }  # fmt: skip


def lateness(stage: Stage, target: Target, from_ms: int, until_ms: int, rows: int) -> dict[str, float]:
    """Of the rows whose messages have timestamps between these, and new parts while they lasted."""
    stage.sql.sql("SYSTEM FLUSH LOGS part_log")
    new = f"{of_table(target.name)} AND event_type = 'NewPart'"
    within = lambda time: f"{time} >= {from_ms} AND {time} < {until_ms}"
    added = within("toUnixTimestamp64Milli(event_time_microseconds)")
    parts = int(stage.sql.sql(f"SELECT count() FROM system.part_log WHERE {new} AND {added}"))
    # A part is called by its partition, and by its block's number twice.
    query = (
        "WITH parts AS (SELECT toUInt64(splitByChar('_', part_name)[2]) AS block, event_time_microseconds AS added FROM "
        f"system.part_log WHERE {new}), stamps AS (SELECT _block_number AS block, ts, count() AS rows FROM {target.name} WHERE "
        f"{within('toUnixTimestamp64Milli(ts)')} GROUP BY block, ts) SELECT sum(rows), quantilesExactWeighted(0.5, 0.95, 0.99)"
        "(late_us, rows), max(late_us) FROM (SELECT rows, toUnixTimestamp64Micro(added) - 1000 * toUnixTimestamp64Milli(ts) AS "
        "late_us FROM stamps INNER JOIN parts USING (block)) FORMAT JSONCompactEachRow"
    )
    known, quantiles, most = json.loads(stage.sql.sql(query, output_format_json_quote_64bit_integers=0))
    if known != rows:
        raise SystemExit(f"the way of {known} rows is known, {rows} were sent")
    names = ("p50_ms", "p95_ms", "p99_ms", "max_ms")
    found = {name: us / 1000 for name, us in zip(names, (*quantiles, most))}
    return found | {"parts_per_second": parts * 1000 / (until_ms - from_ms)}


class Dashboards:
    """Those who look at the table while rows come in, the article's case: they ask for the most viewed titles over all rows."""

    def __init__(self, stage: Stage, table: str, count: int) -> None:
        self.stage, self.count, self.times, self.over = stage, count, list[float](), threading.Event()
        self.query = (
            f"SELECT property_id, video_title, sum(total_view_count) AS views, max(event_datetime) FROM {table} "
            "GROUP BY property_id, video_title ORDER BY views DESC LIMIT 20"
        )

    def _ask(self) -> None:
        while not self.over.is_set():
            began = time.monotonic()
            self.stage.sql.sql(self.query)
            self.times.append((time.monotonic() - began) * 1000)
            self.over.wait(LOOKS_FOR_SECONDS)

    def __enter__(self) -> "Dashboards":
        self.began, self.threads = time.monotonic(), ThreadPoolExecutor(max(1, self.count))
        self.asking = [self.threads.submit(self._ask) for _ in range(self.count)]
        return self

    def __exit__(self, *_: object) -> None:
        self.seconds = time.monotonic() - self.began
        self.over.set()
        for one in self.asking:
            one.result()

    def figures(self) -> dict[str, float]:
        if not self.times:
            return {}
        ordered = sorted(self.times)
        p99 = ordered[max(0, math.ceil(0.99 * len(ordered)) - 1)]
        return {"queries_per_second": len(ordered) / self.seconds, "queries_p50_ms": median(ordered), "queries_p99_ms": p99}
