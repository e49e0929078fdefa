"""Two gateways before two shards of two replicas: whoever of them is killed, whatever way between two of them is cut, and whatever
becomes of the cluster, each insert that was acknowledged is stored once, on all replicas, and nothing else is.

Every insert has a token and rows for both shards. It is sent until it is acknowledged, each time to the other gateway, and now and
then once more.
"""

from __future__ import annotations

import http.client
import os
import random
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.inserts import INTO_T, rows
from harness.kept_engine import KeptEngine
from harness.load import Writers
from harness.ports import free_port
from harness.relay import Relay
from harness.remote import backend_url
from harness.replicas import CLUSTER, Replica, ReplicatedCluster, needs_replicas
from harness.several_gateways import MemberGateway, section
from harness.users import TESTER

# `make chaos` takes as many as of the other kills.
ROUNDS = max(2, int(os.environ.get("WINDROW_CHAOS_ROUNDS", "6")) // 3)
SEED = int(os.environ.get("WINDROW_CHAOS_SEED", "1"))
WRITERS = 8
ROWS = 5
# Longer than it takes until nobody waits any more for who does not answer.
CUT_SECONDS = (0.1, 3.0)
LOCAL = "CREATE TABLE local (a UInt64) ENGINE = ReplicatedMergeTree('/local/{}/{{shard}}', '{{replica}}') ORDER BY a"


class Repeating(Writers):
    """Writers whose inserts are acknowledged by one gateway or the other, sooner or later."""

    def __init__(self, gateways: list[Member], first: int, seed: int):
        super().__init__()
        self.gateways, self.first, self.rng = gateways, first, random.Random(seed)
        self.acknowledged: list[int] = []
        self.repeats = 0
        self.threads = [threading.Thread(target=self.write, args=(writer, self.rng.random())) for writer in range(WRITERS)]

    def write(self, writer: int, seed: float) -> None:
        rng = random.Random(seed)
        number = self.first + writer * ROWS
        while not self.stopping.is_set():
            self.insert(number, rng)
            number += WRITERS * ROWS

    def insert(self, number: int, rng: random.Random) -> None:
        numbers = range(number, number + ROWS)
        settings = {"insert_deduplication_token": f"from {number}", "wait_for_async_insert": rng.randrange(2)}
        gateway, sent, wanted = rng.randrange(2), 0, 1 + (rng.random() < 0.3)
        while wanted and not self.hopeless.is_set():
            at = self.gateways[(gateway + sent) % 2].where
            try:
                wanted -= at.insert(INTO_T, rows(*numbers), wait_for_async_insert_timeout=20, **settings).status == 200
            except (OSError, http.client.HTTPException):
                pass
            sent += 1
        self.repeats += sent - 1
        self.acknowledged.extend(numbers)

    def more(self, inserts: int) -> Callable[[], bool]:
        goal = len(self.acknowledged) + inserts * ROWS
        return lambda: len(self.acknowledged) >= goal


class Member(MemberGateway):
    """The other gateway comes to it by a way that can be cut."""

    def __init__(self, folder: Path, way: Relay, gateways: list[str], backend: str, direct: Endpoint, config: str):
        self.way = way
        super().__init__(folder, f"http://127.0.0.1:{way.backend_port}", backend, direct, config + section(gateways, f"http://{way.address}"))

    @property
    def where(self) -> Endpoint:
        """The same whether it runs or not."""
        return Endpoint("127.0.0.1", self.way.backend_port, TESTER.name, TESTER.password)


def two_gateways(folder: Path, backend: str, direct: Endpoint, config: str) -> list[Member]:
    ways = [Relay(free_port(), SEED) for _ in range(2)]
    names = [f"http://{way.address}" for way in ways]
    return [Member(folder / f"gateway-{number}", way, names, backend, direct, config) for number, way in enumerate(ways)]


def stop(gateways: list[Member]) -> None:
    for gateway in gateways:
        gateway.stop()
        gateway.way.stop()


def make(replica: Replica, number: int = 1) -> None:
    """`number`: of tables that were made one after the other."""
    replica.direct.sql(LOCAL.format(number))
    replica.direct.sql(f"CREATE TABLE t AS local ENGINE = Distributed('{CLUSTER}', default, 'local', cityHash64(a))")


def writable(replica: Replica) -> bool:
    return replica.direct.answers() and replica.direct.sql("SELECT max(is_readonly) FROM system.replicas") == "0"


def check(cluster: ReplicatedCluster, acknowledged: list[int], what: str) -> None:
    """Everything is there, once, and nothing else, on all replicas."""
    stored: list[int] = []
    wanted = sorted(acknowledged)
    everything = lambda: sum(int(shard[0].direct.sql("SELECT count() FROM local")) for shard in cluster.servers)  # noqa: E731
    for replica in cluster.all:
        eventually(lambda replica=replica: writable(replica), "the replica is whole")
    eventually(lambda: everything() >= len(wanted), f"{what}: all is stored")
    for shard in cluster.servers:
        each = []
        for replica in shard:
            # A part of which it does not know whether its Keeper has it is shown until it looks, after five minutes.
            replica.direct.sql("SYSTEM RESTART REPLICA local")
            eventually(lambda replica=replica: writable(replica), "the replica is whole")
            replica.direct.sql("SYSTEM SYNC REPLICA local")
        for replica in shard:
            each.append([int(line) for line in replica.direct.sql("SELECT a FROM local ORDER BY a").splitlines()])
        assert all(one == each[0] for one in each), f"{what}: the replicas are alike"
        stored += each[0]
    stored.sort()
    counted = Counter(stored)
    lost, doubled = [n for n in wanted if n not in counted], [n for n, times in counted.items() if times > 1]
    strange = [n for n in counted if n not in set(wanted)]
    assert not (lost or doubled or strange), f"{what}: lost {lost[:9]}, doubled {doubled[:9]}, strange {strange[:9]}"


def test_kills_and_cuts(tmp_path: Path) -> None:
    needs_replicas()
    rng = random.Random(SEED)
    cluster = ReplicatedCluster(tmp_path / "cluster", shards=2)
    for replica in cluster.all:
        make(replica)
    kept = [KeptEngine(replica) for replica in cluster.all]
    ways = [[Relay(replica.direct.port, SEED) for replica in shard] for shard in cluster.servers]
    named = [" ".join(f"http://{way.address}" for way in shard) for shard in ways]
    backend = ",".join(backend_url(TESTER, way.address) for way in ways[0])
    config = f"[backend]\ncluster = '{CLUSTER}'\nshards = {named}\n"
    gateways = two_gateways(tmp_path, backend, cluster.all[0].direct, config)
    cuts = [way for shard in ways for way in shard] + [replica.to_keeper for replica in cluster.all] + [each.way for each in gateways]
    befell: Counter[str] = Counter()

    def befall() -> None:
        what = rng.choice(("gateway", "gateway", "engine", "keeper", "cut", "cut"))
        befell[what] += 1
        if what == "gateway":
            gateway = rng.choice(gateways)
            gateway.kill()
            gateway.start()
        elif what == "engine":
            rng.choice(kept).kill()
        elif what == "keeper":
            cluster.keeper.kill()
            cluster.keeper.start()
        else:
            way = rng.choice(cuts)
            way.hang()
            threading.Event().wait(rng.choice(CUT_SECONDS))
            # What was held back comes late, or never.
            if rng.random() < 0.5:
                way.go_away()
            way.behave()

    acknowledged: list[int] = []
    try:
        for number in range(1, ROUNDS + 1):
            with Repeating(gateways, number * 1_000_000, SEED + number) as load:
                eventually(load.more(20), "inserts are acknowledged")
                for _ in range(rng.randint(1, 3)):
                    befall()
                    eventually(load.more(rng.randint(1, 20)), "inserts go on")
            acknowledged += load.acknowledged
            check(cluster, acknowledged, f"round {number}")
            print(f"round {number}: {len(load.acknowledged)} rows acknowledged, {load.repeats} repeats", flush=True)
        print("befell:", dict(befell))
    finally:
        stop(gateways)
        for each in kept:
            each.stop()
        for way in [way for shard in ways for way in shard]:
            way.stop()
        cluster.stop()


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[ReplicatedCluster]:
    needs_replicas()
    cluster = ReplicatedCluster(tmp_path / "cluster", shards=1)
    yield cluster
    cluster.stop()


def test_the_cluster_changes_under_load(tmp_path: Path, growing: ReplicatedCluster) -> None:
    (shard,) = growing.servers
    for replica in shard:
        make(replica)
    backend = ",".join(backend_url(TESTER, f"127.0.0.1:{replica.direct.port}") for replica in shard)
    gateways = two_gateways(tmp_path, backend, shard[0].direct, f"[backend]\ncluster = '{CLUSTER}'\n")
    gone: list[Replica] = []
    acknowledged: list[int] = []
    try:
        with Repeating(gateways, 1_000_000, SEED) as load:
            eventually(load.more(50), "inserts are acknowledged")
            added = [growing.join(2, number, "default") for number in (1, 2)]
            for replica in added:
                make(replica)
            growing.become([shard, added])
            eventually(load.more(200), "inserts go on with a shard more")
        acknowledged += load.acknowledged
        check(growing, acknowledged, "a shard is added")
        with Repeating(gateways, 2_000_000, SEED) as load:
            eventually(load.more(50), "inserts are acknowledged")
            successor = growing.join(2, 3, "default")
            make(successor)
            growing.become([shard, [*added, successor]])
            eventually(load.more(50), "inserts go on with a replica more")
            gone.append(added[0])
            growing.become([shard, [added[1], successor]])
            eventually(load.more(50), "inserts go on with a replica less")
        acknowledged += load.acknowledged
        check(growing, acknowledged, "a replica is replaced")
        with Repeating(gateways, 3_000_000, SEED) as load:
            eventually(load.more(50), "inserts are acknowledged")
        acknowledged += load.acknowledged
        check(growing, acknowledged, "before the tables are made anew")
        for replica in growing.all:
            replica.direct.sql("DROP TABLE local SYNC")
            replica.direct.sql("DROP TABLE t SYNC")
            make(replica, 2)
        with Repeating(gateways, 4_000_000, SEED) as load:
            eventually(load.more(200), "inserts go into the new tables")
        check(growing, load.acknowledged, "the tables are made anew")
    finally:
        stop(gateways)
        for replica in gone:
            replica.stop()
