"""Every type, in both formats: everyday payloads are gathered, and nothing lands otherwise than in ClickHouse."""

from __future__ import annotations

import pytest

from differential.budget import SEED, generator, scaled
from differential.composites import COMPOSITES
from differential.duel import Duel
from differential.kind import Kind
from differential.language import Language
from differential.payloads import odd_case, plain_case
from differential.scalars import SCALARS
from differential.times import DATES, TIMES
from harness.endpoint import Endpoint
from harness.gateway import Gateway

PLAIN_CASES, ODD_CASES = 10, 14
GATHERED_AT_LEAST = 0.9


@pytest.mark.parametrize("language", Language, ids=lambda language: language.value)
@pytest.mark.parametrize("kind", (*SCALARS, *DATES, *TIMES, *COMPOSITES), ids=lambda kind: kind.name)
def test_type(gateway: Gateway, tested: Endpoint, direct: Endpoint, kind: Kind, language: Language) -> None:
    rng = generator(kind.name, language.value)
    duel = Duel(gateway, tested, direct, f"n UInt32, v {kind.name}")
    plain = [plain_case(rng, language, kind, number) for number in range(scaled(PLAIN_CASES))]
    odd = [odd_case(rng, language, kind, len(plain) + number) for number in range(scaled(ODD_CASES))]
    everyday = duel.fight(plain)
    strange = duel.fight(odd)
    print(f"{kind.name} {language.value}, seed {SEED}\n  plain: {everyday}\n  odd: {strange}")
    assert not everyday.differences, everyday.report()
    assert everyday.accepted == everyday.cases, f"the generator made payloads that ClickHouse refuses: {everyday}"
    assert not strange.differences, strange.report()
    if kind.everyday:
        assert everyday.share() >= GATHERED_AT_LEAST, str(everyday)
