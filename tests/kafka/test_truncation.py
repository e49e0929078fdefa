"""A broker without a topic's last messages becomes its leader: others get their offsets, and are stored too."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import NewTopic

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gate import Gate
from harness.kafka import Broker
from harness.kafka_cluster import joining, leaders, partitions_of
from harness.kafka_numbers import Target, value
from harness.kafka_topics import Message, Topics
from harness.pipelines import Seen, pipeline

Start = Callable[..., Seen]
# What Kafka keeps for itself is on all three.
THREE_TIMES = {"offsets.topic.replication.factor": 3, "transaction.state.log.replication.factor": 3}
KEPT, READ, NEW = range(50), range(100), range(1_000, 1_080)
TOPICS = ("running", "stopped", "killed")


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[list[Broker]]:
    """The first one is the controller, and has no partition of the tests' topics: it stays when the others die."""
    brokers = [Broker(tmp_path / "first", settings=THREE_TIMES)]
    try:
        brokers += [joining(tmp_path / f"broker-{number}", brokers[0], number, THREE_TIMES) for number in (2, 3)]
        yield brokers
    finally:
        for broker in reversed(brokers):
            broker.stop()


@pytest.fixture
def topics(cluster: list[Broker]) -> Topics:
    """Each topic is led by the second broker, and the third follows it; who is not in sync may lead it, too."""
    topics = Topics(cluster[0])
    eventually(lambda: len(topics.admin.list_topics(timeout=30).brokers) == 3, "all brokers are there", 60)
    config = {"unclean.leader.election.enable": "true", "min.insync.replicas": "1"}
    new = [NewTopic(name, 1, replica_assignment=[[2, 3]], config=config) for name in TOPICS]
    for made in topics.admin.create_topics(new).values():
        made.result(30)
    for name in TOPICS:
        await_replicas(topics, name, {2, 3})
    return topics


def await_replicas(topics: Topics, name: str, in_sync: set[int]) -> None:
    def are_in_sync() -> bool:
        try:
            partitions = partitions_of(topics.admin, name, 10)
        except KafkaException:
            # It may have asked a broker that is gone.
            return False
        return all(set(partition.isrs) == in_sync for partition in partitions)

    eventually(are_in_sync, f"{in_sync} have all of {name}", 60)


def send(topics: Topics, ids: range) -> None:
    for name in TOPICS:
        messages = [Message(value(n), partition=0) for n in ids]
        topics.send(name, messages, acks=1)


def test_messages_with_the_offsets_of_lost_ones_are_stored(
    direct: Endpoint, cluster: list[Broker], topics: Topics, start_pipelines: Start
) -> None:
    first, second, third = cluster
    targets = {name: Target(direct, name) for name in TOPICS}
    seen = {
        # It stays in its group for as long as it hangs.
        name: start_pipelines(pipeline(first, targets[name].full_name, name, session_timeout="60s" if name == "running" else "4s"))
        for name in TOPICS
    }
    send(topics, KEPT)
    for target in targets.values():
        target.wait(len(KEPT))
    third.kill()
    for name in TOPICS:
        await_replicas(topics, name, {2})
    assert seen["killed"].gateway.stop() == 0
    send(topics, READ[len(KEPT) :])
    with Gate() as gate:
        gate.stand_behind(direct, "killed", "id")
        # It finds them all at once: one batch, which is recorded, and nobody hears that it is stored.
        seen["killed"].gateway.start()
        gate.await_insert()
        seen["killed"].gateway.kill()
        gate.open()
        targets["killed"].wait(len(READ))
        for name in ("running", "stopped"):
            targets[name].wait(len(READ))
            seen[name].row(lambda row: row["committed_offset"] == len(READ), "all of it is committed")
        assert seen["stopped"].gateway.stop() == 0
        seen["running"].gateway.child.signal(signal.SIGSTOP)
        try:
            second.kill()
            third.start()
            for name in TOPICS:
                eventually(lambda: leaders(topics.admin, name) == {3}, "the third leads, with what it has", 60)
            # The last of them get offsets that nobody had.
            send(topics, NEW)
            assert topics.ends("running") == {0: len(KEPT) + len(NEW)}
        finally:
            seen["running"].gateway.child.signal(signal.SIGCONT)
        for name in ("stopped", "killed"):
            seen[name].gateway.start()
        for name in TOPICS:
            said = seen[name].row(lambda row: row["committed_offset"] == len(KEPT) + len(NEW), f"{name} comes to the end")
            assert targets[name].ids() == [*READ, *NEW], name
            lost = len(READ) - len(KEPT)
            assert (said["truncated_offsets"], seen[name].metric("truncated_offsets_total")) == (lost, lost), name
            assert f"{name}:0: Kafka has lost {lost} offsets that were read already, {len(KEPT)} to {len(READ) - 1}" in said["last_error"]
            assert seen[name].logged(f"{name}:0: Kafka has lost")
        assert seen["killed"].metric("replays_total") == 1
        gone = seen["killed"].wait_logged("messages of a recorded batch are no longer in the log")
        assert (gone["first"], gone["last"]) == (len(KEPT), len(READ) - 1)
