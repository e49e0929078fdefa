"""What is killed: gateways with a pipeline of one group, the ClickHouse or DuckDB behind them, the broker before them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from pathlib import Path

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.kafka import Broker
from harness.kafka_numbers import DuckDbTarget, Target
from harness.kafka_topics import Topics
from harness.engine import Engine
from harness.kept_engine import KeptEngine
from harness.dead_letters import DeadLetters
from harness.pipelines import Seen, clickhouse_gateway, duckdb_gateway, pipeline

TOPIC, PARTITIONS = "events", 4
# A table refuses one message in so many, and another one in so many can't be read.
REFUSED_ONE_IN, UNREADABLE_ONE_IN = 1009, 193
Place = tuple[str, int, int]


def is_bad(number: int) -> bool:
    return number % REFUSED_ONE_IN == 17 or number % UNREADABLE_ONE_IN == 29


def value(number: int) -> bytes:
    if number % UNREADABLE_ONE_IN == 29:
        return b'{"id":%d' % number
    return b'{"id":%d,"text":"w%d"}' % (number, number)


class KafkaStage(ABC):
    """`victims` are the names of what may be killed; each is back when `kill` returns."""

    victims: tuple[str, ...]
    target: Target
    seen: list[Seen]

    def __init__(self, broker: Broker):
        self.broker, self.topics = broker, Topics(broker)
        self.topics.create(TOPIC, PARTITIONS)

    def kill(self, victim: str) -> None:
        if victim == "broker":
            self.broker.kill()
            self.broker.start()
        elif victim.startswith("gateway"):
            self.kill_gateway(int(victim.split()[-1]))
        else:
            self.kill_engine()

    def kill_gateway(self, number: int) -> None:
        gateway = self.seen[number].gateway
        gateway.kill()
        gateway.start()

    @abstractmethod
    def kill_engine(self) -> None: ...

    def letters(self) -> list[Counter[Place]]:
        """Of each gateway, how often a place in the topic has one."""
        return [
            Counter((each["topic"], each["partition"], each["offset"]) for each in DeadLetters(seen.gateway, self.database).all())
            for seen in self.seen
        ]

    @property
    @abstractmethod
    def database(self) -> str: ...

    def stop(self) -> None:
        for seen in self.seen:
            seen.gateway.stop()

    def settings(self, table: str) -> dict[str, object]:
        # Batches are as small as they may be, so that every kill meets several.
        return pipeline(self.broker, table, TOPIC, group="windrow", max_latency="400ms", session_timeout="3s")

    def told(self) -> str:
        """What there is to see of it, to find out why it stands still."""
        known = f"{self.target.stored()} rows, ends {self.topics.ends(TOPIC)}, committed {self.committed()}"
        gateways = (f"gateway {n}: {seen.told()}\n{seen.gateway.child.log()[-3000:]}" for n, seen in enumerate(self.seen))
        return "\n".join([known, *gateways])

    def committed(self) -> dict[int, int]:
        return {partition: found.offset for partition, found in self.topics.committed("windrow", TOPIC).items()}

    def check(self, sent: int) -> str:
        """Waits until all that can be stored is, and counts."""
        good = [number for number in range(sent) if not is_bad(number)]
        bad = {(TOPIC, number % PARTITIONS, number // PARTITIONS) for number in range(sent) if is_bad(number)}
        self.target.wait(len(good), 120)
        eventually(lambda: set().union(*self.letters()) >= bad, "every bad message is a letter", 120)
        ends = self.topics.ends(TOPIC)
        eventually(lambda: self.committed() == ends, f"the group has committed {ends}", 120)
        self.target.check(good)
        letters = self.letters()
        assert set().union(*letters) == bad, f"letters that nobody deserved: {set().union(*letters) - bad}"
        twice = {place: times for each in letters for place, times in each.items() if times > 1}
        assert not twice, f"letters that are there twice: {twice}"
        replays = sum(seen.metric("replays_total") for seen in self.seen)
        return f"{len(good)} rows stored once, {len(bad)} dead letters, {replays:.0f} replays since the last start"


class OnClickHouse(KafkaStage):
    """As many gateways as asked for, before one ClickHouse that runs by itself: killed alone, they leave it with what it was sent."""

    def __init__(self, folder: Path, broker: Broker, gateways: int):
        super().__init__(broker)
        self.engine = KeptEngine(Engine(folder / "engine"))
        self.target = Target(self.engine.direct, more=f", CONSTRAINT sound CHECK id % {REFUSED_ONE_IN} != 17")
        settings = (self.settings(self.target.full_name),)
        self.seen = [Seen(clickhouse_gateway(folder / f"gateway-{n}", self.direct, settings)) for n in range(gateways)]
        self.victims = (*(f"gateway {n}" for n in range(gateways)), "clickhouse", "broker")

    @property
    def direct(self) -> Endpoint:
        return self.engine.direct

    @property
    def database(self) -> str:
        return self.direct.database

    def kill_engine(self) -> None:
        self.engine.kill()

    def told(self) -> str:
        return f"ClickHouse fell {self.engine.falls} times by itself; {super().told()}"

    def stop(self) -> None:
        super().stop()
        self.engine.stop()


class OnDuckDb(KafkaStage):
    """DuckDB dies with its gateway."""

    database = "default"

    def __init__(self, folder: Path, broker: Broker):
        super().__init__(broker)
        self.seen = [Seen(duckdb_gateway(folder / "gateway", (self.settings("events"),)))]
        self.target = DuckDbTarget(self.seen[0].gateway.direct, more=f", CHECK (id % {REFUSED_ONE_IN} != 17)")
        self.victims = ("gateway 0", "broker")

    def kill_gateway(self, number: int) -> None:
        super().kill_gateway(number)
        self.target.direct = self.seen[number].gateway.direct

    def kill_engine(self) -> None:
        raise AssertionError("it has no process of its own")
