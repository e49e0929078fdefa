"""kill -9 of the gateway, of ClickHouse, of the broker and of one of two instances, under load: each message's row is stored once."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.eventually import eventually
from harness.kafka import Broker
from harness.kafka_load import KafkaLoad
from harness.kafka_stage import PARTITIONS, TOPIC, KafkaStage, OnClickHouse, OnDuckDb, value

# Of each stage. `make chaos` asks for many.
ROUNDS = int(os.environ.get("WINDROW_CHAOS_ROUNDS", "4"))
SEED = int(os.environ.get("WINDROW_CHAOS_SEED", "1"))
PER_SECOND = 1_000
MOST_ROWS, MOST_DELAY_SECONDS = 400, 0.3

Stages = dict[str, Callable[[Path, Broker], KafkaStage]]
STAGES: Stages = {
    "one instance": lambda folder, broker: OnClickHouse(folder, broker, 1),
    "two instances": lambda folder, broker: OnClickHouse(folder, broker, 2),
    "duckdb": OnDuckDb,
}


@pytest.fixture(params=STAGES)
def stage(request: pytest.FixtureRequest, tmp_path: Path, start_broker: Callable[..., Broker]) -> Iterator[KafkaStage]:
    running = STAGES[request.param](tmp_path / "stage", start_broker())
    yield running
    running.stop()


def test_each_message_is_stored_once(stage: KafkaStage) -> None:
    try:
        kill_under_load(stage)
    except AssertionError as error:
        raise AssertionError(f"{error}\n{stage.told()}") from error


def kill_under_load(stage: KafkaStage) -> None:
    rng = random.Random(SEED)
    print(f"seed {SEED}, {ROUNDS} rounds, {type(stage).__name__} with {len(stage.seen)}")
    with KafkaLoad(stage.topics, TOPIC, PARTITIONS, PER_SECOND, value) as load:
        goes_on(stage, 1)
        for number, victim in enumerate(victims(stage.victims, rng), 1):
            goes_on(stage, rng.randint(1, MOST_ROWS))
            # Otherwise kills would only come when this thread has seen a row.
            threading.Event().wait(rng.uniform(0, MOST_DELAY_SECONDS))
            stage.kill(victim)
            print(f"round {number}: killed {victim} after {load.sent} messages", flush=True)
        goes_on(stage, 1)
        sent = load.stop()
    print(stage.check(sent), flush=True)


def victims(known: tuple[str, ...], rng: random.Random) -> list[str]:
    """Each about as often as the others, in an order by seed."""
    found: list[str] = []
    while len(found) < ROUNDS:
        found += rng.sample(known, len(known))
    return found[:ROUNDS]


def goes_on(stage: KafkaStage, rows: int) -> None:
    before = eventually(lambda: [stored] if (stored := stage.target.stored()) is not None else [], "the database answers", 120)
    stage.target.wait(before[0] + rows, 120)
