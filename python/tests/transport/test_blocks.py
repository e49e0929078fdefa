"""Streams of blocks: bounded, with errors in both directions; and blocks for inserts made ahead of the network."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.scripted import PATIENCE_SECONDS, Exchange, answer, chunk, head
from transport.both import AsyncFace, Chunks, silence_may_last, until
from transport.conftest import signed_in
from windrow._async import blocks as async_blocks
from windrow._async.blocks import BlockStream
from windrow._async.transport import AsyncTransport
from windrow._shared.http_options import HttpOptions
from windrow._shared.http_request import Request
from windrow.exceptions import DataError, OperationalError, StreamClosedError, StreamFailureError

TAG = "abcdefghijklmnop"
MESSAGE = "Code: 241. DB::Exception: Memory limit exceeded (MEMORY_LIMIT_EXCEEDED)"
TAIL = f"\r\n__exception__\r\n{TAG}\r\n{MESSAGE}\n{len(MESSAGE) + 1} {TAG}\r\n__exception__\r\n".encode()
MIB = 1 << 20


def select(statement: str, **options: Any) -> Request:
    return Request("POST", "/?enable_http_compression=1", body=statement.encode(), may_repeat=True, **options)


def everything(client: Any, stream: Any) -> list[bytes]:
    blocks = []
    while (block := client.do(stream.next)) is not None:
        blocks.append(block)
    return blocks


@pytest.mark.parametrize("encoding", [None, "lz4", "zstd", "gzip"])
@pytest.mark.parametrize("rows", [0, 10, 1_000_000])
def test_blocks_are_the_whole_result(face: Any, direct: Endpoint, rows: int, encoding: str | None) -> None:
    client = face(direct)
    signed_in(client.transport, direct)
    headers = [("Accept-Encoding", encoding)] if encoding else []
    expected = b"".join(b"%d\n" % number for number in range(rows))
    for _ in range(2):
        stream = client.stream(select(f"SELECT number FROM numbers({rows})", headers=headers))
        assert b"".join(everything(client, stream)) == expected
        assert client.do(stream.next) is None
        assert client.do(stream.header) == "header"
    stream = client.stream(select(f"SELECT number FROM numbers({rows})", headers=headers))
    assert b"".join(client.do(stream.rest)) == expected
    eventually(lambda: client.statistics() == {"open": 1, "idle": 1, "in_use": 0, "waiting": 0}, "one connection, idle")


def test_the_first_block_comes_before_the_last(face: Any, scripted: Any) -> None:
    taken = threading.Event()

    def script(exchange: Exchange) -> None:
        exchange.read_request()
        exchange.send(head("200 OK", {"Transfer-Encoding": "chunked"}) + chunk(b"first"))
        assert taken.wait(PATIENCE_SECONDS)
        exchange.send(chunk(b"last") + chunk(b""))

    client = face(scripted(script))
    stream = client.stream(select(""))
    assert client.do(stream.next) == b"first"
    taken.set()
    assert client.do(stream.rest) == [b"last"]


def test_a_slow_consumer_bounds_what_is_held(face: Any, direct: Endpoint) -> None:
    """100 MB, of which the consumer has taken one block: the network stops, and goes on when it takes more."""
    high_water_bytes = 1 * MIB
    client = face(direct, high_water_bytes=high_water_bytes)
    signed_in(client.transport, direct)
    stream = client.stream(select("SELECT repeat('x', 999) FROM numbers(100000)"))
    body = stream.response.body
    taken = len(client.do(stream.next))
    while (block := client.do(stream.next)) is not None:
        taken += len(block)
        # One read more than the high water can be under way.
        assert body.most_buffered <= high_water_bytes + MIB // 4
    assert taken == 100_000_000


async def test_the_whole_is_read_where_reading_had_stopped(direct: Endpoint) -> None:
    """More than the high water came with the head, before anybody said that he wants all of it."""
    transport = AsyncTransport(HttpOptions(direct.host, direct.port, high_water_bytes=10_000))
    signed_in(transport, direct)
    response = await transport.send(select("SELECT repeat('x', 999) FROM numbers(5000)"))
    await asyncio.wait_for(until_full(response), PATIENCE_SECONDS)
    assert len(await asyncio.wait_for(response.read(), PATIENCE_SECONDS)) == 5_000_000
    await transport.close()


async def until_full(response: Any) -> None:
    while response.body.buffered <= 10_000:
        await asyncio.sleep(0)


async def test_the_network_stops_when_nobody_takes(scripted: Any) -> None:
    sent_bytes = 0
    full, stopped = threading.Event(), threading.Event()

    def script(exchange: Exchange) -> None:
        nonlocal sent_bytes
        exchange.read_request()
        exchange.send(head("200 OK", {"Transfer-Encoding": "chunked"}))
        rest = whole = memoryview(chunk(b"x" * MIB))
        exchange.socket.settimeout(0.5)
        while not stopped.is_set():
            try:
                size = exchange.socket.send(rest)
            except TimeoutError:
                if full.is_set():
                    stopped.set()
                continue
            sent_bytes += size
            rest = rest[size:] or whole
        exchange.socket.settimeout(PATIENCE_SECONDS)
        exchange.until_closed()

    server = scripted(script)
    transport = AsyncTransport(HttpOptions(server.host, server.port, high_water_bytes=MIB))
    response = await transport.send(select(""))
    stream, connection = BlockStream(response, Chunks(response.body), 0), response.connection
    await until(lambda: connection._reading_paused and stream._enough_waits() and not stream._job_runs, "all is full")
    full.set()
    await asyncio.get_running_loop().run_in_executor(None, stopped.wait, PATIENCE_SECONDS)
    assert stopped.is_set()
    # Two jobs' blocks, the queue, and what the two sockets hold.
    assert sent_bytes < 30 * MIB and response.body.most_buffered <= MIB + MIB // 4
    # And the silence is ours, not the server's: time and again it isn't over when it should be.
    silence_may_last(transport, 0.01)
    for _ in range(3):
        looks_at = connection._timer_at
        await until(lambda before=looks_at: connection._timer_at > before, "the silence was looked at")
    assert await stream.next() is not None
    await stream.close()
    assert transport.statistics()["open"] == 0
    await transport.close()


@pytest.mark.parametrize("encoding", [None, "lz4"])
def test_clickhouse_s_last_words_in_a_stream(face: Any, direct: Endpoint, encoding: str | None) -> None:
    client = face(direct)
    signed_in(client.transport, direct)
    headers = [("Accept-Encoding", encoding)] if encoding else []
    settings = "SETTINGS max_block_size = 1000, http_write_exception_in_output_format = 0"
    statement = f"SELECT throwIf(number = 900000), number FROM numbers(1000000) {settings}"
    stream = client.stream(select(statement, headers=headers))
    with pytest.raises(StreamFailureError, match="throwIf") as caught:
        everything(client, stream)
    assert (caught.value.code, caught.value.name) == (395, "FUNCTION_THROW_IF_VALUE_IS_NON_ZERO")
    with pytest.raises(StreamFailureError):
        client.do(stream.next)
    eventually(lambda: client.statistics()["open"] == 0, "the connection is closed")


def test_a_cut_stream(face: Any, scripted: Any) -> None:
    def script(exchange: Exchange) -> None:
        exchange.read_request()
        exchange.send(head("200 OK", {"Transfer-Encoding": "chunked"}) + chunk(b"x" * 100_000))

    client = face(scripted(script))
    stream = client.stream(select(""))
    with pytest.raises(OperationalError, match="Network Error: the connection was closed in the middle"):
        everything(client, stream)


def test_silence_in_a_stream(face: Any, scripted: Any) -> None:
    def script(exchange: Exchange) -> None:
        exchange.read_request()
        exchange.send(head("200 OK", {"Transfer-Encoding": "chunked"}) + chunk(b"x" * 100))
        exchange.until_closed()

    client = face(scripted(script))
    stream = client.stream(select(""))
    assert client.do(stream.next) == b"x" * 100
    client.expect_words_within(0.2)
    with pytest.raises(OperationalError) as caught:
        client.do(stream.next)
    assert caught.value.phase == "timeout"


@pytest.mark.parametrize("ends", ["with last words", "with nothing", "never"])
def test_a_decoder_that_fails_is_explained_by_the_server_if_it_can(
    face: Any, scripted: Any, ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exception's text is no block: what the decoder makes of it is not what the user should read."""
    if ends != "never":
        monkeypatch.setattr(async_blocks, "LAST_WORDS_S", PATIENCE_SECONDS)
    failed = threading.Event()

    def script(exchange: Exchange) -> None:
        exchange.read_request()
        fields = {"Transfer-Encoding": "chunked", "X-ClickHouse-Exception-Tag": TAG}
        exchange.send(head("200 OK", fields) + chunk(b"block"))
        assert failed.wait(PATIENCE_SECONDS)
        exchange.send(chunk(b"more"))
        if ends == "with last words":
            exchange.send(chunk(TAIL))
        elif ends == "never":
            for _ in range(40):
                exchange.send(chunk(b"x" * MIB))
            exchange.until_closed()

    client = face(scripted(script))
    stream = client.stream(select(""))
    assert client.do(stream.next) == b"block"
    stream.decoder.broken = DataError("a column of an unknown type")
    failed.set()
    with pytest.raises((StreamFailureError, DataError)) as caught:
        client.do(stream.next)
    assert caught.value.code == (241 if ends == "with last words" else None)
    eventually(lambda: client.statistics()["open"] == 0, "the connection is closed")


def test_a_stream_that_is_closed_early(face: Any, direct: Endpoint) -> None:
    client = face(direct)
    signed_in(client.transport, direct)
    for _ in range(3):
        stream = client.stream(select("SELECT number FROM numbers(100000000)"))
        client.do(stream.next)
        client.do(stream.close)
        client.do(stream.close)
        with pytest.raises(StreamClosedError):
            client.do(stream.next)
        assert client.statistics() == {"open": 0, "idle": 0, "in_use": 0, "waiting": 0}


def test_a_stream_that_is_dropped(face: Any, direct: Endpoint) -> None:
    client = face(direct)
    signed_in(client.transport, direct)
    stream = client.stream(select("SELECT number FROM numbers(100000000)"))
    client.do(stream.next)
    del stream
    eventually(lambda: client.statistics()["open"] == 0, "the connection of a dropped stream is closed")


def jobs_of(count: int, made: list[int]) -> list[Callable[[], bytes]]:
    def job(number: int) -> Callable[[], bytes]:
        def make() -> bytes:
            made.append(number)
            return b"%d\n" % number * 10_000

        return make

    return [job(number) for number in range(count)]


@pytest.mark.parametrize("encoding", [None, "lz4", "zstd", "gzip", "deflate"])
def test_inserts_in_blocks(face: Any, direct: Endpoint, encoding: str | None) -> None:
    direct.sql("CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
    client = face(direct)
    signed_in(client.transport, direct)
    made: list[int] = []
    body = client.source(jobs_of(50, made), encoding)
    whole = client.whole(Request("POST", "/?query=INSERT+INTO+t+FORMAT+TSV", body=body, encoding=encoding))
    assert whole.status == 200, whole.body
    assert direct.sql("SELECT count(), sum(a), uniq(a) FROM t") == f"500000\t{sum(range(50)) * 10_000}\t50"
    assert made == list(range(50))


def test_blocks_are_made_at_most_two_ahead(face: Any, scripted: Any) -> None:
    """A server that takes nothing gets no more made for it than the sockets hold, and two blocks."""
    made: list[int] = []
    three, more = threading.Event(), threading.Event()

    def job(number: int) -> Callable[[], bytes]:
        def make() -> bytes:
            made.append(number)
            if len(made) == 3:
                three.set()
            if len(made) > 8:
                more.set()
            return b"x" * (4 * MIB)

        return make

    def script(exchange: Exchange) -> None:
        exchange.read_head()
        assert three.wait(PATIENCE_SECONDS)
        # Time for more of them, if more were made.
        more.wait(0.5)
        exchange.reset()

    client = face(scripted(script))
    with pytest.raises(OperationalError):
        client.whole(Request("POST", "/", body=client.source([job(number) for number in range(100)])))
    assert 3 <= len(made) <= 8


def test_a_job_that_fails_ends_the_insert(face: Any, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
    client = face(direct)
    signed_in(client.transport, direct)

    def broken() -> bytes:
        raise DataError("row 7 of column a")

    body = client.source([*jobs_of(5, []), broken, *jobs_of(5, [])])
    with pytest.raises(DataError, match="row 7 of column a"):
        client.whole(Request("POST", "/?query=INSERT+INTO+t+FORMAT+TSV", body=body))
    assert client.statistics() == {"open": 0, "idle": 0, "in_use": 0, "waiting": 0}
    whole = client.whole(Request("POST", "/", body=b"SELECT 1"))
    assert whole.body == b"1\n"


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_streams_end_with_their_loop(direct: Endpoint) -> None:
    """A program that ends in the middle of a stream, as asyncio.run leaves it, has nothing to say about it."""
    client = AsyncFace(HttpOptions(direct.host, direct.port))
    signed_in(client.transport, direct)
    stream = client.stream(select("SELECT number FROM numbers(100000000)"))
    client.do(stream.next)
    client.loop.call_soon_threadsafe(client.loop.stop)
    client.thread.join()
    client.loop.close()
    del stream, client
    gc.collect()
