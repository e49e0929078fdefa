"""Settings that change what ClickHouse computes when rows are stored reach the flush."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from differential.duel import Duel
from differential.payloads import ROWS_PER_CASE, Case
from harness.endpoint import Endpoint
from harness.gateway import Gateway


@dataclass(frozen=True)
class Computed:
    """A column beside `n` that is computed under a setting."""

    column: str
    setting: str
    values: tuple[str, ...]


COMPUTED = (
    Computed("s String DEFAULT toJSONString(map('a', toUInt64(n)))", "output_format_json_quote_64bit_integers", ("0", "1")),
    Computed("s String DEFAULT toString(n > 0 AND true)", "bool_true_representation", ("yes", "true")),
    Computed("s String DEFAULT toString(true)", "bool_true_representation", ("yes", "true")),
    Computed(
        "s String DEFAULT formatDateTime(toDateTime(1704447072, 'UTC'), '%M')",
        "formatdatetime_parsedatetime_m_is_month_name",
        ("0", "1"),
    ),
    Computed("s String DEFAULT toTypeName(CAST(toNullable(n), 'Int32'))", "cast_keep_nullable", ("0", "1")),
    Computed("t DateTime('UTC') DEFAULT toDateTime64(n + 99999999999, 3)", "date_time_overflow_behavior", ("throw", "ignore", "saturate")),
    Computed(
        "s String DEFAULT toString(toDateTime64(1704447072, 3, 'UTC'))",
        "date_time_64_output_format_cut_trailing_zeros_align_to_groups_of_thousands",
        ("0", "1"),
    ),
    Computed("s String DEFAULT formatRow('CSV', n, 'a')", "format_csv_delimiter", (";", ",")),
    Computed("t DateTime('UTC') DEFAULT if(n > 0, '2024-01-05T10:11:12Z', '')", "cast_string_to_date_time_mode", ("basic", "best_effort")),
    Computed("t DateTime DEFAULT toDateTime('2024-01-05 10:11:12')", "session_timezone", ("Asia/Tokyo", "UTC")),
)  # fmt: skip


@pytest.mark.parametrize("computed", COMPUTED, ids=lambda computed: f"{computed.setting}-{computed.column.split()[0]}")
def test_settings_of_expressions(gateway: Gateway, tested: Endpoint, direct: Endpoint, computed: Computed) -> None:
    duel = Duel(gateway, tested, direct, f"n UInt32, {computed.column}", "*, sipHash64(*)")
    settings = [{}, *({computed.setting: value} for value in computed.values)]
    rows = [(number, b'{"n":%d}' % (number * ROWS_PER_CASE)) for number in range(len(settings))]
    query = "INSERT INTO {table} FORMAT JSONEachRow "
    outcome = duel.fight([Case(number, query, row, settings[number]) for number, row in rows])
    print(f"{computed.setting}: {outcome}")
    assert not outcome.differences, outcome.report()


# Names and values that ClickHouse refuses, of settings that don't change the rows.
REFUSED = (
    ("output_format_no_such_thing", "1"), ("input_format_csv_no_such_thing", "1"), ("input_format_csv_empty_as_default", "perhaps"),
    ("input_format_read_datetime_number_as_raw_value", "1"), ("max_threads", "few"), ("max_result_no_such_thing", "1"), ("log_queries", "perhaps"),
    ("input_format_with_no_such_thing", "1"), ("formatdatetime_no_such_thing", "1"),
)  # fmt: skip


@pytest.mark.parametrize("name, value", REFUSED)
def test_refused_settings(gateway: Gateway, tested: Endpoint, direct: Endpoint, name: str, value: str) -> None:
    duel = Duel(gateway, tested, direct, "n UInt32", "n")
    outcome = duel.fight([Case(0, "INSERT INTO {table} FORMAT JSONEachRow ", b'{"n":1}', {name: value})])
    assert not outcome.differences, outcome.report()
    assert outcome.accepted == 0
