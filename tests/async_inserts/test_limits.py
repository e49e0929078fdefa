"""What is bounded: memory, other tables' patience, headers, bodies, slow senders."""

from __future__ import annotations

import gzip
import zlib

import pytest

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gate import Gate
from harness.gateway import Gateway
from harness.inserts import HELD_IN_MEMORY, HELD_NOT_WAITING, INTO_T, Background, ids, make_table, queued_inserts, rows
from harness.process import resident_bytes
from harness.raw_http import RawConnection, head
from harness.users import TESTER

TEXT = "x" * 100_000


def big_row(number: int) -> str:
    return f'{{"a":{number},"s":"{TEXT}"}}'


def test_memory_is_bounded(start_gateway) -> None:
    gateway: Gateway = start_gateway("[gather]\nmax_buffer_bytes = '2MiB'\nmax_table_share = 1.0\noverload_wait_ms = 50\n")
    tested = gateway.http.as_user(TESTER.name, TESTER.password)
    make_table(gateway.direct, "a UInt64, s String")
    taken = 0
    while (reply := tested.insert(INTO_T, big_row(taken), **HELD_IN_MEMORY)).status == 200:
        taken += 1
        assert taken < 100, "2 MiB never fill up"
    assert (reply.status, reply.code) == (503, 241), reply.text
    assert int(reply.headers["retry-after"]) >= 1
    assert taken >= 10, "2 MiB hold more than ten rows of 100 kB"
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert ids(gateway.direct) == list(range(taken))
    assert tested.insert(INTO_T, big_row(taken)).status == 200


def test_one_table_may_not_take_it_all(start_gateway) -> None:
    gateway: Gateway = start_gateway("[gather]\nmax_buffer_bytes = '4MiB'\nmax_table_share = 0.5\noverload_wait_ms = 50\n")
    tested = gateway.http.as_user(TESTER.name, TESTER.password)
    for name in ("t", "u"):
        make_table(gateway.direct, "a UInt64, s String", name)
    for number in range(100):
        if tested.insert(INTO_T, big_row(number), **HELD_IN_MEMORY).status == 503:
            break
    else:
        raise AssertionError("the table was never full")
    assert tested.insert("INSERT INTO u FORMAT JSONEachRow", big_row(0), **HELD_IN_MEMORY).status == 200


def test_overloaded_insert_gets_room_when_it_comes(start_gateway) -> None:
    gateway: Gateway = start_gateway("[gather]\nmax_buffer_bytes = '2MiB'\nmax_table_share = 1.0\noverload_wait_ms = 60000\n")
    tested = gateway.http.as_user(TESTER.name, TESTER.password)
    make_table(gateway.direct, "a UInt64, s String")
    with Background(tested) as background:
        inserts = [background.insert(big_row(n), **HELD_IN_MEMORY) for n in range(30)]
        eventually(lambda: queued_inserts(tested) >= 10, "the buffer is full")
        eventually(lambda: tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE") == "" and all(i.answered() for i in inserts), "all get in")
        assert {insert.reply().status for insert in inserts} == {200}
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert ids(gateway.direct) == list(range(30))


def test_what_is_kept_on_disk_needs_no_memory(start_gateway) -> None:
    """Ten times as much as the buffers hold, while nothing can be stored: taken, kept, and stored in the end."""
    gateway: Gateway = start_gateway("[gather]\nmax_buffer_bytes = '2MiB'\noverload_wait_ms = 0\n")
    tested = gateway.http.as_user(TESTER.name, TESTER.password)
    make_table(gateway.direct, "a UInt64, s String")
    with Gate() as gate:
        gate.stand_behind(gateway.direct, "t")
        for number in range(200):
            reply = tested.insert(INTO_T, big_row(number), **HELD_NOT_WAITING)
            assert reply.status == 200, reply.text
        gate.open()
        tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert ids(gateway.direct) == list(range(200))


def test_slow_table_holds_nobody_up(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """While one table's flush can't end, inserts into another are stored one after the other."""
    make_table(direct)
    make_table(direct, name="u")
    with Gate() as gate, Background(tested) as background:
        gate.stand_behind(direct, "t")
        slow = background.insert(rows(1))
        gate.await_insert()
        for number in range(100):
            assert tested.insert("INSERT INTO u FORMAT JSONEachRow", rows(number)).status == 200
        assert not slow.answered()
        gate.open()
        assert slow.reply().status == 200


def test_batches_of_one_table_keep_their_order(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """What comes while a flush is under way is not stored before that flush has ended."""
    direct.sql("CREATE TABLE t (a UInt64) ENGINE = Log")
    with Gate() as gate, Background(tested) as background:
        gate.stand_behind(direct, "t")
        first = background.insert(rows(1))
        gate.await_insert()
        second = background.insert(rows(2))
        eventually(lambda: queued_inserts(tested) == 1, "the second insert is queued")
        assert not first.answered() and not second.answered()
        gate.open()
        assert [first.reply().status, second.reply().status] == [200, 200]
    assert direct.sql("SELECT a FROM t SETTINGS max_threads = 1") == "1\n2"


def test_unpacked_size_is_capped(start_gateway) -> None:
    """A small body that unpacks to a lot goes to the backend as it is: it lands, and the gateway does not hold it."""
    gateway: Gateway = start_gateway("[http]\nmax_decompressed_bytes = '1MiB'\n")
    tested = gateway.http.as_user(TESTER.name, TESTER.password)
    make_table(gateway.direct)
    packed = gzip.compress(rows(7).encode() * 500_000)
    reply = tested.request(INTO_T, packed, headers={"Content-Encoding": "gzip"})
    assert reply.status == 200, reply.text
    assert gateway.direct.sql("SELECT count(), sum(a) FROM t") == "500000\t3500000"


def test_bomb_of_zeros(start_gateway) -> None:
    """A gigabyte of nothing in a megabyte: refused by the parser, and the gateway stays small."""
    gateway: Gateway = start_gateway()
    tested = gateway.http.as_user(TESTER.name, TESTER.password)
    make_table(gateway.direct)
    packer = zlib.compressobj(wbits=31)
    block = b"\0" * (1 << 20)
    bomb = b"".join(packer.compress(block) for _ in range(1024)) + packer.flush()
    reply = tested.request(INTO_T, bomb, headers={"Content-Encoding": "gzip"})
    assert reply.status == 400, reply.text[:500]
    assert resident_bytes(gateway.child.pid) < 300 << 20
    assert tested.insert(INTO_T, rows(1)).status == 200


def test_header_limit(start_gateway) -> None:
    gateway: Gateway = start_gateway("[http]\nmax_header_bytes = '4KiB'\n")
    fixed = (("Host", "x"), ("X-Long", "y" * 5000))
    with RawConnection(gateway.http) as connection:
        reply = connection.exchange(head("GET", "/ping", fixed), "GET")
        assert reply.status == 431
        assert connection.closed_by_peer()


@pytest.mark.parametrize("begun", [b"", b"POST /?query=SEL", b"POST / HTTP/1.1\r\nHost: x\r\nX-Slow"])
def test_slow_head_is_closed(start_gateway, begun: bytes) -> None:
    gateway: Gateway = start_gateway("[http]\nheaders_read_timeout_ms = 300\nkeep_alive_timeout_ms = 300\n")
    with RawConnection(gateway.http) as connection:
        connection.send(begun)
        assert not connection.rest().startswith(b"HTTP/1.1 200")


def test_slow_body_is_closed_and_inserts_nothing(start_gateway) -> None:
    gateway: Gateway = start_gateway("[http]\nbody_idle_timeout_ms = 300\n")
    make_table(gateway.direct)
    for query in (INTO_T, "INSERT INTO t FORMAT CSV"):
        with RawConnection(gateway.http) as connection:
            connection.send(head("POST", gateway.http.target(query), (("Host", "x"), ("Content-Length", "100"))) + rows(1).encode())
            assert not connection.rest().startswith(b"HTTP/1.1 200")
    assert ids(gateway.direct) == []


def test_idle_connection_is_closed(start_gateway) -> None:
    gateway: Gateway = start_gateway("[http]\nkeep_alive_timeout_ms = 300\n")
    with RawConnection(gateway.http) as connection:
        assert connection.exchange(head("GET", "/ping", (("Host", "x"),)), "GET").status == 200
        assert connection.closed_by_peer()


def test_eight_hundred_idle_connections_disturb_nobody(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    idle = [RawConnection(tested) for _ in range(800)]
    try:
        assert tested.insert(INTO_T, rows(1)).status == 200
    finally:
        for connection in idle:
            connection.close()
