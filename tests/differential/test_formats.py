"""Every format with every type: everyday payloads, and odd ones, end as they do in ClickHouse.

`WINDROW_DIFFERENTIAL_CASES=100` makes a hundred times as many odd ones, `WINDROW_DIFFERENTIAL_SEED` others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import pytest

from differential.budget import SEED, generator, scaled
from differential.contest import Contest
from differential.rendering import FORMATS, FORWARDED, Renderer, everyday, odd
from differential.sources import SOURCES, fill
from harness.gateway import Gateway
from harness.users import TESTER

ODD_CASES = 150
BATCH = 2000


class Field:
    """Where contests are held: the tables of values stay for all tests of a worker."""

    def __init__(self, gateway: Gateway):
        name = "formats"
        gateway.direct.sql(f"CREATE DATABASE {name}")
        direct = gateway.direct.using(name)
        for index in range(len(SOURCES)):
            fill(direct, index, generator("source", SOURCES[index].type))
        tested = gateway.http.as_user(TESTER.name, TESTER.password).using(name)
        self.renderer, self.contest = Renderer(direct), Contest(gateway, tested, direct)


@pytest.fixture(scope="session")
def field(server: Gateway) -> Iterator[Field]:
    assert isinstance(server, Gateway), "formats are compared through a gateway"
    yield Field(server)


@pytest.mark.parametrize("form", FORMATS)
def test_everyday_payloads(gateway: Gateway, field: Field, form: str) -> None:
    cases = [case for source in range(len(SOURCES)) for case in everyday(field.renderer, form, source)]
    assert cases, f"ClickHouse renders nothing as {form}"
    found = field.contest.differences(cases)
    assert not found, report(found)


@pytest.mark.parametrize("form", [form for form in FORMATS if form not in FORWARDED])
def test_odd_payloads(gateway: Gateway, field: Field, form: str) -> None:
    rng = generator("odd", form)
    count, found, tried = scaled(ODD_CASES), [], 0
    before = field.contest.ways()
    while tried < count and len(found) < 20:
        cases = (odd(field.renderer, rng, form, rng.randrange(len(SOURCES))) for _ in range(min(BATCH, count - tried)))
        cases = [case for case in cases if case is not None]
        found += field.contest.differences(cases)
        tried += max(1, len(cases))
    print(f"{form}, seed {SEED}: {tried} cases, {ways(field.contest.ways() - before)}")
    assert not found, report(found)


def ways(counted: Counter) -> str:
    return ", ".join(f"{reason or 'gathered'} {count}" for reason, count in counted.most_common())


def report(found: list) -> str:
    shown = "\n".join(str(difference) for difference in found[:8])
    return f"seed {SEED}: {len(found)} differences, the first of them:\n{shown}"
