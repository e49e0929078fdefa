"""Every type that clickhouse-driver reads and writes: what it read from one table it inserts into another."""

from __future__ import annotations

from driver_connection import connect, value
from kinds import TYPES
from report import Report, equal

report = Report()
client = connect(settings={"allow_suspicious_low_cardinality_types": 1, "insert_block_size": 2, "namedtuple_as_json": False})
# This driver doesn't know them.
UNKNOWN = {"bfloat16", "time", "time64", "variant", "dynamic"}
# Beyond those.
MORE = {
    "int8": ("Int8", ["-128", "127"]),
    "int32": ("Int32", ["-2147483648", "2147483647"]),
    "int64": ("Int64", ["'-9223372036854775808'", "'9223372036854775807'"]),
    "int256": ("Int256", ["'-57896044618658097711785492504343953926634992332820282019728792003956564819968'", "1"]),
    "uint16": ("UInt16", ["0", "65535"]),
    "uint32": ("UInt32", ["0", "4294967295"]),
    "uint128": ("UInt128", ["0", "'340282366920938463463374607431768211455'"]),
    "decimal64": ("Decimal(18, 6)", ["'-999999999999.999999'", "1.5"]),
    "datetime_plain": ("DateTime", ["'1970-01-02 00:00:00'", "'2106-02-07 00:00:00'"]),
    "datetime64_plain": ("DateTime64(3)", ["'1970-01-01 00:00:00.001'", "'2024-02-29 12:34:56.123'"]),
    "datetime64_zero": ("DateTime64(0, 'Europe/Berlin')", ["'2024-03-31 01:59:59'", "'2024-10-27 02:30:00'"]),
    "nullable_uuid": ("Nullable(UUID)", ["NULL", "'61f0c404-5cb3-11e7-907b-a6006ad3dba0'"]),
    "nullable_date": ("Nullable(Date)", ["NULL", "'2024-02-29'"]),
    "nullable_datetime64": ("Nullable(DateTime64(6, 'UTC'))", ["NULL", "'2024-02-29 12:34:56.123456'"]),
    "nullable_decimal": ("Nullable(Decimal(9, 2))", ["NULL", "1.25"]),
    "nullable_enum": ("Nullable(Enum8('a' = 1))", ["NULL", "'a'"]),
    "nullable_ipv6": ("Nullable(IPv6)", ["NULL", "'2001:db8::1'"]),
    "nullable_bool": ("Nullable(Bool)", ["NULL", "true", "false"]),
    "nullable_fixed": ("Nullable(FixedString(2))", ["NULL", "'ab'"]),
    "few_dates": ("LowCardinality(Date)", ["'2024-02-29'", "'1970-01-01'", "'2024-02-29'"]),
    "few_moments": ("LowCardinality(DateTime('UTC'))", ["'2024-02-29 00:00:00'", "'1970-01-01 00:00:00'"]),
    "few_fixed": ("LowCardinality(FixedString(2))", ["'ab'", "''", "'ab'"]),
    "few_floats": ("LowCardinality(Nullable(Float64))", ["NULL", "1.5", "0"]),
    "array_of_fixed": ("Array(FixedString(2))", ["['ab', 'c']", "[]"]),
    "array_of_maps": ("Array(Map(String, LowCardinality(String)))", ["[map('a', 'b'), map()]", "[]"]),
    "array_of_words_or_null": ("Array(Array(LowCardinality(Nullable(String))))", ["[['a', NULL], []]", "[]"]),
    "array_of_enums": ("Array(Enum8('a' = 1, 'b' = 2))", ["['a', 'b', 'a']"]),
    "map_of_arrays": ("Map(UInt8, Array(Nullable(Int8)))", ["map(1, [1, NULL], 2, [])", "map()"]),
    "map_of_arrays_of_words": ("Map(LowCardinality(String), Array(LowCardinality(String)))", ["map('a', ['x', 'x'], 'b', [])"]),
    "tuple_of_words": ("Tuple(LowCardinality(String), LowCardinality(Nullable(String)))", ["('a', NULL)", "('a', 'b')"]),
    "tuple_of_one": ("Tuple(String)", ["tuple('a')"]),
    "tuple_of_tuples": ("Tuple(Tuple(UInt8, String), Array(Tuple(UInt8, UInt8)))", ["((1, 'a'), [(1, 2), (3, 4)])"]),
    "ring": ("Ring", ["[(0, 0), (1, 0), (1, 1)]"]),
    "multi_polygon": ("MultiPolygon", ["[[[(0, 0), (1, 0), (1, 1)]]]", "[]"]),
    "interval": ("IntervalDay", ["toIntervalDay(3)", "toIntervalDay(-1)"]),
    "json_array": ("Array(JSON)", ["""CAST(['{"a": 1}', '{"b": "x"}'] AS Array(JSON))"""]),
    "json_typed": ("JSON(max_dynamic_paths = 1)", ["""'{"a": 1, "b": 2}'""", """'{"a": "x"}'"""]),
}


def copied(name: str, kind: str, values: list[str]) -> object:
    rows = " UNION ALL ".join(f"SELECT toUInt64({number}) AS id, CAST({value} AS {kind}) AS v" for number, value in enumerate(values))
    client.execute(f"CREATE TABLE from_{name} (id UInt64, v {kind}) ENGINE = MergeTree ORDER BY id AS {rows}")
    client.execute(f"CREATE TABLE {name} (id UInt64, v {kind}) ENGINE = MergeTree ORDER BY id")
    read = client.execute(f"SELECT * FROM from_{name} ORDER BY id")
    equal(client.execute(f"INSERT INTO {report.sends(name)} VALUES", read), len(values))
    text = "SELECT toString(groupArray((id, toString(v)))) FROM (SELECT * FROM {} ORDER BY id)"
    equal(value(client, text.format(name)), value(client, text.format(f"from_{name}")))
    # What was stored comes back as what was read before.
    return equal(str(client.execute(f"SELECT * FROM {name} ORDER BY id")), str(read))


def nested() -> object:
    """An array for each of its columns, and with flatten_nested = 0 one array of tuples."""
    client.execute(f"CREATE TABLE {report.sends('nested')} (id UInt64, n Nested(a UInt8, b LowCardinality(String))) ENGINE = MergeTree ORDER BY id")
    equal(client.execute("INSERT INTO nested VALUES", [(1, [1, 2], ["x", "y"]), (2, [], [])]), 2)
    equal(client.execute("SELECT * FROM nested ORDER BY id"), [(1, [1, 2], ["x", "y"]), (2, [], [])])
    create = f"CREATE TABLE {report.sends('nested_whole')} (id UInt64, n Nested(a UInt8, b LowCardinality(String))) ENGINE = MergeTree ORDER BY id"
    client.execute(create, settings={"flatten_nested": 0})
    equal(client.execute("INSERT INTO nested_whole VALUES", [(1, [(1, "x"), (2, "y")]), (2, [])]), 2)
    return equal(client.execute("SELECT * FROM nested_whole ORDER BY id"), [(1, [(1, "x"), (2, "y")]), (2, [])])


for name, (kind, values) in {**TYPES, **MORE}.items():
    if name not in UNKNOWN:
        report.run(f"insert {kind}", lambda: copied(name, kind, values))
report.run("insert Nested", nested)
client.disconnect()
report.print()
