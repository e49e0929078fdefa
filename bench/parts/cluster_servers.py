"""What measurements of a cluster have in common: its servers, their CPU time, and gateways in front of them."""

from argparse import Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pytest import skip

from harness.remote import RemoteGateway, backend_url
from harness.replicas import CLUSTER, ReplicatedCluster, needs_replicas
from harness.users import TESTER

from bench.base.processes import descendants, usage
from bench.base.scenario import FLUSHED_WITHIN_SECONDS

# What the embedded ClickHouse says when the gateway, which has flushed, asks it as well: it has no queue.
NO_QUEUE = 36
BY_SHARDS = f"[backend]\ncluster = '{CLUSTER}'\n"


@contextmanager
def servers(folder: Path, shards: int, replicas: int) -> Iterator[ReplicatedCluster]:
    try:
        needs_replicas()
    except skip.Exception as reason:
        raise SystemExit(str(reason)) from None
    started = ReplicatedCluster(folder, shards, replicas)
    try:
        started.everywhere("CREATE DATABASE bench")
        yield started
    finally:
        started.stop()


@contextmanager
def gateway_before(cluster: ReplicatedCluster, folder: Path, options: Namespace, config: str = "") -> Iterator[RemoteGateway]:
    """In front of the first shard's replicas, and of the other shards if `config` says so. Its own user is that of the load."""
    addresses = [f"127.0.0.1:{replica.native_port}" for replica in cluster.servers[0]]
    url = ",".join(backend_url(TESTER, address).replace("http://", "tcp://") for address in addresses)
    environment = dict(pair.split("=", 1) for pair in options.env)
    gateway = RemoteGateway(folder, url, cluster.all[0].direct, config, environment)
    gateway.http = gateway.http.as_user(TESTER.name, TESTER.password)
    try:
        yield gateway
    finally:
        gateway.stop()


def flush(gateway: RemoteGateway) -> None:
    """Until what was acknowledged before is stored."""
    reply = gateway.http.request("SYSTEM FLUSH ASYNC INSERT QUEUE", timeout_seconds=FLUSHED_WITHIN_SECONDS)
    if reply.status != 200 and reply.code != NO_QUEUE:
        raise SystemExit(f"the gateway was not flushed: {reply.text}")


def cpu_seconds(cluster: ReplicatedCluster) -> float:
    """Of all ClickHouse servers together, without the Keeper."""
    return sum(usage(pid).cpu_seconds for server in cluster.all for pid in (server.child.pid, *descendants(server.child.pid)))
