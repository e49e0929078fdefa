"""A topic with rubbish in it: what is good is stored and in time, each bad message is a dead letter that can be mended and retried."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.kafka import Broker
from harness.kafka_load import KafkaLoad
from harness.kafka_numbers import DuckDbTarget, Target, numbered, value
from harness.kafka_topics import Message, Topics
from harness.dead_letters import DeadLetters
from harness.pipelines import Seen, pipeline

Start = Callable[..., Seen]
PARTITIONS = 4
ONE_IN = 100
SEED = 1
# The most that may be late in a test whose machine does other things as well.
GENEROUS_SECONDS = 20
RUBBISH = (
    b'{"id":"x"}', b'{"id":-1}', b'{"id":1', b"\xff\x00\xfe", b'{"id":[]}', b"null", b'"', b"{]}",
    b'{"id":1}\n{"id":"second of two"}', b'[{"id":1},', b'{"text":{"a":1}',
)  # fmt: skip


def is_bad(number: int) -> bool:
    return number % ONE_IN == ONE_IN // 2


def some_rubbish(number: int) -> bytes:
    """Good ones, and by seed one of the bad ones in so many."""
    return random.Random(SEED * 1_000_003 + number).choice(RUBBISH) if is_bad(number) else value(number)


def places(letters: list[dict]) -> set[tuple[str, int, int]]:
    return {(letter["topic"], letter["partition"], letter["offset"]) for letter in letters}


def test_one_percent_of_rubbish(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    topics.create(topic_name, PARTITIONS)
    target = Target(direct)
    settings = pipeline(broker, target.full_name, topic_name, max_latency=f"{GENEROUS_SECONDS}s", flush_interval="200ms")
    seen = start_pipelines(settings)
    seen.owns(PARTITIONS)
    with KafkaLoad(topics, topic_name, PARTITIONS, 2_000, some_rubbish) as load:
        eventually(lambda: load.sent >= 10_000, "the load is sent", 60)
        sent = load.stop()
    bad = [number for number in range(sent) if is_bad(number)]
    target.wait(sent - len(bad))
    target.check([number for number in range(sent) if not is_bad(number)])
    letters = DeadLetters(seen.gateway, direct.database).come(len(bad))
    # Rows and letters are there before they are counted.
    eventually(lambda: seen.metric("lag_messages") == 0, "the gateway knows that nothing is left", 60)
    # Message n stands in partition n modulo their number, and all of them hold messages one after the other.
    assert places(letters) == {(topic_name, number % PARTITIONS, number // PARTITIONS) for number in bad}
    assert all(letter["error"] for letter in letters)
    metrics = seen.metrics()
    assert metrics.sum("windrow_kafka_dead_letters_total") == len(bad)
    assert metrics.sum("windrow_kafka_latency_missed_total") == 0
    # Of every message's age when it was stored; the good ones are all counted.
    assert metrics.sum("windrow_kafka_latency_seconds_count", stage="total") >= sent - len(bad)
    assert metrics.above("windrow_kafka_latency_seconds", GENEROUS_SECONDS, stage="total") == 0


def test_a_letter_has_the_message(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """As it was, with its place; also on the command line and in SQL."""
    topics.create(topic_name, 2)
    bad = Message(b'{"id":"x\n\xff"}', b"the key", 1, 1_600_000_000_123, (("a", b"1"), ("none", None)))
    topics.send(topic_name, [*numbered(0, 10, 2), bad])
    target = Target(direct)
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name))
    target.wait(10)
    letters = DeadLetters(seen.gateway, direct.database)
    [letter] = letters.come(1)
    assert places([letter]) == {(topic_name, 1, 5)}
    assert letter["table"] == "events" and "id" in letter["error"]
    assert letters.payload(letter) == bad.value
    listed = letters.command("list")
    assert listed.code == 0 and topic_name in listed.out and "5" in listed.out
    shown = letters.command("show", str(letter["id"]))
    assert shown.code == 0 and "the key" in shown.out and topic_name in shown.out
    asked = seen.gateway.http.as_user(direct.user, direct.password)
    query = "SELECT topic, partition, offset FROM system.windrow_dead_letters FORMAT TSV"
    assert asked.sql(query) == f"{topic_name}\t1\t5"


def test_retry_when_the_table_is_mended(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """With its own columns: where the message came from is stored as if it had come now. A retry of what is still bad fails again."""
    topics.create(topic_name, 2)
    direct.sql(
        "CREATE TABLE events (id UInt16, word UInt8, _partition Int32, _offset Int64, _key String) ENGINE = MergeTree ORDER BY id "
        "SETTINGS non_replicated_deduplication_window = 1000"
    )
    texts = [b'{"id":1,"word":1}', b'{"id":2}', b'{"id":3,"word":"abc"}', b'{"id":4,"word":"abc"']
    topics.send(topic_name, [Message(text, b"k", 0) for text in texts])
    seen = start_pipelines(pipeline(broker, f"{direct.database}.events", topic_name))
    letters = DeadLetters(seen.gateway, direct.database)
    assert places(letters.come(2)) == {(topic_name, 0, 2), (topic_name, 0, 3)}
    assert "word" in letters.all()[0]["error"]
    direct.sql("ALTER TABLE events MODIFY COLUMN word String")
    rows = lambda: direct.sql("SELECT id, word, _offset, _key FROM events ORDER BY id FORMAT TSV").splitlines()
    eventually(lambda: letters.retry() and len(letters.all()) == 1, "one of them is stored", 60)
    eventually(lambda: len(rows()) == 3, "its row is there", 60)
    assert places(letters.all()) == {(topic_name, 0, 3)}
    assert rows() == ["1\t1\t0\tk", "2\t0\t1\tk", "3\tabc\t2\tk"]
    letters.discard()
    assert letters.all() == []


def test_retry_when_the_mapping_is_mended(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    topics.create(topic_name, 1)
    topics.send(topic_name, [Message(b'{"id":{"n":%d},"text":"w%d"}' % (n, n), partition=0) for n in range(20)])
    target = Target(direct)
    settings = pipeline(broker, target.full_name, topic_name)
    seen = start_pipelines(settings)
    letters = DeadLetters(seen.gateway, direct.database)
    assert places(letters.come(20)) == {(topic_name, 0, n) for n in range(20)}
    assert target.count() == 0
    assert seen.gateway.stop() == 0
    seen.change('format = "JSONEachRow"\n', 'format = "JSONEachRow"\ncolumns = { id = "id.n" }\n')
    seen.gateway.start()
    # The pipeline has to know its table first.
    eventually(lambda: letters.retry() and letters.all() == [], "all are read again", 60)
    target.wait(20)
    assert target.ids() == list(range(20))


def test_what_the_table_refuses(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """Rows that can be read and violate a constraint: among thousands, each message of its own is found and no other suffers."""
    topics.create(topic_name, PARTITIONS)
    sent = 20_000
    topics.send(topic_name, numbered(0, sent, PARTITIONS))
    target = Target(direct, more=f", CONSTRAINT sound CHECK id % {ONE_IN} != {ONE_IN // 2}")
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name))
    bad = [number for number in range(sent) if is_bad(number)]
    target.wait(sent - len(bad))
    target.check([number for number in range(sent) if not is_bad(number)])
    letters = DeadLetters(seen.gateway, direct.database)
    found = letters.come(len(bad))
    assert places(found) == {(topic_name, number % PARTITIONS, number // PARTITIONS) for number in bad}
    assert all("sound" in letter["error"] for letter in found)
    direct.sql("ALTER TABLE events DROP CONSTRAINT sound")
    # A letter is not retried before the group is past it.
    ends = topics.ends(topic_name)
    offsets = lambda: {partition: found.offset for partition, found in topics.committed(topic_name, topic_name).items()}
    eventually(lambda: offsets() == ends, "all is committed", 60)
    assert letters.retry()["retried"] == len(bad)
    target.wait(sent)
    # Not in their partition's order, since they came later.
    assert target.ids() == list(range(sent))
    eventually(lambda: letters.all() == [], "no letter is left")


def test_a_message_of_many_rows_is_refused_whole(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    topics.create(topic_name, 1)
    rows = lambda *ids: b"".join(b'{"id":%s,"text":"w%s"}\n' % (id, id) for id in ids)
    topics.send(topic_name, [Message(each, partition=0) for each in (rows(b"1", b"2"), rows(b"3", b'"x"', b"4"), rows(b"5", b"777"), rows(b"6"))])
    target = Target(direct, more=", CONSTRAINT sound CHECK id != 777")
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name))
    target.wait(3)
    found = DeadLetters(seen.gateway, direct.database).come(2)
    assert places(found) == {(topic_name, 0, 1), (topic_name, 0, 2)}
    target.check([1, 2, 6])


@pytest.mark.parametrize("kind", ["text", "constraint"])
def test_skip_counts(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start, kind: str
) -> None:
    topics.create(topic_name, 1)
    messages = numbered(0, 100, 1)
    more = ", CONSTRAINT sound CHECK id % 10 != 3" if kind == "constraint" else ""
    if kind == "text":
        messages = [Message(b"{", partition=0) if at % 10 == 3 else each for at, each in enumerate(messages)]
    topics.send(topic_name, messages)
    target = Target(direct, more=more)
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name, on_error="skip"))
    target.wait(90)
    target.check([number for number in range(100) if number % 10 != 3])
    eventually(lambda: seen.metric("skipped_total") == 10, "they are counted")
    assert DeadLetters(seen.gateway, direct.database).all() == []


@pytest.mark.parametrize("kind", ["text", "constraint"])
def test_stop_stands_before_the_message(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start, kind: str
) -> None:
    """What came before is stored and committed; the message is named; mended, it goes on."""
    topics.create(topic_name, 1)
    messages = numbered(0, 100, 1)
    more = ", CONSTRAINT sound CHECK id != 50" if kind == "constraint" else ""
    if kind == "text":
        messages[50] = Message(b"{", partition=0)
    topics.send(topic_name, messages)
    target = Target(direct, more=more)
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name, on_error="stop"))
    row = seen.row(lambda row: row["state"] == "stopped", "the pipeline has stopped")
    assert f"{topic_name}:0:50" in row["last_error"] or all(word in row["last_error"] for word in (topic_name, "50"))
    target.wait(50)
    target.check(range(50))
    eventually(lambda: topics.committed(topic_name, topic_name)[0].offset == 50, "what came before is committed", 60)
    assert seen.gateway.ready().status == 200
    # The operator's way out.
    assert seen.gateway.stop() == 0
    seen.change('on_error = "stop"', 'on_error = "skip"')
    seen.gateway.start()
    target.wait(99)
    target.check([number for number in range(100) if number != 50])


def test_nothing_but_rubbish(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """Offsets are committed behind it, although no row is stored."""
    topics.create(topic_name, 1)
    topics.send(topic_name, [Message(random.Random(n).choice(RUBBISH), partition=0) for n in range(500)])
    target = Target(direct)
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name))
    letters = DeadLetters(seen.gateway, direct.database)
    assert len(places(letters.come(500))) == 500
    eventually(lambda: topics.committed(topic_name, topic_name)[0].offset == 500, "it is passed", 60)
    assert seen.gateway.stop() == 0
    seen.gateway.start()
    topics.send(topic_name, numbered(0, 10, 1))
    target.wait(10)
    assert len(letters.all()) == 500 and target.count() == 10


def test_errors_of_the_table_are_nobodys_letters(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """A table that is gone for a while: nothing is refused, everything waits."""
    topics.create(topic_name, 1)
    target = Target(direct)
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name))
    topics.send(topic_name, numbered(0, 10, 1))
    target.wait(10)
    direct.sql("RENAME TABLE events TO away")
    topics.send(topic_name, numbered(10, 20, 1))
    seen.row(lambda row: "events" in row["last_error"], "the missing table is said")
    direct.sql("RENAME TABLE away TO events")
    target.wait(20)
    target.check(range(20))
    assert DeadLetters(seen.gateway, direct.database).all() == []


def test_rubbish_on_the_way_into_duckdb(
    broker: Broker, topics: Topics, topic_name: str, start_duckdb: Start
) -> None:
    topics.create(topic_name, PARTITIONS)
    sent = 2_000
    messages = [Message(some_rubbish(n), partition=n % PARTITIONS) for n in range(sent)]
    seen = start_duckdb(pipeline(broker, "events", topic_name))
    target = DuckDbTarget(seen.gateway.direct, more=", CHECK (id % 100 != 7)")
    topics.send(topic_name, messages)
    bad = [number for number in range(sent) if is_bad(number) or number % 100 == 7]
    found = DeadLetters(seen.gateway, "default").come(len(bad))
    assert places(found) == {(topic_name, number % PARTITIONS, number // PARTITIONS) for number in bad}
    target.wait(sent - len(bad))
    target.check([number for number in range(sent) if number not in set(bad)])
