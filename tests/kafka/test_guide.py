"""docs/kafka-guide.md, run as it stands: from the Kafka engine to a pipeline and back, under load, and nothing is lost or stored twice."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.eventually import eventually
from harness.kafka import Broker
from harness.kafka_load import KafkaLoad
from harness.kafka_topics import Topics
from harness.paths import ROOT, gateway_binary, kafka_jars
from harness.pipelines import Seen, clickhouse_gateway
from harness.process import inherited_environment

PAGE = (ROOT / "docs" / "kafka-guide.md").read_text()
SET_UP, ALTER, DETACH_QUEUE, DETACH_VIEW, ATTACH = re.findall(r"```sql\n(.*?)```", PAGE, re.S)
[SETTINGS] = re.findall(r"```toml\n(.*?)```", PAGE, re.S)
CHECK, STATE, SERVE, COPY = re.findall(r"```sh\n(.*?)```", PAGE, re.S)
TOPIC, GROUP, OTHER_GROUP, PARTITIONS = "events", "clickhouse-events", "windrow-events", 4
# The page's 45 s, shortened, and blocks that don't take 7.5 s.
QUICKER = "<kafka><session_timeout_ms>3000</session_timeout_ms></kafka>"
FLUSH = ", kafka_flush_interval_ms = 500;"
TOOL = "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"


class Shop:
    """The page's ClickHouse, broker and settings file."""

    def __init__(self, folder: Path, broker: Broker):
        self.folder, self.broker, self.topics = folder, broker, Topics(broker)
        self.engine = Engine(folder / "engine", config=QUICKER)
        self.direct = self.engine.direct
        self.direct.sql("CREATE DATABASE shop")
        self.topics.create(TOPIC, PARTITIONS)

    def here(self, text: str) -> str:
        return text.replace("localhost:9092", self.broker.address)

    def sql(self, statements: str) -> list[str]:
        return [self.direct.sql(self.here(each)) for each in statements.split(";") if each.strip()]

    def groups(self, command: str) -> str:
        """A line of the page, with Kafka's tool as it is here."""
        assert command.startswith("kafka-consumer-groups.sh")
        words = shlex.split(self.here(command))[1:]
        target = None
        if ">" in words:
            words, target = words[:-2], self.folder / words[-1]
        quickly = ["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"]
        tool = ["java", *quickly, "-cp", f"{kafka_jars()}/*", TOOL]
        done = subprocess.run([*tool, *words], capture_output=True, text=True, cwd=self.folder, timeout=120)
        assert done.returncode == 0 and "Error" not in done.stdout, done.stdout + done.stderr
        if target:
            target.write_text(done.stdout)
        return done.stdout

    def start_windrow(self) -> Seen:
        return Seen(clickhouse_gateway(self.folder / "windrow", self.direct, (), self.here(SETTINGS)))

    def rows(self) -> int:
        return int(self.direct.sql("SELECT count() FROM shop.events"))

    def committed(self) -> int:
        """Messages that the group has behind it; a partition of which nothing was read yet has no offset."""
        return sum(max(found.offset, 0) for found in self.topics.committed(GROUP, TOPIC).values())

    def more(self, rows: int = 500) -> None:
        before = self.rows()
        eventually(lambda: self.rows() >= before + rows, f"{rows} more rows", 60)

    def detach_engine(self) -> None:
        self.sql(DETACH_QUEUE)
        self.sql(DETACH_VIEW)
        # The table holds what the group has committed, and nothing else.
        assert self.rows() == self.committed()

    def group_is_empty(self) -> None:
        eventually(lambda: "Empty" in self.groups(STATE), "the group is empty", 120)

    def check(self, sent: int) -> None:
        eventually(lambda: self.rows() >= sent, "all messages are stored", 60)
        found = self.direct.sql(
            "SELECT count(), uniqExact(user), max(user), countIf(action != concat('bought ', toString(user))), "
            "countIf(partition != user % 4 OR offset != intDiv(user, 4)), uniqExact(ts) FROM shop.events FORMAT TSV"
        )
        assert found == f"{sent}\t{sent}\t{sent - 1}\t0\t0\t1"


def message(number: int) -> bytes:
    return b'{"time":"2026-01-31 12:00:00.123","user":%d,"action":"Bought %d","more":{}}' % (number, number)


@pytest.fixture
def shop(tmp_path: Path, start_broker: Callable[..., Broker]) -> Iterator[Shop]:
    opened = Shop(tmp_path, start_broker())
    yield opened
    opened.engine.stop()


def check_says(shop: Shop, seen_from: Endpoint) -> str:
    """`windrow kafka check` as the page has it."""
    config = shop.folder / "windrow.toml"
    password = "te%26st%20er"
    config.write_text(f'backend = "http://{seen_from.user}:{password}@{seen_from.host}:{seen_from.port}"\n' + shop.here(SETTINGS))
    words = shlex.split(CHECK)
    assert words[0] == "windrow"
    done = subprocess.run(
        [str(gateway_binary()), *words[1:]], capture_output=True, text=True, cwd=shop.folder, env=inherited_environment(), timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_there_and_back(shop: Shop) -> None:
    shop.sql(SET_UP.replace("kafka_format = 'JSONEachRow';", f"kafka_format = 'JSONEachRow'{FLUSH}"))
    with KafkaLoad(shop.topics, TOPIC, PARTITIONS, 500, message) as load:
        shop.more()
        shop.sql(ALTER)
        said = check_says(shop, shop.direct)
        assert all(word in said for word in ("action_sent", "time", "_partition"))
        shop.more()
        shop.detach_engine()
        # The engine's members are still in the group.
        windrow = shop.start_windrow()
        assert SERVE.startswith("windrow serve --config")
        shop.more()
        [row, *_] = windrow.rows(pipeline="events")
        assert (row["group"], row["guarantee"]) == (GROUP, "exactly once")
        assert windrow.gateway.stop() == 0
        # It leaves the group, with everything committed.
        assert shop.rows() == shop.committed()
        shop.group_is_empty()
        shop.sql(ATTACH)
        shop.more()
        sent = load.stop()
    shop.check(sent)


def test_another_name_for_the_group(shop: Shop) -> None:
    shop.sql(SET_UP.replace("kafka_format = 'JSONEachRow';", f"kafka_format = 'JSONEachRow'{FLUSH}"))
    shop.sql(ALTER)
    with KafkaLoad(shop.topics, TOPIC, PARTITIONS, 500, message) as load:
        shop.more()
        shop.detach_engine()
        shop.group_is_empty()
        for line in COPY.splitlines():
            shop.groups(line)
        offsets = lambda group: {partition: found.offset for partition, found in shop.topics.committed(group, TOPIC).items()}
        assert offsets(OTHER_GROUP) == offsets(GROUP)
        windrow = Seen(clickhouse_gateway(shop.folder / "windrow", shop.direct, (), shop.here(SETTINGS).replace(GROUP, OTHER_GROUP)))
        shop.more()
        sent = load.stop()
        shop.check(sent)
        assert windrow.gateway.stop() == 0
