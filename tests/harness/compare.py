"""The same request to the engine and to the server under test: the same answer is expected.

What differs between any two answers of one ClickHouse (dates, generated ids, times, memory figures, random tags,
counters) is replaced by a word; everything else has to be equal: status, names, order-insensitive set and values of the
headers, body. A header that a case knows to be incomparable is named in `ignoring`. `Connection` and `Keep-Alive` belong to
one hop: who keeps a connection open that ClickHouse would close does no harm, the opposite would.
"""

from __future__ import annotations

import json
import re
import urllib.parse
from dataclasses import dataclass, field

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.raw_http import RawConnection, RawReply, head

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
KEEP_ALIVE_MAX = re.compile(r"max=\d+")
# Measured, so never the same twice; the other figures of a summary are counts and must agree.
MEASURED = {"elapsed_ns": "NS", "memory_usage": "BYTES", "real_time_microseconds": "US"}
HOP_HEADERS = ("connection", "keep-alive")
EXCEPTION_TAG = "x-clickhouse-exception-tag"


@dataclass(frozen=True)
class Request:
    """What to send; `authorised` adds the endpoint's own credentials as Basic."""

    method: str = "POST"
    path: str = "/"
    parameters: tuple[tuple[str, str | bytes], ...] = ()
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | None = b""
    authorised: bool = True

    def head(self, endpoint: Endpoint) -> bytes:
        target = self.path + ("?" + urllib.parse.urlencode(self.parameters) if self.parameters else "")
        headers = [("Host", f"{endpoint.host}:{endpoint.port}"), *self.headers]
        if self.authorised:
            headers.append(("Authorization", endpoint.basic_auth()))
        framed = any(name.lower() in ("content-length", "transfer-encoding") for name, _ in self.headers)
        if self.body is not None and not framed:
            headers.append(("Content-Length", str(len(self.body))))
        return head(self.method, target, headers)

    def query_id(self) -> str | None:
        named = dict((name.lower(), value) for name, value in self.headers)
        given = dict(self.parameters).get("query_id")
        return given if isinstance(given, str) else named.get("x-clickhouse-query-id")

    def send_to(self, endpoint: Endpoint) -> RawReply:
        with RawConnection(endpoint) as connection:
            return connection.exchange(self.head(endpoint) + (self.body or b""), self.method)


@dataclass
class Answer:
    """A reply with everything incidental replaced by a word."""

    status: int
    reason: str
    headers: dict[str, list[str]] = field(default_factory=dict)
    body: bytes = b""
    complete: bool = True


def normalised(reply: RawReply, ignoring: tuple[str, ...] = (), sent_query_id: str | None = None) -> Answer:
    headers: dict[str, list[str]] = {}
    for name, value in reply.headers:
        if name.lower() not in ignoring:
            headers.setdefault(name.lower(), []).append(normalised_header(name.lower(), value, sent_query_id))
    return Answer(reply.status, reply.reason, headers, normalised_body(reply), reply.complete)


def normalised_header(name: str, value: str, sent_query_id: str | None) -> str:
    if name == "date":
        return "DATE"
    if name == "keep-alive":
        return KEEP_ALIVE_MAX.sub("max=N", value)
    if name == EXCEPTION_TAG:
        return f"TAG of {len(value)}"
    if name == "x-clickhouse-query-id":
        return value if value == sent_query_id else UUID.sub("UUID", value)
    if name in ("x-clickhouse-summary", "x-clickhouse-progress"):
        return normalised_figures(json.loads(value))
    return value


def normalised_figures(figures: dict[str, str]) -> str:
    """An insert's bytes depend on whether its rows were counted as text or as columns; its rows don't."""
    written = figures.get("written_rows", "0") != "0"
    incidental = {**MEASURED, "total_rows_to_read": "ROWS"} if written else MEASURED
    return json.dumps(
        {
            key: "BYTES" if written and key.endswith("_bytes") else incidental.get(key, figure)
            for key, figure in figures.items()
        }
    )


def normalised_body(reply: RawReply) -> bytes:
    tag = reply.get(EXCEPTION_TAG)
    body = reply.body
    if tag:
        body = body.replace(tag.encode(), b"TAG")
    return re.sub(rb'"elapsed": [0-9.e-]+', b'"elapsed": SECONDS', body)


def differences(expected: Answer, got: Answer) -> list[str]:
    found = []
    if "keep-alive" not in expected.headers:
        for answer in (expected, got):
            answer.headers = {name: value for name, value in answer.headers.items() if name not in HOP_HEADERS}
    for part in ("status", "reason", "complete"):
        if getattr(expected, part) != getattr(got, part):
            found.append(f"{part}: {getattr(expected, part)!r} became {getattr(got, part)!r}")
    for name in sorted(expected.headers.keys() | got.headers.keys()):
        if expected.headers.get(name) != got.headers.get(name):
            found.append(f"header {name}: {expected.headers.get(name)} became {got.headers.get(name)}")
    if expected.body != got.body:
        found.append(f"body: {expected.body[:600]!r} became {got.body[:600]!r}")
    return found


class Comparison:
    """Sends each request to both and fails with a list of what differs; returns the raw reply of the one under test."""

    def __init__(self, oracle: Endpoint, tested: Endpoint):
        self.oracle, self.tested = oracle, tested

    def same(self, request: Request, ignoring: tuple[str, ...] = (), before: tuple[str, ...] = ()) -> RawReply:
        """`before` are statements that put the state back, run ahead of each of the two."""
        sent_query_id = request.query_id()
        replies = []
        for endpoint in (self.oracle, self.tested):
            for statement in before:
                self.oracle.sql(statement)
            replies.append(request.send_to(endpoint))
            if sent_query_id:
                self.until_ended(sent_query_id)
        expected, got = (normalised(reply, ignoring, sent_query_id) for reply in replies)
        found = differences(expected, got)
        assert not found, f"{request.method} {request.path} {request.parameters}:\n  " + "\n  ".join(found)
        return replies[1]

    def until_ended(self, query_id: str) -> None:
        """ClickHouse answers a little before it takes the query off its list; till then the id would be refused."""
        running = f"SELECT count() FROM system.processes WHERE query_id = '{query_id}'"
        eventually(lambda: self.oracle.sql(running) == "0", f"the end of query {query_id}")
