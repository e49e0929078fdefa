"""What servers and networks do to a request, on both transports."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.eventually import eventually
from harness.ports import port_of_nobody
from harness.scripted import PATIENCE_SECONDS, Exchange, answer, chunk, head
from windrow._shared.http_request import Request
from windrow.exceptions import OperationalError, ProgrammingError

ANSWER = answer(b"hello", headers={"X-ClickHouse-Query-Id": "q"})
CHUNKED = head("200 OK", {"Transfer-Encoding": "chunked"}) + chunk(b"hel") + chunk(b"lo") + chunk(b"")
TAG = "abcdefghijklmnop"
MESSAGE = "Code: 395. DB::Exception: no (FUNCTION_THROW_IF_VALUE_IS_NON_ZERO) (version 26.7.2.1)"


def request(**options: Any) -> Request:
    return Request("POST", "/?x=1", [("A", "b")], **{"body": b"SELECT 1", **options})


def serve(scripted: Any, *answers: bytes) -> Any:
    """Each connection gets these answers, one for each request."""

    def script(exchange: Exchange) -> None:
        for data in answers:
            exchange.read_request()
            exchange.send(data)

    return scripted(script)


def failure(call: Callable[[], Any]) -> OperationalError:
    with pytest.raises(OperationalError) as caught:
        call()
    return caught.value


@pytest.mark.parametrize("data", [ANSWER, CHUNKED], ids=["sized", "chunked"])
def test_a_whole_answer_and_every_truncation_of_it(face: Any, scripted: Any, data: bytes) -> None:
    ends = iter(range(len(data)))

    def script(exchange: Exchange) -> None:
        exchange.read_request()
        exchange.send(data[: next(ends, len(data))])

    client = face(scripted(script))
    for end in range(len(data)):
        error = failure(lambda: client.whole(request()))
        assert error.phase == "sent", end
        assert "Network Error" in str(error)
    whole = client.whole(request())
    assert (whole.status, whole.body) == (200, b"hello")


def test_an_answer_byte_by_byte(face: Any, scripted: Any) -> None:
    def script(exchange: Exchange) -> None:
        exchange.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        exchange.read_request()
        for at in range(len(CHUNKED)):
            exchange.send(CHUNKED[at : at + 1])

    assert face(scripted(script)).whole(request()).body == b"hello"


@pytest.mark.parametrize("sent", [0, 1, 30, len(ANSWER) - 1])
def test_resets(face: Any, scripted: Any, sent: int) -> None:
    def script(exchange: Exchange) -> None:
        exchange.read_request()
        if sent:
            exchange.send(ANSWER[:sent])
        exchange.reset()

    assert failure(lambda: face(scripted(script)).whole(request())).phase == "sent"


@pytest.mark.parametrize("garbage", [b"\0" * 1000, b"HTTP/1.1 200 OK\r\n" + b"x" * 200_000, b"220 smtp ready\r\n"])
def test_garbage(face: Any, scripted: Any, garbage: bytes) -> None:
    client = face(serve(scripted, garbage))
    assert failure(lambda: client.whole(request())).phase == "sent"


@pytest.mark.parametrize("sent", [0, 10, len(ANSWER) - 3])
def test_silence(face: Any, scripted: Any, sent: int) -> None:
    def script(exchange: Exchange) -> None:
        exchange.read_request()
        if sent:
            exchange.send(ANSWER[:sent])
        exchange.until_closed()

    client = face(scripted(script), send_receive_timeout_s=0.2)
    error = failure(lambda: client.whole(request()))
    assert error.phase == "timeout" and "0.2 seconds" in str(error)


@pytest.mark.parametrize("kind", ["bytes", "iterator"])
def test_a_server_that_stops_reading(face: Any, scripted: Any, kind: str) -> None:
    gone = threading.Event()

    def script(exchange: Exchange) -> None:
        exchange.read_head()
        assert gone.wait(PATIENCE_SECONDS)

    client = face(scripted(script), send_receive_timeout_s=0.2)
    assert failure(lambda: client.whole(request(body=made(kind)))).phase == "timeout"
    gone.set()


def test_a_limit_for_the_whole_exchange(face: Any, scripted: Any) -> None:
    """A server that keeps on saying something is never silent, and yet there is no answer."""

    def script(exchange: Exchange) -> None:
        exchange.read_request()
        exchange.send(ANSWER)
        exchange.read_request()
        exchange.send(b"HTTP/1.1 200 OK\r\n")
        exchange.socket.settimeout(0.02)
        while True:
            exchange.send(b"X-ClickHouse-Progress: {}\r\n")
            try:
                if not exchange.socket.recv(1):
                    return
            except TimeoutError:
                pass

    client = face(scripted(script))
    # On a connection that is there: opening one would be within the limit, too.
    assert client.whole(request()).body == b"hello"
    assert failure(lambda: client.whole(request(timeout_s=0.3))).phase == "timeout"


def test_nobody_listens(face: Any) -> None:
    with port_of_nobody() as port:
        server = type("Gone", (), {"host": "127.0.0.1", "port": port})
        error = failure(lambda: face(server).whole(request()))
    assert error.phase == "connect" and isinstance(error.__cause__, ConnectionError)


def test_a_server_that_never_answers_the_handshake(face: Any, scripted: Any) -> None:
    server = scripted(lambda exchange: exchange.until_closed())
    client = face(server, scheme="https", connect_timeout_s=0.2)
    error = failure(lambda: client.whole(request()))
    assert error.phase == "connect"
    assert client.statistics()["open"] == 0


def test_connections_are_used_again(face: Any, scripted: Any) -> None:
    server = serve(scripted, ANSWER, CHUNKED, answer(), answer(status="204 No Content"))
    client = face(server)
    bodies = [client.whole(request()).body for _ in range(4)]
    assert bodies == [b"hello", b"hello", b"", b""]
    assert server.connections == 1


@pytest.mark.parametrize(
    "data",
    [
        answer(b"hello", headers={"Connection": "close"}),
        ANSWER + b"surplus",
        b"HTTP/1.0 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    ],
    ids=["close", "surplus", "1.0"],
)
def test_connections_that_are_not_used_again(face: Any, scripted: Any, data: bytes) -> None:
    server = serve(scripted, data, data)
    client = face(server)
    for number in range(1, 4):
        assert client.whole(request()).body == b"hello"
        eventually(lambda: client.statistics()["open"] == 0, "the connection is closed")
        assert server.connections == number


def test_a_body_that_ends_with_the_connection(face: Any, scripted: Any) -> None:
    server = serve(scripted, b"HTTP/1.1 200 OK\r\n\r\nhello")
    assert face(server).whole(request()).body == b"hello"


def test_interim_answers(face: Any, scripted: Any) -> None:
    assert face(serve(scripted, b"HTTP/1.1 100 Continue\r\n\r\n" + ANSWER)).whole(request()).body == b"hello"


@pytest.mark.parametrize("may_repeat", [True, False])
def test_a_connection_that_was_closed_while_it_was_idle(face: Any, scripted: Any, may_repeat: bool) -> None:
    """The server reads the second request and closes without a word, as one does that had just decided to close."""
    requests: list[bytes] = []

    def script(exchange: Exchange) -> None:
        requests.append(exchange.read_request()[1])
        exchange.send(ANSWER)
        if exchange.number == 0:
            requests.append(exchange.read_request()[1])
            return
        exchange.until_closed()

    server = scripted(script)
    client = face(server)
    client.whole(request(body=b"1"))
    if may_repeat:
        assert client.whole(request(body=b"2", may_repeat=True)).body == b"hello"
        assert requests == [b"1", b"2", b"2"]
    else:
        assert failure(lambda: client.whole(request(body=b"2"))).phase == "sent"
        assert requests == [b"1", b"2"]


def test_a_new_connection_that_is_closed_is_not_repeated(face: Any, scripted: Any) -> None:
    requests: list[bytes] = []
    server = scripted(lambda exchange: requests.append(exchange.read_request()[1]))
    assert failure(lambda: face(server).whole(request(may_repeat=True))).phase == "sent"
    assert requests == [b"SELECT 1"]


def test_progress_comes_while_the_head_is_open(face: Any, scripted: Any) -> None:
    seen: list[str] = []
    came = threading.Event()

    def progress(text: str) -> None:
        seen.append(text)
        came.set()

    def script(exchange: Exchange) -> None:
        exchange.read_request()
        exchange.send(b"HTTP/1.1 200 OK\r\nX-ClickHouse-Progress: {\"read_rows\":\"1\"}\r\n")
        assert came.wait(PATIENCE_SECONDS)
        exchange.send(b"X-ClickHouse-Progress: {}\r\nContent-Length: 2\r\n\r\nok")

    assert face(scripted(script)).whole(request(on_progress=progress)).body == b"ok"
    assert seen == ['{"read_rows":"1"}', "{}"]


BIG = b"x" * (32 << 20)


def made(kind: str) -> Any:
    """A large body in each of its forms."""
    if kind == "bytes":
        return BIG
    if kind == "pieces":
        return [BIG[: 1 << 20]] * 32
    return (BIG[: 1 << 18] for _ in range(128))


@pytest.mark.parametrize("kind", ["bytes", "pieces", "iterator"])
@pytest.mark.parametrize("reads", [True, False], ids=["keeps", "closes"])
def test_an_early_answer_ends_the_sending(face: Any, scripted: Any, kind: str, reads: bool) -> None:
    """The server refuses after the head, and either waits or closes with the body unread, which resets the connection."""
    refusal = answer(b"Code: 60. no such table", "404 Not Found")

    def script(exchange: Exchange) -> None:
        exchange.read_head()
        exchange.send(refusal)
        if reads:
            exchange.until_closed()

    client = face(scripted(script))
    whole = client.whole(request(body=made(kind)))
    assert (whole.status, whole.body) == (404, b"Code: 60. no such table")
    assert client.statistics()["in_use"] == 0


@pytest.mark.parametrize("encoding", [None, "lz4", "zstd", "gzip", "deflate"])
@pytest.mark.parametrize("kind", ["bytes", "pieces", "iterator"])
def test_bodies_arrive_as_they_are(face: Any, scripted: Any, kind: str, encoding: str | None) -> None:
    from windrow._core import Body

    taken: list[tuple[bytes, bytes]] = []

    def script(exchange: Exchange) -> None:
        taken.append(exchange.read_request())
        exchange.send(ANSWER)

    client = face(scripted(script))
    data = bytes(range(256)) * 3000
    body = {"bytes": data, "pieces": [data[:1000], data[1000:]], "iterator": iter([data[:1000], b"", data[1000:]])}[kind]
    assert client.whole(request(body=body, encoding=encoding)).status == 200
    sent_head, sent = taken[0]
    assert (b"Transfer-Encoding: chunked" in sent_head) == (kind == "iterator")
    assert Body.of_bytes(sent, encoding).read_all() == data
    assert (b"\r\nContent-Encoding:" in sent_head) == (encoding is not None)


def test_an_exception_of_the_body_s_maker_ends_the_request(face: Any, scripted: Any) -> None:
    ended = threading.Event()

    def script(exchange: Exchange) -> None:
        exchange.until_closed()
        ended.set()

    def body() -> Iterator[bytes]:
        yield b"x" * 100_000
        raise KeyError("mine")

    client = face(scripted(script))
    with pytest.raises(KeyError, match="mine"):
        client.whole(request(body=body()))
    assert ended.wait(PATIENCE_SECONDS)
    assert client.statistics() == {"open": 0, "idle": 0, "in_use": 0, "waiting": 0}


@pytest.mark.parametrize(
    "wrong",
    [
        Request("GET", "/?a b"),
        Request("GET", "/\r\nX: y"),
        Request("GET", "/?\u00e4"),
        Request("GET", "/", [("A", "x\r\nB: y")]),
        Request("GET", "/", [("A: b\r\nC", "x")]),
        Request("GET", "/", [("", "x")]),
    ],
)
def test_nothing_breaks_out_of_a_head(face: Any, scripted: Any, wrong: Request) -> None:
    server = serve(scripted, ANSWER)
    with pytest.raises(ProgrammingError):
        face(server).whole(wrong)
    assert server.connections == 0


def test_heads_have_what_they_need(face: Any, scripted: Any) -> None:
    heads: list[bytes] = []

    def script(exchange: Exchange) -> None:
        for _ in range(2):
            heads.append(exchange.read_request()[0])
            exchange.send(ANSWER)

    server = scripted(script)
    client = face(server, server_host_name="other.example")
    client.transport.headers = [("User-Agent", "me"), ("Content-Length", "77"), ("X-Name", "ä")]
    client.whole(request())
    client.whole(Request("GET", "/ping"))
    assert heads[0] == (
        "POST /?x=1 HTTP/1.1\r\nHost: other.example\r\nUser-Agent: me\r\nX-Name: ä\r\nA: b\r\nContent-Length: 8\r\n\r\n"
    ).encode()
    assert heads[1] == "GET /ping HTTP/1.1\r\nHost: other.example\r\nUser-Agent: me\r\nX-Name: ä\r\n\r\n".encode()


def test_a_response_that_is_closed_or_dropped_closes_its_connection(face: Any, scripted: Any) -> None:
    def script(exchange: Exchange) -> None:
        exchange.read_request()
        exchange.send(head("200 OK", {"Content-Length": "100"}) + b"begin")
        exchange.until_closed()

    client = face(scripted(script))
    client.do(client.opened(request()).close)
    assert client.statistics()["open"] == 0
    kept = client.opened(request())
    assert client.statistics()["in_use"] == 1
    del kept
    eventually(lambda: client.statistics()["open"] == 0, "the connection of a dropped answer is closed")


def tail(tag: str) -> bytes:
    return f"\r\n__exception__\r\n{tag}\r\n{MESSAGE}\n{len(MESSAGE) + 1} {tag}\r\n__exception__\r\n".encode()


@pytest.mark.parametrize("form", ["tagged", "bare", "ended"])
def test_clickhouse_s_last_words(face: Any, scripted: Any, form: str) -> None:
    """200, some data, the exception, and then either no end of the chunks or (as old servers) a proper one."""
    fields = {"Transfer-Encoding": "chunked"}
    words = MESSAGE.encode() + b"\n"
    if form == "tagged":
        fields["X-ClickHouse-Exception-Tag"] = TAG
        words = tail(TAG)
    data = head("200 OK", fields) + chunk(b"1\n2\n") + chunk(words)
    client = face(serve(scripted, data + (chunk(b"") if form == "ended" else b"")))
    if form == "ended":
        assert client.whole(request()).body.endswith(words)
        return
    error = failure(lambda: client.whole(request()))
    assert (type(error).__name__, error.code) == ("StreamFailureError", 395)
    assert error.name == "FUNCTION_THROW_IF_VALUE_IS_NON_ZERO" and str(error) == MESSAGE


def test_errors_tell_as_much_as_they_may(face: Any, scripted: Any) -> None:
    client = face(serve(scripted, ANSWER[:-1]))
    client.transport.show_errors = False
    assert str(failure(lambda: client.whole(request()))) == "Network Error"
