"""Messages of each format, and the rows that come of them: asked of ClickHouse's Kafka engine and of pipelines alike."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from harness.kafka_topics import Message
from harness.avro import avro_file, blocks, long, text
from harness.protobuf import delimited, event, field

COLUMNS = "id UInt64, name String, value Float64"
SCHEMA = 'syntax = "proto3"; message Event { uint64 id = 1; string name = 2; double value = 3; }'
# Lists of messages and of records, as what ClickHouse calls Nested.
LISTS = (
    "id UInt64, `parts.name` Array(String), `parts.sizes` Array(Array(UInt32)), `PARTS_PLACE_CITY` Array(String), `labels.key` Array(String), "
    "`labels.value` Array(UInt32), word String, number UInt32, `place.city` String, last String"
)
LISTS_SCHEMA = """syntax = "proto3"; message Place { string city = 1; }
message Part { string name = 1; repeated uint32 sizes = 2; Place place = 3; string unused = 4; }
message Last { string x = 1; }
message Event { uint64 id = 1; repeated Part parts = 2; map<string, uint32> labels = 3; oneof what { string word = 4; uint32 number = 5; }
  Place place = 6; string last = 7; }
"""
RECORDS = "id Int64, `c.a` Array(Int32), `c.b` Array(Nullable(String))"
RECORDS_SCHEMA = {
    "type": "record", "name": "Event", "fields": [{"name": "id", "type": "long"}, {"name": "c", "type": {"type": "array", "items": {
        "type": "record", "name": "C", "fields": [{"name": "b", "type": ["null", "string"]}, {"name": "a", "type": "int"}]}}}],
}  # fmt: skip
TOMBSTONE = Message(None, b"key", 0)


@dataclass(frozen=True)
class Case:
    """`rows` have the message's offset before their columns."""

    format: str
    messages: tuple[bytes | Message, ...]
    rows: tuple[str, ...]
    columns: str = COLUMNS
    schema: str = ""

    def __str__(self) -> str:
        return f"{self.format}-lists" if "Array" in self.columns else self.format

    @property
    def sent(self) -> list[Message]:
        return [each if isinstance(each, Message) else Message(each, partition=0) for each in self.messages]

    @property
    def names(self) -> str:
        return ", ".join(column.split()[0] for column in self.columns.split(", "))


def row_binary(id: int, name: bytes) -> bytes:
    return struct.pack("<QB", id, len(name)) + name + struct.pack("<d", 1.5)


def msg_pack(id: int, name: bytes) -> bytes:
    return bytes([id, 0xA0 | len(name)]) + name + b"\xcb" + struct.pack(">d", 1.5)


def lists(id: int) -> bytes:
    part = field(1, b"a") + field(2, b"\x01\x02") + field(3, field(1, b"x")) + field(4, b"-")
    labels = [field(1, key) + b"\x10" + value for key, value in ((b"k", b"\x07"), (b"l", b"\x08"))]
    whole = field(2, part) + field(2, b"") + b"".join(field(3, pair) for pair in labels) + field(4, b"w") + field(6, field(1, b"c"))
    return b"\x08" + bytes([id]) + whole + field(7, b"z")


def records(id: int) -> bytes:
    return long(id) + blocks(long(1) + text(b"x") + long(7), long(0) + long(8))


CASES = (
    Case(
        "ProtobufSingle", (lists(1), b"\x08\x02\x28\x05"),
        ('[0, 1, ["a",""], [[1,2],[]], ["x",""], ["k","l"], [7,8], "w", 0, "c", "z"]', '[1, 2, [], [], [], [], [], "", 5, "", ""]'),
        LISTS, LISTS_SCHEMA,
    ),
    Case(
        "Avro", (avro_file(RECORDS_SCHEMA, records(1), long(2) + blocks()), avro_file(RECORDS_SCHEMA, records(3))),
        ('[0, 1, [7,8], ["x",null]]', "[0, 2, [], []]", '[1, 3, [7,8], ["x",null]]'), RECORDS,
    ),
    Case(
        "JSONEachRow",
        (b'{"id":1,"name":"a","value":1}', b'{"id":2}\n{"id":3}\n', b'[{"id":4},{"id":5}]',
         b'{"id":6,"more":{"a":1}}{"id":7}', TOMBSTONE, b"", b"  ", b'{"id":8}'),
        ('[0, 1, "a", 1]', '[1, 2, "", 0]', '[1, 3, "", 0]', '[2, 4, "", 0]', '[2, 5, "", 0]', '[3, 6, "", 0]',
         '[3, 7, "", 0]', '[7, 8, "", 0]'),
    ),
    # A message of no bytes is a row of defaults in protobuf; it is dropped all the same.
    Case(
        "ProtobufSingle", (event(1, "a"), b"", event(2, "b")), ('[0, 1, "a", 1.5]', '[2, 2, "b", 1.5]'), schema=SCHEMA,
    ),
    Case(
        "Protobuf", (delimited(event(1, "a")) + delimited(event(2, "b")), b"", delimited(event(3, "c"))),
        ('[0, 1, "a", 1.5]', '[0, 2, "b", 1.5]', '[2, 3, "c", 1.5]'), schema=SCHEMA,
    ),
    Case("CSV", (b'1,"a",1.5', b"2,b,2\n3,c,3\n"), ('[0, 1, "a", 1.5]', '[1, 2, "b", 2]', '[1, 3, "c", 3]')),
    Case("TSV", (b"1\ta\t1.5", b"2\tb\t2\n3\tc\t3\n"), ('[0, 1, "a", 1.5]', '[1, 2, "b", 2]', '[1, 3, "c", 3]')),
    Case("RowBinary", (row_binary(1, b"a"), row_binary(2, b"b") * 2), ('[0, 1, "a", 1.5]', *['[1, 2, "b", 1.5]'] * 2)),
    Case("MsgPack", (msg_pack(1, b"a"), msg_pack(2, b"b") * 2), ('[0, 1, "a", 1.5]', *['[1, 2, "b", 1.5]'] * 2)),
    Case("RawBLOB", (b"abc\n\n", b"", TOMBSTONE, b"\xff"), (r'[0, "abc\n\n"]', '[3, "�"]'), "raw String"),
)  # fmt: skip
