"""Thousands of everyday values of each type whose text is converted: rare faults show here."""

from __future__ import annotations

import pytest

from differential.budget import SEED, generator, scaled
from differential.duel import Duel
from differential.kind import Kind
from differential.language import Language
from differential.payloads import Case, encoded, statement
from differential.scalars import DECIMALS, FLOATS, Ipv6, String
from differential.times import DATES, TIMES, DateTime
from harness.endpoint import Endpoint
from harness.gateway import Gateway

ROWS = 3000
INSERTS = 3


@pytest.mark.parametrize("language", Language, ids=lambda language: language.value)
@pytest.mark.parametrize("kind", (*FLOATS, *DECIMALS[:6], *DATES, *TIMES, Ipv6(), String()), ids=lambda kind: kind.name)
def test_volume(gateway: Gateway, tested: Endpoint, direct: Endpoint, kind: Kind, language: Language) -> None:
    rng = generator("volume", kind.name, language.value)
    duel = Duel(gateway, tested, direct, f"n UInt32, v {kind.name}")
    values = [kind.plain(rng, language) for _ in range(scaled(ROWS))]
    spelling = '{"n":%d,"v":%s}\n' if language is Language.JSON else "(%d,%s),"
    query, _ = statement(language, rng, {})
    cases = []
    for number in range(INSERTS):
        rows = "".join(spelling % (row, values[row]) for row in range(number, len(values), INSERTS))
        cases.append(Case(number, query, encoded(rows)))
    outcome = duel.fight(cases, lambda row: f"row {row}: {values[row]}")
    print(f"{len(values)} rows of {kind.name} {language.value}, seed {SEED}: {outcome}")
    assert not outcome.differences, outcome.report()
    assert outcome.accepted == len(cases)
    if kind.everyday and not isinstance(kind, DateTime):
        # Among thousands of local times some are in an hour that a clock skips or repeats.
        assert outcome.gathered == len(cases), str(outcome)
