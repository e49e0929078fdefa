"""The table of settings in the code is ClickHouse's own: none is missing, and the defaults agree.

What parsing doesn't implement is decided by that table alone, so a setting that it lacks would be a setting that
nobody thought about.
"""

from __future__ import annotations

import json
import re
import subprocess

from harness.endpoint import ERROR_CODE, Endpoint
from harness.paths import example_binary
from harness.quick_http import QuickConnection

PREFIXES = ("input_format_", "format_", "date_time_", "cast_")
# Known here because later versions have them.
LATER = {"input_format_read_datetime_number_as_raw_value"}
# `auto(2)`: the number is that of the machine's cores.
OF_THE_MACHINE = {"max_parsing_threads"}


def in_the_code() -> dict[str, str]:
    lines = subprocess.run([example_binary("reading_settings")], capture_output=True, check=True).stdout.decode()
    pairs = (line.split("\t") for line in lines.splitlines())
    return {name: bytes.fromhex(default).decode() for name, default in pairs}


def in_clickhouse(direct: Endpoint) -> dict[str, str]:
    reply = direct.request("SELECT name, default FROM system.settings FORMAT JSONCompactEachRow")
    assert reply.status == 200, reply.text
    return dict(json.loads(line) for line in reply.body.decode().splitlines())


def test_every_reading_setting_is_in_the_table(direct: Endpoint) -> None:
    bearing = {name for name in in_clickhouse(direct) if name.startswith(PREFIXES)}
    assert bearing - in_the_code().keys() == set()
    known = in_clickhouse(direct).keys() | LATER
    assert in_the_code().keys() - known == set(), "the table has settings that ClickHouse does not"


def test_defaults_are_those_of_clickhouse(direct: Endpoint) -> None:
    real = in_clickhouse(direct)
    known = {name: default for name, default in in_the_code().items() if name in real and name not in OF_THE_MACHINE}
    assert len(known) > 150
    assert known == {name: real[name] for name in known}



# Odd values of many types, everything that one setting or another reads in its own way.
COLUMNS = """n UInt32, i Int16, f Float64, g Float32, s String, b Bool, d Date, t DateTime, t6 DateTime64(3, 'Europe/Berlin'), dec Decimal(9, 3),
    nu Nullable(UInt8), m Map(String, UInt8), tp Tuple(p UInt8, q String), a Array(String), ip IPv4, ip6 IPv6, e Enum8('a' = 1, 'b' = 2),
    lc LowCardinality(Nullable(String)), `x.a` Array(UInt8), `x.b` Array(String), fs FixedString(3), ti Time, u UInt256, df UInt8 DEFAULT 3,
    com String DEFAULT concat(toString(f), toString(t), toString(b), ifNull(toString(nu), '-'), toString(tp), toTypeName(CAST(toNullable(i), 'Int32')))"""
SCALARS = "1,1,1.5,0.1,x,true,2020-01-02,2020-01-02 03:04:05,2020-01-02 03:04:05.678,1.5,\\N,\"{'k':1}\",1,z,\"['y']\",1.2.3.4,::1,a,l,[1],\"['c']\",abc,03:04:05,7"
LITERALS = """(1, 1, 1.5, 0.1, 'x', true, '2020-01-02', '2020-01-02 03:04:05', 0, 1.5, NULL, {'k':1}, (1, 'z'), ['y'], '1.2.3.4', '::1', 'a', 'l', [1], ['c'],
    'abc', '03:04:05', 7, 3, 'c'), (2, 1 + 1, 1 / 3, 1e-3, concat('x', 'y'), 1 = 1, toDate('2020-01-02'), toDateTime('2020-01-02 03:04:05'), 0, 1.5 / 3,
    NULL, map('k', 1), (1, 'z'), ['y'], '1.2.3.4', '::1', 2, 'l', [1], ['c'], 'abc', '03:04:05', 7, NULL, 'c')"""
PAYLOADS = (
    ("JSONEachRow", """{"n":1,"i":1,"f":1.5,"g":0.1,"s":"x","b":true,"d":"2020-01-02","t":"2020-01-02 03:04:05","t6":"2020-01-02 03:04:05.678","dec":1.5,
        "nu":null,"m":{"k":1},"tp":{"p":1,"q":"z"},"a":["y"],"ip":"1.2.3.4","ip6":"::1","e":"a","lc":"l","x.a":[1],"x.b":["c"],"fs":"abc","ti":"03:04:05","u":"7"}
        {"n":2,"i":"5","f":"1e3","s":12,"b":1,"t":"2020-01-02T03:04:05Z","t6":1577934245,"dec":"1.239","tp":{"p":1},"x":{"a":[1],"b":["c"]},"e":1,"df":null,
        "unknown":5} {"n":3,"s":{"a":1},"f":0.1234567890123456789,"a":[],"t":1577934245} {"n":4,"s":[1,2]} {"n":5,"s":true}"""),
    ("JSONEachRow", '{"n":6,"s":"\\\\ud83d"}'), ("JSONEachRow", '{"n":7,"i":99999}'), ("JSONEachRow", '{"n":8,"ip":"bad"}'),
    ("JSONEachRow", '{"n":9,"N":12}'), ("JSONEachRow", '{"n":10,"t":"2299-01-01 00:00:00"}'), ("JSONEachRow", ""),
    ("CSV", f"{SCALARS},,c\n{SCALARS},4,c\n"), ("CSV", "17" + "," * 25 + "\n"), ("CSV", "n,i\n1,2\n"), ("CSV", "18,1,1\n"),
    ("TSV", "21\t1\n"), ("TSV", "20\t\t\t\n"), ("Values", LITERALS),
)  # fmt: skip
# They say how large a statement, what is computed or a machine's load may be; an INSERT that says so is forwarded, or its batch as small as it.
LIMITS = re.compile("max_(ast_|expanded_ast|parser_|temporary_|query_size|os_cpu|execution|memory|untracked|result_|columns_to_read|sessions|concurrent|bytes|rows)")
# They break ClickHouse on purpose or by chance, take long, or make a session that may do nothing.
UNTRIED = re.compile("fuzz|sleep|fault|inject|poll_interval|_delay_|^readonly$|^compatibility$|^profile$|unknown_packet|min_chunk_bytes|dialect|^network_|^implicit_")
AT_ONCE = 32


def other_value(name: str, default: str, kind: str) -> str | None:
    """Another one than the default; of those with names of their own nothing is made up."""
    if kind == "Bool":
        return "0" if default in ("1", "true") else "1"
    is_number = re.fullmatch(r"(NonZero)?U?Int\d+(Auto)?", kind) or kind in ("Seconds", "Milliseconds", "Float", "MaxThreads")
    return ("2" if default == "1" else "1") if is_number else None


def test_no_other_setting_changes_what_is_read(direct: Endpoint) -> None:
    """Of all that isn't in the table: what is passed on with a batch need not be understood here. They are tried many at a time."""
    direct.sql(f"CREATE TABLE t ({COLUMNS}) ENGINE = Memory")
    connection = QuickConnection(direct)

    def outcome(settings: dict[str, str]) -> list[object]:
        answers = []
        for form, rows in PAYLOADS:
            reply = connection.post(direct.target(f"INSERT INTO t FORMAT {form}", settings), rows.encode())
            code = ERROR_CODE.search(reply.text)
            answers.append((reply.status, code and code.group(1)))
        stored = direct.sql("SELECT n, cityHash64(*) FROM t ORDER BY ALL")
        direct.sql("TRUNCATE TABLE t")
        return [*answers, stored]

    def those_that_change(settings: dict[str, str]) -> list[str]:
        if outcome(settings) == usual:
            return []
        if len(settings) == 1:
            return list(settings)
        pairs = list(settings.items())
        halves = pairs[: len(pairs) // 2], pairs[len(pairs) // 2 :]
        return [name for half in halves for name in those_that_change(dict(half))]

    usual = outcome({})
    assert sum(status == 200 for status, _ in usual[:-1]) > 6, usual
    lines = direct.request("SELECT name, default, type FROM system.settings WHERE NOT is_obsolete FORMAT JSONCompactEachRow").text.splitlines()
    known, others = in_the_code(), {}
    for name, default, kind in map(json.loads, lines):
        value = other_value(name, default, kind)
        if value and name not in known and not LIMITS.match(name) and not UNTRIED.search(name):
            others[name] = value
    assert len(others) > 900
    pairs = list(others.items())
    found = [name for at in range(0, len(pairs), AT_ONCE) for name in those_that_change(dict(pairs[at : at + AT_ONCE]))]
    assert not found
    # It tells what it is to tell.
    assert those_that_change({"max_threads": "1", "input_format_csv_detect_header": "0", "input_format_skip_unknown_fields": "0"}) == [
        "input_format_csv_detect_header", "input_format_skip_unknown_fields"]  # fmt: skip
