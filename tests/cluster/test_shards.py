"""Rows of a Distributed table go straight to the tables of its shards: to those that ClickHouse would choose, once, and at once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.endpoint import Reply
from harness.eventually import eventually
from harness.inserts import INTO_T, rows
from harness.load import Load
from harness.middle import Middle
from harness.remote import RemoteGateway, backend_url
from harness.replicas import CLUSTER, Replica, ReplicatedCluster, needs_replicas
from harness.users import JOE, TESTER

Start = Callable[..., RemoteGateway]
Shards = list[list[Replica]]
BY_SHARDS = f"[backend]\ncluster = '{CLUSTER}'\n"
ON_DISK = {"wait_for_async_insert": 0}
LOCAL = "CREATE TABLE local ({}) ENGINE = ReplicatedMergeTree('/{{database}}/local/{{shard}}', '{{replica}}') ORDER BY tuple() {}"
KEY = "cityHash64(a)"


def make(shards: Shards, key: str = KEY, columns: str = "a UInt64", more: str = "", name: str = "t") -> None:
    for replica in every(shards):
        replica.direct.sql(LOCAL.format(columns, more))
        distributed(replica, key, name)


def distributed(replica: Replica, key: str, name: str = "t") -> None:
    key = f", {key}" if key else ""
    replica.direct.sql(f"CREATE TABLE {name} AS local ENGINE = Distributed('{CLUSTER}', currentDatabase(), 'local'{key})")


def every(shards: Shards) -> list[Replica]:
    return [replica for shard in shards for replica in shard]


def numbers(replica: Replica, table: str = "local") -> list[int]:
    return [int(line) for line in replica.direct.sql(f"SELECT a FROM {table} ORDER BY a").splitlines()]


def synced(shards: Shards) -> list[list[int]]:
    """What each shard has, on all its replicas alike."""
    of_shards = []
    for shard in shards:
        for replica in shard:
            eventually(lambda replica=replica: is_whole(replica), "the replica is whole again")
            replica.direct.sql("SYSTEM SYNC REPLICA local")
        first, *others = [numbers(replica) for replica in shard]
        assert all(other == first for other in others)
        of_shards.append(first)
    return of_shards


def is_whole(replica: Replica) -> bool:
    """Where a gateway was killed, a connection broke that ClickHouse was reading from: by that it falls now and then."""
    question = "SELECT max(is_readonly) FROM system.replicas WHERE database = currentDatabase()"
    return replica.stands() and replica.direct.sql(question) == "0"


def killed_and_started(gateway: RemoteGateway) -> None:
    before = gateway.http
    gateway.kill()
    gateway.start()
    gateway.http = gateway.http.as_user(before.user, before.password).using(before.database)


def test_rows_are_where_clickhouse_would_put_them(shards: Shards, start_gateway: Start) -> None:
    make(shards)
    gateway = start_gateway(BY_SHARDS)
    wanted = list(range(1000))
    assert gateway.http.insert(INTO_T, rows(*wanted)).status == 200
    # Read your writes, through the Distributed table: at the replicas that were written to.
    assert gateway.http.sql("SELECT count(), sum(a) FROM t SETTINGS load_balancing = 'in_order'") == f"1000\t{sum(wanted)}"
    synced(shards)
    by_clickhouse = gateway.http.sql("SELECT a FROM t WHERE cityHash64(a) % 2 = _shard_num - 1 ORDER BY a")
    assert [int(line) for line in by_clickhouse.splitlines()] == wanted
    for shard in shards:
        (local,) = {replica.direct.sql("SELECT count() > 300 FROM local") for replica in shard[:1]}
        assert local == "1", "both have some"


def test_shards_are_written_to_straight(shards: Shards, start_gateway: Start) -> None:
    make(shards)
    gateway = start_gateway(BY_SHARDS)
    # An INSERT through the Distributed table says there that another query has begun it.
    for replica in every(shards):
        replica.direct.sql("CREATE TABLE seen (a UInt64, initial UInt8 DEFAULT queryID() = initialQueryID()) ENGINE = MergeTree ORDER BY a")
        replica.direct.sql("CREATE MATERIALIZED VIEW see TO seen AS SELECT a FROM local")
    assert gateway.http.insert(INTO_T, rows(*range(100))).status == 200
    seen = [replica.direct.sql("SELECT count(), min(initial) FROM seen") for replica in every(shards)]
    assert sum(int(line.split()[0]) for line in seen) == 100
    assert {line.split()[1] for line in seen if not line.startswith("0")} == {"1"}


def test_inserts_of_one_row_are_gathered_for_each_shard(shards: Shards, start_gateway: Start) -> None:
    make(shards)
    gateway = start_gateway(BY_SHARDS)
    with Load(gateway.http) as waited, Load(gateway.http, first=10_000_000, **ON_DISK) as kept:
        eventually(waited.acknowledged_more(200), "inserts go on")
        eventually(kept.acknowledged_more(200), "inserts go on")
    acknowledged = sorted(waited.written.acknowledged + kept.written.acknowledged)
    assert not waited.written.refused and not kept.written.refused
    eventually(lambda: int(gateway.http.sql("SELECT count() FROM t")) >= len(acknowledged), "all are stored")
    assert sorted(sum(synced(shards), [])) == acknowledged
    parts = [int(shard[0].direct.sql("SELECT max(max_block_number) + 1 FROM system.parts WHERE table = 'local'")) for shard in shards]
    assert sum(parts) < len(acknowledged) / 3


def test_a_shard_that_is_away_holds_up_only_its_own_rows(shards: Shards, start_gateway: Start) -> None:
    make(shards, key="a")
    gateway = start_gateway(BY_SHARDS)
    assert gateway.http.insert(INTO_T, rows(0, 1)).status == 200
    for replica in shards[1]:
        replica.kill()
    # To both, and acknowledged when they are on the disk.
    for number in range(2, 22, 2):
        assert gateway.http.insert(INTO_T, rows(number, number + 1), **ON_DISK).status == 200
    eventually(lambda: numbers(shards[0][0]) == list(range(0, 22, 2)), "the shard that is there has its rows")
    # To the shard that is there, and acknowledged when they are stored there.
    for number in range(22, 42, 2):
        assert gateway.http.insert(INTO_T, rows(number)).status == 200
    # Of one whose other part can't be stored in time, its client is told.
    reply = gateway.http.insert(INTO_T, rows(50, 51), wait_for_async_insert_timeout=1)
    assert reply.status != 200 and "Some shards have stored their part" in reply.text
    for replica in shards[1]:
        replica.start()
    eventually(lambda: len(numbers(shards[1][0])) == 11, "the other shard gets what has waited for it")
    evens, odds = synced(shards)
    assert evens == [*range(0, 42, 2), 50] and odds == list(range(1, 22, 2))


@pytest.mark.parametrize("partitions", ["", "PARTITION BY intDiv(a, 100)"])
def test_a_repeat_is_stored_once(shards: Shards, start_gateway: Start, partitions: str) -> None:
    make(shards, more=partitions)
    gateway = start_gateway(BY_SHARDS)
    for times in range(3):
        for number in range(0, 300, 30):
            token = {"insert_deduplication_token": f"from {number}"}
            reply = gateway.http.insert(INTO_T, rows(*range(number, number + 30)), **token, **(ON_DISK if times == 1 else {}))
            assert reply.status == 200, reply.text
        if times == 1:
            killed_and_started(gateway)
    assert sorted(sum(synced(shards), [])) == list(range(300))


def test_acknowledged_pieces_outlive_the_gateway(shards: Shards, start_gateway: Start) -> None:
    make(shards)
    gateway = start_gateway(BY_SHARDS)
    assert gateway.http.insert(INTO_T, rows(1)).status == 200
    for replica in every(shards[1:]):
        replica.kill()
    wanted = list(range(100, 200))
    for number in wanted:
        assert gateway.http.insert(INTO_T, rows(number), **ON_DISK).status == 200
    killed_and_started(gateway)
    for replica in every(shards[1:]):
        replica.start()
    eventually(lambda: int(gateway.http.sql("SELECT count() FROM t")) >= 101, "all are stored")
    assert sorted(sum(synced(shards), [])) == [1, *wanted]


def test_what_can_not_be_cut_goes_through_the_distributed_table(shards: Shards, start_gateway: Start) -> None:
    make(shards, columns="a UInt64, b UInt64 DEFAULT a + 7, c String", key="cityHash64(b)")
    gateway = start_gateway(BY_SHARDS)
    # The column of the key is not there, and its default is not worked out here.
    assert gateway.http.insert(INTO_T, rows(1, 2, 3)).status == 200
    assert gateway.http.insert(INTO_T, '{"a":4,"b":5}').status == 200
    for replica in every(shards):
        distributed(replica, "length(extract(c, 'x+'))", "odd")
        replica.direct.sql(f"CREATE TABLE other (a UInt64 DEFAULT 9, b UInt64) ENGINE = Distributed('{CLUSTER}', currentDatabase(), 'local', b)")
    # A key that nobody here understands, and a default that the shards' table has not.
    assert gateway.http.insert("INSERT INTO odd FORMAT JSONEachRow", '{"a":5,"c":"xx"}').status == 200
    assert gateway.http.insert("INSERT INTO other FORMAT JSONEachRow", '{"b":6}').status == 200
    wanted = "1\t8\n2\t9\n3\t10\n4\t5\n5\t12\n9\t6"
    # ClickHouse sends what is another shard's later; the embedded one only when it is told to.
    for table in ("t", "odd", "other"):
        shards[0][0].direct.sql(f"SYSTEM FLUSH DISTRIBUTED {table}")
    synced(shards)
    assert gateway.http.sql("SELECT a, b FROM t ORDER BY a, b") == wanted
    misplaced = "SELECT count() FROM t WHERE cityHash64(b) % 2 != _shard_num - 1 AND a < 5"
    assert gateway.http.sql(misplaced) == "0"


@pytest.mark.parametrize("is_known", [True, False], ids=["known before", "not asked before"])
def test_a_shard_without_the_table_is_waited_for(shards: Shards, start_gateway: Start, is_known: bool) -> None:
    """It is attached again in a moment, or made soon. A Distributed table would take the rows, and keep them on one server."""
    make(shards, key="a")
    gateway = start_gateway(BY_SHARDS + "[gather]\nschema_ttl_ms = 200\n")
    if is_known:
        assert gateway.http.insert(INTO_T, rows(0, 1)).status == 200
    for replica in shards[1]:
        replica.direct.sql("DETACH TABLE local")
    # Whatever was known of the table is doubted.
    gateway.http.sql("ALTER TABLE t MODIFY COMMENT 'new'")
    for number in range(2, 12, 2):
        assert gateway.http.insert(INTO_T, rows(number, number + 1), **ON_DISK).status == 200
    there = list(range(0 if is_known else 2, 12, 2))
    eventually(lambda: numbers(shards[0][0]) == there, "the shard that has the table has its rows")
    for replica in shards[1]:
        replica.direct.sql("ATTACH TABLE local")
    eventually(lambda: numbers(shards[1][0]) == [number + 1 for number in there], "the other one gets its rows")
    assert synced(shards) == [there, [number + 1 for number in there]]
    queued = [replica.direct.sql("SELECT sum(data_files) FROM system.distribution_queue") for replica in every(shards)]
    assert queued == ["0"] * len(queued)


def test_refused_rows_are_refused_by_their_shard(shards: Shards, start_gateway: Start) -> None:
    make(shards, key="a", columns="a UInt64, CONSTRAINT small CHECK a < 1000")
    gateway = start_gateway(BY_SHARDS)
    reply = gateway.http.insert(INTO_T, rows(2001))
    assert reply.status != 200 and "VIOLATED_CONSTRAINT" in reply.text, reply.text
    assert gateway.http.insert(INTO_T, rows(1, 2, 3)).status == 200
    assert gateway.http.insert(INTO_T, rows(3000), **ON_DISK).status == 200
    letters = lambda: json.loads(gateway.http.sql("SELECT toString(count()) FROM system.windrow_dead_letters"))  # noqa: E731
    eventually(lambda: letters() == 1, "what was acknowledged becomes a dead letter")
    assert synced(shards) == [[2], [1, 3]]


def test_the_shards_may_be_named_in_the_settings(shards: Shards, start_gateway: Start) -> None:
    make(shards)
    named = [" ".join(f"http://127.0.0.1:{replica.direct.port}" for replica in shard) for shard in shards]
    gateway = start_gateway(BY_SHARDS + f"shards = {named}\n")
    assert gateway.http.insert(INTO_T, rows(*range(100))).status == 200
    assert sorted(sum(synced(shards), [])) == list(range(100))


def test_a_shard_that_goes_away_while_it_is_asked_is_none_of_another_kind(shards: Shards, start_gateway: Start) -> None:
    make(shards)
    first, (asked, _) = shards
    with Middle(asked.direct.port) as middle:
        ports = [first[0].direct.port, middle.port]
        gateway = start_gateway(BY_SHARDS + f"shards = {[f'http://127.0.0.1:{port}' for port in ports]}\n")
        token = {"insert_deduplication_token": "x"}
        assert gateway.http.insert(INTO_T, rows(*range(100)), **token).status == 200
        # It says what its table is, but not how much of it is deduplicated if the table itself does not say that.
        middle.cuts = b"replicated_deduplication_window"
        killed_and_started(gateway)
        assert gateway.http.insert(INTO_T, rows(*range(100)), **token).status == 200
        assert middle.reached.is_set()
        middle.cuts = None
        assert gateway.http.insert(INTO_T, rows(*range(100, 200))).status == 200
        assert sorted(sum(synced(shards), [])) == list(range(200))


def test_one_who_may_not_insert_into_the_shards_tables_hears_it_from_clickhouse(shards: Shards, start_gateway: Start) -> None:
    make(shards)
    database = shards[0][0].direct.database
    for replica in every(shards):
        replica.direct.sql("CREATE DATABASE narrow")
        replica.direct.sql(f"CREATE TABLE narrow.t (a UInt64) ENGINE = Distributed('{CLUSTER}', '{database}', 'local', {KEY})")
    try:
        gateway = start_gateway(BY_SHARDS)
        gateway.http = gateway.http.as_user(JOE.name, JOE.password).using("narrow")
        straight = shards[0][0].direct.as_user(JOE.name, JOE.password).using("narrow")
        replies = [endpoint.insert("INSERT INTO t (a) FORMAT JSONEachRow", rows(*range(100))) for endpoint in (straight, gateway.http)]
        # A Distributed table writes to its own server's table as whoever inserts.
        assert {(reply.status, reply.text) for reply in replies} == {(500, replies[0].text)} and "ACCESS_DENIED" in replies[0].text
        assert synced(shards) == [[], []]
    finally:
        for replica in every(shards):
            replica.direct.sql("DROP DATABASE narrow SYNC")


@pytest.fixture
def growing(tmp_path: Path) -> Iterator[ReplicatedCluster]:
    """A cluster of one server, which a test may let grow."""
    needs_replicas()
    started = ReplicatedCluster(tmp_path / "growing", shards=1, replicas=1)
    started.everywhere("CREATE DATABASE grows")
    for server in started.all:
        server.direct = server.direct.using("grows")
    yield started
    started.stop()


@pytest.fixture
def before_it(tmp_path: Path, growing: ReplicatedCluster) -> Iterator[RemoteGateway]:
    url = backend_url(TESTER, f"127.0.0.1:{growing.all[0].direct.port}")
    gateway = RemoteGateway(tmp_path / "gateway", url, growing.all[0].direct, BY_SHARDS)
    gateway.http = gateway.http.as_user(TESTER.name, TESTER.password).using("grows")
    yield gateway
    gateway.stop()


def knows_shards(gateway: RemoteGateway, count: int) -> None:
    said = f'"shards":{count}'
    eventually(lambda: said in gateway.child.log(), f"the gateway knows {count} shards")


def with_token(gateway: RemoteGateway, first: int, **settings: object) -> int:
    token = {"insert_deduplication_token": f"from {first}"}
    return gateway.http.insert(INTO_T, rows(*range(first, first + 10)), **token, **settings).status


def test_a_shard_is_added(growing: ReplicatedCluster, before_it: RemoteGateway) -> None:
    # As many inserts as may come while the cluster grows: ClickHouse's default is 10,000, and a repeat of an older one is new.
    window = "SETTINGS replicated_deduplication_window = 1000000"
    make(growing.servers, more=window)
    tokens = range(0, 200, 10)
    assert {with_token(before_it, first) for first in tokens} == {200}
    with Load(before_it.http, first=1_000_000, **ON_DISK) as load:
        eventually(load.acknowledged_more(50), "inserts go on")
        added = growing.join(2, 1, "grows")
        make([[added]], more=window)
        growing.become([*growing.servers, [added]])
        knows_shards(before_it, 2)
        eventually(load.acknowledged_more(100), "inserts go on")
    # What was stored when there was one shard is known again, also by a gateway that was started since.
    assert {with_token(before_it, first) for first in tokens} == {200}
    killed_and_started(before_it)
    assert {with_token(before_it, first, **ON_DISK) for first in tokens} == {200}
    later = range(200, 400, 10)
    assert {with_token(before_it, first) for first in [*later, *later]} == {200}
    wanted = [*range(400), *sorted(load.written.acknowledged)]
    assert not load.written.refused and not load.written.uncertain
    eventually(lambda: int(before_it.http.sql("SELECT count() FROM t")) >= len(wanted), "all are stored")
    assert sorted(sum(synced(growing.servers), [])) == wanted
    moved = before_it.http.sql("SELECT count() FROM t WHERE a >= 200 AND a < 400 AND cityHash64(a) % 2 != _shard_num - 1")
    assert moved == "0"


def test_a_replica_is_replaced(growing: ReplicatedCluster, before_it: RemoteGateway) -> None:
    make(growing.servers)
    ((first,),) = growing.servers
    second = growing.join(2, 1, "grows")
    make([[second]])
    growing.become([[first], [second]])
    knows_shards(before_it, 2)
    with Load(before_it.http, **ON_DISK) as load:
        eventually(load.acknowledged_more(50), "inserts go on")
        successor = growing.join(2, 2, "grows")
        make([[successor]])
        successor.direct.sql("SYSTEM SYNC REPLICA local")
        growing.become([[first], [second, successor]])
        eventually(load.acknowledged_more(50), "inserts go on")
        growing.become([[first], [successor]])
        eventually(load.acknowledged_more(50), "inserts go on")
    wanted = sorted(load.written.acknowledged)
    assert not load.written.refused and not load.written.uncertain
    # What only the former replica has would go with it.
    all_are_there = lambda: len(numbers(first)) + len(numbers(successor)) >= len(wanted)  # noqa: E731
    eventually(all_are_there, "all are stored, and fetched")
    second.kill()
    assert sorted(sum(synced(growing.servers), [])) == wanted
    second.to_keeper.stop()


def test_the_tables_are_made_anew(shards: Shards, start_gateway: Start) -> None:
    make(shards)
    gateway = start_gateway(BY_SHARDS)
    token = {"insert_deduplication_token": "x"}
    assert gateway.http.insert(INTO_T, rows(*range(100)), **token).status == 200
    for replica in every(shards):
        replica.direct.sql("DROP TABLE local SYNC")
        replica.direct.sql("DROP TABLE t SYNC")
    # With other columns, and another key.
    make(shards, columns="a UInt64, b String DEFAULT 'x'", key="a")
    # Through the gateway, which doubts from then on what it knew: also that it has stored such rows.
    gateway.http.sql("ALTER TABLE local MODIFY COMMENT 'new'")
    assert gateway.http.insert(INTO_T, rows(*range(10)), **token).status == 200
    assert [{number % 2 for number in of_shard} for of_shard in synced(shards)] == [{0}, {1}]
    assert set(sum(synced(shards), [])) == set(range(10))


@pytest.mark.parametrize("has_token", [True, False], ids=["by its token", "by its rows"])
def test_a_repeat_that_can_not_be_cut_is_not_stored_again(shards: Shards, start_gateway: Start, has_token: bool) -> None:
    """Its parts are known, and what they are can't be told while the shards' tables differ."""
    make(shards)
    gateway = start_gateway(BY_SHARDS + "[gather]\nschema_ttl_ms = 200\n")
    change = lambda how: shards[1][0].direct.sql(f"ALTER TABLE local MODIFY COLUMN a {how} SETTINGS alter_sync = 2")

    def insert(name: str, numbers: range) -> Reply:
        return gateway.http.insert(INTO_T, rows(*numbers), **({"insert_deduplication_token": name} if has_token else {}))

    first, second = ("first", range(5000)), ("second", range(5000, 5010))
    assert insert(*first).status == 200
    change("DEFAULT 5")
    # Until that is seen, a repeat is told what the first was told.
    eventually(lambda: insert(*first).status != 200, "the tables differ")
    refused = insert(*first)
    assert refused.status == 503 and refused.headers["retry-after"], refused.text
    assert refused.code == 319 and "(UNKNOWN_STATUS_OF_INSERT)" in refused.text
    killed_and_started(gateway)
    assert insert(*first).status == 503
    if has_token:
        # ClickHouse reads its rows, and does not know the parts' names.
        named = {"insert_deduplication_token": "first"}
        assert gateway.http.request("INSERT INTO t SELECT number FROM numbers(5000)", settings=named).code == 319
    # What is new goes through the Distributed table, and is known from then on by its token, however it comes again.
    assert [insert(*second).status for _ in range(1 + has_token)] == [200] * (1 + has_token)
    change("REMOVE DEFAULT")
    eventually(lambda: insert(*first).status == 200, "the tables are alike")
    assert not has_token or insert(*second).status == 200
    shards[0][0].direct.sql("SYSTEM FLUSH DISTRIBUTED t")
    assert sorted(sum(synced(shards), [])) == list(range(5010))
