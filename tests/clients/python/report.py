"""The report that every client program prints: one object with all its checks."""

from __future__ import annotations

import json
import traceback
from collections.abc import Awaitable, Callable


class Report:
    def __init__(self) -> None:
        self.checks: list[dict[str, object]] = []
        # Inserts sent, by table.
        self.sent: dict[str, int] = {}

    def sends(self, table: str, inserts: int = 1) -> str:
        self.sent[table] = self.sent.get(table, 0) + inserts
        return table

    def run(self, name: str, check: Callable[[], object]) -> None:
        try:
            self.passed(name, check())
        except Exception:
            self.failed(name)

    async def run_async(self, name: str, check: Callable[[], Awaitable[object]]) -> None:
        try:
            self.passed(name, await check())
        except Exception:
            self.failed(name)

    def passed(self, name: str, detail: object) -> None:
        self.checks.append({"name": name, "ok": True, "detail": str(detail)})

    def failed(self, name: str) -> None:
        self.checks.append({"name": name, "ok": False, "detail": traceback.format_exc()})

    def print(self) -> None:
        print(json.dumps({"finished": True, "checks": self.checks, "sent": self.sent}))


def equal(got: object, expected: object) -> object:
    assert got == expected, f"got {got!r}, expected {expected!r}"
    return got
