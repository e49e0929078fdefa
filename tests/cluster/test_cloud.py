"""What services of others do: they want a quorum, they sleep until somebody comes, they lose their Keeper (test_replicas.py)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from harness.eventually import eventually
from harness.inserts import INTO_T, rows
from harness.relay import Relay
from harness.remote import RemoteGateway
from harness.replicas import Replica

Start = Callable[..., RemoteGateway]
REPLICATED = "CREATE TABLE t (a UInt64) ENGINE = ReplicatedMergeTree('/{database}/t/{shard}', '{replica}') ORDER BY a"


def numbers(replica: Replica) -> list[int]:
    return [int(line) for line in replica.direct.sql("SELECT a FROM t ORDER BY a").splitlines()]


def test_what_a_quorum_was_asked_for_is_on_all_replicas_when_it_is_acknowledged(replicas: list[Replica], start_gateway: Start) -> None:
    for replica in replicas:
        replica.direct.sql(REPLICATED)
    gateway = start_gateway()
    for number in range(20):
        reply = gateway.http.insert(INTO_T, rows(number), insert_quorum=2)
        assert reply.status == 200, reply.text
        assert [numbers(replica) for replica in replicas] == [list(range(number + 1))] * 2


def test_inserts_wait_for_a_service_that_sleeps(replicas: list[Replica], start_gateway: Start) -> None:
    """It takes connections at once, and answers when it is awake: what stands before a service does so."""
    for replica in replicas:
        replica.direct.sql(REPLICATED)
    with Relay(replicas[0].direct.port, seed=0) as front, ThreadPoolExecutor() as pool:
        gateway = start_gateway(addresses=[front.address])
        # Of both kinds it is known by then that they may be inserted.
        assert gateway.http.insert(INTO_T, rows(0)).status == 200
        assert gateway.http.insert(INTO_T, rows(1), wait_for_async_insert=0).status == 200
        front.hang()
        for number in range(2, 20):
            assert gateway.http.insert(INTO_T, rows(number), wait_for_async_insert=0).status == 200
        waiting = [pool.submit(gateway.http.insert, INTO_T, rows(number)) for number in range(20, 40)]
        assert not any(insert.done() for insert in waiting)
        front.behave()
        assert [insert.result(180).status for insert in waiting] == [200] * 20
        eventually(lambda: numbers(replicas[0]) == list(range(40)), "all is stored, once")
