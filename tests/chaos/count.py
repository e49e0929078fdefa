"""The count at the end: every insert that was promised to be kept is in its table once and whole, in its writer's order."""

from __future__ import annotations

import time
from collections import defaultdict
from dataclasses import dataclass, field

from chaos.kinds import CHECKED, Table, query_id, rows_of
from chaos.load import Load
from chaos.stage import Stage
from chaos.writer import Writer
from harness.eventually import eventually

SHOWN = 10
# Without a single one less missing, or one more of them whole.
STANDSTILL_SECONDS = 60


@dataclass
class Count:
    stored: int = 0
    missing: list[str] = field(default_factory=list)
    twice: list[str] = field(default_factory=list)
    # Stored although the answer said that nothing of it is, or never sent at all.
    unasked: list[str] = field(default_factory=list)
    # An insert of which only some rows are there.
    torn: list[str] = field(default_factory=list)
    disordered: list[str] = field(default_factory=list)
    altered: list[str] = field(default_factory=list)
    # Poison that became a dead letter, as it has to.
    dead: int = 0
    # Dead letters that nobody deserved.
    wronged: list[str] = field(default_factory=list)

    def faults(self) -> dict[str, list[str]]:
        kinds = ("missing", "twice", "unasked", "torn", "disordered", "altered", "wronged")
        return {kind: getattr(self, kind) for kind in kinds if getattr(self, kind)}

    def line(self) -> str:
        return f"stored {self.stored}, missing {len(self.missing)}, twice {len(self.twice)}, dead letters {self.dead}"

    def check(self) -> None:
        found = [f"{len(cases)} {kind}: {', '.join(cases[:SHOWN])}" for kind, cases in self.faults().items()]
        assert not found, "\n".join([self.line(), *found])


@dataclass
class Found:
    """What a table holds of one insert."""

    rows: int
    distinct: int
    # Where its first row stands: the number of the block, the place in it.
    place: tuple[int, int]


def count(stage: Stage, load: Load) -> Count:
    result, direct = Count(), stage.direct
    letters = dead_letters(stage)
    result.wronged += [f"{table}: {error}" for (table, _), error in letters.items() if table != CHECKED.name]
    for table in stage.language.tables:
        there = found_in(stage, table, load)
        altered = direct.sql(stage.language.altered(table))
        if altered != "0":
            result.altered.append(f"{altered} rows of {table.name}")
        for writer in load.writers:
            if writer.kind.table is table:
                judge(writer, there.get(writer.writer, {}), {key for _, key in letters}, result)
    return result


def dead_letters(stage: Stage) -> dict[tuple[str, str], str]:
    """Errors by table and query id."""
    rows = stage.letters()
    letters = {(table, query_id): error for table, query_id, error in rows}
    assert len(letters) == len(rows), f"{len(rows) - len(letters)} inserts are dead letters twice"
    return letters


def drained(stage: Stage, load: Load) -> Count:
    """What was acknowledged has to come into its table by itself; what is still missing when nothing comes any more is lost.

    Partitions are committed one after the other: an insert that is just being stored may be seen in some of its own.
    """
    fewest, end = None, 0.0
    while True:
        eventually(stage.direct.answers, "the engine answers")
        counted = count(stage, load)
        to_come = len(counted.missing) + len(counted.torn)
        if fewest is None or to_come < fewest:
            fewest, end = to_come, time.monotonic() + STANDSTILL_SECONDS
        if not to_come or time.monotonic() > end:
            stage.settle()
            return count(stage, load)


def found_in(stage: Stage, table: Table, load: Load) -> dict[int, dict[int, Found]]:
    writers = [writer.writer for writer in load.writers]
    query = stage.language.found(table, min(writers), max(writers))
    there: dict[int, dict[int, Found]] = defaultdict(dict)
    for line in stage.direct.sql(query).splitlines():
        writer, number, rows, distinct, block, offset = line.split("\t")
        there[int(writer)][int(number)] = Found(int(rows), int(distinct), (int(block), int(offset)))
    return there


def judge(writer: Writer, there: dict[int, Found], letters: set[str], result: Count) -> None:
    promises, name = writer.promises, f"{writer.kind.name} {writer.writer}"
    dead = {number for number in writer.numbers() if query_id(writer.run_name, writer.writer, number) in letters}
    result.stored += len(there)
    result.dead += len(dead)
    result.wronged += [f"{name}/{number}" for number in dead if not writer.kind.is_poison(number) or number in there]
    if writer.kind.kept:
        kept = there.keys() | dead
        result.missing += [f"{name}/{number}" for number in promises.acknowledged if number not in kept]
    acknowledged, allowed = set(promises.acknowledged), {*promises.acknowledged, *promises.open}
    for number, found in there.items():
        if found.rows > found.distinct:
            result.twice.append(f"{name}/{number}: {found.rows} rows of {rows_of(number)}")
        # What failed on its way into several partitions may be in some of them, as in ClickHouse.
        elif found.rows < rows_of(number) and (number in acknowledged or writer.kind.table.ordered):
            result.torn.append(f"{name}/{number}: {found.rows} rows of {rows_of(number)}")
        if number not in allowed:
            result.unasked.append(f"{name}/{number}")
    if writer.kind.table.ordered:
        # Between the copies of a table there is no order.
        by_table: dict[str, list[tuple[int, Found]]] = defaultdict(list)
        for number in sorted(acknowledged & there.keys()):
            by_table[writer.kind.table.name_for(writer.writer, number)].append((number, there[number]))
        result.disordered += [text for inserts in by_table.values() for text in disorder(name, inserts)]


def disorder(name: str, inserts: list[tuple[int, Found]]) -> list[str]:
    """An insert that was sent after the one before it was acknowledged must not stand before it in the table."""
    pairs = zip(inserts, inserts[1:])
    return [
        f"{name}: {later} at {after.place} stands before {earlier} at {before.place}"
        for (earlier, before), (later, after) in pairs
        if after.place < before.place
    ]
