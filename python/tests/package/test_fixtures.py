"""The fixtures themselves: each gives what it says."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import Any

from harness.endpoint import Endpoint
from harness.redis import Redis
from harness.scripted import Exchange, ScriptedServer, answer, chunk, head


async def test_a_coroutine_is_run(direct: Endpoint) -> None:
    assert direct.sql("SELECT currentDatabase()") == "d_test_fixtures_test_a_coroutine_is_run"


def test_gateway_and_engine_have_the_same_database(where: dict[str, Any], gateway_where: dict[str, Any]) -> None:
    through = Endpoint("127.0.0.1", gateway_where["port"], where["username"], where["password"], where["database"])
    through.sql("CREATE TABLE t (a UInt8) ORDER BY a")
    assert through.insert("INSERT INTO t FORMAT CSV", "1\n").status == 200
    straight = Endpoint("127.0.0.1", where["port"], where["username"], where["password"], where["database"])
    assert straight.sql("SELECT a FROM t") == "1"
    assert where["port"] != gateway_where["port"]


def test_redis_is_empty(redis: Redis) -> None:
    assert redis.keys() == []
    redis.call("SET", "a", "b")
    assert redis.keys() == ["a"]


def test_a_script_reads_requests_and_answers(scripted: Callable[..., ScriptedServer]) -> None:
    seen: list[bytes] = []

    def script(exchange: Exchange) -> None:
        seen.append(exchange.read_request()[1])
        exchange.send(answer(b"one"))
        seen.append(exchange.read_request()[1])
        exchange.send(head("200 OK", {"Transfer-Encoding": "chunked"}) + chunk(b"two") + chunk(b""))
        exchange.until_closed()

    server = scripted(script)
    with socket.create_connection((server.host, server.port)) as client:
        client.sendall(b"POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcPOST / HTTP/1.1\r\n")
        client.sendall(b"Transfer-Encoding: chunked\r\n\r\n2\r\nde\r\n1\r\nf\r\n0\r\n\r\n")
        received = b""
        while not received.endswith(b"0\r\n\r\n"):
            received += client.recv(1000)
    assert seen == [b"abc", b"def"]
    assert received.count(b"HTTP/1.1 200 OK") == 2
