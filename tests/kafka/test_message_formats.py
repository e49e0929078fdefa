"""What pipelines make of messages: each format as ClickHouse's Kafka engine reads it, virtual columns, the mapping of columns."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.kafka import Broker
from harness.kafka_cases import CASES, COLUMNS, SCHEMA, Case
from harness.kafka_topics import Message, Topics
from harness.pipelines import Seen, pipeline
from harness.schema_registry import SchemaRegistry, confluent

Start = Callable[..., Seen]
MERGE_TREE = "ENGINE = MergeTree ORDER BY tuple() SETTINGS non_replicated_deduplication_window = 1000"
OLD_MS = 1_600_000_000_123

# One of every kind that all formats can carry. What ClickHouse writes of them is what it has to read.
WIDE = (
    "id UInt64, small Int8, large Int64, single Float32, double Float64, text String, maybe Nullable(String), day Date, "
    "moment DateTime('UTC'), list Array(UInt32), word LowCardinality(String)"
)
WIDE_SCHEMA = """syntax = "proto3";
message Wide {
  uint64 id = 1; int32 small = 2; sint64 large = 3; float single = 4; double double = 5; string text = 6; optional string maybe = 7;
  uint32 day = 8; uint32 moment = 9; repeated uint32 list = 10; string word = 11;
}
"""
ROWS, ROWS_OF_A_MESSAGE = 400, 20
WIDE_ROWS = f"""
INSERT INTO source SELECT number, number % 256 - 128, (number - 200) * 12345678901, number / 3, number / 7, repeat('é"\\n\\t,', number % 5),
  if(number % 3 = 0, NULL, toString(number)), toDate(number), toDateTime(number * 1000, 'UTC'), range(number % 4), concat('w', toString(number % 7))
FROM numbers({ROWS})
"""
# How many rows a message of the format may have.
WIDE_FORMATS = {
    "JSONEachRow": ROWS_OF_A_MESSAGE,
    "CSV": ROWS_OF_A_MESSAGE,
    "TabSeparated": ROWS_OF_A_MESSAGE,
    "RowBinary": ROWS_OF_A_MESSAGE,
    "MsgPack": ROWS_OF_A_MESSAGE,
    "Avro": ROWS_OF_A_MESSAGE,
    "Protobuf": ROWS_OF_A_MESSAGE,
    "ProtobufSingle": 1,
}


def schema_of(folder: Path, schema: str, message: str) -> dict[str, str]:
    (folder / "event.proto").write_text(schema)
    return {"schema_file": str(folder / "event.proto"), "message": message}


def rows_of(direct: Endpoint, number: int, columns: str) -> list[str]:
    """A JSON array of each, ordered by its text, once there are so many."""
    query = f"SELECT {columns} FROM events FORMAT JSONCompactEachRow"
    return eventually(lambda: found if len(found := sorted(direct.sql(query).splitlines())) >= number else [], f"{number} rows", 60)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rows_of_messages(
    direct: Endpoint,
    broker: Broker,
    topics: Topics,
    topic_name: str,
    tmp_path: Path,
    start_pipelines: Start,
    case: Case,
) -> None:
    topics.create(topic_name, 1)
    topics.send(topic_name, case.sent)
    direct.sql(f"CREATE TABLE events ({case.columns}, _offset UInt64) {MERGE_TREE}")
    more = schema_of(tmp_path, case.schema, "Event") if case.schema else {}
    start_pipelines(pipeline(broker, f"{direct.database}.events", topic_name, case.format, **more))
    assert rows_of(direct, len(case.rows), f"_offset, {case.names}") == sorted(case.rows)


@pytest.mark.parametrize("format", WIDE_FORMATS)
def test_what_clickhouse_writes_is_read(
    direct: Endpoint,
    broker: Broker,
    topics: Topics,
    topic_name: str,
    tmp_path: Path,
    start_pipelines: Start,
    format: str,
) -> None:
    direct.sql(f"CREATE TABLE source ({WIDE}) ENGINE = Memory")
    direct.sql(WIDE_ROWS)
    direct.sql(f"CREATE TABLE events ({WIDE}) {MERGE_TREE}")
    settings: dict[str, object] = {"output_format_avro_string_column_pattern": ".*"}
    more: dict[str, str] = {}
    if format.startswith("Protobuf"):
        more = schema_of(tmp_path, WIDE_SCHEMA, "Wide")
        settings |= {
            "format_schema": WIDE_SCHEMA,
            "format_schema_source": "string",
            "format_schema_message_name": "Wide",
        }
    each = WIDE_FORMATS[format]
    queries = (f"SELECT * FROM source WHERE id >= {at} AND id < {at + each} ORDER BY id FORMAT {format}" for at in range(0, ROWS, each))
    replies = [direct.request(query, settings=settings) for query in queries]
    assert {reply.status for reply in replies} == {200}, replies[0].text
    topics.create(topic_name, 1)
    topics.send(topic_name, [Message(reply.body, partition=0) for reply in replies])
    start_pipelines(pipeline(broker, f"{direct.database}.events", topic_name, format, **more))
    eventually(lambda: int(direct.sql("SELECT count() FROM events")) >= ROWS, "the rows are there", 60)
    assert direct.sql("SELECT * FROM source ORDER BY id") == direct.sql("SELECT * FROM events ORDER BY id")


def test_messages_of_very_many_rows(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """One that is larger than a batch is stored whole."""
    topics.create(topic_name, 1)
    each = 20_000
    texts = ("".join(f'{{"id":{n}}}\n' for n in range(at * each, (at + 1) * each)) for at in range(3))
    topics.send(topic_name, [Message(text.encode(), partition=0) for text in texts], "zstd")
    direct.sql(f"CREATE TABLE events (id UInt64, _offset UInt64) {MERGE_TREE}")
    start_pipelines(pipeline(broker, f"{direct.database}.events", topic_name, max_batch_rows=1_000))
    eventually(lambda: int(direct.sql("SELECT count() FROM events")) >= 3 * each, "the rows are there", 60)
    found = direct.sql("SELECT _offset, count(), uniqExact(id), min(id) FROM events GROUP BY _offset ORDER BY _offset FORMAT TSV")
    assert found.splitlines() == [f"{at}\t{each}\t{each}\t{at * each}" for at in range(3)]


VIRTUAL = (
    "_topic LowCardinality(String), _key String, _offset UInt64, _partition UInt64, _timestamp Nullable(DateTime('UTC')), "
    "_timestamp_ms Nullable(DateTime64(3, 'UTC')), `_headers.name` Array(String), `_headers.value` Array(String), _raw_message String"
)


def test_virtual_columns(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """With the engine's types, by their names alone; each row of a message has them."""
    topics.create(topic_name, 1)
    headers = (("a", b"1"), ("none", None), ("a", b"2"))
    good, two = b'{"id":1}', b'{"id":2}\n{"id":3}'
    topics.send(topic_name, [Message(good, b"key", 0, OLD_MS, headers), Message(two, None, 0, OLD_MS)])
    direct.sql(f"CREATE TABLE events (id UInt64, {VIRTUAL}) {MERGE_TREE}")
    start_pipelines(pipeline(broker, f"{direct.database}.events", topic_name))
    moment = ["2020-09-13 12:26:40", "2020-09-13 12:26:40.123"]
    of_two = [topic_name, "", 1, 0, *moment, [], [], two.decode()]
    names = "id, _topic, _key, _offset, _partition, _timestamp, _timestamp_ms, `_headers.name`, `_headers.value`, _raw_message"
    assert [json.loads(row) for row in rows_of(direct, 3, names)] == [
        [1, topic_name, "key", 0, 0, *moment, ["a", "none", "a"], ["1", "", "2"], good.decode()],
        [2, *of_two],
        [3, *of_two],
    ]


def test_columns_are_mapped(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """Fields of objects in objects, virtual columns and one header under other names; what is left out has its default."""
    topics.create(topic_name, 1)
    text = b'{"event":{"time":1600000000,"user":{"id":7}},"id":1,"left_out":"given","named":"n"}'
    topics.send(topic_name, [Message(text, b"k1", 0, OLD_MS, (("trace", b"t1"),)), Message(text, None, 0, OLD_MS)])
    columns = (
        "id UInt64, ts DateTime('UTC'), user UInt32, k Nullable(String), partition UInt32, at DateTime64(3, 'UTC'), "
        "trace String, left_out String DEFAULT concat('made of ', toString(id)), named String"
    )
    direct.sql(f"CREATE TABLE events ({columns}) {MERGE_TREE}")
    mapping = {
        "ts": "event.time", "user": "event.user.id", "k": "_key", "partition": "_partition", "at": "_timestamp_ms",
        "trace": "_headers.trace", "left_out": "",
    }  # fmt: skip
    start_pipelines(pipeline(broker, f"{direct.database}.events", topic_name, columns=mapping))
    at, made = "2020-09-13 12:26:40.123", "made of 1"
    assert [json.loads(row) for row in rows_of(direct, 2, "*")] == [
        [1, "2020-09-13 12:26:40", 7, "k1", 0, at, "t1", made, "n"],
        [1, "2020-09-13 12:26:40", 7, None, 0, at, "", made, "n"],
    ]


def test_defaults_of_columns_that_only_some_rows_give(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """ClickHouse computes them, row by row."""
    topics.create(topic_name, 1)
    texts = [b'{"id":%d%s}' % (n, b',"twice":1000' if n % 3 == 0 else b"") for n in range(90)]
    topics.send(topic_name, [Message(text, partition=0) for text in texts])
    direct.sql(f"CREATE TABLE events (id UInt64, twice UInt64 DEFAULT id * 2, made UInt64 MATERIALIZED id + 1) {MERGE_TREE}")
    start_pipelines(pipeline(broker, f"{direct.database}.events", topic_name))
    rows = [json.loads(row) for row in rows_of(direct, 90, "id, twice, made")]
    assert sorted(rows) == [[n, 1000 if n % 3 == 0 else n * 2, n + 1] for n in range(90)]


def test_settings_of_reading(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    topics.create(topic_name, 1)
    topics.send(topic_name, [Message(b"1;'a'", partition=0), Message(b"2;'b;c'", partition=0)])
    direct.sql(f"CREATE TABLE events (id UInt64, name String) {MERGE_TREE}")
    settings = {"format_csv_delimiter": ";", "format_csv_allow_single_quotes": 1}
    start_pipelines(pipeline(broker, f"{direct.database}.events", topic_name, "CSV", format_settings=settings))
    assert rows_of(direct, 2, "*") == ['[1, "a"]', '[2, "b;c"]']


FIRST = {"type": "record", "name": "Event", "fields": [{"name": "id", "type": "long"}, {"name": "name", "type": "string"}]}
SECOND = {**FIRST, "fields": [{"name": "value", "type": "double"}, *FIRST["fields"]]}


def test_a_schema_registry(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """Messages name their schema, and it changes; the registry wants a password and is away at first."""
    topics.create(topic_name, 1)
    messages = [confluent(1, n, "old") for n in range(50)] + [confluent(2, 0.5, n, "new") for n in range(50, 100)]
    topics.send(topic_name, [Message(each, partition=0) for each in messages])
    direct.sql(f"CREATE TABLE events ({COLUMNS}) {MERGE_TREE}")
    with SchemaRegistry({1: FIRST, 2: SECOND}, "ann", "a secret") as registry:
        registry.away.set()
        more = {
            "schema_registry": registry.url,
            "schema_registry_user": registry.user,
            "schema_registry_password": registry.password,
        }
        seen = start_pipelines(pipeline(broker, f"{direct.database}.events", topic_name, "AvroConfluent", **more))
        eventually(lambda: registry.asked, "the registry is asked", 60)
        seen.row(lambda row: "schema" in row["last_error"].lower(), "the registry's absence is said")
        assert registry.password not in str(seen.gateway.log_events())
        registry.away.clear()
        rows = [json.loads(row) for row in rows_of(direct, 100, "id, name, value")]
        assert sorted(rows) == [[n, "old", 0] if n < 50 else [n, "new", 0.5] for n in range(100)]
        # Each schema is asked for once, not for each message.
        assert len(registry.answered) == 2
        assert seen.metric("dead_letters_total") == 0


def test_protobuf_of_nested_messages(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, tmp_path: Path, start_pipelines: Start
) -> None:
    """A message of a package, with a field of a message in it, mapped."""
    schema = SCHEMA.replace('syntax = "proto3";', 'syntax = "proto3"; package pkg.v1;')
    schema += " message Outer { Event event = 1; string source = 2; }"
    topics.create(topic_name, 1)
    inner = b"\x08\x07\x12\x01a"
    topics.send(topic_name, [Message(b"\x0a" + bytes([len(inner)]) + inner + b"\x12\x03abc", partition=0)])
    direct.sql(f"CREATE TABLE events (id UInt64, name String, source String) {MERGE_TREE}")
    more: dict[str, object] = {**schema_of(tmp_path, schema, "pkg.v1.Outer"), "columns": {"id": "event.id", "name": "event.name"}}
    start_pipelines(pipeline(broker, f"{direct.database}.events", topic_name, "ProtobufSingle", **more))
    assert rows_of(direct, 1, "*") == ['[7, "a", "abc"]']
