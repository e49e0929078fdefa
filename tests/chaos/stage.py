"""What is killed: a gateway with its embedded engine, one with a DuckDB, or one before an engine that it did not start."""

from __future__ import annotations

import json
import os
import random
import signal
import threading
import urllib.parse
from abc import ABC, abstractmethod
from collections import Counter
from dataclasses import replace
from pathlib import Path

from chaos.language import ClickHouse, DuckDb, PostgreSql, Replicated
from chaos.load import create_tables
from harness.adbc import AdbcGateway
from harness.duckdb import DuckDbGateway
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.engine import Engine
from harness.kept_engine import KeptEngine
from harness.dead_letters import DeadLetters
from harness.ports import free_port
from harness.postgres import Postgres
from harness.process import wait_gone
from harness.relay import Relay
from harness.remote import RemoteGateway, backend_url
from harness.replicas import Replica, ReplicatedCluster
from harness.users import TESTER


# What Windrow does for its embedded engine unasked, it has to be told to do elsewhere.
WINDOW = "manage_deduplication_window = true\n"
WITHDRAWN = "the record was withdrawn"
LEFT_FROM_BEFORE = "inserts are left in the journal from before"


VICTIMS = ("gateway", "engine", "both", "gateway, and again as soon as it is back", "gateway by SIGTERM")


class Stage(ABC):
    gateway: Gateway
    language: ClickHouse | DuckDb = ClickHouse()
    # Who may be killed.
    victims: tuple[str, ...] = VICTIMS

    def where(self) -> Endpoint | None:
        """The data port for the load, or nothing while there is none."""
        return self._http

    def opened(self) -> None:
        http = self.gateway.http.as_user(TESTER.name, TESTER.password)
        self._http = replace(http, native_port=self.gateway.native_port)

    @property
    def direct(self) -> Endpoint:
        return self.gateway.direct

    def letters(self) -> list[tuple[str, str, str]]:
        """Table, query id and error of each dead letter."""
        query = "SELECT table, query_id, error FROM system.windrow_dead_letters FORMAT JSONCompactEachRow"
        http = self.where()
        assert http is not None, "the gateway runs when its letters are counted"
        return [tuple(json.loads(line)) for line in http.sql(query).splitlines()]

    def kill_gateway(self) -> None:
        self.gateway.kill()
        self._http = None

    def end_gateway(self) -> int:
        """SIGTERM; the exit code."""
        code = self.gateway.stop()
        self._http = None
        return code

    def start_gateway(self) -> None:
        self.gateway.start()
        self.opened()

    def settle(self) -> None:
        """Lets the database find out at once what it would find out by itself."""

    def left_from_before(self) -> int:
        """Inserts that the gateway found in its journal when it was started last."""
        events = self.gateway.log_events()
        return sum(event["inserts"] for event in events if event.get("message", "").startswith(LEFT_FROM_BEFORE))

    @abstractmethod
    def records_withdrawn(self) -> int:
        """Of blocks that ClickHouse had recorded and not stored when it was killed."""

    @abstractmethod
    def kill_engine(self) -> None: ...

    @abstractmethod
    def kill_both(self) -> None: ...

    @abstractmethod
    def stop(self) -> None: ...


class Embedded(Stage):
    """The gateway starts its engine, starts it again when it dies, and takes it along when it ends."""

    def __init__(self, folder: Path, config: str = ""):
        self.gateway = Gateway(folder, config)
        self.opened()

    def records_withdrawn(self) -> int:
        logs = self.gateway.folder.glob("gateway-*.log")
        events = [json.loads(line) for log in logs for line in log.read_text().splitlines() if WITHDRAWN in line]
        return sum(event["records"] for event in events)

    def kill_engine(self) -> None:
        engine = self.gateway.engine_pid()
        os.kill(engine, signal.SIGKILL)
        wait_gone(engine)

    def kill_both(self) -> None:
        os.kill(self.gateway.engine_pid(), signal.SIGKILL)
        self.kill_gateway()

    def kill_gateway(self) -> None:
        engine = self.gateway.engine_pid()
        super().kill_gateway()
        wait_gone(engine)

    def stop(self) -> None:
        self.gateway.stop()


class InProcess(Stage):
    """DuckDB dies with its gateway."""

    language = DuckDb()
    victims = tuple(victim for victim in VICTIMS if victim.startswith("gateway"))

    def __init__(self, folder: Path, config: str = "", environment: dict[str, str] | None = None):
        # Beside what the gateway itself keeps: a full disk is full for both.
        (folder / "data").mkdir(parents=True, mode=0o700, exist_ok=True)
        self.gateway = DuckDbGateway(folder, f"duckdb://{folder / 'data' / 'chaos.db'}", config, environment)
        self.opened()

    def opened(self) -> None:
        self._http = replace(self.gateway.http, native_port=self.gateway.native_port)

    def letters(self) -> list[tuple[str, str, str]]:
        found = DeadLetters(self.gateway, "default").all()
        return [(letter["table"], letter["query_id"], letter["error"]) for letter in found]

    def records_withdrawn(self) -> int:
        return 0

    def kill_engine(self) -> None:
        raise AssertionError("it has no process of its own")

    def kill_both(self) -> None:
        raise AssertionError("they are one process")

    def stop(self) -> None:
        self.gateway.stop()


class BehindAdbc(Stage):
    """A PostgreSQL that goes on with what it was sent when the gateway is killed, and is started again when it is."""

    language = PostgreSql()
    victims = (*VICTIMS, "engine")

    def __init__(self, folder: Path, config: str = ""):
        self.postgres = Postgres(folder / "postgres")
        self.gateway = AdbcGateway(folder / "gateway", self.postgres.url, config)
        self.opened()

    def opened(self) -> None:
        self._http = self.gateway.http

    def letters(self) -> list[tuple[str, str, str]]:
        found = DeadLetters(self.gateway, "default").all()
        return [(letter["table"], letter["query_id"], letter["error"]) for letter in found]

    def records_withdrawn(self) -> int:
        return 0

    def kill_engine(self) -> None:
        self.postgres.kill()
        self.postgres.start()

    def kill_both(self) -> None:
        self.kill_gateway()
        self.kill_engine()

    def stop(self) -> None:
        self.gateway.stop()
        self.postgres.stop()


class Apart(Stage):
    """Killed alone, the gateway leaves an engine behind that goes on with what it was sent."""

    def __init__(
        self,
        folder: Path,
        config: str = "",
        through: str | None = None,
        port: int | None = None,
        environment: dict[str, str] | None = None,
    ):
        # Whoever runs a server has it started again when it falls.
        self.engine = KeptEngine(Engine(folder / "engine", port))
        direct = self.engine.direct
        user, password = (urllib.parse.quote(part, safe="") for part in (direct.user, direct.password))
        backend = f"http://{user}:{password}@{through or f'127.0.0.1:{direct.port}'}"
        self.gateway = RemoteGateway(folder / "gateway", backend, direct, WINDOW + config, environment)
        self.opened()

    @property
    def falls(self) -> int:
        return self.engine.falls

    def records_withdrawn(self) -> int:
        return self.engine.engine.records_withdrawn

    def kill_engine(self) -> None:
        self.engine.kill()

    def kill_both(self) -> None:
        self.kill_gateway()
        self.kill_engine()

    def stop(self) -> None:
        self.gateway.stop()
        self.engine.stop()


class Behind(Apart):
    """The gateway's way to its engine leads through a relay. The tables of the load are there."""

    def __init__(self, folder: Path, seed: int, config: str = "", environment: dict[str, str] | None = None):
        engine_port = free_port()
        self.relay = Relay(engine_port, seed)
        super().__init__(folder, config, self.relay.address, engine_port, environment)
        create_tables(self.direct, self.language)


class OfReplicas(Stage):
    """A gateway before two replicas, each of which it reaches by a way that can be cut. What befalls the engine befalls one of
    them, or what they coordinate by."""

    language = Replicated()
    # There is more that can befall the engine than the gateway.
    victims = (*VICTIMS, "engine", "engine", "engine")
    # Longer than it takes until nobody waits any more for who does not answer.
    CUT_SECONDS = 6.0

    def __init__(self, folder: Path, seed: int):
        self.rng = random.Random(seed)
        self.cluster = ReplicatedCluster(folder / "cluster")
        self.kept = [KeptEngine(replica) for replica in self.cluster.all]
        self.ways = [Relay(replica.direct.port, seed) for replica in self.cluster.all]
        backend = ",".join(backend_url(TESTER, way.address) for way in self.ways)
        self.gateway = RemoteGateway(folder / "gateway", backend, self.cluster.all[0].direct)
        self.befell: Counter[str] = Counter()
        # Of the other replica: `create_tables` asks the first.
        for statement in (statement for table in self.language.tables for statement in self.language.create(table)):
            self.cluster.all[1].direct.sql(statement)
        self.opened()

    def records_withdrawn(self) -> int:
        return sum(kept.engine.records_withdrawn for kept in self.kept)

    def kill_engine(self) -> None:
        what, number = self.rng.choice(("replica", "keeper", "way to a replica", "way to the keeper")), self.rng.randrange(2)
        self.befell[what] += 1
        if what == "replica":
            self.kept[number].kill()
        elif what == "keeper":
            self.cluster.keeper.kill()
            self.cluster.keeper.start()
        else:
            way = self.ways[number] if what == "way to a replica" else self.replica(number).to_keeper
            way.hang()
            threading.Event().wait(self.rng.choice((0.1, self.CUT_SECONDS)))
            # What was held back comes late, or never.
            if self.rng.random() < 0.5:
                way.go_away()
            way.behave()

    def replica(self, number: int) -> Replica:
        return self.cluster.all[number]

    def kill_both(self) -> None:
        self.kill_gateway()
        self.kill_engine()

    def settle(self) -> None:
        """A part of which a replica does not know whether its Keeper has it is shown until it looks, after five minutes."""
        for replica in self.cluster.all:
            for table in self.language.tables:
                self.is_whole(replica)
                replica.direct.sql(f"SYSTEM RESTART REPLICA {table.name}")
            self.is_whole(replica)

    def is_whole(self, replica: Replica) -> None:
        writable = "SELECT max(is_readonly) FROM system.replicas"
        eventually(lambda: replica.direct.answers() and replica.direct.sql(writable) == "0", "the replica is whole again")

    def are_alike(self) -> bool:
        """Whether all replicas have the same rows."""
        for table in self.language.tables:
            for replica in self.cluster.all:
                self.is_whole(replica)
                replica.direct.sql(f"SYSTEM SYNC REPLICA {table.name}")
            sums = {replica.direct.sql(f"SELECT count(), sum(cityHash64(*)) FROM {table.name}") for replica in self.cluster.all}
            if len(sums) > 1:
                return False
        return True

    def stop(self) -> None:
        self.gateway.stop()
        for kept in self.kept:
            kept.stop()
        for way in self.ways:
            way.stop()
        self.cluster.stop()
