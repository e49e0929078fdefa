"""`windrow kafka run`: one pipeline in the foreground, of flags or of the settings."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.kafka import Broker
from harness.kafka_check import backend_of
from harness.kafka_topics import Message, Topics
from harness.paths import gateway_binary
from harness.pipelines import Seen, pipeline, pipelines_toml
from harness.remote import RemoteGateway


class Running(RemoteGateway):
    """What the command line runs; `words` come behind `windrow kafka run`."""

    def __init__(self, folder: Path, direct: Endpoint, words: list[str], config: str = ""):
        self.words = words
        super().__init__(folder, backend_of(direct), direct, config)

    def command(self) -> list[str]:
        where = ["--backend", self.backend_url, "--data-dir", str(self.data_dir), "--admin", "127.0.0.1:0"]
        return [str(gateway_binary()), "kafka", "run", *self.words, *where, "--log-format", "json"]


@pytest.fixture
def running(tmp_path: Path, direct: Endpoint) -> Iterator[list[Running]]:
    started: list[Running] = []
    yield started
    assert not [code for each in started if each.child.running() and (code := each.stop())]


def send(topics: Topics, topic: str, numbers: range) -> None:
    topics.send(topic, [Message(value=json.dumps({"id": number}).encode(), partition=0) for number in numbers])


def test_flags_alone_are_a_pipeline(
    broker: Broker, topics: Topics, topic_name: str, direct: Endpoint, tmp_path: Path, running: list[Running]
) -> None:
    direct.sql("CREATE TABLE run (id UInt64, o UInt64) ENGINE = MergeTree ORDER BY id SETTINGS non_replicated_deduplication_window = 100")
    topics.create(topic_name, 1)
    send(topics, topic_name, range(100))
    flags = {
        "--brokers": broker.address,
        "--topics": topic_name,
        "--group": topic_name,
        "--table": f"{direct.database}.run",
        "--format": "JSONEachRow",
        "--columns": "o=_offset",
        "--max-latency": "300ms",
    }
    gateway = Running(tmp_path / "run", direct, [word for flag in flags.items() for word in flag])
    running.append(gateway)
    eventually(lambda: direct.sql("SELECT count() FROM run WHERE id = o").strip() == "100", "the rows are stored")
    # Its data port is a free one, and shows the pipeline, which is called like its group.
    rows = Seen(gateway).rows()
    assert [(row["pipeline"], row["topic"], row["guarantee"]) for row in rows] == [(topic_name, topic_name, "exactly once")]
    send(topics, topic_name, range(100, 150))
    assert gateway.stop() == 0
    # What was fetched is stored and committed, and what isn't stored is not committed.
    stored = int(direct.sql("SELECT count() FROM run"))
    assert {partition: known.offset for partition, known in topics.committed(topic_name, topic_name).items()} == {0: stored}


def test_one_of_the_settings_is_run_with_what_flags_change(
    broker: Broker, topics: Topics, topic_name: str, direct: Endpoint, tmp_path: Path, running: list[Running]
) -> None:
    for name in ("one", "other"):
        direct.sql(f"CREATE TABLE {name} (id UInt64) ENGINE = MergeTree ORDER BY id")
        topics.create(f"{topic_name}-{name}", 1)
        send(topics, f"{topic_name}-{name}", range(10))
    entries = [
        pipeline(broker, f"{direct.database}.{name}", f"{topic_name}-{name}", name=name, max_latency="1h")
        for name in ("one", "other")
    ]
    folder = tmp_path / "run"
    words = ["one", "--config", str(folder / "windrow.toml"), "--max-latency", "300ms", "--http", "127.0.0.1:0", "--flight", ""]
    gateway = Running(folder, direct, words, pipelines_toml(*entries))
    running.append(gateway)
    eventually(lambda: direct.sql("SELECT count() FROM one").strip() == "10", "the rows are stored")
    seen = Seen(gateway).rows()
    assert [(row["pipeline"], row["max_latency_seconds"]) for row in seen] == [("one", 0.3)]
    assert direct.sql("SELECT count() FROM other").strip() == "0"
