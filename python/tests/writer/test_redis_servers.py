"""A Redis behind TLS, one that Sentinel chooses, and one of a cluster: rows get there, and go on when it moves."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import windrow
from harness import certificate
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.ports import free_port
from harness.process import Child
from harness.redis import Redis
from windrow import exceptions

COLUMNS = ["n", "text"]
StartRedis = Callable[..., Redis]


def stored_once(table: Endpoint, numbers: range) -> None:
    eventually(lambda: int(table.sql("SELECT count() FROM t")) >= len(numbers), "all is stored")
    assert table.sql("SELECT count(), uniqExact(n), min(n), max(n) FROM t").split() == [
        str(len(numbers)), str(len(numbers)), str(numbers[0]), str(numbers[-1])
    ]  # fmt: skip


def write(writer: windrow.Writer, numbers: range) -> None:
    writer.write_rows([(n, "x") for n in numbers])


class Secured:
    """A Redis with a port for TLS, and the certificate that it shows there."""

    def __init__(self, folder: Path, start_redis: StartRedis, names: str = "IP:127.0.0.1") -> None:
        folder.mkdir()
        self.cert, key = certificate.made_in(folder, names)
        self.port = free_port()
        files = ("--tls-cert-file", str(self.cert), "--tls-key-file", str(key), "--tls-ca-cert-file", str(self.cert))
        self.redis = start_redis("--tls-port", str(self.port), "--tls-auth-clients", "no", *files)

    def address(self, options: str) -> str:
        return f"rediss://127.0.0.1:{self.port}/0?bucket=b{options}"


@pytest.fixture
def secured(tmp_path: Path, start_redis: StartRedis) -> Secured:
    return Secured(tmp_path / "tls", start_redis)


def test_rows_go_over_tls(client: windrow.Client, table: Endpoint, secured: Secured) -> None:
    with client.writer("t", COLUMNS, buffer=secured.address(f"&ca_file={secured.cert}")) as writer:
        write(writer, range(1, 500))
        secured.redis.call("CLIENT", "KILL", "TYPE", "normal")
        write(writer, range(500, 990))
    stored_once(table, range(1, 990))


def test_a_server_that_is_not_trusted_gets_no_rows(
    client: windrow.Client, table: Endpoint, secured: Secured, tmp_path: Path, start_redis: StartRedis
) -> None:
    other = Secured(tmp_path / "other", start_redis, "DNS:elsewhere.example")
    missing = tmp_path / "none.pem"
    for buffer, word in (
        (secured.address(""), "certificate"),
        (secured.address(f"&ca_file={other.cert}"), "certificate"),
        (other.address(f"&ca_file={other.cert}"), "certificate"),
        (secured.address(f"&ca_file={missing}"), "No such file"),
        (f"rediss://127.0.0.1:{secured.redis.port}/0?ca_file={secured.cert}", ""),
        (f"redis://127.0.0.1:{secured.port}/0?answer_limit=1", ""),
    ):
        with pytest.raises(exceptions.OperationalError, match=f"(?i){word}"):
            client.writer("t", COLUMNS, buffer=buffer)
    assert secured.redis.keys() == []


class Sentinel:
    """Watches a master and its replica, and gives its place to the replica when it is gone."""

    def __init__(self, folder: Path, master: Redis) -> None:
        folder.mkdir()
        self.port = free_port()
        (folder / "sentinel.conf").write_text(
            f"port {self.port}\nbind 127.0.0.1\ndir {folder}\nsentinel monitor main 127.0.0.1 {master.port} 1\n"
            "sentinel down-after-milliseconds main 500\nsentinel failover-timeout main 5000\n"
        )
        program = shutil.which("redis-server")
        assert program is not None
        self.child = Child([program, str(folder / "sentinel.conf"), "--sentinel"], folder / "sentinel.log")
        eventually(lambda: "+monitor" in self.child.log(), "Sentinel watches")


@pytest.fixture
def failing_over(tmp_path: Path, start_redis: StartRedis) -> Iterator[tuple[Redis, Redis, Sentinel]]:
    master = start_redis()
    replica = start_redis("--replicaof", f"127.0.0.1 {master.port}")
    eventually(lambda: "master_link_status:up" in replica.call("INFO", "replication"), "the replica follows")
    sentinel = Sentinel(tmp_path / "sentinel", master)
    eventually(lambda: "+slave" in sentinel.child.log(), "Sentinel knows the replica")
    yield master, replica, sentinel
    sentinel.child.stop()


@pytest.mark.parametrize("goes", [Redis.kill, Redis.pause], ids=["killed", "silent"])
def test_the_master_is_the_one_that_sentinel_names(
    client: windrow.Client, table: Endpoint, failing_over: tuple[Redis, Redis, Sentinel], goes: Callable[[Redis], None]
) -> None:
    master, replica, sentinel = failing_over
    nobody = free_port()
    hosts = f"redis://127.0.0.1:{nobody},127.0.0.1:{sentinel.port}/0"
    with pytest.raises(exceptions.OperationalError, match="no master called other"):
        client.writer("t", COLUMNS, buffer=f"{hosts}?sentinel=other")
    with client.writer("t", COLUMNS, buffer=f"{hosts}?sentinel=main&bucket=b&patience=60&answer_limit=2") as writer:
        table.sql("RENAME TABLE t TO away")
        write(writer, range(1, 500))
        assert any("windrow:b" in key for key in master.keys())
        goes(master)
        # They wait until there is another one, which is told what the living writer holds. Of a master that is silent it is
        # waited for one answer, and not for that of each call: patience would be over.
        with ThreadPoolExecutor(49) as calls:
            for written in [calls.submit(write, writer, range(n, n + 10)) for n in range(500, 990, 10)]:
                written.result()
        assert replica.call("ROLE")[2] == "master"
        table.sql("RENAME TABLE away TO t")
        stored_once(table, range(1, 990))


def slot_of(node: Redis, bucket: str) -> str:
    (answer,) = node.call("CLUSTER", "KEYSLOT", f"{{windrow:{bucket}}}:lanes")
    return answer.removeprefix(":")


def name_of(node: Redis) -> str:
    return node.call("CLUSTER", "MYID")[1]


@pytest.fixture
def cluster(start_redis: StartRedis) -> list[Redis]:
    """Two nodes, half of the slots each."""
    nodes = [start_redis("--cluster-enabled", "yes", "--cluster-node-timeout", "2000") for _ in range(2)]
    for node, (first, last) in zip(nodes, ((0, 8191), (8192, 16383)), strict=True):
        assert node.call("CLUSTER", "ADDSLOTSRANGE", first, last) == ["+OK"]
    nodes[0].call("CLUSTER", "MEET", "127.0.0.1", nodes[1].port)
    for node in nodes:
        eventually(lambda node=node: "cluster_state:ok" in node.call("CLUSTER", "INFO"), "the cluster is whole")
    return nodes


def test_each_bucket_lies_on_its_node(client: windrow.Client, table: Endpoint, cluster: list[Redis]) -> None:
    buckets = {}
    for number in range(100):
        buckets.setdefault(int(slot_of(cluster[0], f"b{number}")) > 8191, f"b{number}")
    hosts = f"redis://127.0.0.1:{cluster[0].port}/0?cluster=true"
    writers = [client.writer("t", COLUMNS, buffer=f"{hosts}&bucket={buckets[half]}") for half in (False, True)]
    table.sql("RENAME TABLE t TO away")
    for number, writer in enumerate(writers):
        write(writer, range(1 + number * 400, 401 + number * 400))
    for node, bucket in zip(cluster, (buckets[False], buckets[True]), strict=True):
        assert any(f"windrow:{bucket}" in key for key in node.keys())
    table.sql("RENAME TABLE away TO t")
    for writer in writers:
        writer.close()
    stored_once(table, range(1, 801))


def test_a_bucket_that_moves_to_another_node_is_followed(
    client: windrow.Client, table: Endpoint, cluster: list[Redis]
) -> None:
    slot = slot_of(cluster[0], "b")
    source, target = cluster if int(slot) < 8192 else cluster[::-1]
    hosts = ",".join(f"127.0.0.1:{node.port}" for node in cluster)
    with client.writer("t", COLUMNS, buffer=f"redis://{hosts}/?cluster=true&bucket=b&patience=60") as writer:
        table.sql("RENAME TABLE t TO away")
        write(writer, range(1, 500))
        assert target.call("CLUSTER", "SETSLOT", slot, "IMPORTING", name_of(source)) == ["+OK"]
        assert source.call("CLUSTER", "SETSLOT", slot, "MIGRATING", name_of(target)) == ["+OK"]
        while keys := source.call("CLUSTER", "GETKEYSINSLOT", slot, 100)[2::2]:
            moved = source.call("MIGRATE", "127.0.0.1", target.port, "", 0, 5000, "KEYS", *keys)
            assert moved in (["+OK"], ["+NOKEY"])
        for node in (target, source):
            assert node.call("CLUSTER", "SETSLOT", slot, "NODE", name_of(target)) == ["+OK"]
        write(writer, range(500, 990))
        assert any("windrow:b" in key for key in target.keys())
        assert source.keys() == []
        table.sql("RENAME TABLE away TO t")
        stored_once(table, range(1, 990))
