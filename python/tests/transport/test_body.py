"""The queue between the network and a decoder: bounded, decompressing, and with ClickHouse's last words."""

from __future__ import annotations

import gzip
import threading
import zlib

import pytest

from windrow._core import Body, BodyError, Compressor, Exchange

TAG = "abcdefghijklmnop"
MESSAGE = "Code: 395. DB::Exception: Value passed to 'throwIf' function is non-zero. (FUNCTION_THROW_IF) (version 26.7.2.1)"
TAGGED = f"\r\n__exception__\r\n{TAG}\r\n{MESSAGE}\n{len(MESSAGE) + 1} {TAG}\r\n__exception__\r\n".encode()


def open_body(high_water_bytes: int = 1 << 20, fields: str = "") -> tuple[Exchange, Body]:
    exchange = Exchange(high_water_bytes)
    exchange.feed(f"HTTP/1.1 200 OK\r\n{fields}\r\n".encode())
    return exchange, exchange.body


def compressed(data: bytes, encoding: str) -> bytes:
    compressor = Compressor(encoding)
    return compressor.step(data) + compressor.finish()


def test_a_reader_gets_what_is_there_and_no_more_than_it_wants() -> None:
    exchange, body = open_body()
    assert body.read(10) == b"" and body.read_all() == b""
    exchange.feed(b"hello")
    exchange.feed(b" world")
    assert (body.read(3), body.buffered, body.read(100), body.read(1)) == (b"hel", 0, b"lo world", b"")
    assert not body.ended
    exchange.eof()
    assert body.ended and body.read_all() == b""


def test_more_than_the_high_water_is_told_and_its_end_once() -> None:
    exchange, body = open_body(high_water_bytes=1000)
    calls: list[str] = []
    assert exchange.feed(b"x" * 1000) == 2
    assert exchange.feed(b"x" * 300_000) == 10
    body.on_drained(lambda: calls.append("drained"))
    assert body.buffered == body.most_buffered == 301_000
    body.read(100)
    assert calls == []
    body.read_all()
    assert calls == ["drained"]
    exchange.feed(b"x" * 2000)
    body.read_all()
    assert calls == ["drained"]
    body.on_drained(lambda: calls.append("at once"))
    assert calls == ["drained", "at once"]


def test_a_reader_who_wants_all_in_one_piece_lifts_the_high_water() -> None:
    exchange, body = open_body(high_water_bytes=1000)
    body.unbound()
    assert exchange.feed(b"x" * 5000) == 2


@pytest.mark.parametrize("encoding", ["lz4", "zstd", "gzip", "deflate"])
def test_bodies_are_decompressed_on_their_way_out(encoding: str) -> None:
    data = b"".join(b"%d\tsome text\n" % number for number in range(50_000))
    raw = compressed(data, encoding)
    exchange, body = open_body(fields=f"Content-Encoding: {encoding}\r\n")
    assert body.compressed
    got = b""
    for at in range(0, len(raw), 1000):
        exchange.feed(raw[at : at + 1000])
        got += body.read(1 << 20)
    exchange.eof()
    assert got + body.read_all() == data


def test_what_python_compresses_is_read_and_what_is_compressed_is_read_by_python() -> None:
    data = b"hello" * 1000
    assert Body.of_bytes(gzip.compress(data), "gzip").read_all() == data
    assert Body.of_bytes(zlib.compress(data), "deflate").read_all() == data
    assert gzip.decompress(compressed(data, "gzip")) == data
    assert zlib.decompress(compressed(data, "deflate")) == data


@pytest.mark.parametrize("encoding", ["lz4", "zstd", "gzip", "deflate"])
def test_a_bomb_gives_what_is_asked_for(encoding: str) -> None:
    body = Body.of_bytes(compressed(b"\0" * (200 << 20), encoding), encoding)
    assert body.read(1000) == b"\0" * 1000
    assert len(body.read(100_000)) == 100_000


@pytest.mark.parametrize("encoding", ["lz4", "zstd", "gzip", "deflate"])
def test_a_compressed_body_that_was_cut_gives_its_beginning_then_an_error(encoding: str) -> None:
    raw = compressed(bytes(range(256)) * 1000, encoding)
    body = Body.of_bytes(raw[: len(raw) - 5], encoding)
    got = b""
    with pytest.raises(BodyError, match="ends too early"):
        while True:
            got += body.read(1000)
    assert (bytes(range(256)) * 1000).startswith(got)
    with pytest.raises(BodyError):
        body.read_all()


@pytest.mark.parametrize("encoding", ["bzip2", "xz", "snappy"])
def test_an_unknown_encoding_is_an_error_of_the_body(encoding: str) -> None:
    with pytest.raises(BodyError, match=encoding):
        Body.of_bytes(b"xxx", encoding).read_all()


def test_what_came_before_the_loss_is_given_out_first() -> None:
    exchange, body = open_body(fields="Content-Length: 100\r\n")
    exchange.feed(b"hello")
    with pytest.raises(Exception, match="in the middle"):
        exchange.eof()
    assert body.ended
    assert body.read(3) == b"hel" and body.read(3) == b"lo"
    with pytest.raises(BodyError, match="in the middle"):
        body.read(3)


@pytest.mark.parametrize("encoding", [None, "lz4", "zstd"])
@pytest.mark.parametrize("before", [b"", b"x" * 100_000])
def test_the_exception_in_the_tail(encoding: str | None, before: bytes) -> None:
    data = before + TAGGED
    body = Body.of_bytes(compressed(data, encoding) if encoding else data, encoding, TAG)
    assert body.exception_text() == MESSAGE
    body = Body.of_bytes(compressed(data, encoding) if encoding else data, encoding, TAG)
    while body.read(777):
        pass
    assert body.exception_text() == MESSAGE


def test_the_exception_is_found_when_its_end_was_cut_off() -> None:
    for end in range(len(TAGGED)):
        text = Body.of_bytes(b"data" + TAGGED[:end], None, TAG).exception_text()
        start = TAGGED.index(b"Code")
        assert text is None if end <= start else text is not None and text.startswith(MESSAGE[: end - start].strip()), end


def test_what_looks_like_an_exception_without_the_tag_is_data() -> None:
    data = TAGGED.replace(TAG.encode(), b"ponmlkjihgfedcba")
    assert Body.of_bytes(data, None, TAG).exception_text() is None


def test_older_servers_have_no_tag() -> None:
    assert Body.of_bytes(b"1\n2\n" + MESSAGE.encode() + b"\n").exception_text() == MESSAGE
    assert Body.of_bytes(b"1\tCode: x\n2\tCode: 5\n").exception_text() is None
    assert Body.of_bytes(b"").exception_text() is None


def test_reader_and_network_in_two_threads() -> None:
    exchange, body = open_body(high_water_bytes=50_000)
    data = bytes(range(256)) * 4000
    drained = threading.Event()

    def feed() -> None:
        for at in range(0, len(data), 10_000):
            if exchange.feed(data[at : at + 10_000]) & 8:
                drained.clear()
                body.on_drained(drained.set)
                assert drained.wait(60)
        exchange.eof()

    thread = threading.Thread(target=feed)
    thread.start()
    got = b""
    while not (body.ended and not body.buffered):
        got += body.read(30_000)
    thread.join()
    assert got + body.read_all() == data
    assert body.most_buffered <= 60_000


def test_a_compressor_ends_once() -> None:
    compressor = Compressor("lz4")
    compressor.finish()
    with pytest.raises(RuntimeError):
        compressor.step(b"x")
    with pytest.raises(ValueError, match="lz4, zstd, gzip or deflate"):
        Compressor("br")
