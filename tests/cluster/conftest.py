"""Clusters whose replicas really replicate, of one shard and of two, and gateways in front of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.remote import RemoteGateway, backend_url
from harness.replicas import Replica, ReplicatedCluster, needs_replicas
from harness.users import TESTER


@pytest.fixture(scope="package")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplicatedCluster]:
    needs_replicas()
    started = ReplicatedCluster(tmp_path_factory.mktemp("cluster"))
    yield started
    started.stop()


@pytest.fixture(scope="package")
def two_shards(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ReplicatedCluster]:
    needs_replicas()
    started = ReplicatedCluster(tmp_path_factory.mktemp("shards"), shards=2)
    yield started
    started.stop()


@pytest.fixture
def replicas(cluster: ReplicatedCluster, request: pytest.FixtureRequest) -> Iterator[list[Replica]]:
    """Both are there, with a database of the test's own that `sql` speaks of."""
    with of_its_own(cluster, request):
        yield cluster.all


@pytest.fixture
def shards(two_shards: ReplicatedCluster, request: pytest.FixtureRequest) -> Iterator[list[list[Replica]]]:
    """By shard and replica, likewise."""
    with of_its_own(two_shards, request):
        yield two_shards.servers


@contextmanager
def of_its_own(cluster: ReplicatedCluster, request: pytest.FixtureRequest) -> Iterator[None]:
    name = re.sub(r"\W+", "_", f"c_{request.node.path.stem}_{request.node.name}").lower()[:120]
    cluster.everywhere(f"CREATE DATABASE {name}")
    for replica in cluster.all:
        replica.direct = replica.direct.using(name)
    yield
    for replica in cluster.all:
        replica.to_keeper.behave()
        if not replica.child.running():
            replica.start()
    for replica in cluster.all:
        replica.direct = replica.direct.using("default")
        replica.direct.sql(f"DROP DATABASE {name} SYNC")


@pytest.fixture
def start_gateway(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Callable[..., RemoteGateway]]:
    """In front of all replicas of the first shard, or at other addresses; its own user and that of the requests are the same."""
    running: list[RemoteGateway] = []
    is_sharded = "shards" in request.fixturenames

    def start(config: str = "", addresses: list[str] | None = None, url: str | None = None) -> RemoteGateway:
        of_first_shard = request.getfixturevalue("shards")[0] if is_sharded else request.getfixturevalue("replicas")
        named = addresses or [address(replica) for replica in of_first_shard]
        # With the native ports, which nobody could guess here.
        url = url or ",".join(backend_url(TESTER, where).replace("http://", "tcp://" if addresses is None else "http://") for where in named)
        gateway = RemoteGateway(tmp_path / f"gateway-{len(running)}", url, of_first_shard[0].direct, config)
        gateway.http = gateway.http.as_user(TESTER.name, TESTER.password).using(of_first_shard[0].direct.database)
        running.append(gateway)
        return gateway

    yield start
    for gateway in running:
        gateway.stop()


def address(replica: Replica) -> str:
    return f"127.0.0.1:{replica.native_port}"
