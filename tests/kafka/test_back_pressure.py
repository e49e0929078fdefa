"""A pipeline whose backend is away or slow holds a bounded part of its topic, and goes on when it is back."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.kafka import Broker
from harness.kafka_load import KafkaLoad
from harness.kafka_numbers import Target, value
from harness.kafka_topics import Message, Topics
from harness.pipelines import Seen, pipeline
from harness.process import resident_bytes
from harness.relay import Fault, Relay

Start = Callable[..., Seen]
PARTITIONS = 4
# A topic much larger than what may be held of it.
MESSAGES, TEXT_BYTES = 40_000, 2_000
HELD_BYTES = 16 << 20
SEED = 1


@pytest.fixture
def relay(direct: Endpoint) -> Iterator[Relay]:
    with Relay(direct.port, SEED) as started:
        yield started
        started.behave()


def large(number: int) -> Message:
    text = b'{"id":%d,"text":"w%d","more":"%s"}' % (number, number, b"x" * TEXT_BYTES)
    return Message(text, partition=number % PARTITIONS)


def test_what_is_held_is_bounded(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start, relay: Relay
) -> None:
    topics.create(topic_name, PARTITIONS)
    target = Target(direct, more=", more String")
    settings = pipeline(broker, target.full_name, topic_name, max_memory=HELD_BYTES, max_batch_bytes="4MiB")
    seen = start_pipelines(settings, through=relay.address)
    topics.send(topic_name, [large(number) for number in range(100)])
    target.wait(100)
    # And the gateway knows it: a batch whose answer is lost would be left with the others.
    eventually(lambda: sum(row["committed_offset"] or 0 for row in seen.rows()) == 100, "they are committed", 60)
    before = resident_bytes(seen.gateway.child.pid)
    relay.go_away()
    topics.send(topic_name, (large(number) for number in range(100, MESSAGES)))
    eventually(lambda: seen.metric("paused") > 0, "partitions are paused", 60)
    eventually(lambda: seen.metric("lag_messages") == MESSAGES - 100, "what is left is counted", 60)
    held = seen.metric("held_bytes")
    # Who has room fetches once more, so that one fetch may come on top.
    assert HELD_BYTES / 4 < held < 2 * HELD_BYTES, f"{held / (1 << 20):.1f} MiB are held"
    grown = resident_bytes(seen.gateway.child.pid) - before
    # The allocator's and the connections' come on top.
    assert grown < 6 * HELD_BYTES, f"grown by {grown >> 20} MiB; the topic has {MESSAGES * TEXT_BYTES >> 20} MiB"
    assert seen.gateway.ready().status == 200
    relay.behave()
    target.wait(MESSAGES)
    target.check(range(MESSAGES))
    seen.row(lambda row: (row["state"], row["lag_messages"]) == ("running", 0), "it runs again")


def test_a_backend_that_breaks_off(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start, relay: Relay
) -> None:
    """Requests that end in the middle, answers that are lost: each row once all the same."""
    topics.create(topic_name, PARTITIONS)
    target = Target(direct)
    settings = pipeline(broker, target.full_name, topic_name, max_batch_rows=500)
    seen = start_pipelines(settings, through=relay.address)
    seen.owns(PARTITIONS)
    relay.misbehave({Fault.BROKEN_REQUEST: 0.1, Fault.LOST_ANSWER: 0.2, Fault.HALF_ANSWER: 0.1})
    with KafkaLoad(topics, topic_name, PARTITIONS, 5_000, value) as load:
        # How many batches that takes is chance.
        eventually(lambda: relay.done[Fault.LOST_ANSWER] >= 3, "answers were lost", 60)
        sent = load.stop()
    relay.behave()
    target.wait(sent)
    target.check(range(sent))
