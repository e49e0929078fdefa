"""The broker that the other Kafka tests stand on: it takes and keeps what they give it, whatever is done to it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka import KafkaException

from harness.eventually import eventually
from harness.kafka import Broker
from harness.kafka_load import KafkaLoad
from harness.kafka_topics import COMPRESSIONS, Message, Topics

OLD_MS = 1_600_000_000_123
WAYS = [
    ("SSL", None),
    *((p, m) for p in ("SASL_PLAINTEXT", "SASL_SSL") for m in ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")),
]


def test_messages_are_what_was_sent(topics: Topics, topic_name: str) -> None:
    topics.create(topic_name, 2)
    sent = [
        Message(
            f"value {n}".encode() * 20,
            f"key {n}".encode(),
            n % 2,
            OLD_MS + n,
            (("a", b"1"), ("none", None), ("a", b"2")),
        )
        for n in range(100)
    ]
    sent += [Message(None, b"deleted", 0, OLD_MS), Message(b"", None, 1, OLD_MS)]
    for compression in COMPRESSIONS:
        topics.send(topic_name, sent, compression)
    for partition in (0, 1):
        expected = [message for message in sent if message.partition == partition] * len(COMPRESSIONS)
        assert topics.read(topic_name, partition) == expected
    assert topics.ends(topic_name) == {0: 51 * 5, 1: 51 * 5}


def test_transactions(topics: Topics, topic_name: str) -> None:
    topics.create(topic_name, 1)
    for word, commit in (("aborted", False), ("committed", True), ("aborted too", False)):
        topics.send_in_transaction(topic_name, [Message(word.encode(), partition=0)], topic_name, commit)
    seen = [message.value for message in topics.read(topic_name, 0)]
    everything = [message.value for message in topics.read(topic_name, 0, "read_uncommitted")]
    assert (seen, everything) == ([b"committed"], [b"aborted", b"committed", b"aborted too"])
    # Three messages and the marks that end three transactions.
    assert topics.ends(topic_name) == {0: 6}


def test_topics_grow_and_forget(topics: Topics, topic_name: str) -> None:
    topics.create(topic_name, 1, retention_ms=-1)
    topics.send(topic_name, [Message(str(n).encode(), partition=0, timestamp_ms=OLD_MS) for n in range(10)])
    topics.grow(topic_name, 3)
    topics.forget_before(topic_name, 0, 7)
    assert [message.value for message in topics.read(topic_name, 0)] == [b"7", b"8", b"9"]
    assert topics.ends(topic_name) == {0: 10, 1: 0, 2: 0}
    topics.drop(topic_name)
    assert topics.partitions(topic_name) == []


@pytest.mark.parametrize(("protocol", "mechanism"), WAYS)
def test_every_way_in(broker: Broker, topics: Topics, topic_name: str, protocol: str, mechanism: str | None) -> None:
    topics.create(topic_name, 1)
    Topics(broker, **broker.secured(protocol, mechanism)).send(topic_name, [Message(b"v", partition=0)])
    assert [message.value for message in topics.read(topic_name, 0)] == [b"v"]


def test_a_wrong_password_is_refused(broker: Broker) -> None:
    for mechanism in ("PLAIN", "SCRAM-SHA-256"):
        wrong = {**broker.secured("SASL_PLAINTEXT", mechanism), "sasl.password": "wrong"}
        with pytest.raises(KafkaException):
            Topics(broker, **wrong).admin.list_topics(timeout=1)


def test_stop_and_pause_keep_messages(start_broker: Callable[..., Broker], topic_name: str) -> None:
    broker = start_broker()
    topics = Topics(broker)
    topics.create(topic_name, 1)
    topics.send(topic_name, [Message(b"first", partition=0)])
    assert broker.stop() in (0, 143)
    broker.start()
    broker.pause()
    with pytest.raises(KafkaException):
        Topics(broker).admin.list_topics(timeout=0.5)
    broker.resume()
    topics.send(topic_name, [Message(b"second", partition=0)])
    assert [message.value for message in topics.read(topic_name, 0)] == [b"first", b"second"]


def test_a_load_is_in_the_topic_once_whatever_happens(start_broker: Callable[..., Broker], topic_name: str) -> None:
    broker = start_broker()
    topics = Topics(broker)
    topics.create(topic_name, 2)
    with KafkaLoad(topics, topic_name, 2, 2000, lambda number: b"%d" % number) as load:
        eventually(lambda: load.sent > 500, "the load has begun")
        broker.kill()
        broker.start()
        before = load.sent
        eventually(lambda: load.sent > before + 500, "the load goes on")
        sent = load.stop()
    for partition in (0, 1):
        values = [int(message.value or b"") for message in topics.read(topic_name, partition)]
        assert values == list(range(partition, sent, 2))
