"""Ordered appends over HTTP: numbered batches in ClickHouse's Native format, in any order, over several connections."""

from __future__ import annotations

import http.client
import json
import random
import select
import struct
import threading
import urllib.parse
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from harness.endpoint import Endpoint, Reply
from harness.eventually import eventually

PATH = "/windrow/v1/appends"
# An answer that was lost, or a connection that was closed: the request may have had its effect.
LOST = (OSError, http.client.HTTPException)

_local = threading.local()


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 128:
        out.append(number & 127 | 128)
        number >>= 7
    out.append(number)
    return bytes(out)


def text(value: str) -> bytes:
    encoded = value.encode()
    return varint(len(encoded)) + encoded


def native(**columns: Sequence[int]) -> bytes:
    """A block of Int64 columns."""
    rows = len(next(iter(columns.values())))
    out = [varint(len(columns)), varint(rows)]
    for name, values in columns.items():
        out += [text(name), text("Int64"), struct.pack(f"<{rows}q", *values)]
    return b"".join(out)


@dataclass(frozen=True)
class Append:
    """One append, as a client that writes its requests itself sees it."""

    endpoint: Endpoint
    table: str
    id: str = field(default_factory=lambda: str(uuid.uuid4()))

    def ask(self, method: str, path: str = "", body: bytes = b"", **parameters: object) -> Reply:
        return self._ask(method, f"{PATH}/{self.id}{path}?{urllib.parse.urlencode(parameters)}", body)

    def _ask(self, method: str, target: str, body: bytes = b"") -> Reply:
        """On a connection that this thread keeps; it is given up when an answer is lost."""
        connection = kept_connection(self.endpoint)
        try:
            connection.request(method, target, body, self.endpoint.with_auth())
            answer = connection.getresponse()
            content = answer.read()
        except LOST:
            connection.close()
            raise
        return Reply(answer.status, {name.lower(): value for name, value in answer.getheaders()}, content)

    def open(self) -> Reply:
        opening = {"id": self.id, "table": f"{self.endpoint.database}.{self.table}"}
        return self._ask("POST", f"{PATH}?{urllib.parse.urlencode(opening)}")

    def put(self, number: int, payload: bytes, **parameters: object) -> Reply:
        """Opens the append if it isn't known."""
        parameters = {"table": f"{self.endpoint.database}.{self.table}", "format": "Native", **parameters}
        return self.ask("POST", f"/batches/{number}", payload, **parameters)

    def commit(self, batches: int, **parameters: object) -> Reply:
        return self.ask("POST", "/commit", batches=batches, **parameters)

    def abort(self) -> Reply:
        return self.ask("DELETE")

    def status(self) -> dict:
        return json.loads(self.ask("GET").body)

    def send(self, payloads: Sequence[bytes], rng: random.Random, connections: int = 8) -> Reply:
        """All batches, shuffled and some of them twice, each until its answer comes; then the commit."""
        numbers = list(range(len(payloads))) + rng.choices(range(len(payloads)), k=len(payloads) // 4)
        rng.shuffle(numbers)
        with ThreadPoolExecutor(connections) as pool:
            sent = [pool.submit(persist, lambda n=n: self.put(n, payloads[n])) for n in numbers]
            replies = [future.result() for future in sent]
        failed = [reply for reply in replies if reply.status != 200]
        return failed[0] if failed else persist(lambda: self.commit(len(payloads)))


def kept_connection(endpoint: Endpoint) -> http.client.HTTPConnection:
    known = _local.__dict__.setdefault("connections", {})
    key = (endpoint.host, endpoint.port)
    if key not in known:
        known[key] = http.client.HTTPConnection(endpoint.host, endpoint.port, timeout=120)
    connection = known[key]
    # Nothing comes by itself but its end: the server closes what was idle for long.
    if connection.sock is not None and select.select([connection.sock], [], [], 0)[0]:
        connection.close()
    return connection


def persist(request: Callable[[], Reply]) -> Reply:
    """Sends again what got no answer, or was told to come again."""

    def answered() -> Reply | None:
        try:
            reply = request()
        except LOST:
            return None
        return reply if reply.status != 503 else None

    return eventually(answered, "an answer that says more than to come again")
