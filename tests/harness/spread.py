"""Inserts into hundreds of tables at once, what their senders were told of each, and what became of its row.

Every insert has one row, whose number no other has, so that a row is known wherever it is.
"""

from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

from harness.endpoint import ERROR_CODE, Endpoint
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.dead_letters import DeadLetters
from harness.load import Writers
from harness.quick_http import QuickConnection

NUMBERS = itertools.count(1)
# Between two inserts of a writer: tables in which a test is interested get every second one.
PAUSE_SECONDS = 0.02
NO_QUEUE = 36
GONE, LONGEST_WAIT_SECONDS = "gone", 60
STORED, DISK = {"wait_for_async_insert": 1}, {"wait_for_async_insert": 0}
SOON = {"async_insert_use_adaptive_busy_timeout": 0, "async_insert_busy_timeout_ms": 20}


class Kind(NamedTuple):
    settings: dict[str, object]
    columns: str

    @property
    def name(self) -> str:
        return f"{'disk' if DISK.items() <= self.settings.items() else 'stored'} ({self.columns})"


KINDS = tuple(Kind(settings, columns) for settings in (STORED, DISK) for columns in ("a", "a, b"))


class Told(NamedTuple):
    """What became of an insert as far as its sender knows."""

    kind: Kind
    table: str
    number: int
    sent_at: float
    answered_at: float
    status: int
    text: str

    @property
    def acknowledged(self) -> bool:
        return self.status == 200

    @property
    def code(self) -> int | None:
        found = ERROR_CODE.search(self.text)
        return int(found.group(1)) if found else None

    def __str__(self) -> str:
        return f"{self.kind.name} into {self.table}: {self.status} {self.text.strip()[:200]}"


def names(number: int) -> list[str]:
    """None of them begins with another one."""
    return [f"t{at:04}" for at in range(number)]


def create_many(direct: Endpoint, tables: Iterable[str], columns: str = "a UInt64, b String") -> None:
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda table: direct.sql(f"CREATE TABLE {table} ({columns}) ENGINE = MergeTree ORDER BY tuple()"), tables))


class Spread(Writers):
    """Writers of every kind, which go round the tables from `with` to its end; after each insert they make one into each watched table."""

    def __init__(self, endpoint: Endpoint, tables: list[str], kinds: tuple[Kind, ...] = KINDS, per_kind: int = 1):
        super().__init__()
        self.endpoint, self.tables, self.kinds, self.watched = endpoint, tables, kinds, ()
        self.told: list[Told] = []
        chosen = [kind for kind in kinds for _ in range(per_kind)]
        starts = [at * len(tables) // len(chosen) for at in range(len(chosen))]
        self.threads = [threading.Thread(target=self._write, args=each, daemon=True) for each in zip(chosen, starts)]

    def _write(self, kind: Kind, start: int) -> None:
        connection = QuickConnection(self.endpoint)
        around = itertools.cycle(self.tables[start:] + self.tables[:start])
        while not self.stopping.wait(PAUSE_SECONDS):
            for table in (next(around), *self.watched):
                self.told.append(insert(connection, kind, table))
        connection.close()

    def since(self, begin: float) -> list[Told]:
        return [it for it in list(self.told) if it.sent_at >= begin]

    def serves(self, tables: Iterable[str], kinds: tuple[Kind, ...] = KINDS) -> None:
        """From now on an insert of each of these kinds, or of any if there are none, into each of these tables is acknowledged."""
        self._comes(tables, kinds, "acknowledged", lambda it: it.acknowledged)

    def refuses(self, tables: Iterable[str], kinds: tuple[Kind, ...] = KINDS) -> None:
        self._comes(tables, kinds, "refused", lambda it: not it.acknowledged)

    def _comes(self, tables: Iterable[str], kinds: tuple[Kind, ...], what: str, wanted: Callable[[Told], bool]) -> None:
        begin, looked_at = time.monotonic(), len(self.told)
        missing = {(table, kind) for table in tables for kind in ([it.name for it in kinds] or [""])}

        def have_come() -> bool:
            nonlocal looked_at
            new = self.told[looked_at:]
            looked_at += len(new)
            missing.difference_update((it.table, it.kind.name if kinds else "") for it in new if it.sent_at >= begin and wanted(it))
            return not missing

        eventually(have_come, f"inserts into {len(missing)} tables by their kinds are {what}")


def insert(connection: QuickConnection, kind: Kind, table: str) -> Told:
    number, sent_at = next(NUMBERS), time.monotonic()
    settings = {**SOON, **kind.settings, "query_id": query_id(number)}
    target = connection.endpoint.target(f"INSERT INTO {table} ({kind.columns}) FORMAT JSONEachRow", settings)
    row = {"a": number, "b": f"b{number}"} if "b" in kind.columns else {"a": number}
    try:
        reply = connection.post(target, json.dumps(row).encode())
        status, text = reply.status, reply.text
    except OSError as error:
        connection.close()
        status, text = 0, f"{type(error).__name__}: {error}"
    return Told(kind, table, number, sent_at, time.monotonic(), status, text)


def query_id(number: int) -> str:
    return f"spread-{number}"


def acknowledged_late(told: Iterable[Told], since: float | None = None) -> list[Told]:
    """Acknowledged although sent after `since`, or else after one of the same kind into the same table had been refused."""
    by_answer = sorted(told, key=lambda it: -it.answered_at)
    refused = {(it.table, it.kind.name): it.answered_at for it in by_answer if not it.acknowledged}
    closed = lambda it: refused.get((it.table, it.kind.name), float("inf")) if since is None else since
    return [it for it in by_answer if it.acknowledged and it.sent_at > closed(it)]


class Rows:
    """Where rows are once all is flushed: in which tables of the database and how often; or among the dead letters."""

    def __init__(self, gateway: Gateway, direct: Endpoint):
        self.gateway, self.direct = gateway, direct
        self._look()

    def _look(self) -> None:
        direct = self.direct
        flushed = self.gateway.http.as_user(direct.user, direct.password).request("SYSTEM FLUSH ASYNC INSERT QUEUE")
        # An engine apart is asked as well, and has no queue.
        assert flushed.status == 200 or flushed.code == NO_QUEUE, flushed.text
        self.there: dict[int, dict[str, int]] = {}
        for line in direct.sql(f"SELECT a, _table, count() FROM merge('{direct.database}', '^t[0-9]') GROUP BY ALL").splitlines():
            number, table, count = line.split("\t")
            self.there.setdefault(int(number), {})[table] = int(count)
        self.letters: dict[int, list[str]] = {}
        for letter in DeadLetters(self.gateway, direct.database).all():
            self.letters.setdefault(int(letter["query_id"].removeprefix("spread-")), []).append(letter["error"])

    def check(self, told: Iterable[Told], may_be_gone: Callable[[Told], bool] = lambda _: False) -> None:
        """Each row that was acknowledged is in its table, or in what that is called now, or a dead letter; once. No other is anywhere.
        What has to be tried again comes a while later."""
        told, end = list(told), time.monotonic() + LONGEST_WAIT_SECONDS
        while GONE in {self._fault(it, may_be_gone(it)) for it in told} and time.monotonic() < end:
            self._look()
        faults = [f"{it}, and is {where}" for it in told if (where := self._fault(it, may_be_gone(it)))]
        assert not faults, "\n".join([f"{len(faults)} rows:", *faults[:10]])

    def _fault(self, it: Told, may_be_gone: bool) -> str:
        tables, letters = self.there.get(it.number, {}), self.letters.get(it.number, [])
        places = sum(tables.values()) + len(letters)
        if places > 1:
            return f"in {tables} and {len(letters)} dead letters"
        if any(not table.startswith(it.table) for table in tables):
            return f"in {tables}"
        if places and not it.acknowledged:
            return f"in {tables or letters} all the same"
        return GONE if it.acknowledged and not places and not may_be_gone else ""
