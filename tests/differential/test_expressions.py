"""What ClickHouse computes or checks when rows are stored: an insert that fails there fails alone, as in ClickHouse."""

from __future__ import annotations

import pytest

from differential.budget import generator, scaled
from differential.duel import Duel
from differential.language import Language
from differential.payloads import ROWS_PER_CASE, Case, encoded, laid_out, statement
from harness.endpoint import Endpoint
from harness.gateway import Gateway

CASES = 24
# Columns beside `n` and a number `v`, of which every seventh is against the rule.
TABLES = {
    "constraint": "CONSTRAINT seven CHECK v % 7 != 0",
    "two_constraints": "CONSTRAINT a CHECK v % 7 != 0 OR n > 0, CONSTRAINT seven CHECK v % 7 != 0",
    "failing_default": "checked UInt8 DEFAULT throwIf(v % 7 = 0, 'seven is refused')",
    "failing_materialized": "checked UInt8 MATERIALIZED throwIf(v % 7 = 0, 'seven is refused')",
    "failing_conversion": "checked UInt8 DEFAULT toUInt8(if(v % 7 = 0, 'seven', '7'))",
    "overflow": "checked Decimal(9, 2) DEFAULT toDecimal32(v, 2) * toDecimal32(if(v % 7 = 0, 9999999, 1), 2)",
    "ephemeral": "raw String EPHEMERAL, checked UInt64 DEFAULT length(raw) + v",
}


@pytest.mark.parametrize("language", Language, ids=lambda language: language.value)
@pytest.mark.parametrize("table", TABLES)
def test_stored_as_computed(
    gateway: Gateway, tested: Endpoint, direct: Endpoint, table: str, language: Language
) -> None:
    rng = generator("expressions", table, language.value)
    duel = Duel(gateway, tested, direct, f"n UInt32, v Int32, {TABLES[table]}", "*, sipHash64(*)")
    spelling = '{"n":%d,"v":%d}' if language is Language.JSON else "(%d,%d)"
    query, _ = statement(language, rng, {}, "" if language is Language.JSON else "(n, v)")
    cases = []
    for number in range(scaled(CASES)):
        rows = [spelling % (number * ROWS_PER_CASE + row, rng.randint(1, 60)) for row in range(rng.randint(1, 4))]
        cases.append(Case(number, query, encoded(laid_out(rng, language, rows))))
    outcome = duel.fight(cases)
    print(f"{table} {language.value}: {outcome}")
    assert not outcome.differences, outcome.report()
    assert outcome.gathered == outcome.cases
