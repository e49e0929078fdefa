"""Every setting of the sample with rows that show what it changes; names and values that ClickHouse refuses."""

from __future__ import annotations

import pytest

from differential.budget import SEED, generator, scaled
from differential.composites import Array, Map, Nullable, Tuple
from differential.duel import Duel
from differential.kind import Kind
from differential.language import Language
from differential.payloads import ROWS_PER_CASE, SETTINGS, Case, encoded, json_row, sql_row, statement
from differential.scalars import Bool, Decimal, Float, Integer, Ipv4, String
from differential.times import Date, DateTime
from harness.endpoint import Endpoint
from harness.gateway import Gateway

# What the settings of the sample are about, in one row.
KINDS: tuple[Kind, ...] = (
    Integer(16, True), Float(64), Float(32), String(), Bool(), Date("Date", 1970, 2149), DateTime(),
    DateTime("Europe/Berlin", 3), Decimal(9, 3),
    Nullable(Integer(8, False)), Map(String(), Integer(8, False)),
    Tuple(Integer(8, False), String(), names=("p", "q")), Array(String()), Ipv4(),
)  # fmt: skip
CASES_EACH = 4
REFUSED = (
    ("input_format_values_no_such_thing", "1"),
    ("no_such_setting", "1"),
    ("input_format_null_as_default", "perhaps"),
    ("input_format_skip_unknown_fields", "2x"),
    ("date_time_input_format", "worst_effort"),
    ("session_timezone", "Mars/Olympus_Mons"),
    ("async_insert_busy_timeout_min_ms", "soon"),
    ("max_block_size", "-"),
    ("max_partitions_per_insert_block", "few"),
)


def columns() -> str:
    return ", ".join(["n UInt32", *(f"c{index} {kind.name}" for index, kind in enumerate(KINDS))])


def case(rng, language: Language, number: int, settings: dict[str, str], odd: float) -> Case:
    """A row of everyday values, here and there an odd or a missing one."""
    values = [kind.odd(rng, language) if rng.random() < odd else kind.plain(rng, language) for kind in KINDS]
    row_number = number * ROWS_PER_CASE
    query, in_url = statement(language, rng, settings)
    if language is Language.SQL:
        return Case(number, query, encoded(sql_row(rng, [str(row_number), *values])), in_url)
    members = [(f"c{index}", value) for index, value in enumerate(values) if rng.random() >= odd]
    return Case(number, query, encoded(json_row(rng, [("n", str(row_number)), *members])), in_url)


@pytest.mark.parametrize("language", Language, ids=lambda language: language.value)
def test_settings(gateway: Gateway, tested: Endpoint, direct: Endpoint, language: Language) -> None:
    rng = generator("settings", language.value)
    duel = Duel(gateway, tested, direct, columns(), "sipHash64(*), *")
    chosen = [{name: value} for name, values in SETTINGS for value in values for _ in range(scaled(CASES_EACH))]
    odds = (0, 0.03, 0.06, 0.12)
    cases = [case(rng, language, number, settings, odds[number % 4]) for number, settings in enumerate(chosen)]
    outcome = duel.fight(cases)
    print(f"settings {language.value}, seed {SEED}\n  {outcome}")
    assert not outcome.differences, outcome.report()


def test_refused_settings(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    rng = generator("refused settings")
    duel = Duel(gateway, tested, direct, columns(), "sipHash64(*), *")
    cases = [case(rng, Language.JSON, number, {name: value}, 0) for number, (name, value) in enumerate(REFUSED)]
    outcome = duel.fight(cases)
    assert not outcome.differences, outcome.report()
    assert outcome.accepted == 0
