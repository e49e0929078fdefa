"""Replicas that an SRV record names: who comes into it is asked, who goes out of it gets nothing new, and no insert notices."""

from __future__ import annotations

import http.client
import json
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from harness.endpoint import ClickHouseError
from harness.eventually import eventually
from harness.inserts import INTO_T, rows
from harness.load import Load
from harness.name_server import RECORD, NameServer
from harness.native import END_OF_STREAM, EXCEPTION, Native
from harness.remote import RemoteGateway, backend_url
from harness.replicas import Replica
from harness.users import TESTER

Start = Callable[..., RemoteGateway]
REPLICATED = "CREATE TABLE t (a UInt64) ENGINE = ReplicatedMergeTree('/{database}/t/{shard}', '{replica}') ORDER BY a"
PLAIN = "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a"
WHICH = "SELECT getMacro('replica')"
URL = "srv+" + backend_url(TESTER, RECORD).replace("http://", "tcp://")


@pytest.fixture
def names() -> Iterator[NameServer]:
    with NameServer() as server:
        yield server


def target(replica: Replica, priority: int = 0, weight: int = 0) -> tuple[int, int, int, str]:
    return priority, weight, replica.native_port, "localhost"


def config(names: NameServer, choice: str = "in_order") -> str:
    return f"[backend]\ndns_server = '{names.address}'\nchoice = '{choice}'\n"


def replicas_of(gateway: RemoteGateway) -> list[str]:
    """Their ports, in their order."""
    return [each["address"].rsplit(":", 1)[1] for each in json.loads(ask(gateway, "GET", "/api/v1/replicas"))["replicas"]]


def ask(gateway: RemoteGateway, method: str, path: str) -> str:
    """The admin port."""
    connection = http.client.HTTPConnection(gateway.admin.host, gateway.admin.port, timeout=60)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        assert answer.status == 200
        return answer.read().decode()
    finally:
        connection.close()


def change(gateway: RemoteGateway, names: NameServer, targets: list[tuple[int, int, int, str]] | None) -> None:
    """At once: a reload looks the record up."""
    names.targets, asked = targets, names.asked
    ask(gateway, "POST", "/api/v1/reload")
    eventually(lambda: names.asked > asked, "the record is looked up")
    if targets:
        wanted = [str(port) for _, _, port, _ in sorted(targets, key=lambda each: (each[0], -each[1], each[2]))]
        eventually(lambda: replicas_of(gateway) == wanted, "the gateway knows it")


def answering(gateway: RemoteGateway, statements: int = 100) -> Counter[str]:
    return Counter(gateway.http.sql(WHICH) for _ in range(statements))


def run(client: Native, statement: str) -> None:
    client.send(client.query(statement) + client.data())
    assert client.up_to(END_OF_STREAM, EXCEPTION)[-1].kind == END_OF_STREAM


def test_inserts_go_on_while_replicas_come_and_go(replicas: list[Replica], names: NameServer, start_gateway: Start) -> None:
    first, second = replicas
    for replica in replicas:
        replica.direct.sql(REPLICATED)
    names.targets = [target(first)]
    gateway = start_gateway(config(names), url=URL)
    assert answering(gateway) == {"1": 100}
    with Load(gateway.http, wait_for_async_insert=0) as kept, Load(gateway.http, first=10_000_000) as waited:
        for targets, answers in (([second], "2"), ([first, second], None), ([first], "1"), ([second], "2")):
            change(gateway, names, [target(replica) for replica in targets])
            assert answers is None or answering(gateway) == {answers: 100}
            [eventually(load.acknowledged_more(30), "inserts go on") for load in (kept, waited)]
        # Who is not in the record can go away.
        first.kill()
        [eventually(load.acknowledged_more(60), "inserts go on without it") for load in (kept, waited)]
    for load in (kept, waited):
        assert not load.written.refused and not load.written.uncertain
    first.start()
    wanted = sorted(kept.written.acknowledged + waited.written.acknowledged)
    stored = lambda: second.direct.sql("SELECT count(), uniqExact(a) FROM t") == f"{len(wanted)}\t{len(wanted)}"  # noqa: E731
    eventually(stored, "all are stored, each once")


def test_priorities_and_weights_are_heeded(replicas: list[Replica], names: NameServer, start_gateway: Start) -> None:
    first, second = replicas
    names.targets = [target(first, 2), target(second, 1)]
    gateway = start_gateway(config(names, "round_robin"), url=URL)
    assert answering(gateway) == {"2": 100}, "the other one is spare"
    second.kill()
    eventually(lambda: answering(gateway, 10) == {"1": 10}, "and is there when it is needed")
    second.start()
    change(gateway, names, [target(first, 1, 30), target(second, 1, 10)])
    eventually(lambda: gateway.http.sql(WHICH) == "2", "it is seen again")
    shares = answering(gateway, 200)
    assert 140 <= shares["1"] <= 160, shares


def test_a_record_that_names_nobody_changes_nothing(replicas: list[Replica], names: NameServer, start_gateway: Start) -> None:
    names.targets = [target(replicas[1])]
    gateway = start_gateway(config(names), url=URL)
    for nobody in (None, []):
        change(gateway, names, nobody)
        assert answering(gateway) == {"2": 100}
    assert replicas_of(gateway) == [str(replicas[1].native_port)]


def test_the_start_does_not_wait_for_a_name_server(replicas: list[Replica], names: NameServer, start_gateway: Start) -> None:
    gateway = start_gateway(config(names), url=URL)
    with pytest.raises(ClickHouseError, match="no replica is named"):
        gateway.http.sql(WHICH)
    names.targets = [target(replicas[1])]
    eventually(lambda: replicas_of(gateway) == [str(replicas[1].native_port)], "it is asked again")
    assert gateway.http.sql(WHICH) == "2"


def test_sessions_and_tables_of_the_first_alone_stay(replicas: list[Replica], names: NameServer, start_gateway: Start) -> None:
    first, second = replicas
    for replica in replicas:
        replica.direct.sql(PLAIN)
    names.targets = [target(first, 1), target(second, 2)]
    gateway = start_gateway(config(names), url=URL)
    assert gateway.http.insert(INTO_T, rows(1)).status == 200
    session = {"session_id": "named by a record"}
    gateway.http.sql("CREATE TEMPORARY TABLE mine (a UInt64)", **session)
    with Native(replace(gateway.http, port=gateway.native_port)).start() as client:
        run(client, "CREATE TEMPORARY TABLE of_native (a UInt64)")
        change(gateway, names, [target(second)])
        assert gateway.http.sql(WHICH) == "2"
        assert gateway.http.sql("SELECT count() FROM mine", **session) == "0"
        run(client, "INSERT INTO t SELECT 2 FROM (SELECT count() FROM of_native)")
    assert gateway.http.insert(INTO_T, rows(3)).status == 200
    assert (first.direct.sql("SELECT sum(a) FROM t"), second.direct.sql("SELECT count() FROM t")) == ("6", "0")
