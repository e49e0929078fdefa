"""Every type that clickhouse-connect reads and writes: what it read from one table it inserts into another."""

from __future__ import annotations

import clickhouse_connect
from report import Report, equal
from settings import CONNECTION

report = Report()
client = clickhouse_connect.get_client(**CONNECTION, settings={"allow_suspicious_low_cardinality_types": 1})
# By name: the type, and some values of it as ClickHouse's expressions.
TYPES = {
    "uint8": ("UInt8", ["0", "255"]),
    "int16": ("Int16", ["-32768", "32767"]),
    "uint64": ("UInt64", ["0", "18446744073709551615"]),
    "int128": ("Int128", ["'-170141183460469231731687303715884105728'", "'170141183460469231731687303715884105727'"]),
    "uint256": ("UInt256", ["0", "'115792089237316195423570985008687907853269984665640564039457584007913129639935'"]),
    "float32": ("Float32", ["1.5", "-0.1", "nan", "inf"]),
    "float64": ("Float64", ["5e-324", "-1.7976931348623157e308", "nan", "-inf"]),
    "bfloat16": ("BFloat16", ["1.5", "-2"]),
    "bool": ("Bool", ["true", "false"]),
    "string": ("String", ["''", "'x'", "'ünï'", "repeat('long', 1000)"]),
    "fixed_string": ("FixedString(5)", ["''", "'abc'", "'abcde'"]),
    "date": ("Date", ["'1970-01-01'", "'2149-06-06'"]),
    "date32": ("Date32", ["'1900-01-01'", "'2299-12-31'"]),
    "datetime": ("DateTime('Asia/Tokyo')", ["'1970-01-02 00:00:00'", "'2106-02-07 00:00:00'"]),
    "datetime64": ("DateTime64(9, 'UTC')", ["'1970-01-01 00:00:00.000000000'", "'2024-02-29 12:34:56.123456000'"]),
    "time": ("Time", ["'00:00:00'", "'12:34:56'"]),
    "time64": ("Time64(6)", ["'00:00:00.000001'", "'12:34:56.789012'"]),
    "decimal32": ("Decimal(9, 4)", ["'-99999.9999'", "0"]),
    "decimal128": ("Decimal(38, 10)", ["'-1.0000000001'", "'12345678901234567890.0123456789'"]),
    "decimal256": ("Decimal(76, 20)", ["'-1.5'", "'1234567890123456789012345678901234567890.0123456789'"]),
    "uuid": ("UUID", ["'00000000-0000-0000-0000-000000000000'", "'61f0c404-5cb3-11e7-907b-a6006ad3dba0'"]),
    "ipv4": ("IPv4", ["'0.0.0.0'", "'255.255.255.255'"]),
    "ipv6": ("IPv6", ["'::'", "'2001:db8::1'"]),
    "enum8": ("Enum8('a' = -128, 'it''s' = 127)", ["'a'", "'it''s'"]),
    "enum16": ("Enum16('a' = -32768, 'b' = 32767)", ["'a'", "'b'"]),
    "nullable": ("Nullable(String)", ["NULL", "''", "'x'"]),
    "words": ("LowCardinality(String)", ["'a'", "'b'", "'a'", "''"]),
    "words_or_null": ("LowCardinality(Nullable(String))", ["'a'", "NULL", "''", "'a'"]),
    "few_numbers": ("LowCardinality(Int32)", ["1", "-1", "1"]),
    "array": ("Array(Array(Nullable(Int32)))", ["[]", "[[]]", "[[1, NULL], [], [3]]"]),
    "array_of_words": ("Array(LowCardinality(String))", ["[]", "['a', 'b']", "['a']"]),
    "map": ("Map(String, Array(UInt8))", ["map()", "map('a', [1, 2], '', [])"]),
    "map_of_words": ("Map(LowCardinality(String), LowCardinality(Nullable(String)))", ["map()", "map('a', NULL, 'b', 'x')"]),
    "tuple": ("Tuple(Int32, String, Array(UInt8))", ["(1, 'a', [1])", "(0, '', [])"]),
    "named_tuple": ("Tuple(a Int32, b Nullable(String))", ["(1, 'a')", "(0, NULL)"]),
    "array_of_tuples": ("Array(Tuple(LowCardinality(String), Nullable(Int8)))", ["[]", "[('a', 1), ('b', NULL)]"]),
    "point": ("Point", ["(1.5, -2)"]),
    "polygon": ("Polygon", ["[[(0, 0), (1, 0), (1, 1)]]"]),
    "simple_aggregate": ("SimpleAggregateFunction(max, UInt64)", ["7", "8"]),
    "variant": ("Variant(Array(UInt64), String, UInt64)", ["toUInt64(1)", "'x'", "[toUInt64(1)]", "NULL"]),
    "dynamic": ("Dynamic", ["'x'", "'1'"]),
    "json": ("JSON", ["""'{"a": 1, "b": {"c": "x"}}'""", "'{}'"]),
}


def copied(name: str, kind: str, values: list[str]) -> object:
    rows = " UNION ALL ".join(f"SELECT toUInt64({number}) AS id, CAST({value} AS {kind}) AS v" for number, value in enumerate(values))
    client.command(f"CREATE TABLE from_{name} (id UInt64, v {kind}) ENGINE = MergeTree ORDER BY id AS {rows}")
    client.command(f"CREATE TABLE {name} (id UInt64, v {kind}) ENGINE = MergeTree ORDER BY id")
    read = client.query(f"SELECT * FROM from_{name} ORDER BY id").result_rows
    client.insert(report.sends(name), read, column_names=["id", "v"])
    text = "SELECT toString(groupArray((id, toString(v)))) FROM (SELECT * FROM {} ORDER BY id)"
    return equal(client.command(text.format(name)), client.command(text.format(f"from_{name}")))


for name, (kind, values) in TYPES.items():
    report.run(f"insert {kind}", lambda: copied(name, kind, values))
client.close()
report.print()
