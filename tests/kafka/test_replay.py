"""A batch that nobody knows the end of: whoever has its partitions next pushes it again under its id, and its rows are there once."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gate import Gate
from harness.kafka import Broker
from harness.kafka_numbers import Target, numbered
from harness.kafka_topics import Topics
from harness.pipelines import Seen, pipeline

Start = Callable[..., Seen]
PARTITIONS = 4


@pytest.fixture
def target(direct: Endpoint) -> Target:
    return Target(direct)


@pytest.fixture
def gate(direct: Endpoint, target: Target) -> Iterator[Gate]:
    """ClickHouse ends no insert into the target before it is opened."""
    with Gate() as shut:
        shut.stand_behind(direct, target.name, "id")
        yield shut


def records(topics: Topics, group: str) -> dict[int, str]:
    """The batches that stand beside the group's offsets, where one does."""
    found = {partition: found.metadata or "" for partition, found in topics.committed(group, group).items()}
    return {partition: text for partition, text in found.items() if text.startswith("windrow:")}


def recorded(topics: Topics, group: str) -> dict[int, str]:
    return eventually(lambda: records(topics, group), "a batch is written down")


def test_by_the_same_gateway(
    target: Target, gate: Gate, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    topics.create(topic_name, PARTITIONS)
    topics.send(topic_name, numbered(0, 100, PARTITIONS))
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name))
    gate.await_insert()
    # Before the attempt, beside the offsets of all its partitions, the same for each.
    written = recorded(topics, topic_name)
    assert len(written) >= 1 and len(set(written.values())) == 1
    seen.gateway.kill()
    topics.send(topic_name, numbered(100, 200, PARTITIONS))
    seen.gateway.start()
    # It begins while the first attempt still hangs.
    eventually(lambda: seen.metric("replays_total") == 1 or any(row["state"] == "replaying" for row in seen.rows()), "it is repeated", 60)
    gate.open()
    target.wait(200)
    eventually(lambda: not records(topics, topic_name), "what was written down is struck out", 60)
    target.check(range(200))
    assert seen.metric("replays_total") == 1


def test_by_another_gateway(
    target: Target, gate: Gate, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """Of the group's two, the one with the batch is killed; the other one has partitions of its own."""
    topics.create(topic_name, PARTITIONS)
    settings = pipeline(broker, target.full_name, topic_name)
    one, other = start_pipelines(settings), start_pipelines(settings)
    for each in (one, other):
        each.owns(PARTITIONS // 2)
    theirs = {partition for _, partition in one.partitions()}
    # One batch of the first, and none of the other.
    topics.send(topic_name, [message for message in numbered(0, 100, PARTITIONS) if message.partition in theirs])
    gate.await_insert()
    assert set(recorded(topics, topic_name)) <= theirs
    one.gateway.kill()
    other.owns(PARTITIONS)
    gate.open()
    topics.send(topic_name, [message for message in numbered(0, 100, PARTITIONS) if message.partition not in theirs])
    target.wait(100)
    eventually(lambda: not records(topics, topic_name), "what was written down is struck out", 60)
    target.check(range(100))
    assert other.metric("replays_total") == 1


def test_by_two_gateways_at_once(
    target: Target, gate: Gate, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """A batch of four partitions, which two gateways have now: each finds it beside its own partitions."""
    topics.create(topic_name, PARTITIONS)
    topics.send(topic_name, numbered(0, 100, PARTITIONS))
    settings = pipeline(broker, target.full_name, topic_name, fetch_min_bytes=1)
    first = start_pipelines(settings)
    gate.await_insert()
    recorded(topics, topic_name)
    first.gateway.kill()
    pair = [start_pipelines(settings), start_pipelines(settings)]
    for each in pair:
        each.owns(PARTITIONS // 2)
    gate.open()
    topics.send(topic_name, numbered(100, 200, PARTITIONS))
    target.wait(200)
    eventually(lambda: not records(topics, topic_name), "what was written down is struck out", 60)
    target.check(range(200))
    assert sum(each.metric("replays_total") for each in pair) >= 1


def test_messages_that_are_gone_meanwhile(
    target: Target, gate: Gate, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """What is left of the batch is pushed under its id, which ClickHouse knows already; the log names what is missing."""
    topics.create(topic_name, 1, retention_ms=-1)
    topics.send(topic_name, numbered(0, 100, 1))
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name))
    gate.await_insert()
    recorded(topics, topic_name)
    seen.gateway.kill()
    gate.open()
    target.wait(100)
    topics.forget_before(topic_name, 0, 50)
    seen.gateway.start()
    topics.send(topic_name, numbered(100, 200, 1))
    target.wait(200)
    target.check(range(200))
    assert topic_name in str(seen.wait_logged("49"))


def test_once_is_not_wanted(
    target: Target, gate: Gate, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """With `exactly_once = false` nothing is written down, and the messages come again, in a batch of another id."""
    topics.create(topic_name, 1)
    topics.send(topic_name, numbered(0, 100, 1))
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name, exactly_once=False))
    gate.await_insert()
    assert records(topics, topic_name) == {}
    seen.gateway.kill()
    gate.open()
    target.wait(100)
    seen.gateway.start()
    eventually(lambda: topics.committed(topic_name, topic_name)[0].offset == 100, "the offsets are committed", 60)
    assert set(target.ids()) == set(range(100)) and 100 <= target.count() <= 200
    assert {row["guarantee"] for row in seen.rows()} == {"at least once"}
    assert seen.metric("replays_total") == 0
