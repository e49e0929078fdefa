"""How fast a topic that is full already is read: rows between two commits, over the time between them.

Offsets are committed when rows are stored, by the engine and by a pipeline alike, whatever table they go into; a table of engine Null
has no rows that could be counted. The first commit is where the time begins, so that joining the group and gathering the first batch
are not in it, and what was read by then but not yet committed stands against the same at the other end. The last commits of a topic
don't count: there the engine waits for messages that don't come.

The engine's consumers commit one after the other what they have flushed together, every few seconds: such commits are one, or the time
between would have a consumer's flush too many.
"""

import sys
import time
from itertools import pairwise
from typing import Any

from bench.base.figures import figure
from bench.kafka.stage import Format, Reader, Side, Stage, Target

POLL_SECONDS = 0.01
# Of the topic: commits beyond are not looked at.
COUNTED_SHARE = 0.95
# Between the commits of the engine's consumers that belong together, at most. A pipeline has one consumer, which commits by itself.
TOGETHER_SECONDS = 0.25
FIRST_COMMIT_WITHIN_SECONDS, DRAINED_WITHIN_SECONDS = 90, 180
# When, and how many messages.
Commit = tuple[float, int]


def measure(stage: Stage, side: Side, format: Format, engine: str, seconds: float) -> dict[str, Any]:
    """The engine is stopped at the first commit after so long; what a pipeline has stored is counted, all of it."""
    held, group = stage.filled_with(format), f"peak-{next(stage.runs)}"
    target = Target(stage, "bench.kafka", engine, format)
    before = stage.cpu()
    reader = Reader(stage, side, target, format.topic, group)
    commits = watch(stage, group, format.topic, held, seconds if side.is_engine else None)
    after, peak_mb = stage.cpu(reader), reader.peak_mb()
    reader.stop()
    stored = commits[-1][1] * format.rows_per_message
    if stored == held * format.rows_per_message:
        target.check(stored, stage.views_of(stored))
    target.drop()
    per_million = {f"{who}_cpu": (cpu - before.get(who, 0)) * 1e6 / stored for who, cpu in after.items()}
    rate = messages_per_second(commits, together(side), held) * format.rows_per_message
    print(f"kafka: {format.name} into {engine}, {side.title}: {rate:,.0f} rows/s", file=sys.stderr)
    return {
        "format": format.title, "table": engine, "side": side, "reader": side.title, "per_second": rate, "peak_mb": peak_mb,
        **per_million,
    }  # fmt: skip


def watch(stage: Stage, group: str, topic: str, messages: int, limit: float | None) -> list[Commit]:
    """The group's commits until the topic has been read, or its time is over."""
    commits: list[Commit] = []
    began = time.monotonic()
    while True:
        at, committed = time.monotonic(), stage.committed(group, topic)
        if committed > (commits[-1][1] if commits else 0):
            commits.append((at, committed))
        elif at - began > (DRAINED_WITHIN_SECONDS if commits else FIRST_COMMIT_WITHIN_SECONDS):
            raise SystemExit(f"{committed} of {messages} messages of {topic} were stored after {figure(at - began)} s")
        is_over = limit and commits and commits[-1][0] - commits[0][0] > limit and at - commits[-1][0] > TOGETHER_SECONDS
        if committed >= messages or is_over:
            return commits
        time.sleep(POLL_SECONDS)


def together(side: Side) -> float:
    return TOGETHER_SECONDS if side.is_engine else 0.0


def messages_per_second(commits: list[Commit], together: float, messages: float) -> float:
    """Between the first commits, of which none came later than `together` after another, and the last one that counts, of so
    many messages."""
    first = next((before for before, after in pairwise(commits) if after[0] - before[0] > together), None)
    last = next((commit for commit in reversed(commits) if commit[1] <= messages * COUNTED_SHARE), None)
    if not first or not last or first[0] >= last[0]:
        raise SystemExit("there were too few commits: take more --rows, or more --seconds")
    return (last[1] - first[1]) / (last[0] - first[0])
