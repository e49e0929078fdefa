"""Brokers of the earlier versions of Kafka that `scripts/setup` fetches. The oldest of them needs a ZooKeeper."""

from __future__ import annotations

import socket
from pathlib import Path

from harness.eventually import eventually
from harness.kafka import Broker
from harness.kafka_cluster import joining
from harness.ports import free_port
from harness.process import Child

VERSIONS = ("2.8", "3.9")
# ZooKeeper's own unit of time: a session may last as short as two of them.
TICK_MS = 500


def broker_of(version: str, folder: Path) -> Broker:
    return ZooKeeperBroker(folder) if version == "2.8" else Broker(folder, version=version)


def second_of(first: Broker, folder: Path) -> Broker:
    """One more of its cluster, of the number 2."""
    return ZooKeeperBroker(folder, first) if isinstance(first, ZooKeeperBroker) else joining(folder, first, 2, {})


class ZooKeeperBroker(Broker):
    """It has its PLAINTEXT listener alone: users' passwords would be ZooKeeper's. The first one brings the ZooKeeper."""

    def __init__(self, folder: Path, first: ZooKeeperBroker | None = None):
        self.number = 2 if first else 1
        self.zookeeper_port = first.zookeeper_port if first else free_port()
        self.zookeeper: Child | None = None
        super().__init__(folder, version="2.8")

    def stop(self) -> int:
        code = super().stop()
        if self.zookeeper:
            self.zookeeper.stop()
        return code

    def kill(self) -> None:
        super().kill()
        own = f"/brokers/ids/{self.number}".encode()
        eventually(lambda: own not in self._sessions(), "it is taken for dead, so that it may come back", 60)

    def _sessions(self) -> bytes:
        with socket.create_connection(("127.0.0.1", self.zookeeper_port), 30) as connection:
            connection.sendall(b"dump")
            with connection.makefile("rb") as answer:
                return answer.read()

    def _format(self) -> None:
        """Nothing is to be formatted; there has to be a ZooKeeper."""
        if self.number == 1:
            java = ["java", *self.java, "-Dzookeeper.4lw.commands.whitelist=dump", "-cp", f"{self.jars}/*"]
            arguments = (self.zookeeper_port, self.folder / "zookeeper", TICK_MS)
            command = [*java, "org.apache.zookeeper.server.ZooKeeperServerMain", *map(str, arguments)]
            self.zookeeper = Child(command, self.folder / "zookeeper.log")

    def _server_settings(self) -> dict[str, object]:
        of_kraft = ("process.roles", "node.id", "controller.", "share.", "listener.", "sasl.", "ssl.", "broker.", "inter.")
        common = super()._server_settings()
        return {
            **{name: setting for name, setting in common.items() if not name.startswith(of_kraft)},
            "broker.id": self.number,
            # One that alone has a topic could hand it to nobody, and would try for a while.
            "controlled.shutdown.enable": "false",
            "listeners": f"PLAINTEXT://{self.address}",
            "advertised.listeners": f"PLAINTEXT://{self.address}",
            "zookeeper.connect": f"127.0.0.1:{self.zookeeper_port}",
            "zookeeper.connection.timeout.ms": 60_000,
            # On a busy machine a shorter one expires: the controller takes a broker for dead that is just slow.
            "zookeeper.session.timeout.ms": 12 * TICK_MS,
        }
