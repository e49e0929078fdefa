"""HTTP itself: connections, lengths, chunks, and what is cut short."""

from __future__ import annotations

import random

import pytest

from harness.compare import Comparison, Request
from harness.endpoint import Endpoint
from harness.gateway import Gateway
from harness.raw_http import RawConnection, chunked, head

ROWS = b"".join(b'{"a":%d}\n' % n for n in range(200))
INSERT = "INSERT INTO t FORMAT JSONEachRow"


@pytest.fixture
def table(direct: Endpoint) -> Endpoint:
    direct.sql("CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
    return direct


def start(endpoint: Endpoint, query: str | None, *headers: tuple[str, str], method: str = "POST") -> bytes:
    fixed = (("Host", endpoint.host), ("Authorization", endpoint.basic_auth()))
    return head(method, endpoint.target(query), (*fixed, *headers))


def sized(data: bytes) -> tuple[str, str]:
    return ("Content-Length", str(len(data)))


CHUNKED = ("Transfer-Encoding", "chunked")


def count(endpoint: Endpoint) -> int:
    return int(endpoint.sql("SELECT count() FROM t"))


@pytest.mark.parametrize("sizes", [[1], [7], [3, 1, 4, 1, 5, 9, 2, 6], [10_000], [1, 10_000]])
def test_odd_chunk_sizes(tested: Endpoint, table: Endpoint, sizes: list[int]) -> None:
    with RawConnection(tested) as connection:
        reply = connection.exchange(start(tested, INSERT, CHUNKED) + chunked(ROWS, sizes))
    assert reply.status == 200, reply.text
    assert count(table) == 200


def test_chunk_extensions_and_trailers(gateway: Gateway, tested: Endpoint) -> None:
    """HTTP allows both; the bare engine takes a trailer for a part of the query."""
    body = b'6;name="value"\r\nSELECT\r\n2;x\r\n 1\r\n0\r\nTrailer: yes\r\n\r\n'
    with RawConnection(tested) as connection:
        reply = connection.exchange(start(tested, None, CHUNKED) + body)
        assert (reply.status, reply.text) == (200, "1\n")
        assert connection.exchange(start(tested, "SELECT 2", sized(b""))).text == "2\n"


@pytest.mark.parametrize("seed", range(3))
def test_bytes_that_trickle(tested: Endpoint, table: Endpoint, seed: int) -> None:
    """The request arrives in pieces of random size, each its own packet as far as the kernel lets it."""
    print(f"seed {seed}")
    choice = random.Random(seed)
    data = start(tested, INSERT, CHUNKED) + chunked(ROWS, [97])
    with RawConnection(tested) as connection:
        while data:
            size = choice.randint(1, 400)
            connection.send(data[:size])
            data = data[size:]
        assert connection.read_reply().status == 200
    assert count(table) == 200


STATEMENTS = {
    "nothing": (),
    "select": (("query", "SELECT 1"),),
    "insert": (("query", INSERT),),
    "rows in the URL": (("query", "INSERT INTO t VALUES (5)"),),
    "session": (("query", INSERT), ("session_id", "s")),
    "query id": (("query", INSERT), ("query_id", "q")),
    "asynchronous": (("query", INSERT), ("async_insert", "1"), ("wait_for_async_insert", "0")),
    "token": (("query", INSERT), ("insert_deduplication_token", "once")),
    "unknown setting": (("query", INSERT), ("no_such_setting", "1")),
    "wrong user": (("query", INSERT), ("user", "nobody"), ("password", "x")),
}


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize("method, path", [("POST", "/"), ("POST", "/query"), ("POST", "/ping"), ("PUT", "/"), ("PATCH", "/"), ("GET", "/"), ("HEAD", "/")])
def test_without_length(both: Comparison, table: Endpoint, method: str, path: str, statement: str) -> None:
    """Nobody knows where its body ends, so whatever came would be lost."""
    parameters = (("database", table.database), *STATEMENTS[statement])
    authorised = statement != "wrong user"
    reply = both.same(Request(method, path, parameters, body=None, authorised=authorised))
    if (method, path) == ("POST", "/"):
        assert (reply.status, reply.code, reply.get("Connection")) == (411, 381, "Close")
    assert count(table) == 0


@pytest.mark.parametrize("version", ["HTTP/1.1", "HTTP/1.0"])
@pytest.mark.parametrize("keep_alive", [False, True])
def test_rows_behind_a_head_without_length(both: Comparison, table: Endpoint, version: str, keep_alive: bool) -> None:
    """Neither are they stored, nor is what comes on the same connection taken for another request. A head that was seen before
    says no more than it does."""
    headers = (("Connection", "keep-alive"),) if keep_alive else ()
    rows = b'{"a":1}\n' + start(table, "INSERT INTO t VALUES (5)", sized(b""))
    assert both.tested.insert(INSERT, '{"a":0}').status == 200
    outcomes = []
    for endpoint in (both.oracle, both.tested):
        for _ in range(2):
            with RawConnection(endpoint) as connection:
                connection.send(start(endpoint, INSERT, *headers).replace(b"HTTP/1.1", version.encode()) + rows)
                connection.end_sending()
                reply = connection.read_reply()
                outcomes.append((reply.status, reply.code, reply.get("Connection"), reply.body, connection.rest()))
    assert outcomes[2:] == outcomes[:2]
    assert outcomes[2][:2] == (411, 381)
    assert count(table) == 1


def test_expect_continue(both: Comparison, table: Endpoint) -> None:
    outcomes = []
    for endpoint in (both.oracle, both.tested):
        with RawConnection(endpoint) as connection:
            connection.send(start(endpoint, INSERT, sized(ROWS), ("Expect", "100-continue")))
            interim = connection.read_head()
            reply = connection.exchange(ROWS)
            outcomes.append((interim.status, reply.status, reply.get("Connection"), connection.closed_by_peer()))
    assert outcomes[1] == outcomes[0]
    assert outcomes[1][:2] == (100, 200)
    assert count(table) == 400


@pytest.mark.parametrize("query", ["INSERT INTO nowhere FORMAT JSONEachRow", "SELEC 1"])
def test_expect_continue_refused(both: Comparison, table: Endpoint, query: str) -> None:
    """However the refusal is timed, the client hears its code."""
    codes = []
    for endpoint in (both.oracle, both.tested):
        with RawConnection(endpoint) as connection:
            connection.send(start(endpoint, query, sized(ROWS), ("Expect", "100-continue")))
            first = connection.read_head()
            if first.status == 100:
                reply = connection.exchange(ROWS)
            else:
                reply = first
                connection.read_body(reply, "POST")
            codes.append((reply.status, reply.code))
    assert codes[1] == codes[0]


def test_keep_alive(both: Comparison, table: Endpoint) -> None:
    """Ten requests of all kinds on one connection, errors among them; the counter of the answers counts down alike."""
    rows = b'{"a":1}'
    kinds = [
        (b"SELECT 1", None),
        (b"SELECT * FROM nowhere", None),
        (rows, INSERT),
        (b"SELECT 2 FORMAT JSON", None),
        (b'{"a":"x"}', INSERT),
        (b"", "SELECT 3"),
        (rows, INSERT),
        (b"SELECT number FROM numbers(100000)", None),
        (b"", "INSERT INTO t SELECT 5"),
        (b"SELECT 4", None),
    ]
    outcomes = []
    for endpoint in (both.oracle, both.tested):
        answers = []
        with RawConnection(endpoint) as connection:
            for body, query in kinds:
                reply = connection.exchange(start(endpoint, query, sized(body)) + body)
                answers.append((reply.status, reply.code, reply.get("Keep-Alive"), reply.get("Connection")))
        outcomes.append(answers)
    assert outcomes[1] == outcomes[0]
    assert [status for status, *_ in outcomes[1]] == [200, 404, 200, 200, 400, 200, 200, 200, 200, 200]


def test_pipelined_requests(gateway: Gateway, tested: Endpoint, table: Endpoint) -> None:
    """Answers come in the order of the requests, whatever each needs. (ClickHouse itself hangs up on those.)"""
    requests = b""
    for n in range(20):
        body = b'{"a":%d}' % n
        requests += start(tested, INSERT, sized(body)) + body
        requests += start(tested, f"SELECT {n}", sized(b""))
    with RawConnection(tested) as connection:
        connection.send(requests)
        texts = [connection.read_reply().text for _ in range(40)]
    assert texts == [text for n in range(20) for text in ("", f"{n}\n")]
    assert count(table) == 20


def test_connection_close(both: Comparison) -> None:
    outcomes = []
    for endpoint in (both.oracle, both.tested):
        with RawConnection(endpoint) as connection:
            reply = connection.exchange(start(endpoint, "SELECT 1", sized(b""), ("Connection", "close")))
            outcomes.append((reply.status, reply.get("Connection"), reply.get("Keep-Alive"), connection.closed_by_peer()))
    assert outcomes[1] == outcomes[0]


def test_http_1_0(both: Comparison) -> None:
    outcomes = []
    for endpoint in (both.oracle, both.tested):
        with RawConnection(endpoint) as connection:
            asked = start(endpoint, "SELECT 1", method="GET").replace(b"HTTP/1.1", b"HTTP/1.0")
            reply = connection.exchange(asked)
            outcomes.append((reply.version, reply.status, reply.body, reply.get("Transfer-Encoding"), connection.closed_by_peer()))
    assert outcomes[1] == outcomes[0]


@pytest.mark.parametrize("framing", ["length", "chunks", "middle of a chunk", "chunk size"])
@pytest.mark.parametrize("query", [INSERT, "INSERT INTO t FORMAT CSV", "INSERT INTO t VALUES"])
def test_truncated_body_inserts_nothing(tested: Endpoint, table: Endpoint, framing: str, query: str) -> None:
    rows = {"INSERT INTO t FORMAT CSV": b"1\n2\n3\n", "INSERT INTO t VALUES": b"(1),(2),(3)"}.get(query, ROWS)
    whole = chunked(rows, [10_000])
    cut = {
        "length": start(tested, query, ("Content-Length", str(len(rows) + 1))) + rows,
        "chunks": start(tested, query, CHUNKED) + whole[: -len(b"0\r\n\r\n")],
        "middle of a chunk": start(tested, query, CHUNKED) + whole[: len(whole) // 2],
        "chunk size": start(tested, query, CHUNKED) + whole[: -len(b"\r\n\r\n")] + b"",
    }[framing]
    with RawConnection(tested) as connection:
        connection.send(cut)
        connection.end_sending()
        connection.rest()
    tested.sql("SELECT 1")
    assert count(table) == 0


@pytest.mark.parametrize("size", [60_000, 200_000, 1_000_000, 1_100_000, 3_000_000])
def test_huge_url(both: Comparison, size: int) -> None:
    """The query is all comment, so that only its length matters. Which 4xx a refusal is, is each server's own."""
    query = f"SELECT 1 /*{'x' * size}*/"
    accepted = []
    for endpoint in (both.oracle, both.tested):
        outcome = outcome_of(endpoint, start(endpoint, query, method="GET"))
        accepted.append(outcome is not None and outcome[0] == 200)
    assert accepted[1] == accepted[0]


@pytest.mark.parametrize("headers", [
    [("X-Long", "x" * 100_000)],
    [("X-Long", "x" * 200_000)],
    [("X-" + "y" * 5000, "x")],
    [(f"X-{n}", "x") for n in range(900)],
    [(f"X-{n}", "x") for n in range(1100)],
    [("X-Empty", "")],
])  # fmt: skip
def test_huge_headers(both: Comparison, headers: list[tuple[str, str]]) -> None:
    """Accepted or refused alike; the words of a refusal are each server's own."""
    accepted = []
    for endpoint in (both.oracle, both.tested):
        outcome = outcome_of(endpoint, start(endpoint, "SELECT 1", *headers, method="GET"))
        accepted.append(outcome is not None and outcome[0] == 200)
    assert accepted[1] == accepted[0]


def outcome_of(endpoint: Endpoint, request: bytes) -> tuple[int, int | None] | None:
    """Status and code, or none when the server closed without an answer."""
    with RawConnection(endpoint) as connection:
        try:
            reply = connection.exchange(request, "GET")
        except (EOFError, BrokenPipeError, ConnectionResetError):
            return None
        return (reply.status, reply.code)


@pytest.mark.parametrize("garbage", [
    b"\r\n\r\n",
    b"GET\r\n\r\n",
    b"GET / HTTP/9.9\r\n\r\n",
    b"GET /?query=SELECT+1 HTTP/1.1\r\nbroken header\r\n\r\n",
    b"GET /?query=SELECT+1 HTTP/1.1\r\n: empty\r\n\r\n",
    b"POST /?query=SELECT+1 HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
    b"POST /?query=SELECT+1 HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
    b"POST /?query=SELECT+1 HTTP/1.1\r\nContent-Length: x\r\n\r\n",
    b"POST /?query=SELECT+1 HTTP/1.1\r\nTransfer-Encoding: zork\r\n\r\n",
    b"POST /?query=SELECT+1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzork\r\n",
    b"POST /?query=SELECT+1 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
    b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    b"\x00" * 100,
])  # fmt: skip
def test_garbage_never_answers_200_nor_harms(gateway: Gateway, tested: Endpoint, garbage: bytes) -> None:
    """The bare engine dies of a length that is no number, so none of this may reach it."""
    engine = gateway.engine_pid()
    with RawConnection(tested) as connection:
        connection.send(garbage)
        connection.end_sending()
        said = connection.rest()
    assert not said.startswith(b"HTTP/1.1 200"), said[:500]
    assert tested.sql("SELECT 1") == "1"
    assert gateway.engine_pid() == engine


def test_two_lengths_are_refused(gateway: Gateway, tested: Endpoint, table: Endpoint) -> None:
    """Where framing is ambiguous, a front that reads it one way and a server that reads it another can be tricked."""
    rows = b'{"a":1}'
    for headers in ((sized(rows), CHUNKED), (sized(rows), ("Content-Length", "1"))):
        with RawConnection(tested) as connection:
            connection.send(start(tested, INSERT, *headers) + rows)
            connection.end_sending()
            said = connection.rest()
        assert not said.startswith(b"HTTP/1.1 200"), said[:500]
    assert count(table) == 0
