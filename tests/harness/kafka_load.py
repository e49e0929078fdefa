"""A producer that goes on while brokers die: numbered messages at a steady rate, each of them once in the topic."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from confluent_kafka import KafkaError, Producer

from harness.kafka_topics import DELIVERY_SECONDS, Topics

TICK_SECONDS = 0.02


class KafkaLoad:
    """Message n goes to partition n modulo `partitions`, with `value(n)`. The broker has all of them at the end.

    The producer is idempotent: what it repeats after a broker's death is not in the topic twice, nor out of order.
    """

    def __init__(
        self,
        topics: Topics,
        topic: str,
        partitions: int,
        per_second: int,
        value: Callable[[int], bytes],
        **config: object,
    ):
        given = {key.replace("_", "."): setting for key, setting in config.items()}
        patience = {
            # None is given up: a broker may take longer to come back than any bound, and an idempotent producer doesn't go on behind a gap.
            "message.timeout.ms": 0,
            "enable.idempotence": True,
            "linger.ms": 5,
            # librdkafka looks every five minutes, and may have seen a broker that was just going or coming: no leader, then, until it looks again.
            "topic.metadata.refresh.interval.ms": 2000,
            "reconnect.backoff.max.ms": 1000,
        }
        self.producer = Producer({**topics.config, **patience, **given})
        self.topic, self.partitions, self.per_second, self.value = topic, partitions, per_second, value
        self.sent = 0
        self.refused: list[str] = []
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kafka-load")

    def __enter__(self) -> KafkaLoad:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def stop(self) -> int:
        """How many messages are in the topic; all that were sent are, or this fails."""
        self._stopped.set()
        self._thread.join()
        left_over = self.producer.flush(DELIVERY_SECONDS)
        assert not self.refused and not left_over, f"{left_over} messages left, refused: {self.refused[:3]}"
        return self.sent

    def _run(self) -> None:
        begin = time.monotonic()
        while not self._stopped.is_set():
            due = int((time.monotonic() - begin) * self.per_second)
            while self.sent < due and not self._stopped.is_set():
                self._send_one()
            self.producer.poll(TICK_SECONDS)

    def _send_one(self) -> None:
        try:
            partition = self.sent % self.partitions
            self.producer.produce(self.topic, self.value(self.sent), partition=partition, on_delivery=self._note)
            self.sent += 1
        except BufferError:
            # The broker is away and its queue is full: it is caught up with afterwards.
            self.producer.poll(TICK_SECONDS)

    def _note(self, error: KafkaError | None, _: object) -> None:
        if error:
            self.refused.append(str(error))
