"""A server of ordered appends that keeps them in memory, for faults that a real gateway can't be made to show.

It knows the contract and no database: what was committed are the batches' bodies, in order. `on_request` may answer in its
place, or break the connection.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

from harness.scripted import PATIENCE_SECONDS, Exchange, ScriptedServer, answer
from windrow import _core

PREFIX = "/windrow/v1/appends"
STATUSES = {200: "200 OK", 201: "201 Created", 404: "404 Not Found", 409: "409 Conflict", 503: "503 Service Unavailable"}
# What a client asks for when it is made; its protocol has the info of a block before each.
FACTS = b"\x01\x00\x02\xff\xff\xff\xff\x00" + _core.Encoder(
    ["version", "timezone", "names", "values", "readonly"],
    ["String", "String", "Array(String)", "Array(String)", "Array(UInt8)"],
).rows([("26.1.1.1", "UTC", [], [], [])], 0, 1)
COLUMNS = [{"name": "n", "type": "Int64"}, {"name": "text", "type": "String"}]


@dataclass
class Asked:
    """One request: `kind` is open, batch, commit, abort, status or query."""

    kind: str
    append_id: str
    number: int
    parameters: dict[str, str]
    headers: bytes
    body: bytes
    exchange: Exchange


@dataclass
class Append:
    """What a client has sent so far."""

    table: str
    columns: list[str] | None
    batches: dict[int, bytes] = field(default_factory=dict)
    formats: set[str] = field(default_factory=set)
    state: str = "open"
    committed: list[bytes] = field(default_factory=list)


class AppendServer:
    """`server.appends[id]` is what came; `server.asked` are all requests in the order in which they came."""

    def __init__(self, on_request: Callable[[Asked], bytes | None] | None = None) -> None:
        self.on_request = on_request
        self.appends: dict[str, Append] = {}
        self.asked: list[Asked] = []
        self.changed = threading.Condition()
        self.server = ScriptedServer(self._serve)
        self.host, self.port = self.server.host, self.server.port

    def kinds(self) -> list[str]:
        return [asked.kind for asked in self.asked]

    def close(self) -> None:
        with self.changed:
            for append in self.appends.values():
                append.state = "aborted" if append.state == "open" else append.state
            self.changed.notify_all()
        self.server.close()

    def _serve(self, exchange: Exchange) -> None:
        while True:
            head, body = exchange.read_request()
            asked = parsed(head, body, exchange)
            with self.changed:
                self.asked.append(asked)
                self.changed.notify_all()
            instead = self.on_request(asked) if self.on_request else None
            exchange.send(self._answer(asked) if instead is None else instead)

    def _answer(self, asked: Asked) -> bytes:
        with self.changed:
            if asked.kind == "query":
                return answer(FACTS, headers={"X-ClickHouse-Timezone": "UTC"})
            if asked.kind in ("open", "batch", "commit") and asked.append_id not in self.appends:
                if "table" not in asked.parameters:
                    return error(404, 159, "the append is gone")
                columns = asked.parameters.get("columns")
                self.appends[asked.append_id] = Append(asked.parameters["table"], columns.split(",") if columns else None)
            append = self.appends.get(asked.append_id)
            if append is None:
                return said({"id": asked.append_id, "state": "gone"}, 404 if asked.kind == "status" else 200)
            return getattr(self, f"_{asked.kind}")(asked, append)

    def _open(self, asked: Asked, append: Append) -> bytes:
        numbers = sorted(append.batches)
        progress = {"received": [[number, number] for number in numbers], "next": 0, "columns": COLUMNS}
        return said({"id": asked.append_id, "state": append.state, "table": append.table, "atomic": "all", **progress})

    def _batch(self, asked: Asked, append: Append) -> bytes:
        if append.state != "open":
            return error(409, 159, f"the append is {append.state}")
        repeated = asked.number in append.batches
        append.batches.setdefault(asked.number, asked.body)
        append.formats.add(asked.parameters.get("format", "ArrowStream"))
        self.changed.notify_all()
        return said({"id": asked.append_id, "batch": asked.number, "repeated": repeated, "next": 0})

    def _commit(self, asked: Asked, append: Append) -> bytes:
        count = int(asked.parameters["batches"])
        whole = self.changed.wait_for(
            lambda: append.state != "open" or set(append.batches) == set(range(count)), PATIENCE_SECONDS
        )
        if not whole or append.state not in ("open", "committed"):
            return error(408, 159, f"the append is {append.state}")
        append.state = "committed"
        append.committed = [append.batches[number] for number in range(count)]
        self.changed.notify_all()
        return said(self._committed(asked, append))

    def _committed(self, asked: Asked, append: Append) -> dict[str, Any]:
        counts = {"batches": len(append.committed), "bytes": sum(map(len, append.committed)), "rows": 0}
        return {"id": asked.append_id, "state": "committed", "seconds": 0.1, "atomic": "all", **counts}

    def _abort(self, asked: Asked, append: Append) -> bytes:
        if append.state == "committed":
            return error(409, 159, "the append is committed")
        append.state = "aborted"
        self.changed.notify_all()
        return said({"id": asked.append_id, "state": "aborted"})

    def _status(self, asked: Asked, append: Append) -> bytes:
        status: dict[str, Any] = {"id": asked.append_id, "state": append.state}
        if append.state == "committed":
            status["committed"] = self._committed(asked, append)
        return said(status)


def parsed(head: bytes, body: bytes, exchange: Exchange) -> Asked:
    """What a request asks for."""
    method, target, _ = head.split(b"\r\n", 1)[0].decode().split(" ")
    parts = urlsplit(target)
    parameters = {name: values[0] for name, values in parse_qs(parts.query).items()}
    if not parts.path.startswith(PREFIX):
        return Asked("query", "", -1, parameters, head, body, exchange)
    steps = [unquote(step) for step in parts.path[len(PREFIX) :].split("/")[1:]]
    kind = {0: "open", 1: "abort" if method == "DELETE" else "status", 2: "commit", 3: "batch"}[len(steps)]
    append_id = steps[0] if steps else parameters["id"]
    return Asked(kind, append_id, int(steps[2]) if kind == "batch" else -1, parameters, head, body, exchange)


def said(fields: dict[str, Any], status: int = 200) -> bytes:
    """An answer in JSON."""
    return answer(json.dumps(fields).encode(), STATUSES[status], {"Content-Type": "application/json"})


def error(status: int, code: int, text: str, **headers: str) -> bytes:
    """An error as a gateway words it; `batch` and `row` may be among the headers."""
    fields = {f"X-Windrow-{name.title()}": value for name, value in headers.items()}
    body = f"Code: {code}. DB::Exception: {text}. (SOME_ERROR) (version 26.1)".encode()
    return answer(body, STATUSES.get(status, f"{status} Error"), {"X-ClickHouse-Exception-Code": str(code), **fields})
