"""What ClickHouse's Kafka engine makes of messages: what docs/kafka-engine.md says of it, asked of the real one."""

from __future__ import annotations

import pytest

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.kafka import Broker
from harness.kafka_cases import CASES as KAFKA_CASES
from harness.kafka_cases import COLUMNS, Case
from harness.kafka_engine import KafkaEngine, kafka_engine
from harness.kafka_topics import Message, Topics


GOOD, BAD = b'{"id":1}', b'{"id":"x"}'


# What only the engine takes.
CASES = (
    *KAFKA_CASES,
    Case("CSVWithNames", (b"name,id\na,1\nb,2", b"id\n3"), ('[0, 1, "a", 0]', '[0, 2, "b", 0]', '[1, 3, "", 0]')),
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_rows_of_messages(direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, case: Case) -> None:
    topics.create(topic_name, 1)
    topics.send(topic_name, case.sent)
    # Not as kafka_schema, where braces are macros.
    schema = f"format_schema = '{case.schema}', format_schema_source = 'string', format_schema_message_name = 'Event'"
    select, settings = f"_offset, {case.names}", schema if case.schema else ""
    with kafka_engine(
        direct, broker, topic_name, case.format, case.columns, select=select, settings=settings
    ) as engine:
        engine.wait_until_all_is_read()
        assert engine.rows() == sorted(case.rows)


def test_virtual_columns(direct: Endpoint, broker: Broker, topics: Topics, topic_name: str) -> None:
    topics.create(topic_name, 1)
    headers = (("a", b"1"), ("none", None), ("a", b"2"))
    topics.send(
        topic_name, [Message(GOOD, b"key", 0, 1_600_000_000_123, headers), Message(GOOD, None, 0, 1_600_000_000_123)]
    )
    names = "_topic, _key, _offset, _partition, _timestamp, _timestamp_ms, `_headers.name`, `_headers.value`"
    with kafka_engine(direct, broker, topic_name, "JSONEachRow", "id UInt64", select=names) as engine:
        engine.wait_until_all_is_read()
        types = direct.sql(
            "SELECT groupArray(type) FROM system.columns WHERE database = currentDatabase() AND table = 'kafka_view'"
        )
        moment = '"2020-09-13 12:26:40", "2020-09-13 12:26:40.123"'
        assert engine.rows() == [
            f'["{topic_name}", "", 1, 0, {moment}, [], []]',
            f'["{topic_name}", "key", 0, 0, {moment}, ["a","none","a"], ["1","","2"]]',
        ]
    assert types == (
        "['LowCardinality(String)','String','UInt64','UInt64','Nullable(DateTime)','Nullable(DateTime64(3))',"
        "'Array(String)','Array(String)']"
    )


def test_a_bad_message_stops_everything(direct: Endpoint, broker: Broker, topics: Topics, topic_name: str) -> None:
    topics.create(topic_name, 1)
    topics.send(topic_name, [Message(text, partition=0) for text in (GOOD, BAD, GOOD)])
    with kafka_engine(direct, broker, topic_name, "JSONEachRow", COLUMNS) as engine:
        eventually(lambda: "offset: 1)" in engine.error(), "the error names the message", 60)
        assert (engine.rows(), engine.committed()) == ([], {0: -1})


def test_bad_messages_are_skipped_or_streamed(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str
) -> None:
    topics.create(topic_name, 1)
    two_of_three = b'{"id":1}\n{"id":"x"}\n{"id":3}'
    topics.send(topic_name, [Message(text, partition=0) for text in (GOOD, BAD, two_of_three)])
    select = "_offset, id"
    with kafka_engine(
        direct, broker, topic_name, "JSONEachRow", COLUMNS, select=select, settings="kafka_skip_broken_messages = 9"
    ) as engine:
        engine.wait_until_all_is_read()
        assert engine.rows() == ["[0, 1]", "[2, 1]", "[2, 3]"]
    select, settings = "_offset, id, _raw_message, _error != ''", "kafka_handle_error_mode = 'stream'"
    with kafka_engine(
        direct, broker, topic_name, "JSONEachRow", COLUMNS, select=select, settings=settings, group="g2"
    ) as engine:
        engine.wait_until_all_is_read()
        # All rows of the third are gone, also the good ones.
        assert engine.rows("_offset, id, _raw_message != ''") == ["[0, 1, 0]", "[1, 0, 1]", "[2, 0, 1]"]


def test_a_view_that_fails_makes_another_one_repeat(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str
) -> None:
    topics.create(topic_name, 1)
    direct.sql("CREATE TABLE other (id UInt64) ENGINE = MergeTree ORDER BY id")
    engine = KafkaEngine(direct, broker, topic_name, "JSONEachRow", COLUMNS)
    try:
        # Deduplication of blocks is off for a MergeTree without a window.
        direct.sql("CREATE MATERIALIZED VIEW failing TO other AS SELECT id FROM kafka_queue WHERE throwIf(id = 7) = 0")
        engine.wait_for_views(Message(b'{"id":1}', partition=0))
        topics.send(topic_name, [Message(b'{"id":7}', partition=0)])
        eventually(lambda: engine.rows("id").count("[7]") > 1, "the row is there more than once", 60)
        assert engine.committed() == {0: 1} and engine.rows("id").count("[1]") == 1
    finally:
        direct.sql("DROP TABLE failing SYNC")
        engine.drop()
