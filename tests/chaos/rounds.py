"""Rounds of killing: at a seeded moment under load, the gateway, the engine, both; then everything is counted.

A round has a load of its own in tables that all rounds share, so what an early round left behind would show in a later one: at the
end of all rounds every load is counted once more.
"""

from __future__ import annotations

import random
import threading
import time
from dataclasses import dataclass, field

from chaos.count import Count, count, drained
from chaos.kinds import KINDS, Kind
from chaos.load import Load, create_tables
from chaos.stage import Stage
from harness.eventually import eventually

WRITERS_APART = 1000
MOST_KILLS = 3
# Of each writer, before the next kill: those who wait for storage take long for one, the others send dozens meanwhile.
MOST_ACKNOWLEDGED = 6
MOST_DELAY_SECONDS = 0.05


@dataclass
class Round:
    number: int
    load: Load
    kills: list[str] = field(default_factory=list)
    # From each start of the gateway until it took requests.
    ready_ms: list[int] = field(default_factory=list)
    # Inserts that the starts found in the journal.
    replayed: int = 0

    def line(self, counted: Count) -> str:
        ready = ", ".join(str(milliseconds) for milliseconds in self.ready_ms) or "-"
        return (
            f"round {self.number}: killed {'; '.join(self.kills)}; ready after {ready} ms; replayed {self.replayed}; "
            f"{self.load.figures()}; {counted.line()}"
        )


class Rounds:
    def __init__(self, stage: Stage, seed: int, kinds: tuple[Kind, ...] = KINDS, first_acknowledged: int = 0):
        """`first_acknowledged`: of each writer, before the first kill of a round."""
        known = tuple(kind for kind in kinds if kind.table in stage.language.tables)
        self.stage, self.seed, self.kinds, self.first_acknowledged = stage, seed, known, first_acknowledged
        self.rng = random.Random(seed)
        self.done: list[Round] = []
        create_tables(stage.direct, stage.language)

    def run(self, rounds: int) -> None:
        for _ in range(rounds):
            self.round()
        for done in self.done:
            count(self.stage, done.load).check()
        print(f"{self.stage.records_withdrawn()} records of blocks withdrawn", flush=True)

    def round(self) -> None:
        number = len(self.done) + 1
        load = Load(self.stage.where, self.seed, first=number * WRITERS_APART, kinds=self.kinds)
        this = Round(number, load)
        self.done.append(this)
        with load:
            eventually(load.every_writer_more(self.first_acknowledged), "every writer is served")
            for _ in range(self.rng.randint(1, MOST_KILLS)):
                more = self.rng.randint(0, MOST_ACKNOWLEDGED)
                eventually(load.every_writer_more(more), f"{more} more inserts of every writer are acknowledged")
                # Kills would otherwise only come when this thread has its turn to look.
                threading.Event().wait(self.rng.uniform(0, MOST_DELAY_SECONDS))
                self.kill(this, self.rng.choice(self.stage.victims))
            eventually(load.every_writer_more(1), "every writer is served again")
        counted = drained(self.stage, load)
        print(this.line(counted), flush=True)
        counted.check()

    def kill(self, this: Round, victim: str) -> None:
        this.kills.append(victim)
        if victim == "engine":
            self.stage.kill_engine()
        elif victim == "both":
            self.stage.kill_both()
            self.start(this)
        elif victim == "gateway by SIGTERM":
            self.stage.end_gateway()
            self.start(this)
        else:
            self.stage.kill_gateway()
            self.start(this)
            if victim != "gateway":
                self.stage.kill_gateway()
                self.start(this)

    def start(self, this: Round) -> None:
        before = time.monotonic()
        self.stage.start_gateway()
        this.ready_ms.append(round((time.monotonic() - before) * 1000))
        this.replayed += self.stage.left_from_before()
