"""Batches that a test fills and seals itself, and what the gateway counts of them."""

from __future__ import annotations

import re

from harness.endpoint import Endpoint, Reply
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.inserts import HELD, INTO_T, Background, queued_inserts
from harness.raw_http import RawConnection, head


def metric(gateway: Gateway, name: str, database: str) -> float:
    """The sum of a metric's samples of all tables of the database."""
    with RawConnection(gateway.admin) as connection:
        lines = connection.exchange(head("GET", "/metrics", (("Host", "x"),)), "GET").text.splitlines()
    ours = re.compile(rf'{name}(_total)?{{.*database="{database}".*}}')
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if ours.match(line))


MAX_INSERTS = 128


class Batch:
    """Waiting inserts into one table, held until the test flushes them. They enter in the order in which they are sent."""

    def __init__(self, tested: Endpoint, table: str = "t", query: str | None = None, **settings: object):
        self.tested, self.table, self.settings = tested, table, {**HELD, **settings}
        self.query = query or INTO_T.replace(" t ", f" {table} ")
        self.background = Background(tested, at_once=MAX_INSERTS)
        self.inserts: list = []

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, *_: object) -> None:
        # A test that failed before leaves inserts that wait.
        self.tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
        self.background.__exit__()

    def add(self, *bodies: str, query: str | None = None) -> Batch:
        for body in bodies:
            self.inserts.append(self.background.insert(body, query or self.query, **self.settings))
            self.await_queued(len(self.inserts))
        return self

    def await_queued(self, inserts: int) -> None:
        eventually(lambda: queued_inserts(self.tested, self.table) == inserts, f"{inserts} inserts are queued")

    def flush(self) -> list[Reply]:
        """The answers in the order of the inserts."""
        self.tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
        return [insert.reply() for insert in self.inserts]
