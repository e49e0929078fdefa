"""How late a pipeline says it is: in /metrics, in system.windrow_kafka and in the log, in every case that looks like another."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gate import Gate
from harness.kafka import Broker
from harness.kafka_load import KafkaLoad
from harness.kafka_numbers import Target, numbered, value
from harness.kafka_topics import Topics
from harness.metrics import Metrics
from harness.paths import ROOT, TESTS
from harness.pipelines import Seen, pipeline
from harness.relay import Relay

Start = Callable[..., Seen]
PARTITIONS = 2
TEN_MINUTES_MS = 600_000
LATENCY, OLDEST, LAG = "windrow_kafka_latency_seconds", "windrow_kafka_oldest_unstored_seconds", "windrow_kafka_lag_messages"
RULES = ROOT / "examples" / "kafka-alerts.yml"
RULES_TEST = TESTS / "kafka" / "kafka-alerts.test.yml"


def now_ms() -> int:
    return int(time.time() * 1000)


@pytest.fixture
def relay(direct: Endpoint) -> Iterator[Relay]:
    """Between a gateway and the worker's ClickHouse."""
    with Relay(direct.port, seed=1) as started:
        yield started
        started.behave()


def by_partition(metrics: Metrics, name: str, **labels: object) -> dict[int, float]:
    return {int(sample.labels["partition"]): sample.value for sample in metrics.of(name, **labels)}


def at_rest(seen: Seen) -> None:
    """Nothing is left: both views say so."""
    eventually(
        lambda: (rows := seen.rows()) and all((row["lag_messages"], row["oldest_unstored_seconds"]) == (0, 0) for row in rows),
        "nothing is left",
        60,
    )
    metrics = seen.metrics()
    assert set(by_partition(metrics, LAG).values()) == set(by_partition(metrics, OLDEST).values()) == {0}


def warnings(seen: Seen, reason: str = "") -> list[dict]:
    """That max_latency was missed; it is said once in ten seconds. `reason`: only those that blame this."""
    return [each for each in seen.logged("max_latency") if each["level"] == "WARN" and reason in str(each.get("reason"))]


def test_messages_that_were_stamped_ten_minutes_ago(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """The whole is ten minutes, and it is said to be the time before the pipeline had them."""
    topics.create(topic_name, PARTITIONS)
    target = Target(direct)
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name))
    seen.owns(PARTITIONS)
    before_ms = now_ms()
    topics.send(topic_name, numbered(0, 100, PARTITIONS, before_ms - TEN_MINUTES_MS))
    target.wait(100)
    at_rest(seen)
    took = (now_ms() - before_ms) / 1000
    metrics = seen.metrics()
    for partition in range(PARTITIONS):
        mean = lambda stage: metrics.mean(LATENCY, topic=topic_name, partition=partition, stage=stage)
        assert 600 <= mean("total") <= 600 + took and 600 <= mean("kafka") <= 600 + took
        assert mean("gathering") <= took and mean("storing") <= took
        assert mean("kafka") + mean("gathering") + mean("storing") == pytest.approx(mean("total"), abs=0.1)
        assert metrics.sum(f"{LATENCY}_count", topic=topic_name, partition=partition, stage="total") == 50
    for row in seen.rows():
        assert row["latency_p50_seconds"] >= 300 and row["latency_p99_seconds"] >= row["latency_p50_seconds"]
        assert row["kafka_seconds"] >= 600 and row["gathering_seconds"] <= took and row["storing_seconds"] <= took
    # That is later than the pipeline may be, and nothing of it was its fault.
    assert metrics.sum("windrow_kafka_latency_missed_total") == metrics.sum("windrow_kafka_latency_missed_total", reason="consumer_behind") > 0
    missed = eventually(lambda: warnings(seen), "the log says it", 60)[-1]
    assert topic_name in str(missed) and "600" in str(missed)


def test_new_messages_are_not_late(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """Under a steady load; what it says of itself is never more than what a clock beside it saw."""
    topics.create(topic_name, PARTITIONS)
    target = Target(direct)
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name, max_latency="20s", flush_interval="200ms"))
    seen.owns(PARTITIONS)
    begin = time.monotonic()
    with KafkaLoad(topics, topic_name, PARTITIONS, 1_000, value) as load:
        eventually(lambda: load.sent >= 2_000, "the load is sent", 60)
        sent = load.stop()
    target.wait(sent)
    at_rest(seen)
    took = time.monotonic() - begin
    metrics = seen.metrics()
    assert metrics.sum(f"{LATENCY}_count", stage="total") == sent
    assert 0 < metrics.mean(LATENCY, stage="total") < took
    assert metrics.sum("windrow_kafka_latency_missed_total") == 0
    assert not warnings(seen)
    assert metrics.largest("windrow_kafka_max_latency_seconds") == 20
    target.check(range(sent))


def test_a_sink_that_hangs(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """The oldest message that is not stored ages, whether the pipeline has read it or not; both views and the log say so while it lasts."""
    topics.create(topic_name, PARTITIONS)
    target = Target(direct)
    with Gate() as gate:
        gate.stand_behind(direct, "events", "id")
        seen = start_pipelines(pipeline(broker, target.full_name, topic_name, max_latency="500ms"))
        seen.owns(PARTITIONS)
        sent_ms = now_ms()
        topics.send(topic_name, numbered(0, 100, PARTITIONS))
        gate.await_insert()
        # These are behind the ones that hang.
        topics.send(topic_name, numbered(100, 200, PARTITIONS))
        eventually(lambda: by_partition(seen.metrics(), LAG) == {0: 100, 1: 100}, "what is left is counted")
        first = by_partition(seen.metrics(), OLDEST)
        older = lambda: all(age > first[partition] + 0.5 for partition, age in by_partition(seen.metrics(), OLDEST).items())
        eventually(older, "they age")
        rows = seen.rows()
        assert max(row["oldest_unstored_seconds"] for row in rows) <= (now_ms() - sent_ms) / 1000
        assert min(row["oldest_unstored_seconds"] for row in rows) > min(first.values()) + 0.5
        assert [row["lag_messages"] for row in rows] == [100, 100]
        eventually(lambda: warnings(seen, "sink_slow"), "the log says it while it lasts", 60)
        gate.open()
        target.wait(200)
        at_rest(seen)
    metrics = seen.metrics()
    assert metrics.sum("windrow_kafka_latency_missed_total", reason="sink_slow") > 0
    # The gate held the first batch for longer than half a second, and that is no time of gathering.
    assert metrics.above(LATENCY, 0.5, stage="storing") >= 100
    target.check(range(200))


def test_a_sink_that_is_away(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start, relay: Relay
) -> None:
    topics.create(topic_name, PARTITIONS)
    target = Target(direct)
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name), through=relay.address)
    topics.send(topic_name, numbered(0, 100, PARTITIONS))
    target.wait(100)
    at_rest(seen)
    relay.go_away()
    sent_ms = now_ms()
    topics.send(topic_name, numbered(100, 200, PARTITIONS))
    eventually(lambda: by_partition(seen.metrics(), LAG) == {0: 50, 1: 50}, "what is left is counted", 60)
    older = lambda seconds: all(age > seconds for age in by_partition(seen.metrics(), OLDEST).values())
    eventually(lambda: older(0), "their age is seen")
    first = by_partition(seen.metrics(), OLDEST)
    eventually(lambda: older(max(first.values()) + 0.5), "they age")
    metrics = seen.metrics()
    assert max(by_partition(metrics, OLDEST).values()) <= (now_ms() - sent_ms) / 1000
    assert by_partition(metrics, LAG) == {0: 50, 1: 50}
    for told in seen.told():
        assert told["lag_messages"] == 50 and told["oldest_unstored_seconds"] > min(first.values())
    eventually(lambda: warnings(seen, "sink_slow"), "the log says it", 60)
    relay.behave()
    target.wait(200)
    at_rest(seen)
    assert seen.metric("latency_missed_total", reason="sink_slow") > 0
    target.check(range(200))


def test_an_idle_topic(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """Nothing is late where nothing is to be stored: in a topic that never had a message, and in one whose last one is years old."""
    never, old, busy = (f"{topic_name}.{name}" for name in ("never", "old", "busy"))
    for name in (never, old, busy):
        topics.create(name, PARTITIONS)
    topics.send(old, numbered(0, 10, PARTITIONS, 1_600_000_000_000))
    target = Target(direct)
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name, topics=[never, old, busy]))
    target.wait(10)
    seen.owns(3 * PARTITIONS)
    at_rest(seen)
    assert {row["state"] for row in seen.rows()} == {"running"}
    # And it stays so while others are busy.
    for at in range(1, 4):
        topics.send(busy, numbered(at * 10, at * 10 + 10, PARTITIONS))
        target.wait(at * 10 + 10)
        for name in (never, old):
            assert all((row["lag_messages"], row["oldest_unstored_seconds"]) == (0, 0) for row in seen.rows(topic=name))
    at_rest(seen)


def test_a_consumer_that_stopped(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """One of two instances is killed. What came into its partitions waited in Kafka until the other one had them, and that one says so."""
    topics.create(topic_name, PARTITIONS)
    target = Target(direct)
    settings = pipeline(broker, target.full_name, topic_name, session_timeout="6s")
    one, other = start_pipelines(settings), start_pipelines(settings)
    for each in (one, other):
        each.owns(1)
    [(_, orphaned)] = one.partitions()
    one.gateway.kill()
    killed_ms = now_ms()
    topics.send(topic_name, numbered(0, 100, PARTITIONS))
    other.owns(PARTITIONS)
    target.wait(100)
    at_rest(other)
    took = (now_ms() - killed_ms) / 1000
    metrics = other.metrics()
    late = metrics.mean(LATENCY, partition=orphaned, stage="total")
    # The broker notices a dead member after 6 s without a word from it; the last one was about two seconds before the kill, at most.
    assert 1 < metrics.mean(LATENCY, partition=orphaned, stage="kafka") <= late <= took
    assert metrics.mean(LATENCY, partition=orphaned, stage="gathering") < late
    missed = metrics.sum("windrow_kafka_latency_missed_total", reason="consumer_behind")
    assert missed > 0 and metrics.sum("windrow_kafka_rebalances_total") > 0
    row = next(row for row in other.rows() if row["partition"] == orphaned)
    assert row["kafka_seconds"] > 1
    target.check(range(100))


def test_a_gateway_that_was_away(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """What waited in Kafka meanwhile is old from the first moment, also before any of it is stored."""
    topics.create(topic_name, PARTITIONS)
    target = Target(direct)
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name))
    topics.send(topic_name, numbered(0, 10, PARTITIONS))
    target.wait(10)
    at_rest(seen)
    assert seen.gateway.stop() == 0
    topics.send(topic_name, numbered(10, 20, PARTITIONS, now_ms() - TEN_MINUTES_MS))
    with Gate() as gate:
        gate.stand_behind(direct, "events", "id")
        seen.gateway.start()
        eventually(lambda: by_partition(seen.metrics(), LAG) == {0: 5, 1: 5}, "what is left is counted", 60)
        eventually(lambda: len(ages := by_partition(seen.metrics(), OLDEST)) == 2 and min(ages.values()) >= 600, "its age is known", 60)
        gate.open()
        target.wait(20)
        at_rest(seen)
    target.check(range(20))


def test_promtool_takes_the_metrics(
    direct: Endpoint, broker: Broker, topics: Topics, topic_name: str, start_pipelines: Start
) -> None:
    """With a sample of every family: rows, letters, errors, late ones."""
    topics.create(topic_name, PARTITIONS)
    messages = numbered(0, 100, PARTITIONS, now_ms() - TEN_MINUTES_MS)
    topics.send(topic_name, messages)
    target = Target(direct, more=", CONSTRAINT sound CHECK id != 7")
    seen = start_pipelines(pipeline(broker, target.full_name, topic_name))
    target.wait(99)
    eventually(lambda: seen.metric("dead_letters_total") == 1, "the letter is counted")
    text = seen.metrics().text
    checked = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    # What the rules ask for is there, by name and by label.
    for name in (LATENCY + "_bucket", OLDEST, LAG, "windrow_kafka_max_latency_seconds", "windrow_kafka_messages_total"):
        assert seen.metrics().of(name, pipeline=topic_name), name


def test_the_alert_rules(tmp_path: Path) -> None:
    for command in (["check", "rules", "--lint=all", str(RULES)], ["test", "rules", str(RULES_TEST)]):
        done = subprocess.run(["promtool", *command], capture_output=True, text=True, check=False, cwd=RULES_TEST.parent)
        assert done.returncode == 0, done.stdout + done.stderr
