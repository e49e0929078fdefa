"""A gateway that feeds tables from topics, and what it says of its pipelines."""

from __future__ import annotations

import http.client
import json
import urllib.parse
from collections.abc import Callable, Mapping
from pathlib import Path

from harness.duckdb import DuckDbGateway
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gateway import Gateway, flat
from harness.kafka import Broker
from harness.metrics import Metrics, metrics_of
from harness.remote import RemoteGateway
from harness.users import TESTER

Settings = Mapping[str, object]
# What a test waits for is stored soon, and a member that was killed is noticed soon.
SOON = {"start": "earliest", "max_latency": "300ms", "session_timeout": "4s", "metadata_refresh": "500ms"}


def pipeline(broker: Broker, table: str, topic: str, format: str = "JSONEachRow", **more: object) -> dict[str, object]:
    """Settings of one; its group and its name are the topic's unless `more` says something else."""
    own = {"name": topic, "brokers": [broker.address], "topics": [topic], "group": topic, "table": table, "format": format}
    given = {**SOON, **own, **more}
    if "topic_pattern" in given:
        del given["topics"]
    return given


def pipelines_toml(*pipelines: Settings) -> str:
    return "".join("\n[[kafka]]\n" + "".join(f"{name} = {as_toml(value)}\n" for name, value in each.items()) for each in pipelines)


def as_toml(value: object) -> str:
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{json.dumps(str(name))} = {as_toml(each)}" for name, each in value.items()) + " }"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(as_toml(each) for each in value) + "]"
    return json.dumps(str(value) if isinstance(value, Path) else value)


class Seen:
    """What any gateway with pipelines tells of them."""

    def __init__(self, gateway: RemoteGateway | DuckDbGateway):
        self.gateway = gateway

    def change(self, old: str, new: str) -> None:
        """In the settings, for the next start."""
        assert self.gateway.config.count(old) == 1, self.gateway.config
        self.gateway.config = self.gateway.config.replace(old, new)

    def metrics(self) -> Metrics:
        return metrics_of(self.gateway)

    def metric(self, name: str, **labels: object) -> float:
        return self.metrics().sum(f"windrow_kafka_{name}", **labels)

    def rows(self, **conditions: object) -> list[dict]:
        """system.windrow_kafka, as one who may see everything."""
        where = " AND ".join(f"{name} = '{value}'" for name, value in conditions.items()) or "1"
        query = f"SELECT * FROM system.windrow_kafka WHERE {where} ORDER BY pipeline, topic, partition FORMAT JSONEachRow"
        port = self.gateway.http
        asking = port if isinstance(self.gateway, DuckDbGateway) else port.as_user(TESTER.name, TESTER.password)
        lines = asking.sql(query).splitlines()
        return [json.loads(line) for line in lines]

    def told(self) -> list[dict]:
        """The partitions of all pipelines as the admin port tells them, also while the backend is away."""
        connection = http.client.HTTPConnection(self.gateway.admin.host, self.gateway.admin.port, timeout=60)
        try:
            connection.request("GET", "/api/v1/kafka")
            pipelines = json.loads(connection.getresponse().read())["pipelines"]
        finally:
            connection.close()
        return [partition for each in pipelines for partition in each["partitions"]]

    def partitions(self, **conditions: object) -> list[tuple[str, int]]:
        """Those that are its own now."""
        return [(row["topic"], row["partition"]) for row in self.rows(**conditions) if row["topic"]]

    def owns(self, number: int, **conditions: object) -> None:
        """Waits until it has so many."""
        eventually(lambda: len(self.partitions(**conditions)) == number, f"{number} partitions are the gateway's", 60)

    def row(self, until: Callable[[dict], bool], what: str, **conditions: object) -> dict:
        """Waits for one of its rows to be so."""
        last: list[dict] = []

        def probe() -> dict | None:
            last[:] = self.rows(**conditions)
            return next((row for row in last if until(row)), None)

        try:
            return eventually(probe, what, 60)
        except AssertionError as error:
            raise AssertionError(f"{error}; system.windrow_kafka: {last}\n{self.gateway.child.log()[-3000:]}") from error

    def logged(self, words: str) -> list[dict]:
        """Log lines with these words in their message or in one of their fields."""
        events = (flat(event) for event in self.gateway.log_events())
        return [event for event in events if any(words in str(value) for value in event.values())]

    def wait_logged(self, words: str) -> dict:
        return eventually(lambda: self.logged(words), f"the log says: {words}", 60)[-1]


def clickhouse_gateway(
    folder: Path, direct: Endpoint, pipelines: tuple[Settings, ...], config: str = "", through: str | None = None
) -> RemoteGateway:
    """In front of a ClickHouse that runs. `through`: the address of what stands between, such as a relay."""
    user, password = (urllib.parse.quote(part, safe="") for part in (direct.user, direct.password))
    backend = f"http://{user}:{password}@{through or f'{direct.host}:{direct.port}'}"
    # Settings of the file itself stand before its sections.
    return RemoteGateway(folder, backend, direct, config + pipelines_toml(*pipelines))


def duckdb_gateway(folder: Path, pipelines: tuple[Settings, ...], config: str = "") -> DuckDbGateway:
    folder.mkdir(parents=True, exist_ok=True)
    return DuckDbGateway(folder, f"duckdb://{folder / 'events.db'}", config + pipelines_toml(*pipelines))
