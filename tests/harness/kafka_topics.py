"""Topics of a broker under test: made, filled with messages that are exactly what a test says, and read back."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewPartitions, NewTopic

from harness.eventually import eventually
from harness.kafka import Broker
from harness.kafka_offsets import CommittedUnknown, Offset, commit, committed

COMPRESSIONS = ("none", "gzip", "snappy", "lz4", "zstd")
# A message that is not taken by then fails the test that sent it.
DELIVERY_SECONDS = 60


@dataclass(frozen=True)
class Message:
    """What is produced, or was read. Without a timestamp it is as old as its sending."""

    value: bytes | None
    key: bytes | None = None
    partition: int = -1
    timestamp_ms: int | None = None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    offset: int | None = field(default=None, compare=False)


class Topics:
    def __init__(self, broker: Broker, **secured: object):
        self.config: dict[str, object] = {"bootstrap.servers": broker.address, **QUIET, **secured}
        self.admin = AdminClient(self.config)

    def create(self, name: str, partitions: int = 4, **config: object) -> str:
        """`config` is Kafka's own with _ for dots: `retention_ms`, `max_message_bytes`."""
        given = {key.replace("_", "."): str(value) for key, value in config.items()}
        self.admin.create_topics([NewTopic(name, partitions, 1, config=given)])[name].result(30)
        eventually(lambda: len(self.partitions(name)) == partitions, f"topic {name} has its partitions")
        return name

    def grow(self, name: str, partitions: int) -> None:
        self.admin.create_partitions([NewPartitions(name, partitions)])[name].result(30)
        eventually(lambda: len(self.partitions(name)) == partitions, f"topic {name} has grown")

    def drop(self, name: str) -> None:
        self.admin.delete_topics([name])[name].result(30)
        eventually(lambda: not self.partitions(name), f"topic {name} is gone")

    def forget_before(self, name: str, partition: int, offset: int) -> None:
        """Deletes the oldest messages, as retention does: the partition begins at `offset` then."""
        given = TopicPartition(name, partition, offset)
        self.admin.delete_records([given])[TopicPartition(name, partition)].result(30)

    def partitions(self, name: str) -> list[int]:
        """Those that have a leader."""
        found = self.admin.list_topics(name, timeout=30).topics[name].partitions
        return sorted(number for number, partition in found.items() if partition.leader >= 0)

    def send(self, topic: str, messages: Iterable[Message], compression: str = "none", **config: object) -> None:
        """Returns when the broker has them all; those of one partition are in this order."""
        with self.sending(compression, **config) as producer:
            send_all(producer, topic, messages)

    def send_in_transaction(
        self, topic: str, messages: Iterable[Message], identity: str, commit: bool, compression: str = "none"
    ) -> None:
        """`identity` is the producer's transactional id. What is not committed is aborted; it stays in the log. The end is marked there when
        this returns."""
        with self.sending(compression, transactional_id=identity) as producer:
            producer.init_transactions(DELIVERY_SECONDS)
            producer.begin_transaction()
            send_all(producer, topic, messages)
            # An abort would throw away what has not been sent yet.
            left_over = producer.flush(DELIVERY_SECONDS)
            assert not left_over, f"{left_over} messages were not taken by the broker"
            (producer.commit_transaction if commit else producer.abort_transaction)(DELIVERY_SECONDS)
        # The coordinator answers when it knows the end. Partitions hear of it afterwards.
        eventually(lambda: self.ends(topic) == self.ends(topic, "read_uncommitted"), "the transaction's end is marked")

    @contextmanager
    def sending(self, compression: str = "none", **config: object) -> Iterator[Producer]:
        """A producer whose messages are all with the broker at the end. `config` is librdkafka's with _ for dots."""
        given = {key.replace("_", "."): value for key, value in config.items()}
        producer = Producer({**self.config, "compression.type": compression, "linger.ms": 5, **given})
        yield producer
        left_over = producer.flush(DELIVERY_SECONDS)
        assert not left_over, f"{left_over} messages were not taken by the broker"

    def ends(self, topic: str, isolation: str = "read_committed") -> dict[int, int]:
        """The offset that each partition's next message gets; where a transaction is open, that of its first one."""
        with self._reading(isolation_level=isolation) as consumer:
            return {
                number: consumer.get_watermark_offsets(TopicPartition(topic, number), 30)[1]
                for number in self.partitions(topic)
            }

    def read(self, topic: str, partition: int, isolation: str = "read_committed") -> list[Message]:
        """A partition's messages from its first to its present end."""
        with self._reading(enable_partition_eof=True, isolation_level=isolation) as consumer:
            consumer.assign([TopicPartition(topic, partition, 0)])
            return list(until_the_end(consumer))

    def committed(self, group: str, topic: str) -> dict[int, Offset]:
        """What the group has committed: `.offset` (negative: nothing) and `.metadata`."""
        asked = self.partitions(topic)
        host, port = self._coordinator()

        def probe() -> dict[int, Offset] | None:
            try:
                return committed(host, port, group, topic, asked)
            except (CommittedUnknown, OSError):
                return None

        return eventually(probe, f"the broker says what {group} has committed", 60) if asked else {}

    def commit(self, group: str, topic: str, partition: int, offset: int, metadata: str = "") -> None:
        """As a group's administrator sets it, while the group has no members."""

        def probe() -> bool:
            try:
                commit(*self._coordinator(), group, topic, partition, Offset(offset, metadata))
                return True
            except CommittedUnknown:
                return False

        eventually(probe, f"the broker takes an offset of {group}", 60)

    def _coordinator(self) -> tuple[str, int]:
        host, port = str(self.config["bootstrap.servers"]).split(":")
        return host, int(port)

    @contextmanager
    def _reading(self, **config: object) -> Iterator[Consumer]:
        given = {key.replace("_", "."): value for key, value in config.items()}
        own = {"group.id": "tests-that-read", "enable.auto.commit": False, "auto.offset.reset": "earliest"}
        consumer = Consumer({**self.config, **own, **given})
        try:
            yield consumer
        finally:
            consumer.close()


def send_all(producer: Producer, topic: str, messages: Iterable[Message]) -> None:
    refused: list[KafkaError] = []

    def noted(error: KafkaError | None, _: object) -> None:
        if error:
            refused.append(error)

    for message in messages:
        given: dict[str, object] = {"partition": message.partition, "headers": list(message.headers)}
        if message.timestamp_ms is not None:
            given["timestamp"] = message.timestamp_ms
        end = time.monotonic() + DELIVERY_SECONDS
        while True:
            try:
                producer.produce(topic, message.value, message.key, on_delivery=noted, **given)
                break
            except BufferError:
                assert time.monotonic() < end, "the broker takes no messages"
                producer.poll(0.1)
        producer.poll(0)
    producer.flush(DELIVERY_SECONDS)
    assert not refused, f"the broker refused {len(refused)} messages: {refused[0]}"


def until_the_end(consumer: Consumer) -> Iterator[Message]:
    end = time.monotonic() + DELIVERY_SECONDS
    while time.monotonic() < end:
        for found in consumer.consume(1000, 0.5):
            error = found.error()
            if error is None:
                yield as_message(found)
            elif error.code() == KafkaError._PARTITION_EOF:
                return
            else:
                raise KafkaException(error)
    raise AssertionError("the partition's end did not come")


def as_message(found) -> Message:
    headers = tuple(found.headers() or ())
    _, timestamp_ms = found.timestamp()
    return Message(found.value(), found.key(), found.partition(), timestamp_ms, headers, found.offset())


# A broker that is killed is part of the test: librdkafka need not write about it to standard error.
QUIET: dict[str, object] = {"error_cb": lambda _: None, "log_level": 0}
