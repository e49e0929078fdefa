"""A real Kafka broker of one node, which is controller too. What tests do with its topics is in `kafka_topics.py`."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from harness.eventually import eventually
from harness.kafka_keys import Keys
from harness.paths import kafka_jars
from harness.ports import free_port
from harness.process import Child

USER, PASSWORD = "ann", "a secret"
# Any 22 characters of URL-safe base64 that are 16 bytes.
CLUSTER_ID = "d2luZHJvdy10ZXN0cy0xMQ"
STARTS = 3
# Small, quick to start, quiet: what a test measures is not the broker.
JAVA = ("-Xmx512m", "-Xms128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")


@dataclass(frozen=True)
class Ports:
    """One listener for each way in."""

    plaintext: int
    sasl_plaintext: int
    ssl: int
    sasl_ssl: int
    controller: int

    @classmethod
    def free(cls) -> Ports:
        return cls(*(free_port() for _ in range(5)))


class Broker:
    """Listens as PLAINTEXT, SSL, SASL_PLAINTEXT and SASL_SSL; `USER` with `PASSWORD` may log in by PLAIN,
    SCRAM-SHA-256 and SCRAM-SHA-512, and anybody with an unsigned token by OAUTHBEARER. No topic makes itself."""

    def __init__(
        self,
        folder: Path,
        ports: Ports | None = None,
        java: tuple[str, ...] = JAVA,
        settings: dict[str, object] | None = None,
        version: str = "",
    ):
        """Of another version than `kafka/pom.xml` says if one of `VERSIONS` is named."""
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.java = java
        self.version = version
        self.jars = kafka_jars(version)
        self.keys = Keys(folder)
        self.settings = settings or {}
        self.ports = ports or Ports.free()
        for attempt in range(1, STARTS + 1):
            self._configure()
            if attempt == 1:
                self._format()
            try:
                self.start()
                return
            except AssertionError:
                # Another run may have taken a port between our asking for it and the broker's listening on it.
                if ports or attempt == STARTS or "Address already in use" not in self.child.log():
                    raise
                self.ports = Ports.free()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.ports.plaintext}"

    def start(self) -> None:
        """Also after its end, on the same data and ports."""
        self.child = Child([*self._command("kafka.Kafka"), str(self._properties)], self.folder / "broker.log")
        eventually(self._answers, "the broker answers", 180)

    def stop(self) -> int:
        self.resume()
        code = self.child.stop()
        # One that had to be killed may have been at writing them.
        if code in (0, 143) and self._own_classes.exists() and not self._classes.exists():
            # Whole or not at all there, whoever else does the same.
            moved = shutil.copy(self._own_classes, self._classes.with_suffix(f".{self.child.pid}"))
            os.replace(moved, self._classes)
        return code

    def kill(self) -> None:
        self.child.signal(signal.SIGKILL)
        self.child.wait()

    def pause(self) -> None:
        """It stays connected and answers nothing, until `resume`."""
        self.child.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.child.signal(signal.SIGCONT)

    def secured(self, protocol: str, mechanism: str | None = None) -> dict[str, object]:
        """What librdkafka has to be told to come in by another way than PLAINTEXT."""
        port = {"SSL": self.ports.ssl, "SASL_PLAINTEXT": self.ports.sasl_plaintext, "SASL_SSL": self.ports.sasl_ssl}[
            protocol
        ]
        config: dict[str, object] = {"bootstrap.servers": f"127.0.0.1:{port}", "security.protocol": protocol}
        if protocol.endswith("SSL"):
            config["ssl.ca.location"] = str(self.keys.ca)
        if mechanism:
            config |= {"sasl.mechanism": mechanism, "sasl.username": USER, "sasl.password": PASSWORD}
        return config

    @property
    def _own_classes(self) -> Path:
        return self.folder / "classes.jsa"

    @property
    def _classes(self) -> Path:
        return self.jars / "classes.jsa"

    @property
    def _properties(self) -> Path:
        return self.folder / "server.properties"

    def _command(self, program: str) -> list[str]:
        logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        # Half of a start is the loading of classes. The first broker that is stopped leaves them for the others.
        known = self._classes.exists()
        loaded = f"-XX:SharedArchiveFile={self._classes}" if known else f"-XX:ArchiveClassesAtExit={self._own_classes}"
        return ["java", *self.java, loaded, logging, "-cp", f"{self.jars}/*", program]

    def _server_settings(self) -> dict[str, object]:
        return server_settings(self.folder / "data", self.ports, self.keys)

    def _configure(self) -> None:
        settings = {**self._server_settings(), **self.settings}
        self._properties.write_text("".join(f"{name}={value}\n" for name, value in settings.items()))

    def _format(self) -> None:
        """Gives the folder its cluster, and the users their passwords; a folder that has them keeps them."""
        options = ["format", "--ignore-formatted", "-t", CLUSTER_ID, "-c", str(self._properties)]
        for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
            options += ["--add-scram", f'{mechanism}=[name="{USER}",password="{PASSWORD}"]']
        done = subprocess.run([*self._command("kafka.tools.StorageTool"), *options], capture_output=True, text=True)
        if done.returncode:
            raise AssertionError(f"the broker's folder was not formatted:\n{done.stdout}{done.stderr}")

    def _answers(self) -> bool:
        if not self.child.running():
            raise AssertionError(f"the broker ended at once:\n{self.child.log()[-3000:]}")
        try:
            # Without the handler librdkafka writes to standard error that nobody listens yet.
            admin = AdminClient({"bootstrap.servers": self.address, "error_cb": lambda _: None, "log_level": 0})
            return bool(admin.list_topics(timeout=1).brokers)
        except KafkaException:
            return False


def server_settings(data: Path, ports: Ports, keys: Keys) -> dict[str, object]:
    listeners = {
        "PLAINTEXT": ports.plaintext,
        "SASL_PLAINTEXT": ports.sasl_plaintext,
        "SSL": ports.ssl,
        "SASL_SSL": ports.sasl_ssl,
    }
    addresses = [f"{name}://127.0.0.1:{port}" for name, port in listeners.items()]
    return {
        "process.roles": "broker,controller",
        "node.id": 1,
        "controller.quorum.voters": f"1@127.0.0.1:{ports.controller}",
        "controller.listener.names": "CONTROLLER",
        "listeners": ",".join([*addresses, f"CONTROLLER://127.0.0.1:{ports.controller}"]),
        "advertised.listeners": ",".join(addresses),
        "listener.security.protocol.map": ",".join(["CONTROLLER:PLAINTEXT", *(f"{name}:{name}" for name in listeners)]),
        "inter.broker.listener.name": "PLAINTEXT",
        "log.dirs": data,
        "auto.create.topics.enable": "false",
        # Messages have the timestamps that a test gives them. Old ones would be deleted whenever the broker looks for them.
        "log.retention.ms": -1,
        # There is one broker: what Kafka keeps for itself can't be replicated.
        "offsets.topic.replication.factor": 1,
        "offsets.topic.num.partitions": 4,
        "transaction.state.log.replication.factor": 1,
        "transaction.state.log.min.isr": 1,
        "transaction.state.log.num.partitions": 4,
        "share.coordinator.state.topic.replication.factor": 1,
        "share.coordinator.state.topic.min.isr": 1,
        # A test's group is complete when its members are; it also wants to see quickly that one of them was killed.
        "group.initial.rebalance.delay.ms": 0,
        "group.min.session.timeout.ms": 500,
        # One that was killed is let in again when its former self is taken for dead.
        "broker.session.timeout.ms": 4000,
        "broker.heartbeat.interval.ms": 500,
        **sasl_settings(),
        **keys.server_settings(),
    }


def sasl_settings() -> dict[str, object]:
    """How to log in, for each listener that asks for it."""
    security = "org.apache.kafka.common.security"
    bearer = f"{security}.oauthbearer.OAuthBearerLoginModule"
    modules = {
        "plain": f'{security}.plain.PlainLoginModule required user_{USER}="{PASSWORD}";',
        "scram-sha-256": f"{security}.scram.ScramLoginModule required;",
        "scram-sha-512": f"{security}.scram.ScramLoginModule required;",
        "oauthbearer": f'{bearer} required unsecuredLoginStringClaim_sub="{USER}";',
    }
    settings: dict[str, object] = {"sasl.enabled.mechanisms": ",".join(name.upper() for name in modules)}
    for listener in ("sasl_plaintext", "sasl_ssl"):
        for mechanism, module in modules.items():
            settings[f"listener.name.{listener}.{mechanism}.sasl.jaas.config"] = module
    return settings
