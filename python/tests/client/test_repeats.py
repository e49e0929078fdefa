"""Answers that get lost: what is sent again, with which token, and what never is."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from harness.eventually import eventually
from harness.scripted import Exchange, ScriptedServer, answer

import windrow
from windrow import exceptions

Relay = Callable[[bytes, bytes], bytes]
TOKEN = "insert_deduplication_token"
SESSION_IS_LOCKED = "373"


class LossyServer:
    """Between client and ClickHouse: hands requests on, but loses the answers to the first `losses` that hold
    `what`.
    """

    def __init__(self, direct: Any, what: bytes, losses: int) -> None:
        self.direct = direct
        self.what = what
        self.losses = losses
        self.seen: list[dict[str, str]] = []

    def __call__(self, exchange: Exchange) -> None:
        while True:
            head, body = exchange.read_request()
            target = head.split(b" ", 2)[1].decode()
            params = {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}
            status, headers, content = forwarded(self.direct, target, body)
            # ClickHouse lets go of a session a moment after its answer. What comes before that is not done, and sent again.
            is_locked = headers.get("X-ClickHouse-Exception-Code") == SESSION_IS_LOCKED
            if self.what in body and not is_locked:
                self.seen.append(params)
                if self.losses > 0:
                    self.losses -= 1
                    return exchange.reset()
            exchange.send(answer(content, status, headers))


def forwarded(direct: Any, target: str, body: bytes) -> tuple[str, dict[str, str], bytes]:
    import http.client

    connection = http.client.HTTPConnection(direct.host, direct.port)
    headers = {"X-ClickHouse-User": direct.user, "X-ClickHouse-Key": direct.password}
    connection.request("POST", target, body, headers)
    received = connection.getresponse()
    content = received.read()
    kept = {name: value for name, value in received.getheaders() if name.lower().startswith("x-clickhouse")}
    connection.close()
    return f"{received.status} {received.reason}", kept, content


def client_of(server: ScriptedServer, database: str, **options: Any) -> Any:
    return windrow.get_async_client(host=server.host, port=server.port, database=database, **options)


@pytest.fixture
def lossy(scripted: Any, direct: Any) -> Callable[[bytes, int], tuple[ScriptedServer, LossyServer]]:
    def start(what: bytes, losses: int) -> tuple[ScriptedServer, LossyServer]:
        script = LossyServer(direct, what, losses)
        return scripted(script), script

    return start


async def test_an_insert_is_repeated_under_its_token_and_stored_once(lossy: Any, direct: Any, database: str) -> None:
    direct.sql(
        "CREATE TABLE t (id Int32) ENGINE = MergeTree ORDER BY id SETTINGS non_replicated_deduplication_window = 100"
    )
    server, script = lossy(b"INSERT INTO", 2)
    async with await client_of(server, database) as client:
        await client.insert("t", [(1,), (2,)], column_names=["id"])
    assert len(script.seen) == 3
    assert len({seen[TOKEN] for seen in script.seen}) == 1
    assert direct.sql("SELECT count() FROM t").strip() == "2"


async def test_an_insert_in_many_blocks_is_made_anew_for_its_repetition(lossy: Any, direct: Any, database: str) -> None:
    direct.sql(
        "CREATE TABLE t (id Int32) ENGINE = MergeTree ORDER BY id SETTINGS non_replicated_deduplication_window = 100"
    )
    server, script = lossy(b"INSERT INTO", 1)
    async with await client_of(server, database) as client:
        await client.insert("t", [(number,) for number in range(50_000)], column_names=["id"])
    assert len(script.seen) == 2
    assert direct.sql("SELECT count(), uniqExact(id) FROM t").split() == ["50000", "50000"]


async def test_an_insert_into_a_table_without_memory_is_not_repeated(lossy: Any, direct: Any, database: str) -> None:
    direct.sql("CREATE TABLE t (id Int32) ENGINE = MergeTree ORDER BY id")
    server, script = lossy(b"INSERT INTO", 1)
    async with await client_of(server, database) as client:
        with pytest.raises(exceptions.OperationalError, match="isn't known whether the rows were stored"):
            await client.insert("t", [(1,)], column_names=["id"])
    assert len(script.seen) == 1
    assert direct.sql("SELECT count() FROM t").strip() == "1"


async def test_the_users_own_token_is_kept_and_trusted(lossy: Any, direct: Any, database: str) -> None:
    direct.sql("CREATE TABLE t (id Int32) ENGINE = MergeTree ORDER BY id")
    server, script = lossy(b"INSERT INTO", 1)
    async with await client_of(server, database) as client:
        await client.raw_insert("t", ["id"], b"1\n", settings={TOKEN: "mine"}, fmt="CSV")
    assert [seen[TOKEN] for seen in script.seen] == ["mine", "mine"]


async def test_a_read_is_repeated_and_a_command_is_not(lossy: Any, direct: Any, database: str) -> None:
    server, script = lossy(b"SELECT 42", 2)
    async with await client_of(server, database) as client:
        assert (await client.query("SELECT 42")).result_rows == [(42,)]
    assert len(script.seen) == 3
    server, script = lossy(b"CREATE TABLE", 1)
    async with await client_of(server, database) as client:
        with pytest.raises(exceptions.OperationalError):
            await client.command("CREATE TABLE c (id Int32) ENGINE = Memory")
    assert len(script.seen) == 1


async def test_repetitions_end(lossy: Any, database: str) -> None:
    server, script = lossy(b"SELECT 42", 100)
    async with await client_of(server, database, query_retries=3) as client:
        with pytest.raises(exceptions.OperationalError):
            await client.query("SELECT 42")
    # Four attempts; the first one was on a used connection, for which the transport tries once more by itself.
    assert len(script.seen) == 5


async def test_a_server_that_is_busy_is_asked_again(scripted: Any, direct: Any, database: str) -> None:
    asked: list[bytes] = []

    def script(exchange: Exchange) -> None:
        while True:
            head, body = exchange.read_request()
            status, headers, content = forwarded(direct, head.split(b" ", 2)[1].decode(), body)
            if b"SELECT 42" in body:
                asked.append(body)
                if len(asked) < 3:
                    exchange.send(answer(b"too much to do", "503 Service Unavailable"))
                    continue
            exchange.send(answer(content, status, headers))

    async with await client_of(scripted(script), database) as client:
        assert (await client.query("SELECT 42")).result_rows == [(42,)]
    assert len(asked) == 3


async def test_a_token_is_renewed_once(scripted: Any, direct: Any, database: str) -> None:
    used: list[str] = []

    def script(exchange: Exchange) -> None:
        while True:
            head, body = exchange.read_request()
            token = next(line for line in head.decode().split("\r\n") if line.startswith("Authorization")).split()[-1]
            used.append(token)
            if token == "old" and len(used) > 1:
                exchange.send(
                    answer(
                        b"Code: 516. (AUTHENTICATION_FAILED)", "403 Forbidden", {"X-ClickHouse-Exception-Code": "516"}
                    )
                )
                continue
            status, headers, content = forwarded(direct, head.split(b" ", 2)[1].decode(), body)
            exchange.send(answer(content, status, headers))

    given = iter(["old", "new"])

    async def provider() -> str:
        return next(given)

    async with await client_of(scripted(script), database, token_provider=provider) as client:
        assert (await client.query("SELECT 42")).result_rows == [(42,)]
    assert used == ["old", "old", "new"]


async def test_a_setting_of_ours_that_is_refused_is_left_out(scripted: Any, direct: Any, database: str) -> None:
    refused = "output_format_native_use_flattened_dynamic_and_json_serialization"
    seen: list[dict[str, list[str]]] = []

    def script(exchange: Exchange) -> None:
        while True:
            head, body = exchange.read_request()
            target = head.split(b" ", 2)[1].decode()
            params = parse_qs(urlsplit(target).query)
            seen.append(params)
            if refused in params:
                text = (
                    f"Code: 452. DB::Exception: Setting {refused} should not be changed. (SETTING_CONSTRAINT_VIOLATION)"
                )
                exchange.send(
                    answer(text.encode(), "500 Internal Server Error", {"X-ClickHouse-Exception-Code": "452"})
                )
                continue
            status, headers, content = forwarded(direct, target, body)
            exchange.send(answer(content, status, headers))

    async with await client_of(scripted(script), database) as client:
        for _ in range(2):
            assert (await client.query("SELECT 42")).result_rows == [(42,)]
    assert [refused in params for params in seen] == [False, True, False, False]


def test_summary_is_read_from_the_head() -> None:
    from windrow._shared.errors import summary_of

    summary = summary_of({"x-clickhouse-summary": json.dumps({"written_rows": "3"}), "x-clickhouse-query-id": "q"})
    assert summary == {"written_rows": "3", "query_id": "q"}
    assert summary_of({"x-clickhouse-summary": "{"}) == {"query_id": ""}


async def test_a_repeat_does_not_meet_its_first_attempt(scripted: Any, direct: Any, database: str) -> None:
    """The server is busy with a query whose answer can't come any more, and takes no second one of the same id."""
    seen: list[str] = []
    attempts: list[threading.Thread] = []

    def script(exchange: Exchange) -> None:
        while True:
            head, body = exchange.read_request()
            target = head.split(b" ", 2)[1].decode()
            query_id = parse_qs(urlsplit(target).query).get("query_id", [""])[0]
            if b"sleepEachRow" in body:
                seen.append(query_id)
                if len(seen) == 1:
                    # It would last for hours.
                    attempts.append(threading.Thread(target=forwarded, args=(direct, target, body.replace(b"(4)", b"(40000)"))))
                    attempts[0].start()
                    running = f"SELECT count() FROM system.processes WHERE query_id = '{query_id}'"
                    eventually(lambda: direct.sql(running).strip() == "1", "the first attempt runs")
                    return exchange.reset()
            status, headers, content = forwarded(direct, target, body)
            exchange.send(answer(content, status, headers))

    async with await client_of(scripted(script), database) as client:
        result = await client.query("SELECT sum(sleepEachRow(0.5)) FROM numbers(4) SETTINGS max_block_size = 1")
        assert result.result_rows == [(0,)]
    assert len(set(seen)) > 1
    left = f"SELECT count() FROM system.processes WHERE query_id = '{seen[0]}'"
    eventually(lambda: direct.sql(left).strip() == "0", "and was stopped")
    attempts[0].join()
