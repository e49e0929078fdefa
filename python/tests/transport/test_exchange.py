"""The parser of answers: whatever the pieces, whatever a server sends."""

from __future__ import annotations

import random
from typing import Any

import pytest

from windrow._core import Exchange, ProtocolError

HEAD, BODY, END, FULL = 1, 2, 4, 8

CHUNKED = (
    b"HTTP/1.1 200 OK\r\nDate: now\r\nTransfer-Encoding: chunked\r\nX-ClickHouse-Format: TSV\r\nConnection: Keep-Alive\r\n"
    b"Keep-Alive: timeout=30, max=9999\r\n\r\n5\r\nhello\r\n6;ext=1\r\n world\r\n0\r\nTrailer: x\r\n\r\n"
)
SIZED = b"HTTP/1.1 404 Not Found\nContent-Length: 5\nX-ClickHouse-Exception-Code: 60\n\nhello"


def fed(*pieces: bytes, **options: Any) -> Exchange:
    exchange = Exchange(**options)
    for piece in pieces:
        exchange.feed(piece)
    return exchange


@pytest.mark.parametrize(("answer", "body"), [(CHUNKED, b"hello world"), (SIZED, b"hello")])
def test_every_split_gives_the_same(answer: bytes, body: bytes) -> None:
    whole = fed(answer)
    for at in range(len(answer) + 1):
        exchange = fed(answer[:at], answer[at:])
        assert exchange.ended and exchange.body.read_all() == body, at
        assert exchange.headers == whole.headers and exchange.status == whole.status
    single = fed(*(answer[at : at + 1] for at in range(len(answer))))
    assert single.ended and single.body.read_all() == body


def test_flags_tell_what_came() -> None:
    exchange = Exchange()
    assert exchange.feed(b"HTTP/1.1 200 OK\r\nContent-Le") == 0
    assert exchange.feed(b"ngth: 5\r\n\r\n") == HEAD
    assert exchange.feed(b"hel") == BODY
    assert exchange.feed(b"lo") == BODY | END
    assert Exchange().feed(SIZED) == HEAD | BODY | END
    assert Exchange(high_water_bytes=4).feed(SIZED[:-1] + b"") == HEAD | BODY
    assert Exchange(high_water_bytes=3).feed(SIZED[:-1]) == HEAD | BODY | FULL


@pytest.mark.parametrize("answer", [CHUNKED, SIZED])
def test_every_truncation_is_an_error_at_the_end_of_the_connection(answer: bytes) -> None:
    for end in range(len(answer)):
        exchange = fed(answer[:end])
        assert exchange.received == (end > 0)
        with pytest.raises(ProtocolError):
            exchange.eof()
        assert not exchange.keep_alive
        with pytest.raises(ProtocolError):
            exchange.feed(b"x")


def test_random_damage_is_an_error_or_an_answer() -> None:
    chance = random.Random(0x5EED01)
    for _ in range(5000):
        damaged = bytearray(chance.choice([CHUNKED, SIZED]))
        for _ in range(chance.randrange(1, 4)):
            damaged[chance.randrange(len(damaged))] = chance.randrange(256)
        exchange = Exchange()
        try:
            for at in range(0, len(damaged), 7):
                exchange.feed(bytes(damaged[at : at + 7]))
            exchange.eof()
        except ProtocolError:
            continue
        assert 200 <= exchange.status <= 999 and len(exchange.body.read_all()) <= len(damaged)


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH_9.2\r\n",
        b"HTTP/2 200 OK\r\n",
        b"HTTP/1.1 20 OK\r\n",
        b"HTTP/1.1 099 OK\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nbad name: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n folded: x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nA: \x00\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5x\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffffff\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
    ],
)
def test_what_is_no_answer_is_refused(answer: bytes) -> None:
    with pytest.raises(ProtocolError):
        fed(answer)
    with pytest.raises(ProtocolError):
        fed(*(answer[at : at + 1] for at in range(len(answer))))


@pytest.mark.parametrize(
    ("start", "piece"),
    [
        (b"", b"x" * 1000),
        (b"HTTP/1.1 200 OK\r\nA: ", b"x" * 1000),
        (b"HTTP/1.1 200 OK\r\n", b"A-Field: of some length\r\n"),
        (b"", b"HTTP/1.1 100 Continue\r\n\r\n"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1;", b"x" * 100),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n", b"Trailer: x\r\n"),
    ],
)
def test_what_has_no_end_is_given_up(start: bytes, piece: bytes) -> None:
    exchange = fed(start)
    with pytest.raises(ProtocolError):
        for _ in range(100_000):
            exchange.feed(piece)


def test_progress_is_handed_on_while_the_head_is_open_and_not_kept() -> None:
    seen: list[str] = []
    exchange = fed(b"HTTP/1.1 200 OK\r\nX-ClickHouse-Progress: {\"a\"", on_progress=seen.append)
    assert seen == []
    exchange.feed(b":1}\r\nX-ClickHouse-Progress: {}\r")
    assert seen == ['{"a":1}']
    for _ in range(5000):
        exchange.feed(b"\nX-ClickHouse-Progress: " + b"{}" * 50 + b"\r")
    assert len(seen) == 5001 and exchange.status == 0
    assert exchange.feed(b"\nContent-Length: 0\r\n\r\n") == HEAD | END
    assert exchange.headers == {"content-length": "0"}


def test_an_exception_of_the_progress_callback_comes_out() -> None:
    def fail(_: str) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        fed(b"HTTP/1.1 200 OK\r\nX-ClickHouse-Progress: {}\r\n", on_progress=fail)


def test_interim_answers_are_passed_over() -> None:
    exchange = fed(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + SIZED)
    assert exchange.status == 404 and "link" not in exchange.headers


@pytest.mark.parametrize(
    ("answer", "options"),
    [
        (b"HTTP/1.1 204 No Content\r\n\r\n", {}),
        (b"HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n", {}),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n", {"is_answer_to_head": True}),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", {}),
    ],
)
def test_answers_without_a_body_end_with_their_head(answer: bytes, options: dict[str, Any]) -> None:
    exchange = fed(answer, **options)
    assert exchange.ended and exchange.keep_alive and exchange.body.read_all() == b""


def test_a_body_without_a_length_ends_with_the_connection() -> None:
    exchange = fed(b"HTTP/1.1 200 OK\r\n\r\nab", b"cd")
    assert not exchange.ended
    assert exchange.eof() == END
    assert exchange.body.read_all() == b"abcd" and not exchange.keep_alive


@pytest.mark.parametrize(
    ("answer", "kept"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: foo, Close\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n", False),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n", True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\nsurplus", False),
    ],
)
def test_whether_a_connection_can_be_used_again(answer: bytes, kept: bool) -> None:
    assert fed(answer).keep_alive is kept


def test_how_long_a_server_keeps_a_connection() -> None:
    assert fed(CHUNKED).keep_alive_s == 30
    assert fed(SIZED).keep_alive_s is None
    assert fed(b"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=x\r\nContent-Length: 0\r\n\r\n").keep_alive_s is None


def test_fields_of_one_name_are_joined_and_names_are_lower_case() -> None:
    exchange = fed(b"HTTP/1.1 200 OK\r\nA-B: 1 \r\na-b:\t2\r\nContent-Length: 0\r\nD: \xc3\xa4\xff\r\n\r\n")
    assert exchange.headers["a-b"] == "1, 2" and exchange.header("a-b") == "1, 2" and exchange.header("c") is None
    assert exchange.headers["d"] == "ä\ufffd"
