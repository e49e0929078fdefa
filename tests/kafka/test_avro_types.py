"""Every type of Avro into every column: what a pipeline stores is what ClickHouse reads, or the message is a dead letter."""

from __future__ import annotations

import json
import struct
from collections.abc import Callable

import pytest

from harness.avro import avro_file, blocks, long, text
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.kafka import Broker
from harness.kafka_topics import Message, Topics
from harness.pipelines import Seen, pipeline

UUID = b"61f0c404-5cb3-11e7-907b-a6006ad3dba0"


def logical(of: object, name: str, **more: object) -> dict[str, object]:
    return {**(of if isinstance(of, dict) else {"type": of}), "logicalType": name, **more}


def fixed(size: int) -> dict[str, object]:
    return {"type": "fixed", "name": f"F{size}", "size": size}


RECORD = {"type": "record", "name": "R", "fields": [{"name": "x", "type": "int"}, {"name": "y", "type": "string"}]}
MAP, ENUM = {"type": "map", "values": "int"}, {"type": "enum", "name": "E", "symbols": ["a", "b"]}
DECIMAL = logical("bytes", "decimal", precision=9, scale=2)
NOON_S = 1_767_268_800
# What it is called, its schema, and a value of it.
VALUES: tuple[tuple[str, object, bytes], ...] = (
    ("null", "null", b""),
    ("boolean", "boolean", b"\x01"),
    ("int", "int", long(5)),
    ("negative int", "int", long(-3)),
    ("long", "long", long(7)),
    ("large long", "long", long(1 << 40)),
    ("float", "float", struct.pack("<f", 1.5)),
    ("whole double", "double", struct.pack("<d", 2.0)),
    ("bytes", "bytes", text(b"\x01\x02")),
    ("string", "string", text(b"12")),
    ("string of a UUID", "string", text(UUID)),
    ("UUID", logical("string", "uuid"), text(UUID)),
    ("fixed(4)", fixed(4), b"abcd"),
    ("fixed(16)", fixed(16), bytes(range(16))),
    ("fixed(32)", fixed(32), bytes(range(32))),
    ("fixed(36)", fixed(36), UUID),
    ("duration", logical(fixed(12), "duration"), bytes(range(12))),
    ("enum", ENUM, long(1)),
    ("array", {"type": "array", "items": "int"}, blocks(long(1), long(2))),
    ("array with null", {"type": "array", "items": ["null", "int"]}, blocks(long(1) + long(1), long(0))),
    ("map", MAP, blocks(text(b"k") + long(1))),
    ("map of numbers", MAP, blocks(text(b"4") + long(1))),
    ("record", RECORD, long(1) + text(b"t")),
    ("nullable int", ["null", "int"], long(1) + long(5)),
    ("nullable int that is null", ["int", "null"], long(1)),
    ("nullable enum that is null", [ENUM, "null"], long(1)),
    ("nullable array that is null", [{"type": "array", "items": "int"}, "null"], long(1)),
    ("union of string", ["string"], long(0) + text(b"12")),
    ("union of int", ["int"], long(0) + long(5)),
    ("union of null", ["null"], long(0)),
    ("union of record", [RECORD], long(0) + long(1) + text(b"t")),
    ("union of int and string", ["int", "string"], long(0) + long(5)),
    ("date", logical("int", "date"), long(20_000)),
    ("time-millis", logical("int", "time-millis"), long(1_000)),
    ("time-micros", logical("long", "time-micros"), long(1_000_000)),
    ("timestamp-millis", logical("long", "timestamp-millis"), long(NOON_S * 1_000 + 5)),
    ("timestamp-micros", logical("long", "timestamp-micros"), long(NOON_S * 1_000_000 + 5)),
    ("local-timestamp-millis", logical("long", "local-timestamp-millis"), long(NOON_S * 1_000 + 5)),
    ("decimal", DECIMAL, text(b"\xff\x38")),
    ("decimal of no bytes", DECIMAL, text(b"")),
    ("fixed decimal", logical(fixed(4), "decimal", precision=9, scale=2), b"\x00\x00\x01\x00"),
)  # fmt: skip
COLUMNS = (
    "UInt8", "UInt32", "UInt64", "Int8", "Int32", "Int64", "Int128", "UInt256", "Float32", "Float64", "Bool", "String", "FixedString(4)",
    "FixedString(36)", "LowCardinality(String)", "Nullable(String)", "LowCardinality(Nullable(String))", "Nullable(Int32)", "Date", "Date32",
    "DateTime('UTC')", "DateTime64(3, 'UTC')", "DateTime64(6, 'UTC')", "Decimal(9, 2)", "Decimal(18, 3)", "Nullable(Decimal(9, 2))", "UUID",
    "IPv4", "IPv6", "Enum8('z' = 0, 'a' = 1, 'b' = 2)", "Array(Int32)", "Array(Nullable(Int32))", "Map(String, Int32)", "Map(UInt32, Int32)",
    "Tuple(x Int32, y String)",
)  # fmt: skip
# What may be refused where the engine stores it: into a column of numbers or times.
NUMBERS = {
    "boolean", "int", "negative int", "long", "large long", "float", "whole double", "date", "time-millis", "time-micros", "timestamp-millis",
    "timestamp-micros", "local-timestamp-millis", "nullable int", "nullable int that is null", "union of int", "fixed(4)", "fixed decimal",
}  # fmt: skip
NUMERIC = ("UInt", "Int", "Float", "Bool", "Date", "Decimal", "IPv4", "Enum8")
CASES = [(name, schema, value, column) for name, schema, value in VALUES for column in range(len(COLUMNS))]


def message(at: int, schema: object, value: bytes, column: int) -> bytes:
    fields = [{"name": "at", "type": "int"}, {"name": f"c{column}", "type": schema}]
    return avro_file({"type": "record", "name": "Row", "fields": fields}, long(at) + value)


def stored(direct: Endpoint, table: str) -> dict[int, str]:
    """By its number, what each case has in its column."""
    rows = (json.loads(row) for row in direct.sql(f"SELECT * FROM {table} FORMAT JSONCompactEachRow").splitlines())
    return {row[0]: json.dumps(row[1 + CASES[row[0]][3]]) for row in rows}


def test_every_type_into_every_column(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Callable[..., Seen]
) -> None:
    columns = ", ".join(f"c{at} {name}" for at, name in enumerate(COLUMNS))
    direct.sql(f"CREATE TABLE theirs (at Int32, {columns}) ENGINE = Memory")
    window = "SETTINGS non_replicated_deduplication_window = 1000"
    direct.sql(f"CREATE TABLE ours (at Int32, {columns}) ENGINE = MergeTree ORDER BY at {window}")
    payloads = [message(at, schema, value, column) for at, (_, schema, value, column) in enumerate(CASES)]
    topics.create(topic_name, 1)
    topics.send(topic_name, [Message(payload, partition=0) for payload in payloads])
    seen = start_pipelines(pipeline(broker, f"{direct.database}.ours", topic_name, "Avro", format_settings={"input_format_null_as_default": 1}))
    for payload in payloads:
        direct.insert("INSERT INTO theirs FORMAT Avro", payload, input_format_avro_allow_missing_fields=1)
    seen.row(lambda row: row["committed_offset"] == len(CASES), "all are read")
    theirs, ours = stored(direct, "theirs"), stored(direct, "ours")
    named = [(name, COLUMNS[column]) for name, _, _, column in CASES]
    print(f"{len(theirs)} of {len(CASES)} are read by ClickHouse, {len(ours)} here")
    # A time is stored in the column's unit; the engine takes the number as it is.
    other = {(*named[at], theirs[at], ours[at]) for at in theirs.keys() & ours.keys() if theirs[at] != ours[at]}
    assert all(name.endswith(("timestamp-millis", "timestamp-micros")) and column.startswith("DateTime") for name, column, *_ in other), other
    # Numbers that would be cut off, or mean something else, are dead letters.
    refused = [(*named[at], theirs[at]) for at in sorted(theirs.keys() - ours.keys())]
    is_number = lambda name, column: name in NUMBERS and column.removeprefix("Nullable(").startswith(NUMERIC)  # noqa: E731
    assert not (others := [each for each in refused if not is_number(*each[:2])]), others
    # Integers that are wide enough, and the bytes of a UUID, which the engine has no reader for.
    more = {(*named[at], ours[at]) for at in ours.keys() - theirs.keys()}
    assert all(column in ("Int128", "UInt256", "UUID", "Enum8('z' = 0, 'a' = 1, 'b' = 2)") for _, column, _ in more), sorted(more)
    assert "decimal of no bytes" not in {name for name, column, _ in more} | {named[at][0] for at in ours if "Decimal" in named[at][1]}
