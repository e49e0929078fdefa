"""Gateways of one group come and go under load: partitions move, nothing is lost, repeated or disordered."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.inserts import ids, make_table
from harness.kafka import Broker
from harness.kafka_load import KafkaLoad
from harness.kafka_numbers import WINDOW, Target, value
from harness.kafka_topics import Topics
from harness.pipelines import Seen, pipeline, pipelines_toml
from harness.several_gateways import TokenLoad, member, names

Start = Callable[..., Seen]
PARTITIONS = 6


def share(gateways: list[Seen], *numbers: int) -> None:
    """Waits until they have so many partitions, in some order, and every partition is somebody's."""

    def shared() -> bool:
        found = [seen.partitions() for seen in gateways]
        everything = sorted(partition for each in found for _, partition in each)
        return sorted(map(len, found)) == sorted(numbers) and everything == list(range(PARTITIONS))

    eventually(shared, f"partitions are shared as {numbers}", 60)


def more(target: Target, rows: int = 500) -> None:
    target.wait(target.count() + rows)


def test_three_gateways(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    topics.create(topic_name, PARTITIONS)
    target = Target(direct)
    settings = pipeline(broker, target.full_name, topic_name)
    with KafkaLoad(topics, topic_name, PARTITIONS, 3_000, value) as load:
        one = start_pipelines(settings)
        share([one], PARTITIONS)
        more(target)
        two = start_pipelines(settings)
        share([one, two], 3, 3)
        more(target)
        three = start_pipelines(settings)
        share([one, two, three], 2, 2, 2)
        more(target)
        # One leaves in good order, one without a word.
        assert two.gateway.stop() == 0
        share([one, three], 3, 3)
        more(target)
        three.gateway.kill()
        share([one], PARTITIONS)
        more(target)
        two.gateway.start()
        share([one, two], 3, 3)
        more(target)
        sent = load.stop()
    target.wait(sent)
    target.check(range(sent))
    assert one.metric("rebalances_total") >= 5
    # Of what was given up in good order nothing is repeated; of what the killed one had, at most a batch of each partition.
    assert one.metric("replays_total") + two.metric("replays_total") <= PARTITIONS


def test_gateways_that_know_each_other_share_partitions_and_inserts(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, tmp_path: Path
) -> None:
    """What comes from the topic has no owner among the gateways; what clients insert has one, and is repeated anywhere."""
    topics.create(topic_name, PARTITIONS)
    make_table(direct, settings=f"SETTINGS {WINDOW}")
    target = Target(direct)
    addresses, settings = names(2), pipelines_toml(pipeline(broker, target.full_name, topic_name))
    one, other = (Seen(member(tmp_path / f"gateway-{at}", addresses, own, direct, config=settings)) for at, own in enumerate(addresses))
    inserting = TokenLoad([one.gateway, other.gateway], async_insert=1)
    with KafkaLoad(topics, topic_name, PARTITIONS, 3_000, value) as load, inserting:
        share([one, other], 3, 3)
        more(target)
        eventually(inserting.acknowledged_more(200), "clients insert at both")
        other.gateway.kill()
        share([one], PARTITIONS)
        more(target)
        other.gateway.start()
        share([one, other], 3, 3)
        more(target)
        eventually(inserting.acknowledged_more(200), "clients insert at both again")
        sent = load.stop()
    target.wait(sent)
    target.check(range(sent))
    assert ids(direct) == sorted(inserting.acknowledged)
    assert one.gateway.counted("windrow_cluster_hops_total") > 0
    assert [seen.gateway.stop() for seen in (one, other)] == [0, 0]


def test_partitions_that_stay_are_read_on(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """Cooperative: who keeps a partition through a rebalance does not fetch it anew. Seen by what it was asked to give up."""
    topics.create(topic_name, PARTITIONS)
    target = Target(direct)
    settings = pipeline(broker, target.full_name, topic_name, session_timeout="30s")
    one = start_pipelines(settings)
    share([one], PARTITIONS)
    before = {partition for _, partition in one.partitions()}
    two = start_pipelines(settings)
    share([one, two], 3, 3)
    kept, given = {partition for _, partition in one.partitions()}, {partition for _, partition in two.partitions()}
    assert kept < before and given == before - kept
    three = start_pipelines(settings)
    share([one, two, three], 2, 2, 2)
    # Nothing went round between those that had it already.
    assert {partition for _, partition in one.partitions()} < kept
    assert {partition for _, partition in two.partitions()} < given


def test_more_gateways_than_partitions(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    topics.create(topic_name, 1)
    target = Target(direct)
    settings = pipeline(broker, target.full_name, topic_name)
    pair = [start_pipelines(settings), start_pipelines(settings)]
    with KafkaLoad(topics, topic_name, 1, 500, value) as load:
        target.wait(200)
        counts = eventually(
            lambda: found if sorted(found := [len(seen.partitions()) for seen in pair]) == [0, 1] else [], "one has it", 60
        )
        # The one that has it goes; the other takes over.
        owner, idle = pair[counts.index(1)], pair[counts.index(0)]
        assert owner.gateway.stop() == 0
        idle.owns(1)
        more(target, 200)
        sent = load.stop()
    target.wait(sent)
    target.check(range(sent))


def test_several_consumers_in_one_gateway(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    topics.create(topic_name, PARTITIONS)
    target = Target(direct)
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name, consumers=3))
    with KafkaLoad(topics, topic_name, PARTITIONS, 2_000, value) as load:
        more(target)
        seen.owns(PARTITIONS)
        more(target)
        sent = load.stop()
    target.wait(sent)
    target.check(range(sent))
