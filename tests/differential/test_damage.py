"""Payloads cut off after every byte, and with every byte changed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from differential.budget import generator, scaled
from differential.duel import Duel
from differential.kind import ALPHABET
from differential.language import Language
from differential.payloads import Case, statement
from harness.endpoint import Endpoint
from harness.gateway import Gateway

COLUMNS = (
    "n UInt64, s String, f Float64, d DateTime('UTC'), a Array(Nullable(Int8)), m Map(String, Bool), "
    "t Tuple(x Int8, y String)"
)
SAMPLES = {
    Language.JSON: (
        b'[{"n":16,"s":"a\\u00e9\\n","f":-1.5e3,"d":"2024-01-02 03:04:05","a":[1,null],"m":{"k":true},'
        b'"t":{"x":1,"y":"z"}},\n{"n":17, "zz": [{}]}]'
    ),
    Language.SQL: (
        b"(16,'a\\'\\x41''',-1.5e3,'2024-01-02 03:04:05',[1,NULL],{'k':true},(1,'z')),\n"
        b"(17, DEFAULT, 0, 1700000000, [], {}, (2, ''));"
    ),
}
CHANGES = 100


def every_start(sample: bytes) -> Iterator[bytes]:
    for end in range(len(sample)):
        yield sample[:end]


def fight(duel: Duel, language: Language, payloads: list[bytes]) -> None:
    query, _ = statement(language, generator("damage"), {})
    # The rows' numbers are damaged as well: a difference in what is stored is told by the row alone.
    outcome = duel.fight([Case(number, query, payload) for number, payload in enumerate(payloads)],
        lambda row: f"row {row}")
    print(f"damaged {language.value}: {outcome}")
    assert not outcome.differences, outcome.report()
    assert 0 < outcome.accepted < outcome.cases


@pytest.mark.parametrize("language", Language, ids=lambda language: language.value)
def test_every_truncation(gateway: Gateway, tested: Endpoint, direct: Endpoint, language: Language) -> None:
    duel = Duel(gateway, tested, direct, COLUMNS, "sipHash64(*), *")
    sample = SAMPLES[language]
    whole_again = b"" if language is Language.SQL else b"]"
    payloads = [sample, *every_start(sample), *(start + whole_again for start in every_start(sample) if whole_again)]
    fight(duel, language, payloads)


@pytest.mark.parametrize("language", Language, ids=lambda language: language.value)
def test_changed_bytes(gateway: Gateway, tested: Endpoint, direct: Endpoint, language: Language) -> None:
    rng = generator("changed bytes", language.value)
    duel = Duel(gateway, tested, direct, COLUMNS, "sipHash64(*), *")
    sample, payloads = SAMPLES[language], [SAMPLES[language]]
    for _ in range(scaled(CHANGES)):
        at = rng.randrange(len(sample))
        put = rng.choice((b"", bytes([rng.randrange(256)]), rng.choice(ALPHABET).encode("utf-8", "surrogateescape"),
            sample[at : at + 1] * 2))
        payloads.append(sample[:at] + put + sample[at + 1 :])
    fight(duel, language, payloads)
