"""A real ClickHouse cluster: shards of replicas that really replicate, with a ZooKeeper.

The embedded engine opens no interserver port by itself; `interserver.c` opens one, in one build for x86-64 only. Where
that is not at hand, tests that need it say why they don't run.
"""

from __future__ import annotations

import os
import platform
import subprocess
import tempfile
from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from harness.engine import LISTEN_FOR_EVER, Engine
from harness.paths import CACHE, engine_library
from harness.ports import free_port
from harness.relay import Relay
from harness.users import TESTER
from harness.zookeeper import ZooKeeper

SOURCE = Path(__file__).with_name("interserver.c")
#: What stands in for a folder of the library's version.
KNOWN_PACKAGE = "lib-linux-x64-gnu"
CLUSTER = "cluster"
#: So long a replica takes to see that it has lost its Keeper, and the Keeper to forget a replica that was killed.
SESSION_TIMEOUT_MS = 3000
#: A replica that is killed while it fetches the first part of a table has one part that its Keeper doesn't know: more than
#: half of its rows, for which ClickHouse leaves the table read-only until somebody looks at it (code 231).
ANY_PARTS = "<merge_tree><replicated_max_ratio_of_wrong_parts>1</replicated_max_ratio_of_wrong_parts></merge_tree>"


def needs_replicas() -> None:
    """Leaves a test out where there can be none."""
    if platform.system() != "Linux" or platform.machine() != "x86_64":
        pytest.skip("the embedded ClickHouse can be given an interserver port on Linux on x86-64 only")
    if engine_library().parent.name != KNOWN_PACKAGE:
        pytest.skip("the interserver port is known of the embedded ClickHouse in embedded/node_modules only")


def launcher() -> Path:
    """Compiled once for all runs."""
    program = CACHE / "interserver"
    if not program.exists() or program.stat().st_mtime < SOURCE.stat().st_mtime:
        CACHE.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=CACHE) as folder:
            built = Path(folder) / "interserver"
            command = ["cc", "-O1", "-Wall", "-Werror", "-rdynamic", "-o", str(built), str(SOURCE), "-ldl"]
            subprocess.run(command, check=True)
            os.replace(built, program)
    return program


class Replica(Engine):
    """One server of a cluster. It comes to the Keeper by a way of its own, which can be cut."""

    def __init__(
        self, folder: Path, shard: int, replica: int, ports: tuple[int, int], keeper: ZooKeeper, config: str
    ) -> None:
        self.shard, self.replica = shard, replica
        self.interserver_port = free_port()
        self.to_keeper = Relay(keeper.port, seed=0)
        http_port, native_port = ports
        # Two names of one address: see interserver.c.
        listens = "<listen_host>127.0.0.1</listen_host><listen_host>localhost</listen_host>"
        macros = f"<macros><shard>{shard}</shard><replica>{replica}</replica></macros>"
        interserver = f"<interserver_http_port>{self.interserver_port}</interserver_http_port>"
        environment = {"INTERSERVER_PORT": str(self.interserver_port)}
        self.own_config = listens + macros + interserver + ANY_PARTS + keeper_xml(self.to_keeper.port, f"s{shard}r{replica}")
        super().__init__(folder, http_port, self.own_config + config, (), environment, native_port)

    def know(self, config: str) -> None:
        """Starts it anew with other clusters."""
        self.configure(self.own_config + config)
        if self.child.running():
            self.kill()
        self.start()

    def command(self, options: list[str]) -> list[str]:
        return [str(launcher()), str(engine_library()), *options, "--query", LISTEN_FOR_EVER]


class ReplicatedCluster:
    """`servers[shard][replica]`, both counted from 0. The cluster's name in ClickHouse is `cluster`."""

    def __init__(self, folder: Path, shards: int = 1, replicas: int = 2) -> None:
        self.folder = folder
        self.keeper = ZooKeeper(folder / "zookeeper")
        ports = [[(free_port(), free_port()) for _ in range(replicas)] for _ in range(shards)]
        config = remote_servers([[native for _, native in shard] for shard in ports])
        self.servers = [
            [self._start(shard + 1, replica + 1, of_replica, config) for replica, of_replica in enumerate(of_shard)]
            for shard, of_shard in enumerate(ports)
        ]

    def _start(self, shard: int, replica: int, ports: tuple[int, int], config: str) -> Replica:
        return Replica(self.folder / f"s{shard}r{replica}", shard, replica, ports, self.keeper, config)

    def join(self, shard: int, replica: int, database: str) -> Replica:
        """One more server, which the cluster does not know so far. Both numbers are counted from 1, as its macros have them."""
        started = self._start(shard, replica, (free_port(), free_port()), self._clusters())
        started.direct.sql(f"CREATE DATABASE IF NOT EXISTS {database}")
        started.direct = started.direct.using(database)
        return started

    def become(self, servers: list[list[Replica]]) -> None:
        """From now on the cluster is these, as each of them knows."""
        self.servers = servers
        for server in self.all:
            server.know(self._clusters())

    def _clusters(self) -> str:
        return remote_servers([[replica.native_port for replica in shard] for shard in self.servers])

    @property
    def all(self) -> list[Replica]:
        return [server for shard in self.servers for server in shard]

    def everywhere(self, statement: str) -> None:
        """On each server: ON CLUSTER needs more than this cluster has."""
        for server in self.all:
            server.direct.sql(statement)

    def sync(self, table: str) -> None:
        """Waits until each replica has fetched what there is."""
        self.everywhere(f"SYSTEM SYNC REPLICA {table}")

    def stop(self) -> None:
        for server in self.all:
            server.to_keeper.behave()
            server.stop()
            server.to_keeper.stop()
        self.keeper.stop()


def keeper_xml(port: int, server: str) -> str:
    """`server`: a name of its own. ClickHouse ends the session of a server with its own id, and embedded ones all have the same."""
    node = f"<node><host>127.0.0.1</host><port>{port}</port></node>"
    sessions = f"<sessions_path>/clickhouse/sessions/{server}</sessions_path>"
    return f"<zookeeper>{node}{sessions}<session_timeout_ms>{SESSION_TIMEOUT_MS}</session_timeout_ms></zookeeper>"


def remote_servers(shards: list[list[int]]) -> str:
    login = f"<user>{TESTER.name}</user><password>{escape(TESTER.password)}</password>"
    server = "<replica><host>127.0.0.1</host><port>{}</port>" + login + "</replica>"
    each = ("".join(server.format(port) for port in shard) for shard in shards)
    inside = "".join(f"<shard><internal_replication>true</internal_replication>{shard}</shard>" for shard in each)
    return f"<remote_servers><{CLUSTER}>{inside}</{CLUSTER}></remote_servers>"
