"""A ClickHouse HTTP endpoint, and the shortest way to run SQL on it."""

from __future__ import annotations

import http.client
import json
import re
import urllib.parse
from base64 import b64encode
from dataclasses import dataclass, replace

ERROR_CODE = re.compile(r"Code: (\d+)\. DB::Exception")


class ClickHouseError(Exception):
    def __init__(self, status: int, text: str):
        super().__init__(f"HTTP {status}: {text.strip()}")
        self.status = status
        self.text = text
        found = ERROR_CODE.search(text)
        self.code = int(found.group(1)) if found else None


@dataclass(frozen=True)
class Reply:
    """An answer read to its end."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    @property
    def summary(self) -> dict[str, str]:
        return json.loads(self.headers["x-clickhouse-summary"])

    @property
    def code(self) -> int | None:
        found = ERROR_CODE.search(self.text)
        return int(found.group(1)) if found else None


@dataclass(frozen=True)
class Endpoint:
    host: str
    port: int
    user: str
    password: str
    database: str = "default"
    # Of the same server, where it is known.
    native_port: int | None = None

    @property
    def url(self) -> str:
        return f"http://{self.host}:{self.port}/"

    def using(self, database: str) -> Endpoint:
        return replace(self, database=database)

    def as_user(self, user: str, password: str) -> Endpoint:
        return replace(self, user=user, password=password)

    def basic_auth(self) -> str:
        return "Basic " + b64encode(f"{self.user}:{self.password}".encode()).decode()

    def request(
        self,
        query: str | None = None,
        body: bytes = b"",
        settings: dict[str, object] | None = None,
        *,
        method: str = "POST",
        headers: dict[str, str] | None = None,
        timeout_seconds: float = 120,
    ) -> Reply:
        """One request on a connection of its own; never raises for an error that the server answered."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=timeout_seconds)
        try:
            try:
                connection.request(method, self.target(query, settings), body, self.with_auth(headers))
            except BrokenPipeError:
                # Who refuses a request early doesn't take all of it. What it answered says why.
                pass
            answer = connection.getresponse()
            content = answer.read()
            return Reply(answer.status, {k.lower(): v for k, v in answer.getheaders()}, content)
        finally:
            connection.close()

    def target(self, query: str | None = None, settings: dict[str, object] | None = None) -> str:
        parameters: dict[str, object] = {"database": self.database}
        if query is not None:
            parameters["query"] = query
        return "/?" + urllib.parse.urlencode({**parameters, **(settings or {})})

    def with_auth(self, headers: dict[str, str] | None = None) -> dict[str, str]:
        return {"Authorization": self.basic_auth(), **(headers or {})}

    def sql(self, query: str, **settings: object) -> str:
        """Runs a statement sent in the body; the answer's text without its final newline."""
        reply = self.request(None, query.encode(), settings)
        if reply.status != 200 or "__exception__" in reply.text:
            raise ClickHouseError(reply.status, reply.text)
        return reply.text.removesuffix("\n")

    def insert(self, query: str, rows: str | bytes, *, patience_seconds: float = 120, **settings: object) -> Reply:
        """An insert with its data in the body and its statement in the URL; the caller looks at the status."""
        data = rows.encode() if isinstance(rows, str) else rows
        return self.request(query, data, settings, timeout_seconds=patience_seconds)

    def answers(self) -> bool:
        try:
            return self.request("SELECT 1", method="GET", timeout_seconds=5).status == 200
        except (OSError, http.client.HTTPException):
            # Also where its end breaks the answer off.
            return False
