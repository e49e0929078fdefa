"""Pipelines from a real broker into tables: where they begin, where they go on, and what they follow."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import datetime, timezone

import pytest

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.kafka import Broker
from harness.kafka_load import KafkaLoad
from harness.kafka_numbers import DuckDbTarget, Target, numbered, value
from harness.kafka_topics import COMPRESSIONS, Message, Topics
from harness.pipelines import Seen, pipeline

Start = Callable[..., Seen]
PARTITIONS = 4


def committed(topics: Topics, group: str, topic: str) -> dict[int, int]:
    return {partition: found.offset for partition, found in topics.committed(group, topic).items()}


def all_is_committed(topics: Topics, group: str, topic: str) -> None:
    """The group's offsets stand at the topic's ends."""
    ends = {partition: end for partition, end in topics.ends(topic).items() if end}
    eventually(lambda: ends.items() <= committed(topics, group, topic).items(), f"{group} has committed {ends}", 60)


def test_every_compression(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    topics.create(topic_name, PARTITIONS)
    each = 2_000
    for at, compression in enumerate(COMPRESSIONS):
        topics.send(topic_name, numbered(at * each, (at + 1) * each, PARTITIONS), compression)
    target = Target(direct)
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name))
    target.wait(each * len(COMPRESSIONS))
    all_is_committed(topics, topic_name, topic_name)
    target.check(range(each * len(COMPRESSIONS)))
    assert seen.metric("messages_total") == seen.metric("rows_total") == each * len(COMPRESSIONS)


def test_only_what_was_committed_is_there(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """Transactions: what was aborted makes no row, and the marks between messages are passed."""
    topics.create(topic_name, 1)
    for at in range(20):
        messages = numbered(at * 10, (at + 1) * 10, 1)
        topics.send_in_transaction(topic_name, messages, f"{topic_name}-{at % 3}", at % 4 == 0)
    target = Target(direct)
    start_pipelines(pipeline(broker, target.full_name, topic_name))
    wanted = [id for at in range(0, 20, 4) for id in range(at * 10, at * 10 + 10)]
    target.wait(len(wanted))
    all_is_committed(topics, topic_name, topic_name)
    target.check(wanted)


def test_latest_begins_at_the_end_and_goes_on_from_there(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    topics.create(topic_name, PARTITIONS)
    topics.send(topic_name, numbered(0, 100, PARTITIONS))
    target = Target(direct)
    first = start_pipelines(pipeline(broker, target.full_name, topic_name, start="latest"))
    ends = topics.ends(topic_name)
    eventually(lambda: committed(topics, topic_name, topic_name) == ends, "the beginning is committed", 60)
    # Stopped before its first message: what comes meanwhile is not skipped.
    assert first.gateway.stop() == 0
    topics.send(topic_name, numbered(100, 200, PARTITIONS))
    first.gateway.start()
    target.wait(100)
    topics.send(topic_name, numbered(200, 300, PARTITIONS))
    target.wait(200)
    target.check(range(100, 300))


def test_a_time_to_begin_at(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    topics.create(topic_name, PARTITIONS)
    begin = datetime.now(timezone.utc).replace(microsecond=0)
    begin_ms = int(begin.timestamp() * 1000)
    topics.send(topic_name, numbered(0, 100, PARTITIONS, begin_ms - 1))
    topics.send(topic_name, numbered(100, 200, PARTITIONS, begin_ms))
    target = Target(direct)
    start_pipelines(pipeline(broker, target.full_name, topic_name, start=begin.isoformat()))
    target.wait(100)
    all_is_committed(topics, topic_name, topic_name)
    target.check(range(100, 200))


def test_a_pattern_follows_topics_that_come(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    names = [f"{topic_name}.of-{n}" for n in range(3)]
    for at, name in enumerate(names[:2]):
        topics.create(name, 2)
        topics.send(name, numbered(at * 100, (at + 1) * 100, 2))
    # Anchored at both ends: neither of these is meant.
    for other in (f"{topic_name}.of-1.more", f"more.{topic_name}.of-1"):
        topics.create(other, 1)
        topics.send(other, numbered(900, 910, 1))
    target = Target(direct, more=", _topic LowCardinality(String)")
    pattern = topic_name.replace(".", r"\.") + r"\.of-[0-9]"
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name, topic_pattern=pattern))
    target.wait(200)
    topics.create(names[2], 2)
    topics.send(names[2], numbered(200, 300, 2))
    target.wait(300)
    assert sorted(target.ask("SELECT _topic, count(), min(id), max(id) FROM events GROUP BY _topic")) == [
        [name, 100, at * 100, at * 100 + 99] for at, name in enumerate(names)
    ]
    assert {topic for topic, _ in seen.partitions()} == set(names)


def test_partitions_that_come(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """With `latest` too they are read from their first message."""
    topics.create(topic_name, 1)
    target = Target(direct)
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name, start="latest"))
    seen.owns(1)
    eventually(lambda: committed(topics, topic_name, topic_name) == {0: 0}, "the beginning is committed", 60)
    topics.grow(topic_name, 3)
    topics.send(topic_name, numbered(0, 300, 3))
    target.wait(300)
    seen.owns(3)
    target.check(range(300))


def test_many_partitions_in_one_batch(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """What is written down beside all their offsets has to fit into one message of the broker's own topic."""
    partitions = 512
    topics.create(topic_name, partitions)
    topics.send(topic_name, numbered(0, partitions, partitions))
    target = Target(direct)
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name, max_latency="20s", flush_interval="10s"))
    target.wait(partitions, 240)
    all_is_committed(topics, topic_name, topic_name)
    target.check(range(partitions))
    # The tests that follow have a broker of few partitions again.
    assert seen.gateway.stop() == 0
    topics.drop(topic_name)


def test_a_restart_goes_on(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    topics.create(topic_name, PARTITIONS)
    target = Target(direct)
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name))
    with KafkaLoad(topics, topic_name, PARTITIONS, 2_000, value) as load:
        for _ in range(3):
            before = target.count()
            target.wait(before + 500)
            assert seen.gateway.stop() == 0
            # What was begun was ended: nothing is left to be repeated.
            beside = [found.metadata or "" for found in topics.committed(topic_name, topic_name).values()]
            assert not any(text.startswith("windrow:") for text in beside)
            stored = target.count()
            assert stored == sum(max(offset, 0) for offset in committed(topics, topic_name, topic_name).values())
            seen.gateway.start()
        sent = load.stop()
    target.wait(sent)
    all_is_committed(topics, topic_name, topic_name)
    target.check(range(sent))
    assert seen.metric("replays_total") == 0


def test_a_table_without_deduplication_is_at_least_once(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    topics.create(topic_name, 1)
    topics.send(topic_name, numbered(0, 10, 1))
    once, at_least = Target(direct, "once"), Target(direct, "at_least", settings="non_replicated_deduplication_window = 0")
    settings = [pipeline(broker, each.full_name, topic_name, name=each.name, group=f"{topic_name}-{each.name}") for each in (once, at_least)]
    seen = start_pipelines(*settings)
    for each in (once, at_least):
        each.wait(10)
        assert each.count() == 10
    found = {row["pipeline"]: row["guarantee"] for row in seen.rows()}
    assert found == {"once": "exactly once", "at_least": "at least once"}
    said = seen.wait_logged("at least once")
    assert "at_least" in str(said) and not any("'once'" in str(each) for each in seen.logged("at least once"))


def test_several_pipelines_of_one_gateway(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """One whose table is missing keeps no other back, and goes on when the table is there."""
    topics.create(topic_name, 2)
    topics.send(topic_name, numbered(0, 100, 2))
    target = Target(direct)
    seen = start_pipelines(
        pipeline(broker, f"{direct.database}.missing", topic_name, name="missing", group=f"{topic_name}-missing"),
        pipeline(broker, target.full_name, topic_name, name="there"),
    )
    target.wait(100)
    seen.row(lambda row: f"{direct.database}.missing" in row["last_error"], "the missing table is said", pipeline="missing")
    later = Target(direct, "missing")
    later.wait(100)
    for each in (target, later):
        each.check(range(100))


def test_a_column_that_gets_another_type_has_its_messages_read_anew(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """What was read for the type that it had is refused, not cast: the digits are in the message still."""
    topics.create(topic_name, 1)
    direct.sql(
        "CREATE TABLE events (id UInt64, v Decimal(18, 3), at DateTime('UTC')) ENGINE = MergeTree ORDER BY id "
        "SETTINGS non_replicated_deduplication_window = 1000"
    )
    start_pipelines(pipeline(broker, f"{direct.database}.events", topic_name))
    text = '{{"id":{},"v":3.141592,"at":"2024-03-04 05:06:07"}}'
    rows = lambda: direct.sql("SELECT * FROM events ORDER BY id").splitlines()
    topics.send(topic_name, [Message(text.format(1).encode(), partition=0)])
    eventually(lambda: len(rows()) == 1, "the first is stored", 60)
    direct.sql("ALTER TABLE events MODIFY COLUMN v Decimal(18, 6)")
    topics.send(topic_name, [Message(text.format(2).encode(), partition=0)])
    eventually(lambda: len(rows()) == 2, "the second is stored", 60)
    assert rows() == ["1\t3.141\t2024-03-04 05:06:07", "2\t3.141592\t2024-03-04 05:06:07"]


def test_tombstones_make_no_rows(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    topics.create(topic_name, 1)
    topics.send(topic_name, [Message(None, b"key", 0), *numbered(0, 1, 1), Message(b"", b"key", 0), Message(None, None, 0)])
    target = Target(direct)
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name))
    target.wait(1)
    # Also the last ones are passed, although no row follows them.
    all_is_committed(topics, topic_name, topic_name)
    assert target.ask("SELECT id, _offset FROM events") == [[0, 1]]
    assert (seen.metric("tombstones_total"), seen.metric("dead_letters_total")) == (3, 0)


def stopped_after_a_hundred(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> tuple[Seen, Target]:
    """A pipeline that has stored the first hundred messages of a topic, which has another hundred since."""
    topics.create(topic_name, 1, retention_ms=-1)
    topics.send(topic_name, numbered(0, 100, 1))
    target = Target(direct)
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name))
    target.wait(100)
    all_is_committed(topics, topic_name, topic_name)
    assert seen.gateway.stop() == 0
    topics.send(topic_name, numbered(100, 200, 1))
    return seen, target


def test_messages_that_are_gone(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """What retention took before it was read is said, and the rest is read."""
    seen, target = stopped_after_a_hundred(direct, broker, topics, topic_name, start_pipelines)
    topics.forget_before(topic_name, 0, 150)
    seen.gateway.start()
    target.wait(150)
    target.check([*range(100), *range(150, 200)])
    assert topic_name in str(seen.wait_logged("messages from offset 100 on had expired before they were read; reading goes on at 150"))


def test_all_that_was_not_read_is_gone(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """The group's offset moves on, though nothing comes behind: else it is told anew at each start."""
    seen, target = stopped_after_a_hundred(direct, broker, topics, topic_name, start_pipelines)
    topics.forget_before(topic_name, 0, 200)
    seen.gateway.start()
    seen.wait_logged("messages from offset 100 on had expired before they were read; reading goes on at 200")
    all_is_committed(topics, topic_name, topic_name)
    target.check(range(100))


def test_a_topic_that_was_made_anew(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """Its offsets begin again: the group's old ones are beyond its end, or mean other messages."""
    topics.create(topic_name, 1)
    topics.send(topic_name, numbered(0, 100, 1))
    target = Target(direct)
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name))
    target.wait(100)
    all_is_committed(topics, topic_name, topic_name)
    assert seen.gateway.stop() == 0
    topics.drop(topic_name)
    topics.create(topic_name, 1)
    topics.send(topic_name, numbered(100, 150, 1))
    seen.gateway.start()
    target.wait(150)
    assert target.ids() == list(range(150))


def test_an_offset_beyond_the_end(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """As that of a topic of the same name, on brokers that tell neither topics nor leaders' epochs: what is there was never read."""
    topics.create(topic_name, 1)
    topics.send(topic_name, numbered(0, 50, 1))
    topics.commit(topic_name, topic_name, 0, 100)
    target = Target(direct)
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name))
    target.wait(50)
    topics.send(topic_name, numbered(50, 60, 1))
    target.wait(60)
    all_is_committed(topics, topic_name, topic_name)
    eventually(lambda: committed(topics, topic_name, topic_name) == {0: 60}, "the offset is the topic's again", 60)
    target.check(range(60))
    assert seen.logged("the log ends at 50, before offset 100")


def test_a_topic_that_is_made_anew_while_it_is_read_from_its_end(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """The end was that of the first one."""
    topics.create(topic_name, 1)
    target = Target(direct)
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name, start="latest"))
    seen.row(lambda row: row["committed_offset"] == 0, "it stands at the end")
    topics.send(topic_name, numbered(0, 10, 1))
    target.wait(10)
    topics.drop(topic_name)
    topics.create(topic_name, 1)
    topics.send(topic_name, numbered(10, 30, 1))
    target.wait(30)
    assert target.ids() == list(range(30))


@pytest.mark.parametrize("exactly_once", [True, False])
def test_an_offset_that_is_committed_after_its_topic_was_made_anew(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start, exactly_once: bool
) -> None:
    """By a gateway that does not know it yet: the new topic is read from its beginning all the same."""
    topics.create(topic_name, 1)
    topics.send(topic_name, numbered(0, 20, 1))
    target = Target(direct)
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name, exactly_once=exactly_once))
    target.wait(20)
    all_is_committed(topics, topic_name, topic_name)
    assert seen.gateway.stop() == 0
    beside = topics.committed(topic_name, topic_name)[0].metadata
    topics.drop(topic_name)
    topics.create(topic_name, 1)
    topics.send(topic_name, numbered(20, 60, 1))
    topics.commit(topic_name, topic_name, 0, 20, beside)
    seen.gateway.start()
    target.wait(60)
    assert target.ids() == list(range(60))
    assert seen.logged("the committed offset is of a former topic of this name")


def test_duckdb(
    broker: Broker, topics: Topics, topic_name: str, start_duckdb: Start
) -> None:
    topics.create(topic_name, PARTITIONS)
    seen = start_duckdb(pipeline(broker, "events", topic_name))
    target = DuckDbTarget(seen.gateway.direct)
    with KafkaLoad(topics, topic_name, PARTITIONS, 2_000, value) as load:
        target.wait(1_000)
        assert seen.gateway.stop() == 0
        seen.gateway.start()
        target.direct = seen.gateway.direct
        target.wait(target.count() + 1_000)
        sent = load.stop()
    target.wait(sent)
    all_is_committed(topics, topic_name, topic_name)
    target.check(range(sent))
    assert {row["guarantee"] for row in seen.rows()} == {"exactly once"}


def test_timestamps_of_the_future_and_of_1970(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """A producer's clock may say anything; the rows are stored soon all the same."""
    topics.create(topic_name, 2, message_timestamp_after_max_ms=2**63 - 1)
    in_a_year = int(time.time() * 1000) + 365 * 86_400_000
    messages = [Message(value(n), partition=n % 2, timestamp_ms=moment) for n, moment in enumerate((0, in_a_year) * 50)]
    topics.send(topic_name, messages)
    target = Target(direct)
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name))
    target.wait(100)
    target.check(range(100))
    eventually(lambda: all(row["lag_messages"] == 0 for row in seen.rows()), "nothing is left", 60)
    assert all(row["oldest_unstored_seconds"] == 0 for row in seen.rows())
