"""Many inserts in any format, each once straight into ClickHouse and once through the gateway, and where the two differ.

Answers are compared one by one. Rows are compared by a hash of each pair of tables; when these differ, the inserts are
repeated by halves until one is left that differs by itself.
"""

from __future__ import annotations

import re
import threading
import urllib.request
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from differential.duel import QUICKLY
from differential.sources import SOURCES, create
from harness.endpoint import ERROR_CODE, ClickHouseError, Endpoint
from harness.gateway import Gateway
from harness.quick_http import QuickConnection

# Of its own, so that all tables can be emptied at once.
DATABASE = "contest"
STRAIGHT, GATHERED = "c_straight", "c_gathered"
CONNECTIONS = {STRAIGHT: 4, GATHERED: 12}
ROW_NAMED = re.compile(r"\(at row (\d+)\)")
WRITTEN = re.compile(rb'"written_rows":"(\d+)"')
COUNTER = re.compile(
    r'^windrow_(inserts_accepted|inserts_passthrough|inserts_backend_read|forwarded_requests)_total(?:\{reason="([^"]*)"\})? (\d+)$', re.MULTILINE
)
# What to hash of a value; not every type can be hashed as it is.
HASHES = ("sipHash64(v)", "sipHash64(toString(v))", "sipHash64(toString(finalizeAggregation(v)))", "sipHash64(hex(v))")
MOST_SHOWN_BYTES = 1500


@dataclass(frozen=True)
class Case:
    format: str
    # Into SOURCES.
    source: int
    payload: bytes
    settings: dict[str, str] = field(default_factory=dict)
    columns: str = ""
    note: str = ""

    def __str__(self) -> str:
        shown = repr(self.payload[:MOST_SHOWN_BYTES])
        into = f"INSERT INTO t {self.columns} FORMAT {self.format}"
        return f"n UInt32, v {SOURCES[self.source].type}; {into} {shown} {self.settings or ''} ({self.note})"


@dataclass(frozen=True)
class Answer:
    status: int
    code: str | None
    row: str | None
    written_rows: str | None
    text: str = field(compare=False, default="")


def of_memory(*answers: Answer) -> bool:
    """All are errors, and one says only that the machine has too little memory just now."""
    return "241" in {answer.code for answer in answers} and all(answer.status != 200 for answer in answers)


@dataclass
class Difference:
    case: Case
    expected: object
    got: object

    def __str__(self) -> str:
        return f"{self.case}\n  ClickHouse: {self.expected}\n  gateway:    {self.got}"


class Contest:
    def __init__(self, gateway: Gateway, tested: Endpoint, direct: Endpoint):
        direct.sql(f"CREATE DATABASE {DATABASE}")
        self.gateway, self.direct = gateway, direct.using(DATABASE)
        self.sides = {STRAIGHT: self.direct, GATHERED: tested.using(DATABASE)}
        self.connection = QuickConnection(self.direct)
        self.hashes: dict[int, str] = {}

    def differences(self, cases: list[Case]) -> list[Difference]:
        """Inserts all of them on both sides and tells what differs; the tables are empty again afterwards."""
        for index in sorted({case.source for case in cases}):
            self.prepare(index)
        answers = {side: self.insert_all(side, cases) for side in self.sides}
        found = [
            Difference(case, expected, got)
            for case, expected, got in zip(cases, answers[STRAIGHT], answers[GATHERED])
            if expected != got and not of_memory(expected, got)
        ]
        touched = {case.source for case, answer in zip(cases, answers[STRAIGHT]) if answer.status == 200}
        stored = {side: self.digests(side, touched) for side in self.sides}
        self.empty()
        # Where answers differ already, so do rows.
        for index in touched - {difference.case.source for difference in found}:
            if stored[STRAIGHT][index] != stored[GATHERED][index]:
                suspects = [
                    case
                    for case, answer in zip(cases, answers[STRAIGHT])
                    if case.source == index and answer.status == 200
                ]
                found += self.narrowed(index, suspects)
        return found

    def narrowed(self, index: int, suspects: list[Case]) -> list[Difference]:
        while len(suspects) > 1:
            half = suspects[: len(suspects) // 2]
            suspects = half if self.differ(index, half) else suspects[len(half) :]
        rows = {side: (self.insert_all(side, suspects), self.rows(side, index))[1] for side in self.sides}
        self.empty()
        return [Difference(suspects[0], rows[STRAIGHT], rows[GATHERED])]

    def differ(self, index: int, cases: list[Case]) -> bool:
        for side in self.sides:
            self.insert_all(side, cases)
        digests = [self.digests(side, {index}) for side in self.sides]
        self.empty()
        return digests[0] != digests[1]

    def prepare(self, index: int) -> None:
        if index in self.hashes:
            return
        for side in self.sides:
            create(self.direct, f"{side}_{index}", SOURCES[index].type, ", d String DEFAULT concat('d', toString(n))")
        for expression in HASHES:
            try:
                self.sql(f"SELECT {expression} FROM {STRAIGHT}_{index}")
                self.hashes[index] = expression
                return
            except ClickHouseError:
                continue
        raise AssertionError(f"nothing hashes {SOURCES[index].type}")

    def insert_all(self, side: str, cases: list[Case]) -> list[Answer]:
        connections = threading.local()
        opened: list[QuickConnection] = []
        endpoint = self.sides[side]

        def send(case: Case) -> Answer:
            if not hasattr(connections, "own"):
                connections.own = QuickConnection(endpoint)
                opened.append(connections.own)
            return insert(connections.own, endpoint, side, case)

        with ThreadPoolExecutor(CONNECTIONS[side]) as threads:
            answers = list(threads.map(send, cases))
        for connection in opened:
            connection.close()
        return answers

    def digests(self, side: str, indexes: Iterable[int]) -> dict[int, str]:
        """Of each table its rows, whatever their order."""
        if not indexes:
            return {}
        queries = (
            f"SELECT {index} AS i, count(), sum(sipHash64(n, {self.hashes[index]}, d)) FROM {side}_{index}"
            for index in sorted(indexes)
        )
        text = self.sql("SELECT * FROM (" + " UNION ALL ".join(queries) + ") ORDER BY i FORMAT TSV")
        return {int(line.split("\t")[0]): line for line in text.split("\n")}

    def rows(self, side: str, index: int) -> str:
        # ClickHouse stores an Enum's zero that is none of its values, and can't print it.
        for value in ("v, ", ""):
            try:
                return self.sql(f"SELECT n, {self.hashes[index]}, {value}d FROM {side}_{index} ORDER BY n FORMAT TSV")
            except ClickHouseError:
                continue
        raise AssertionError(f"{side}_{index} can't be read")

    def empty(self) -> None:
        self.sql(f"TRUNCATE ALL TABLES FROM {DATABASE}")

    def sql(self, query: str) -> str:
        reply = self.connection.post(self.direct.target(None, {"wait_end_of_query": 1}), query.encode())
        if reply.status != 200:
            raise ClickHouseError(reply.status, reply.text)
        return reply.text.removesuffix("\n")

    def handling(self) -> Counter:
        """How many inserts were handled how so far: `` for gathered, two names for kinds of these, else why they were forwarded."""
        with urllib.request.urlopen(self.gateway.admin.url + "metrics") as answer:
            text = answer.read().decode()
        own = {"inserts_accepted": "", "inserts_passthrough": "passthrough", "inserts_backend_read": "read by ClickHouse"}
        return Counter({own.get(name, reason): int(count) for name, reason, count in COUNTER.findall(text)})


def insert(connection: QuickConnection, endpoint: Endpoint, side: str, case: Case) -> Answer:
    query = f"INSERT INTO {side}_{case.source} {case.columns} FORMAT {case.format}"
    target = endpoint.target(query, {**QUICKLY, **case.settings})
    reply = connection.post(target, case.payload)
    text = reply.text
    code, row = ERROR_CODE.search(text), ROW_NAMED.search(text)
    written = WRITTEN.search(reply.head)
    counts = reply.status == 200 and written
    return Answer(
        reply.status, code and code.group(1), row and row.group(1), written.group(1).decode() if counts else None, text[:600]
    )
