"""What becomes of a corpus of everyday INSERTs: each lands, or is refused, as in ClickHouse, and few of them are forwarded."""

from __future__ import annotations

import urllib.request
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from differential.contest import COUNTER
from differential.duel import QUICKLY
from differential.sources import ALLOWED
from harness.endpoint import ClickHouseError, Endpoint
from harness.gateway import Gateway

CORPUS = Path(__file__).parent / "everyday_inserts.sql"
STRAIGHT, GATHERED = "everyday_straight", "everyday_gathered"
# How many of the inserts are forwarded, by the reason. What ClickHouse refuses is among them.
FORWARDED: dict[str, int] = {}


@dataclass
class Group:
    columns: str
    statements: list[str]


def corpus() -> list[Group]:
    lines = CORPUS.read_text().splitlines()[1:]
    groups: list[Group] = []
    for line in lines:
        if line.startswith("-- "):
            groups.append(Group(line[3:], []))
        else:
            groups[-1].statements.append(line)
    return groups


def reasons(gateway: Gateway) -> Counter:
    with urllib.request.urlopen(gateway.admin.url + "metrics") as answer:
        found = COUNTER.findall(answer.read().decode())
    return Counter({reason or name: int(count) for name, reason, count in found})


def code_of(endpoint: Endpoint, statement: str) -> tuple[int, int | None]:
    reply = endpoint.request(None, statement.encode() + b"\n", {**QUICKLY, **ALLOWED})
    return reply.status, reply.code


def rows(endpoint: Endpoint, columns: str) -> list[str]:
    shown = "id, hex(u), hex(c), m" if "AggregateFunction(uniq" in columns else "*"
    return sorted(endpoint.sql(f"SELECT {shown} FROM t FORMAT JSONEachRow").splitlines())


def test_everyday_inserts(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    sides = {STRAIGHT: direct.using(STRAIGHT), GATHERED: tested.using(GATHERED)}
    for database in sides:
        direct.sql(f"DROP DATABASE IF EXISTS {database}")
        direct.sql(f"CREATE DATABASE {database}")
    forwarded, found, count = Counter(), [], 0
    for group in corpus():
        for database in sides:
            # Through the gateway, which has to know that the table is another.
            query = f"CREATE OR REPLACE TABLE t ({group.columns}) ENGINE = MergeTree ORDER BY tuple()"
            tested.using(database).sql(query, **ALLOWED)
        for statement in group.statements:
            before = reasons(gateway)
            expected, got = (code_of(endpoint, statement) for endpoint in sides.values())
            stored = [rows(direct.using(database), group.columns) for database in sides]
            why = reasons(gateway) - before
            way = next(iter(set(why) - {"inserts_accepted"}), "typed")
            forwarded[way] += 1
            count += 1
            print(f"{way:20} {expected} {statement}")
            if expected != got or stored[0] != stored[1]:
                found.append(f"{group.columns}: {statement}\n  ClickHouse: {expected} {stored[0][-3:]}\n  gateway: {got} {stored[1][-3:]}")
    print(f"{count} inserts: {forwarded}")
    assert not found, "\n".join(found[:10])
