"""Every setting of the sample with rows that show what it changes; names and values that ClickHouse refuses."""

from __future__ import annotations

import re
from concurrent.futures import ThreadPoolExecutor

import clickhouse_driver
import clickhouse_driver.errors
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
    ("log_comment", "x" * 140_000),
    ("opentelemetry_start_trace_probability", "often"),
    ("insert_quorum", "many"),
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


# Of inserts that real products send: columns beside `n`, of which one has a DEFAULT; what is named; settings; rows.
BESIDE_A_DEFAULT = {
    "scientific": ("v Decimal(18, 12), d String DEFAULT 'd'", "", {}, ('"v":1.5e-7', '"v":"2.5E-10"', '"v":1.2345678901234567e-3', '"v":1e0', '"v":4e-13')),
    "session_timezone": ("v DateTime, w DateTime64(3), d String DEFAULT toString(v)", "", {"session_timezone": "{zone}"},
        ('"v":"2024-01-05 10:11:12","w":"2024-01-05T10:11:12.345"', '"v":"2024-07-05 10:11:12"')),
    "named_utc": ("v DateTime, w DateTime64(3), d String DEFAULT toString(v)", "", {"session_timezone": "UTC"},
        ('"v":"2024-01-05 10:11:12","w":"2024-01-05T10:11:12.345"', '"v":"2024-07-05 10:11:12"')),
    "half_of_a_pair": ("v String, w FixedString(30), m Map(String, String), d String DEFAULT 'd'", "", {"input_format_json_throw_on_bad_escape_sequence": "0"},
        ('"v":"cut \\ud83d"', '"v":"\\ud83d\\u0041 \\ud83d\\ud83d\\ude00 \\udc00","w":"\\uD83D"', '"v":"\\ud83d\\n\\ud83d\\\\ \\q \\x41"', '"m":{"a\\ud83d":"b\\ude00"}')),
    "second_half": ("v String, d String DEFAULT 'd'", "", {}, ('"v":"\\ude00 cut"', '"v":"\\udfff\\udc00"')),
    "ephemeral": ("v String EPHEMERAL 'none', w Nullable(UInt8) EPHEMERAL, d String DEFAULT concat(v, toString(ifNull(w, 7)))", "(n, v, w)", {},
        ('"v":"x","w":3', '"v":"y"', '"v":null,"w":null', '"w":1')),
    "a_setting_that_changes_nothing": ("v Int32, d String DEFAULT toString(v)", "", {"insert_quorum": "1", "insert_quorum_parallel": "0",
        "select_sequential_consistency": "1", "database_replicated_enforce_synchronous_settings": "1"}, ('"v":1', '"v":2')),
}  # fmt: skip


@pytest.mark.parametrize("kind", BESIDE_A_DEFAULT)
def test_gathered_beside_a_default(gateway: Gateway, tested: Endpoint, direct: Endpoint, kind: str) -> None:
    """ClickHouse can't be asked to read rows that leave a DEFAULT to it, so what isn't read here would make a part each."""
    columns, named, settings, rows = BESIDE_A_DEFAULT[kind]
    settings = {name: value.format(zone=direct.sql("SELECT serverTimezone()")) for name, value in settings.items()}
    duel = Duel(gateway, tested, direct, f"n UInt32, {columns}", "* EXCEPT n, sipHash64(*)")
    query = f"INSERT INTO {{table}} {named} FORMAT JSONEachRow "
    cases = [Case(number, query, encoded(f'{{"n":{number * ROWS_PER_CASE},{row}}}'), settings) for number, row in enumerate(rows)]
    outcome = duel.fight(cases)
    assert not outcome.differences, outcome.report()
    assert outcome.gathered == outcome.accepted == len(rows), str(outcome)


def test_every_half_of_a_pair(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """Escapes behind each other in random order, right ones and bad ones."""
    rng = generator("halves of pairs")
    pieces = ("\\ud83d", "\\uDBFF", "\\ude00", "\\udc00", "\\u0041", "\\u20ac", "\\n", "\\\\", "\\/", "\\q", "\\x", "a", "é", " ")
    duel = Duel(gateway, tested, direct, "n UInt32, v String, d String DEFAULT 'd'", "hex(v), d")
    texts = ["".join(rng.choices(pieces, k=rng.randint(1, 6))) for _ in range(scaled(150))]
    rows = (f'{{"n":{number * ROWS_PER_CASE},"v":"{text}"}}' for number, text in enumerate(texts))
    settings = {"input_format_json_throw_on_bad_escape_sequence": "0"}
    query = "INSERT INTO {table} FORMAT JSONEachRow "
    outcome = duel.fight([Case(number, query, encoded(row), settings) for number, row in enumerate(rows)])
    assert not outcome.differences, outcome.report()
    assert outcome.gathered >= outcome.accepted * 0.9, str(outcome)


def test_a_session_in_another_zone(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """What is computed of times that are left out, of those that are given, and of those that a query makes."""
    zones = ("Asia/Tokyo", "UTC", "America/Sao_Paulo", "{zone}")
    expressions = ("toString(v)", "formatDateTime(v, '%H')", "toDate(v)", "toString(toDateTime('2024-01-05 10:11:12'))")
    columns = [f"d{number} String DEFAULT {expression}" for number, expression in enumerate(expressions)]
    computed = (", ".join([*columns, "s String MATERIALIZED toString(v)"]), "s UInt8 DEFAULT toHour(v), CONSTRAINT late CHECK toHour(v) != 3")
    times = ("DateTime", "DateTime64(3)", "DateTime('Asia/Tokyo')", "Nullable(DateTime)")
    server_zone = direct.sql("SELECT serverTimezone()")
    for at, (time, column) in enumerate((time, column) for time in times for column in computed):
        database = f"{direct.database}_{at}"
        direct.sql(f"CREATE DATABASE {database}")
        duel = Duel(gateway, tested.using(database), direct.using(database), f"n UInt32, v {time} DEFAULT '2024-01-05 10:11:12', {column}", "* EXCEPT n, s")
        rows = ("", ',"v":"2024-07-05 13:11:12"', ',"v":1720185072')
        zoned = [(row, {"session_timezone": zone.format(zone=server_zone)}) for zone in zones for row in rows]
        query = "INSERT INTO {table} FORMAT JSONEachRow "
        cases = [Case(number, query, encoded(f'{{"n":{number * ROWS_PER_CASE}{row}}}'), zone) for number, (row, zone) in enumerate(zoned)]
        outcome = duel.fight(cases)
        direct.sql(f"DROP DATABASE {database}")
        assert not outcome.differences, f"{time}, {column}: {outcome.report()}"


# Settings to which the gateway gives a meaning of its own, or that it doesn't pass on: by the beginnings of their names.
OF_OUR_OWN = re.compile(
    "async_insert|wait_for_async|deduplicate_insert|insert_dedup|insert_quorum|log_|send_|http_|enable_http|add_http|cancel_http|network_|opentelemetry_|"
    "max_result_|result_|output_format_(json|csv|native|values|tsv)|max_(execution_time|threads|insert_threads|query_size)$|priority$|replace_running|"
    "(connect|receive|send)_timeout$|dialect$|limit$|offset$|compatibility$|session_timezone$"
)
RUBBISH = ("DISABLED", "99", "-1")


def settings_of_our_own(direct: Endpoint) -> list[str]:
    names = direct.sql("SELECT name FROM system.settings WHERE NOT is_obsolete AND name != 'send_logs_level' ORDER BY name").split("\n")
    return [name for name in names if OF_OUR_OWN.match(name)]


def test_values_that_clickhouse_refuses(tested: Endpoint, direct: Endpoint) -> None:
    """Of every such setting, over HTTP, with an answer that would be packed."""
    for name in ("t_gathered", "t_straight"):
        direct.sql(f"CREATE TABLE {name} (n UInt32) ENGINE = Memory")
    names = settings_of_our_own(direct)
    assert len(names) > 100
    packed = {"Accept-Encoding": "gzip"}

    def answers(name: str, value: str) -> list[tuple[int, str | None]]:
        told = []
        for endpoint, table in ((direct, "t_straight"), (tested, "t_gathered")):
            reply = endpoint.request(f"INSERT INTO {table} FORMAT JSONEachRow", b'{"n":1}', {name: value}, headers=packed)
            told.append((reply.status, reply.headers.get("x-clickhouse-exception-code")))
        return told

    pairs = [(name, value) for name in names for value in RUBBISH]
    with ThreadPoolExecutor(8) as threads:
        told = list(threads.map(answers, *zip(*pairs)))
    assert {status for (status, _), _ in told} > {200, 400}
    assert not [(*pair, *both) for pair, both in zip(pairs, told) if both[0] != both[1]]


def test_values_that_clickhouse_refuses_of_native_clients(native: Endpoint, direct_native: Endpoint, direct: Endpoint) -> None:
    """Of settings that bear on packets, whether they are compressed or not."""
    for name in ("t_gathered", "t_straight"):
        direct.sql(f"CREATE TABLE {name} (n UInt32) ENGINE = Memory")
    values = [("network_compression_method", value) for value in (*RUBBISH, "", "lz4hc", "Delta")]
    values += [("network_zstd_compression_level", value) for value in ("0", "22", "23", "99", "-1")]
    names = [name for name in settings_of_our_own(direct) if not name.startswith(("output_format_", "network_"))]
    values += [(name, "DISABLED") for name in names]
    different = []
    for (name, value), compression in ((pair, compression) for pair in values for compression in (("lz4", False) if "network" in pair[0] else (False,))):
        settings = {"network_compression_method": "ZSTD", name: value} if name == "network_zstd_compression_level" else {name: value}
        answers = [native_answer(endpoint, table, settings, compression) for endpoint, table in ((direct_native, "t_straight"), (native, "t_gathered"))]
        if answers[0] != answers[1]:
            different.append((name, value, compression, *answers))
    assert not different


def native_answer(endpoint: Endpoint, table: str, settings: dict[str, str], compression: str | bool) -> int:
    """The code of the error, or zero."""
    where = {"port": endpoint.port, "user": endpoint.user, "password": endpoint.password, "database": endpoint.database}
    with clickhouse_driver.Client(endpoint.host, **where, compression=compression, settings_is_important=True) as client:
        try:
            client.execute(f"INSERT INTO {table} VALUES", [(1,)], settings=settings)
        except clickhouse_driver.errors.Error as error:
            return error.code
    return 0


def test_refused_settings(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    rng = generator("refused settings")
    duel = Duel(gateway, tested, direct, columns(), "sipHash64(*), *")
    cases = [case(rng, Language.JSON, number, {name: value}, 0) for number, (name, value) in enumerate(REFUSED)]
    outcome = duel.fight(cases)
    assert not outcome.differences, outcome.report()
    assert outcome.accepted == 0
