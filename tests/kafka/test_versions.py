"""The essentials on earlier versions of Kafka: what other files try on the newest one, and a log that a crash has cut."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import NewTopic

# Tests of the newest version, and their fixtures: here they get another broker.
from kafka.test_group import (
    join,
    test_a_member_is_killed,
    test_metadata_comes_back,
    test_what_is_revoked_belongs_to_nobody_else_before_it_is_given_up,
)
from kafka.test_replay import gate, target, test_by_another_gateway
from kafka.test_wire_client import test_records_of_every_compression, test_the_newest_records

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.kafka import Broker
from harness.kafka_numbers import Target, numbered
from harness.kafka_topics import Topics
from harness.kafka_versions import VERSIONS, broker_of, second_of
from harness.pipelines import Seen, pipeline

TOPIC, KEPT, READ, NEW = "cut", range(50), range(100), range(1_000, 1_080)


@pytest.fixture(scope="module", params=VERSIONS)
def broker(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    started = broker_of(request.param, tmp_path_factory.mktemp("broker"))
    yield started
    started.stop()


@pytest.fixture(params=VERSIONS)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Broker, Broker]]:
    """The first one is the controller, so that there is one when the other is killed."""
    first = broker_of(request.param, tmp_path / "first")
    try:
        second = second_of(first, tmp_path / "second")
        yield first, second
        second.stop()
    finally:
        first.stop()


def test_a_log_that_a_crash_has_cut(
    direct: Endpoint, pair: tuple[Broker, Broker], start_pipelines: Callable[..., Seen]
) -> None:
    """Its broker comes back without the last messages, in another leader's epoch, and others get their offsets."""
    first, second = pair
    topics, target = Topics(first), Target(direct)
    eventually(lambda: len(topics.admin.list_topics(timeout=30).brokers) == 2, "both brokers are there", 60)
    topics.admin.create_topics([NewTopic(TOPIC, 1, replica_assignment=[[2]])])[TOPIC].result(30)
    eventually(lambda: topics.partitions(TOPIC) == [0], "the topic is led", 60)
    seen = start_pipelines(pipeline(first, target.full_name, TOPIC))
    topics.send(TOPIC, numbered(KEPT.start, KEPT.stop, 1))
    log = second.folder / "data" / f"{TOPIC}-0" / f"{0:020}.log"
    kept_bytes = log.stat().st_size
    topics.send(TOPIC, numbered(KEPT.stop, READ.stop, 1))
    seen.row(lambda row: row["committed_offset"] == len(READ), "all of it is committed")
    assert seen.gateway.stop() == 0
    second.kill()
    os.truncate(log, kept_bytes)
    second.start()
    topics.send(TOPIC, numbered(NEW.start, NEW.stop, 1))
    assert topics.ends(TOPIC) == {0: len(KEPT) + len(NEW)}
    seen.gateway.start()
    said = seen.row(lambda row: row["committed_offset"] == len(KEPT) + len(NEW), "it comes to the end")
    assert said["truncated_offsets"] == len(READ) - len(KEPT)
    assert target.ids() == [*READ, *NEW]
