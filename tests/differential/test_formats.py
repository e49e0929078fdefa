"""Every format with every type: everyday payloads, and odd ones, end as they do in ClickHouse.

`WINDROW_DIFFERENTIAL_CASES=100` makes a hundred times as many odd ones, `WINDROW_DIFFERENTIAL_SEED` others.
"""

from __future__ import annotations

from collections import Counter

import pytest

from differential.budget import SEED, generator, scaled
from differential.field import Field
from differential.handled import COMMAND, Handled, documented_handling
from differential.rendering import FORMATS, FORWARDED, odd
from differential.sources import SOURCES
from harness.gateway import Gateway

ODD_CASES = 150
EVERYDAY_TYPES = 24
# Each table that an insert goes to costs some questions before the first.
CASES_PER_TYPE = 10
BATCH = 2000


@pytest.fixture(scope="session")
def field(server: Gateway) -> Field:
    """The tables of values stay for all tests of a worker."""
    assert isinstance(server, Gateway), "formats are compared through a gateway"
    return Field(server)


@pytest.mark.parametrize("form", FORMATS)
def test_everyday_payloads(gateway: Gateway, field: Field, form: str) -> None:
    sources = generator("everyday", form).sample(range(len(SOURCES)), min(len(SOURCES), scaled(EVERYDAY_TYPES)))
    handled = Handled.of(field, form, sources)
    assert not handled.differences, report(handled.differences)
    documented = {source: documented_handling(form, source) for source in handled.handling}
    found = {f"{SOURCES[source].type}: {how}, documented as {documented[source]}" for source, how in handled.handling.items()
        if how != documented[source]}  # fmt: skip
    assert not found, f"{form}: {found}; write docs/formats.md anew with `{COMMAND}`"


@pytest.mark.parametrize("form", [form for form in FORMATS if form not in FORWARDED])
def test_odd_payloads(gateway: Gateway, field: Field, form: str) -> None:
    rng = generator("odd", form)
    count, found, tried = scaled(ODD_CASES), [], 0
    sources = rng.sample(range(len(SOURCES)), min(len(SOURCES), max(1, count // CASES_PER_TYPE)))
    before = field.contest.handling()
    while tried < count and len(found) < 20:
        cases = (odd(field.renderer, rng, form, rng.choice(sources)) for _ in range(min(BATCH, count - tried)))
        cases = [case for case in cases if case is not None]
        found += field.contest.differences(cases)
        tried += max(1, len(cases))
    print(f"{form}, seed {SEED}: {tried} cases, {handling(field.contest.handling() - before)}")
    assert not found, report(found)


def handling(counted: Counter) -> str:
    return ", ".join(f"{reason or 'gathered'} {count}" for reason, count in counted.most_common())


def report(found: list) -> str:
    shown = "\n".join(str(difference) for difference in found[:8])
    return f"seed {SEED}: {len(found)} differences, the first of them:\n{shown}"
