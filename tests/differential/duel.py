"""Sends the same cases to the gateway and to the engine, and says where the two differ.

Each side has a table of its own, of the same columns; their names are of one length, since errors name positions.
Several connections send at once, so that inserts share batches as they do in service.
"""

from __future__ import annotations

import http.client
import re
import threading
import urllib.parse
import urllib.request
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from differential.budget import SEED
from differential.payloads import ROWS_PER_CASE, Case, encoded
from harness.endpoint import ERROR_CODE, Endpoint, Reply
from harness.gateway import Gateway

GATHERED, STRAIGHT = "t_gathered", "t_straight"
# The engine behind the gateway has no queue of its own: there these change nothing.
QUICKLY = {"async_insert": 1, "async_insert_use_adaptive_busy_timeout": 0, "async_insert_busy_timeout_ms": 5}
CONNECTIONS = {GATHERED: 8, STRAIGHT: 2}
COUNTER = re.compile(r'^windrow_(inserts_accepted|forwarded_requests)_total(?:\{reason="([^"]*)"\})? (\d+)$',
    re.MULTILINE)
TABLE_ID = re.compile(r"(?<=\{table\}) \([0-9a-f-]{36}\)")
# Positions in ClickHouse's own block, which depend on how the rows came: `FUNCTION plus(a :: 0, b : 1) -> ... : 2'`.
POSITION = re.compile(r" ::? \d+(?=[,)'])")
# What an error quotes of the payload. Of text that was gathered it is what was joined: without the brackets around all
# rows, with a line break at its end, and so read by another of ClickHouse's ways of parsing.
QUOTED = re.compile(r"before: '.*?'(?=: \(|: :|:? ?\n|$)|(?<=Unexpected data )'.*?'(?= after)", re.DOTALL)
LINE_END = re.compile(r"\n+(?=: \(while)")
READER = re.compile(r"While executing (\w+RowInputFormat|ParallelParsingBlockInputFormat)")
MOST_SHOWN = 8


@dataclass(frozen=True)
class Answer:
    status: int
    code: str | None
    text: str
    written_rows: str | None


@dataclass
class Outcome:
    gathered: int = 0
    forwarded: Counter = field(default_factory=Counter)
    accepted: int = 0
    cases: int = 0
    differences: list[str] = field(default_factory=list)

    def share(self) -> float:
        return self.gathered / self.cases if self.cases else 1.0

    def __str__(self) -> str:
        reasons = ", ".join(f"{reason} {count}" for reason, count in self.forwarded.most_common())
        gathered = f"{self.gathered} gathered ({self.share():.0%})"
        return f"{self.cases} cases, {self.accepted} accepted, {gathered}; forwarded: {reasons or 'none'}"

    def add(self, other: Outcome) -> None:
        self.gathered += other.gathered
        self.forwarded += other.forwarded
        self.accepted += other.accepted
        self.cases += other.cases
        self.differences += other.differences

    def report(self) -> str:
        shown = "\n".join(self.differences[:MOST_SHOWN])
        return f"seed {SEED}: {len(self.differences)} differences, the first of them:\n{shown}"


class Duel:
    def __init__(self, gateway: Gateway, tested: Endpoint, direct: Endpoint, columns: str,
        read: str = "sipHash64(v), v"):
        self.gateway, self.direct, self.read = gateway, direct, read
        self.sides = {GATHERED: tested, STRAIGHT: direct}
        for table in self.sides:
            allowed = "allow_suspicious_low_cardinality_types = 1"
            direct.sql(f"CREATE TABLE {table} ({columns}) ENGINE = Memory SETTINGS {allowed}")

    def fight(self, cases: list[Case], source: Callable[[int], str] | None = None) -> Outcome:
        """`source` says where the row of a number comes from, if not from the case that the number points to."""
        before = self.counters()
        answers = {table: self.answers(table, cases) for table in self.sides}
        counted = self.counters() - before
        outcome = Outcome(gathered=counted.pop("", 0), forwarded=counted, cases=len(cases))
        outcome.accepted = sum(answer.status == 200 for answer in answers[STRAIGHT])
        for case, got, expected in zip(cases, answers[GATHERED], answers[STRAIGHT]):
            if got != expected:
                outcome.differences.append(f"{case}\n  ClickHouse: {expected}\n  gateway:    {got}")
        numbered = {case.number: case for case in cases}
        outcome.differences += self.rows_that_differ(source or (lambda row: str(numbered.get(row // ROWS_PER_CASE))))
        return outcome

    def answers(self, table: str, cases: list[Case]) -> list[Answer]:
        connections = threading.local()
        opened: list[http.client.HTTPConnection] = []
        endpoint = self.sides[table]

        def send(case: Case) -> Answer:
            if not hasattr(connections, "own"):
                connections.own = http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=60)
                opened.append(connections.own)
            return answer_to(connections.own, endpoint, table, case)

        with ThreadPoolExecutor(CONNECTIONS[table]) as threads:
            answers = list(threads.map(send, cases))
        for connection in opened:
            connection.close()
        return answers

    def rows_that_differ(self, source: Callable[[int], str]) -> list[str]:
        stored = {table: self.rows(table) for table in self.sides}
        found: dict[str, list[str]] = {}
        for table, other, side in ((STRAIGHT, GATHERED, "ClickHouse: "), (GATHERED, STRAIGHT, "gateway:    ")):
            for line in stored[table] - stored[other]:
                found.setdefault(source(int(line.split("\t")[0])), []).append(f"  {side}{line}")
        return [f"{where}\n" + "\n".join(lines) for where, lines in found.items()]

    def rows(self, table: str) -> Counter:
        """Each row with its hashes: a text alone hides some differences, like those of one hour in two zones."""
        reply = self.read_table(table, self.read)
        if reply.status != 200:
            # ClickHouse has stored an Enum's zero that is none of its values, and can't print it.
            reply = self.read_table(table, "sipHash64(*)")
        assert reply.status == 200, reply.text
        return Counter(line for line in reply.body.decode("utf-8", "backslashreplace").split("\n") if line)

    def read_table(self, table: str, expressions: str) -> Reply:
        return self.direct.request(f"SELECT n, {expressions} FROM {table} FORMAT TSV", b"", {"wait_end_of_query": 1})

    def counters(self) -> Counter:
        with urllib.request.urlopen(self.gateway.admin.url + "metrics") as answer:
            text = answer.read().decode()
        return Counter({reason: int(count) for _, reason, count in COUNTER.findall(text)})


def answer_to(connection: http.client.HTTPConnection, endpoint: Endpoint, table: str, case: Case) -> Answer:
    query = encoded(case.query.replace("{table}", table))
    settings = {**QUICKLY, **case.settings}
    if case.rows_in_url is None:
        target, body = endpoint.target(None, settings), query + case.rows
    else:
        target = endpoint.target(None, {"query": query + case.rows[: case.rows_in_url], **settings})
        body = case.rows[case.rows_in_url :]
    connection.request("POST", target, body, endpoint.with_auth())
    answer = connection.getresponse()
    text = answer.read().decode("utf-8", "backslashreplace").replace(table, "{table}")
    code = ERROR_CODE.search(text)
    summary = re.search(r'"written_rows":"(\d+)"', answer.getheader("X-ClickHouse-Summary") or "")
    written = summary.group(1) if summary and answer.status == 200 else None
    text = POSITION.sub("", TABLE_ID.sub("", text))
    text = READER.sub("While executing the format", LINE_END.sub("", QUOTED.sub("before: '...'", text)))
    return Answer(answer.status, code and code.group(1), text, written)
