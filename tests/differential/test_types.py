"""Every type, in both formats: everyday payloads are gathered, and nothing lands otherwise than in ClickHouse."""

from __future__ import annotations

from random import Random

import pytest

from differential.budget import SEED, generator, scaled
from differential.composites import COMPOSITES
from differential.duel import Duel
from differential.kind import Kind
from differential.language import Language
from differential.payloads import ROWS_PER_CASE, Case, encoded, odd_case, plain_case
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


DECIMALS = ((1, 0), (1, 1), (3, 1), (9, 0), (9, 9), (10, 5), (18, 0), (18, 12), (18, 18), (19, 4), (38, 10), (38, 38), (39, 20), (76, 0), (76, 20), (76, 76))
SCIENTIFIC_CASES = 60


def scientific(rng: Random, precision: int, scale: int) -> str:
    """A number that fits: with digits that the scale has no room for, exponents that leave nothing, zeros in front and behind."""
    digits = "".join(rng.choices("0123456789", k=rng.randint(1, precision + rng.choice((0, 0, 5, 40)))))
    digits = rng.choice((digits, digits, "9" * len(digits), digits[0] + "0" * (len(digits) - 1)))
    point = rng.randint(1, min(len(digits), precision))
    whole, fraction = digits[:point].lstrip("0") or "0", digits[point:]
    room = precision - scale - len(whole)
    exponent = rng.choice((room, -scale, -scale - 1, -scale - len(whole), rng.randint(-90, room), rng.randint(-400, room), min(room, 0)))
    sign = "-" if exponent < 0 else rng.choice(("+", ""))
    mantissa = rng.choice(("", "-")) + whole + (f".{fraction}" if fraction else "")
    return mantissa + rng.choice("eE") + sign + rng.choice(("", "0", "00")) + str(abs(exponent))


@pytest.mark.parametrize("form", ("JSONEachRow", "CSV", "TSV", "Values"))
def test_decimals_in_scientific_notation(gateway: Gateway, tested: Endpoint, direct: Endpoint, form: str) -> None:
    """All of them are read here, of every width, and as ClickHouse reads them."""
    rng = generator("scientific", form)
    duel = Duel(gateway, tested, direct, ", ".join(["n UInt32", *(f"d{p}_{s} Decimal({p}, {s})" for p, s in DECIMALS)]), "* EXCEPT n")
    cases = []
    for number in range(scaled(SCIENTIFIC_CASES)):
        values = [str(number * ROWS_PER_CASE), *(scientific(rng, *decimal) for decimal in DECIMALS)]
        names = ["n", *(f"d{precision}_{scale}" for precision, scale in DECIMALS)]
        quoted = (value if name == "n" or rng.random() < 0.5 else f'"{value}"' for name, value in zip(names, values))
        row = {
            "JSONEachRow": "{" + ", ".join(f'"{name}": {value}' for name, value in zip(names, quoted)) + "}",
            "CSV": ",".join(values) + "\n",
            "TSV": "\t".join(values) + "\n",
            "Values": f"({', '.join(values)})",
        }[form]
        cases.append(Case(number, f"INSERT INTO {{table}} FORMAT {form}", encoded(row)))
    outcome = duel.fight(cases)
    assert not outcome.differences, outcome.report()
    assert outcome.gathered == outcome.accepted == outcome.cases, str(outcome)
