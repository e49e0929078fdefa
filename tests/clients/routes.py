"""Which inserts of a client were gathered and which were forwarded, by the gateway's own counters.

A client program gives every kind of insert a table of its own and reports how many it sent there. `expected_routes.py` says
what becomes of each kind: `GATHERED`, or the reason for which it is forwarded (the label of the counter).
"""

from __future__ import annotations

import re
from collections import Counter

import pytest

from clients.run_program import ProgramReport
from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.raw_http import RawConnection, head

GATHERED = "gathered"
# Requests that were never inserts; what comes of them depends on how a client reads, not on how it inserts.
NEVER_INSERTS = ("read", "not_a_query", "other_statement")
SAMPLE = re.compile(r'^(?P<name>\w+)\{(?P<labels>[^}]*)\} (?P<value>\S+)$')
LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def gathered(tables: str) -> dict[str, str]:
    return dict.fromkeys(tables.split(), GATHERED)


def forwarded(reason: str, tables: str) -> dict[str, str]:
    return dict.fromkeys(tables.split(), reason)


def samples(gateway: Gateway, name: str) -> list[tuple[dict[str, str], int]]:
    with RawConnection(gateway.admin) as connection:
        lines = connection.exchange(head("GET", "/metrics", (("Host", "x"),)), "GET").text.splitlines()
    found = [match for match in map(SAMPLE.match, lines) if match and match["name"] == name]
    return [(dict(LABEL.findall(match["labels"])), int(float(match["value"]))) for match in found]


def gathered_by_table(gateway: Gateway, database: str) -> Counter[str]:
    """Inserts that were gathered and have come to their end, whichever it was."""
    counts: Counter[str] = Counter()
    for labels, value in samples(gateway, "windrow_inserts_total"):
        if labels["database"] == database:
            counts[labels["table"]] += value
    return +counts


def forwarded_by_reason(gateway: Gateway) -> Counter[str]:
    counts = Counter({labels["reason"]: value for labels, value in samples(gateway, "windrow_forwarded_requests_total")})
    return Counter({reason: value for reason, value in counts.items() if reason not in NEVER_INSERTS})


class Routes:
    """Constructed before the program runs, asked afterwards. Of a bare engine nothing is asked."""

    def __init__(self, server: Engine | Gateway, endpoint: Endpoint):
        self.gateway = server if isinstance(server, Gateway) else None
        self.database = endpoint.database
        self.forwarded_before = forwarded_by_reason(self.gateway) if self.gateway else Counter()

    def expect(self, report: ProgramReport, routes: dict[str, str], subtests: pytest.Subtests) -> None:
        assert set(report.sent) == set(routes), set(report.sent) ^ set(routes)
        if not self.gateway:
            return
        wanted = {table: count for table, count in report.sent.items() if routes[table] == GATHERED}
        # Inserts that were not waited for are counted when they are stored.
        with subtests.test("gathered inserts are stored"):
            eventually(lambda: sum(self._gathered().values()) >= sum(wanted.values()), "as many as are expected")
        counted = self._gathered()
        for table, count in report.sent.items():
            with subtests.test(f"route of {table}"):
                assert counted[table] == wanted.get(table, 0), f"{counted[table]} of {count} gathered"
        with subtests.test("reasons to forward"):
            expected = Counter()
            for table, route in routes.items():
                if route != GATHERED:
                    expected[route] += report.sent[table]
            seen = forwarded_by_reason(self.gateway) - self.forwarded_before
            assert seen == expected, f"forwarded by reason: {seen}, expected {expected}"

    def _gathered(self) -> Counter[str]:
        return gathered_by_table(self.gateway, self.database)
