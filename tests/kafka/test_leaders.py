"""A consumer on a cluster of two brokers, of which the one dies that leads its partitions and keeps its group."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

from harness.eventually import eventually
from harness.kafka import Broker
from harness.kafka_cluster import joining, leaders
from harness.kafka_load import KafkaLoad
from harness.kafka_member import Member, await_shares, delivered
from harness.kafka_topics import Topics

TWICE = {"offsets.topic.replication.factor": 2, "transaction.state.log.replication.factor": 2}
# Who comes back leads again what it led, at once.
SOON = {"leader.imbalance.check.interval.seconds": 1, "leader.imbalance.per.broker.percentage": 0}


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[tuple[Broker, Broker]]:
    """The first one is the controller, too."""
    first = Broker(tmp_path / "first", settings={**TWICE, **SOON})
    second = None
    try:
        second = joining(tmp_path / "second", first, 2, TWICE)
        yield first, second
    finally:
        if second:
            second.stop()
        first.stop()


def test_leaders_and_the_coordinator_move(cluster: tuple[Broker, Broker], tmp_path: Path) -> None:
    first, second = cluster
    topics = Topics(first, **{"bootstrap.servers": f"{first.address},{second.address}"})
    eventually(lambda: len(topics.admin.list_topics(timeout=30).brokers) == 2, "both brokers are there")
    topics.admin.create_topics([NewTopic("moving", 4, 2)])["moving"].result(30)
    eventually(lambda: leaders(topics.admin, "moving") == {1, 2}, "each of them leads some")
    # Four groups, so that either broker keeps some.
    addresses, names = f"{first.address},{second.address}", [f"group-{n}" for n in range(4)]
    groups = {name: Member(tmp_path, addresses, name, "moving", session_ms=30_000) for name in names}
    try:
        # All four commit behind each message, and wait for it.
        with KafkaLoad(topics, "moving", 4, 40, lambda n: f"{n}".encode(), acks="all") as load:
            for member in groups.values():
                await_shares([member], 4)
            for harm, leading in ((second.kill, {1}), (second.start, {1, 2})):
                before = {name: len(member.all("committed")) for name, member in groups.items()}
                harm()
                eventually(lambda: leaders(topics.admin, "moving") == leading, "there are leaders", 60)
                for name, member in groups.items():
                    eventually(lambda: len(member.all("committed")) > before[name] + 20, f"{name} goes on", 60)
        for name, member in groups.items():
            eventually(lambda: sum(delivered([member]).values()) >= load.sent, f"{name} has read all", 60)
            assert delivered([member]) == Counter(f"{n}" for n in range(load.sent)), name
            assert not member.all("lost"), name
    finally:
        for member in groups.values():
            member.kill()
