"""One broker for all Kafka tests of a worker; a test that harms it starts one of its own (`start_broker`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.endpoint import Endpoint
from harness.kafka import Broker
from harness.kafka_topics import Topics
from harness.pipelines import Seen, Settings, clickhouse_gateway, duckdb_gateway


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    started = Broker(tmp_path_factory.mktemp("broker"))
    yield started
    started.stop()


@pytest.fixture
def topics(broker: Broker) -> Topics:
    return Topics(broker)


@pytest.fixture
def topic_name(request: pytest.FixtureRequest) -> str:
    """A name of the test's own, for topics and groups."""
    return re.sub(r"[^\w.-]+", "-", f"{request.node.path.stem}.{request.node.name}")[:200]


@pytest.fixture
def start_broker(tmp_path: Path) -> Iterator[Callable[..., Broker]]:
    """Starts brokers of the test's own; stops what is left of them."""
    running: list[Broker] = []

    def start(**settings: object) -> Broker:
        """`settings` are the broker's own with _ for dots."""
        given = {name.replace("_", "."): value for name, value in settings.items()}
        running.append(Broker(tmp_path / f"broker-{len(running)}", settings=given))
        return running[-1]

    yield start
    for broker in running:
        broker.stop()


@pytest.fixture
def start_pipelines(tmp_path: Path, direct: Endpoint) -> Iterator[Callable[..., Seen]]:
    """Starts gateways with pipelines, in front of the worker's ClickHouse; what is left of them has to end well."""
    running: list[Seen] = []

    def start(*pipelines: Settings, config: str = "", through: str | None = None) -> Seen:
        folder = tmp_path / f"pipelines-{len(running)}"
        running.append(Seen(clickhouse_gateway(folder, direct, pipelines, config, through)))
        return running[-1]

    yield start
    end_all(running)


@pytest.fixture
def start_duckdb(tmp_path: Path) -> Iterator[Callable[..., Seen]]:
    """The same in front of a DuckDB of their own."""
    running: list[Seen] = []

    def start(*pipelines: Settings, config: str = "") -> Seen:
        running.append(Seen(duckdb_gateway(tmp_path / f"duckdb-{len(running)}", pipelines, config)))
        return running[-1]

    yield start
    end_all(running)


def end_all(started: list[Seen]) -> None:
    left = [seen.gateway for seen in started if seen.gateway.child.running()]
    codes = [gateway.stop() for gateway in left]
    assert not any(codes), f"ended with {codes}:\n" + "\n".join(gateway.child.log()[-3000:] for gateway in left)
