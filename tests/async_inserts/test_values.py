"""What lands is what ClickHouse would have stored: the same inserts, gathered and straight, end in equal tables."""

from __future__ import annotations

import pytest

from harness.endpoint import Endpoint
from harness.gateway import Gateway
from harness.inserts import make_table

TYPES = """
    i8 Int8, i16 Int16, i32 Int32, i64 Int64, i128 Int128, i256 Int256,
    u8 UInt8, u16 UInt16, u32 UInt32, u64 UInt64, u128 UInt128, u256 UInt256,
    f32 Float32, f64 Float64, flag Bool, s String, fixed FixedString(5),
    day Date, day32 Date32, moment DateTime, there DateTime('Asia/Tokyo'), ms DateTime64(3), us DateTime64(6, 'Europe/Berlin'),
    d32 Decimal(9, 2), d64 Decimal(18, 4), d128 Decimal(38, 10), d256 Decimal(76, 20),
    key UUID, ip4 IPv4, ip6 IPv6, e8 Enum8('a' = 1, 'b' = -2), e16 Enum16('x' = 1000, 'y' = -1000),
    maybe Nullable(Int32), maybe_text Nullable(String), lc LowCardinality(String), lcn LowCardinality(Nullable(String)),
    list Array(Int32), lists Array(Array(Nullable(String))), attributes Map(String, Array(UInt8)),
    pair Tuple(Int32, String), named Tuple(a UInt8, b Nullable(String)), nest Nested(x UInt8, y String)
"""
JSON_ROWS = [
    "{}",
    '{"i8":-128,"i16":-32768,"i32":-2147483648,"i64":-9223372036854775808}',
    '{"i128":"-170141183460469231731687303715884105728","i256":12345678901234567890123456789}',
    '{"u8":255,"u16":65535,"u32":4294967295,"u64":18446744073709551615,"u128":"340282366920938463463374607431768211455"}',
    '{"i8":"7","u64":"18446744073709551615","f64":"1.5"}',
    '{"f32":1.1,"f64":1e300}{"f32":-0.0,"f64":0.1}{"f64":1}{"f64":12345678901234567890}',
    '{"f32":"nan","f64":"inf"}{"f64":"-inf"}',
    '{"flag":true}{"flag":false}{"flag":1}{"flag":"true"}',
    '{"s":"ü€😀 \\u00e9\\ud83d\\ude00 \\n\\t\\\\\\" /","fixed":"abc"}',
    '{"day":"2024-02-29","day32":"1925-01-01","moment":"2024-02-29 12:34:56","there":"2024-02-29 12:34:56"}',
    '{"moment":1709210096,"ms":1709210096.789,"us":"2024-07-01 00:00:00.123456","day":19782}',
    '{"moment":"2024-02-29T12:34:56Z","ms":"2024-02-29T12:34:56.789+02:00"}',
    '{"d32":1.25,"d64":"-12345.6789","d128":0.0000000001,"d256":"1e5"}{"d32":7}',
    '{"key":"61f0c404-5cb3-11e7-907b-a6006ad3dba0","ip4":"10.1.2.3","ip6":"2001:db8::1"}',
    '{"e8":"b","e16":"y"}{"e8":1,"e16":1000}',
    '{"maybe":null,"maybe_text":null,"lcn":null}{"maybe":5,"maybe_text":"x","lc":"y","lcn":"z"}',
    '{"list":[1,2,3],"lists":[["a",null],[]],"attributes":{"k":[1,2],"l":[]}}',
    '{"pair":[1,"x"],"named":{"a":1,"b":"y"}}{"named":{"b":null,"a":2}}',
    '{"nest.x":[1,2],"nest.y":["a","b"]}',
    '{"i8":null,"s":null,"list":null}',
    '[{"i8":1},{"i8":2}]',
    ' \n {"i8":1} \n\n {"i8":2} \t',
    '{"i8":1},{"i8":2},',
    '{"i8" : 1 , "s" : "x" }',
    '{"s":"a","s":"b"}',
]
VALUES_ROWS = [
    ("(i8, s)", "(1, 'a'), (2, 'it''s'), (3, 'b\\n\\'c')"),
    ("(f64, d64)", "(1.5, 2.25), (-1e10, -0.0001)"),
    ("(day, moment, ms)", "('2024-02-29', '2024-02-29 12:34:56', '2024-02-29 12:34:56.789')"),
    ("(list, attributes, pair)", "([1,2], {'k':[1]}, (7, 'x'))"),
    ("(maybe, maybe_text)", "(NULL, NULL), (1, 'x')"),
    ("(key, ip4, e8)", "('61f0c404-5cb3-11e7-907b-a6006ad3dba0', '10.0.0.1', 'b')"),
    ("(i8, s)", "(1 + 1, upper('x')), (3, concat('a', 'b'))"),
    ("(i8)", "(DEFAULT), (5)"),
    ("(flag)", "(true), (false), (1)"),
    ("(u64)", "(18446744073709551615)\n,\n(1)"),
]


def stored_by(endpoint: Endpoint, direct: Endpoint, query: str, body: str) -> tuple[int, int | None, str]:
    direct.sql("TRUNCATE TABLE t")
    reply = endpoint.insert(query, body)
    return (reply.status, reply.code, direct.sql("SELECT * FROM t ORDER BY ALL FORMAT JSONEachRow"))


@pytest.mark.parametrize("body", JSON_ROWS)
def test_json_rows(gateway: Gateway, tested: Endpoint, direct: Endpoint, body: str) -> None:
    make_table(direct, TYPES)
    query = "INSERT INTO t FORMAT JSONEachRow"
    assert stored_by(tested, direct, query, body) == stored_by(direct, direct, query, body)


@pytest.mark.parametrize(("columns", "body"), VALUES_ROWS)
def test_values(gateway: Gateway, tested: Endpoint, direct: Endpoint, columns: str, body: str) -> None:
    make_table(direct, TYPES)
    query = f"INSERT INTO t {columns} VALUES"
    assert stored_by(tested, direct, query, body) == stored_by(direct, direct, query, body)


@pytest.mark.parametrize("settings", [
    {"input_format_skip_unknown_fields": 0},
    {"input_format_null_as_default": 0},
    {"input_format_defaults_for_omitted_fields": 0},
    {"date_time_input_format": "basic"},
    {"input_format_json_read_bools_as_numbers": 0},
    {"input_format_allow_errors_num": 10},
    {"session_timezone": "Asia/Kolkata"},
])  # fmt: skip
@pytest.mark.parametrize("body", [
    '{"i8":1,"zork":2}', '{"i8":null}', '{}', '{"moment":"2024-02-29T12:34:56Z"}', '{"i8":true}', '{"i8":1}{"i8":"x"}{"i8":3}',
    '{"moment":"2024-02-29 12:34:56"}',
])  # fmt: skip
def test_settings_of_reading(gateway: Gateway, tested: Endpoint, direct: Endpoint, settings: dict, body: str) -> None:
    make_table(direct, "i8 Int8, moment DateTime, later Int8 DEFAULT 9")
    outcomes = []
    for endpoint in (direct, tested):
        direct.sql("TRUNCATE TABLE t")
        reply = endpoint.insert("INSERT INTO t FORMAT JSONEachRow", body, **settings)
        outcomes.append((reply.status, reply.code, direct.sql("SELECT * FROM t ORDER BY ALL")))
    assert outcomes[1] == outcomes[0]


def test_defaults_are_computed(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    columns = (
        "a UInt64, b UInt64 DEFAULT a * 2, c String DEFAULT concat('c', toString(b)), m UInt64 MATERIALIZED a + 1,"
        " e UInt8 EPHEMERAL 5, f UInt64 DEFAULT e + 1, al UInt64 ALIAS a + 7, plain Int32"
    )
    make_table(direct, columns)
    bodies = ['{"a":1}', '{"a":2,"b":7}', '{"a":3,"c":"own","plain":-1}', '{}', '{"a":4,"b":null}']
    results = []
    for endpoint in (direct, tested):
        direct.sql("TRUNCATE TABLE t")
        assert [endpoint.insert("INSERT INTO t FORMAT JSONEachRow", body).status for body in bodies] == [200] * 5
        with_ephemeral = endpoint.insert("INSERT INTO t (a, e) FORMAT JSONEachRow", '{"a":5,"e":40}')
        assert with_ephemeral.status == 200, with_ephemeral.text
        results.append(direct.sql("SELECT a, b, c, m, f, al, plain FROM t ORDER BY ALL"))
    assert results[1] == results[0]


def test_rows_with_different_omissions_in_one_batch(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """DEFAULT is for the rows that left the column out, not for their neighbours."""
    make_table(direct, "a UInt64, b UInt64 DEFAULT a * 2")
    tested.insert("INSERT INTO t FORMAT JSONEachRow", '{"a":1}{"a":2,"b":0}{"b":5}{"a":3,"b":1}{}')
    assert direct.sql("SELECT a, b FROM t ORDER BY ALL") == "0\t0\n0\t5\n1\t2\n2\t0\n3\t1"


@pytest.mark.parametrize("kind", ["JSON", "Dynamic", "Variant(UInt8, String)", "Point", "AggregateFunction(sum, UInt64)"])
def test_table_with_a_type_of_its_own(gateway: Gateway, tested: Endpoint, direct: Endpoint, kind: str) -> None:
    """Types that the gateway does not read are forwarded."""
    make_table(direct, f"a UInt8, x {kind}")
    value = {"JSON": '{"k":1}', "Point": "[1,2]"}.get(kind, "7")
    body = '{"a":1}' if kind.startswith("Aggregate") else f'{{"a":1,"x":{value}}}'
    query = "INSERT INTO t FORMAT JSONEachRow"
    for endpoint in (direct, tested):
        direct.sql("TRUNCATE TABLE t")
        reply = endpoint.insert(query, body)
        assert (reply.status, direct.sql("SELECT a FROM t")) == (200, "1"), reply.text


@pytest.mark.parametrize("engine", ["Memory", "Log", "Null", "MergeTree ORDER BY a", "ReplacingMergeTree ORDER BY a"])
def test_engines(gateway: Gateway, tested: Endpoint, direct: Endpoint, engine: str) -> None:
    direct.sql(f"CREATE TABLE t (a UInt64) ENGINE = {engine}")
    assert tested.insert("INSERT INTO t FORMAT JSONEachRow", '{"a":1}').status == 200
    assert direct.sql("SELECT count() FROM t") == ("0" if engine == "Null" else "1")


def test_views_see_the_rows(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    direct.sql("CREATE TABLE sums (s UInt64) ENGINE = SummingMergeTree ORDER BY tuple()")
    direct.sql("CREATE MATERIALIZED VIEW v TO sums AS SELECT sum(a) AS s FROM t")
    tested.insert("INSERT INTO t FORMAT JSONEachRow", '{"a":1}{"a":2}')
    assert direct.sql("SELECT sum(s) FROM sums") == "3"


@pytest.mark.parametrize("name", ["`odd name`", '"quoted"', "`back``tick`", "`ünï`"])
def test_odd_names(gateway: Gateway, tested: Endpoint, direct: Endpoint, name: str) -> None:
    direct.sql(f"CREATE TABLE {name} (`a b` UInt64, `c'd` String) ENGINE = MergeTree ORDER BY tuple()")
    assert tested.insert(f"INSERT INTO {name} (`c'd`, `a b`) FORMAT JSONEachRow", '{"a b":1,"c\'d":"x"}').status == 200
    assert direct.sql(f"SELECT * FROM {name}") == "1\tx"
