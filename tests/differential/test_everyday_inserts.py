"""What becomes of a corpus of everyday INSERTs: each lands, or is refused, as in ClickHouse, and few of them are forwarded."""

from __future__ import annotations

import urllib.request
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

from differential.contest import COUNTER
from differential.duel import QUICKLY
from differential.sources import ALLOWED
from harness.endpoint import Endpoint
from harness.gateway import Gateway

CORPUS = Path(__file__).parent / "everyday_inserts.sql"
STRAIGHT, GATHERED = "everyday_straight", "everyday_gathered"
HANDLING = {"inserts_backend_read": "read by ClickHouse", "inserts_passthrough": "passthrough"}
# Of those that ClickHouse stores, how many are handled how: `parsed`, `passthrough` and `read by ClickHouse` are gathered, the others are reasons
# for which an insert is forwarded.
STORED = {"read by ClickHouse": 145, "parsed": 81, "insert_form": 8, "passthrough": 6, "mixed_defaults": 1, "syntax": 1, "value": 1}
# How a value is shown, if not as JSON.
SHOWN = {"u AggregateFunction": "id, hex(u), hex(c), m", "j JSON": "*, JSONAllPathsWithTypes(j)",
    "d Dynamic": "*, dynamicType(d), variantType(v)"}  # fmt: skip


@dataclass
class Group:
    """Statements that go into one table."""

    columns: str
    statements: list[str] = field(default_factory=list)


def corpus() -> list[Group]:
    groups: list[Group] = []
    for line in CORPUS.read_text().splitlines()[1:]:
        if line.startswith("-- "):
            groups.append(Group(line[3:]))
        else:
            groups[-1].statements.append(line)
    return groups


def counters(gateway: Gateway) -> Counter:
    with urllib.request.urlopen(gateway.admin.url + "metrics") as answer:
        found = COUNTER.findall(answer.read().decode())
    return Counter({reason or name: int(count) for name, reason, count in found})


def answer(endpoint: Endpoint, statement: str) -> tuple[int, int | None]:
    reply = endpoint.request(None, statement.encode() + b"\n", {**QUICKLY, **ALLOWED})
    return reply.status, reply.code


def rows(endpoint: Endpoint, columns: str) -> list[str]:
    shown = next((shown for name, shown in SHOWN.items() if name in columns), "*")
    return sorted(endpoint.sql(f"SELECT {shown} FROM t FORMAT JSONEachRow").splitlines())


def test_everyday_inserts(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    sides = {STRAIGHT: direct.using(STRAIGHT), GATHERED: tested.using(GATHERED)}
    for database in sides:
        direct.sql(f"DROP DATABASE IF EXISTS {database}")
        direct.sql(f"CREATE DATABASE {database}")
    stored, refused, different = Counter(), Counter(), []
    for group in corpus():
        for database in sides:
            # Through the gateway, which has to know that the table is another.
            query = f"CREATE OR REPLACE TABLE t ({group.columns}) ENGINE = MergeTree ORDER BY tuple()"
            tested.using(database).sql(query, **ALLOWED)
        before = counters(gateway)
        for statement in group.statements:
            expected, got = (answer(endpoint, statement) for endpoint in sides.values())
            before, counted = (now := counters(gateway)), set(now - before) - {"inserts_accepted"}
            handling = HANDLING.get(name := counted.pop(), name) if counted else "parsed"
            (stored if expected[0] == 200 else refused)[handling] += 1
            print(f"{handling:16} {expected} {statement}")
            if expected != got:
                different.append(f"{group.columns}: {statement}\n  ClickHouse: {expected}\n  gateway: {got}")
        straight, gathered = (Counter(rows(direct.using(database), group.columns)) for database in sides)
        if straight != gathered:
            lost, more = sorted(straight - gathered), sorted(gathered - straight)
            different.append(f"{group.columns}:\n  ClickHouse: {lost}\n  gateway: {more}")
    print(f"{stored.total()} that ClickHouse stores: {stored}; {refused.total()} that it refuses: {refused}")
    assert not different, "\n".join(different[:10])
    assert stored == STORED
