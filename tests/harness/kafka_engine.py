"""ClickHouse's own Kafka engine: a queue table on a topic, and a view that moves its rows into a table."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.kafka import Broker
from harness.kafka_topics import Message, Topics

QUEUE, VIEW = "kafka_queue", "kafka_view"
# The oracle of what a message means is asked often: it need not gather for long.
QUICKLY = "kafka_flush_interval_ms = 200, kafka_poll_timeout_ms = 100"


class KafkaEngine:
    """Consumes as soon as it is made. `select` is the view's; `settings` are the queue's, as SQL.

    A topic that is read again needs another `group`: the engine's members stay in theirs for a while after their table
    was dropped.
    """

    def __init__(
        self,
        clickhouse: Endpoint,
        broker: Broker,
        topic: str,
        format: str,
        columns: str,
        *,
        select: str = "*",
        settings: str = "",
        group: str = "clickhouse",
    ):
        self.clickhouse, self.topic, self.group = clickhouse, topic, f"{group}-{topic}"
        self.topics = Topics(broker)
        own = f"kafka_broker_list = '{broker.address}', kafka_topic_list = '{topic}', kafka_group_name = '{self.group}'"
        given = ", ".join([own, f"kafka_format = '{format}'", QUICKLY, *([settings] if settings else [])])
        clickhouse.sql(f"CREATE TABLE {QUEUE} ({columns}) ENGINE = Kafka SETTINGS {given}")
        clickhouse.sql(
            f"CREATE MATERIALIZED VIEW {VIEW} ENGINE = MergeTree ORDER BY tuple() AS SELECT {select} FROM {QUEUE}"
        )

    def wait_for_views(self, message: Message) -> None:
        """Sends a message. What comes after it goes to all views that are there now: a block goes to those that were there when it began to be
        read, and the one with this message is over then."""
        self.topics.send(self.topic, [message])
        self.wait_until_all_is_read()

    def wait_until_all_is_read(self) -> None:
        """Until the engine has committed the topic's ends, which it does when the rows are in their table."""
        ends = self.topics.ends(self.topic)
        wanted = {partition: end for partition, end in ends.items() if end}
        eventually(lambda: wanted.items() <= self.committed().items(), "the Kafka engine has read the topic", 90)

    def committed(self) -> dict[int, int]:
        return {partition: found.offset for partition, found in self.topics.committed(self.group, self.topic).items()}

    def rows(self, columns: str = "*") -> list[str]:
        """What came into the table, a JSON array each, ordered by its text."""
        return sorted(self.clickhouse.sql(f"SELECT {columns} FROM {VIEW} FORMAT JSONCompactEachRow").splitlines())

    def error(self) -> str:
        """The consumer's latest; empty when it had none."""
        where = f"database = currentDatabase() AND table = '{QUEUE}'"
        query = f"SELECT exceptions.text[-1] FROM system.kafka_consumers WHERE {where}"
        return self.clickhouse.sql(f"{query} FORMAT TSVRaw")

    def drop(self) -> None:
        self.clickhouse.sql(f"DROP TABLE IF EXISTS {VIEW} SYNC")
        self.clickhouse.sql(f"DROP TABLE IF EXISTS {QUEUE} SYNC")


@contextmanager
def kafka_engine(
    clickhouse: Endpoint, broker: Broker, topic: str, format: str, columns: str, **more: str
) -> Iterator[KafkaEngine]:
    engine = KafkaEngine(clickhouse, broker, topic, format, columns, **more)
    try:
        yield engine
    finally:
        engine.drop()
