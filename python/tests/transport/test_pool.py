"""Connections: how many there are, who gets one, how long they live, and that none is lost."""

from __future__ import annotations

import asyncio
import gc
import os
import random
import signal
import socket
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.scripted import PATIENCE_SECONDS, Exchange, answer, chunk, head
from transport.both import EMPTY, Chunks, until
from transport.conftest import signed_in
from windrow._async.blocks import BlockStream
from windrow._async.transport import AsyncTransport
from windrow._shared.http_options import HttpOptions
from windrow._shared.http_request import Request
from windrow._sync.pool import Pool
from windrow._sync.transport import SyncTransport
from windrow.exceptions import OperationalError, ProgrammingError


class Echo:
    """Answers every request with its body, one at a time when it is told to hold."""

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.gate.set()
        self.busy: list[bytes] = []

    def __call__(self, exchange: Exchange) -> None:
        while True:
            body = exchange.read_request()[1]
            self.busy.append(body)
            assert self.gate.wait(PATIENCE_SECONDS)
            exchange.send(answer(body))


def post(body: bytes, **options: Any) -> Request:
    return Request("POST", "/", body=body, **options)


async def echoed(transport: AsyncTransport, body: bytes, **options: Any) -> bytes:
    return await (await transport.send(post(body, **options))).read()


async def test_no_more_connections_than_allowed_and_first_come_first_served(scripted: Any) -> None:
    echo = Echo()
    echo.gate.clear()
    server = scripted(echo)
    transport = AsyncTransport(HttpOptions(server.host, server.port, connector_limit=9, connector_limit_per_host=1))
    done: list[bytes] = []

    async def one(number: int) -> None:
        done.append(await echoed(transport, b"%d" % number))

    tasks = [asyncio.create_task(one(number)) for number in range(20)]
    await until(lambda: len(echo.busy) == 1, "one is served")
    assert transport.statistics() == {"open": 1, "idle": 0, "in_use": 1, "waiting": 19}
    echo.gate.set()
    await asyncio.gather(*tasks)
    assert done == echo.busy == [b"%d" % number for number in range(20)]
    assert server.connections == 1
    await transport.close()
    assert transport.statistics() == EMPTY


async def test_who_is_cancelled_in_the_line_holds_nobody_up(scripted: Any) -> None:
    echo = Echo()
    echo.gate.clear()
    server = scripted(echo)
    transport = AsyncTransport(HttpOptions(server.host, server.port, connector_limit=1))
    tasks = [asyncio.create_task(echoed(transport, b"%d" % number)) for number in range(5)]
    await until(lambda: echo.busy, "one is served")
    tasks[1].cancel()
    tasks[3].cancel()
    echo.gate.set()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [result for result in results if isinstance(result, bytes)] == [b"0", b"2", b"4"]
    assert transport.statistics() == {"open": 1, "idle": 1, "in_use": 0, "waiting": 0}
    await transport.close()


async def test_a_connection_that_is_handed_to_a_cancelled_caller_goes_on_to_the_next(scripted: Any) -> None:
    echo = Echo()
    echo.gate.clear()
    server = scripted(echo)
    transport = AsyncTransport(HttpOptions(server.host, server.port, connector_limit=1))
    served, *waiting = (asyncio.create_task(echoed(transport, b"%d" % number)) for number in range(3))
    await until(lambda: echo.busy, "one is served")
    assert transport.statistics()["waiting"] == 2
    echo.gate.set()
    while transport.statistics()["waiting"] == 2:
        await asyncio.sleep(0)
    # The connection was handed over in the last turn of the loop; who got it doesn't know yet.
    waiting[0].cancel()
    assert await served == b"0"
    first, second = await asyncio.gather(*waiting, return_exceptions=True)
    assert isinstance(first, asyncio.CancelledError) and second == b"2"
    assert echo.busy == [b"0", b"2"]
    assert transport.statistics() == {"open": 1, "idle": 1, "in_use": 0, "waiting": 0}
    await transport.close()


def test_waiting_for_a_connection_has_the_request_s_limit(face: Any, scripted: Any) -> None:
    echo = Echo()
    client = face(scripted(echo), connector_limit=1)
    echo.gate.clear()
    with ThreadPoolExecutor(2) as threads:
        first = threads.submit(client.whole, post(b"1"))
        eventually(lambda: echo.busy, "the first is served")
        with pytest.raises(OperationalError, match="no connection became free") as caught:
            client.whole(post(b"2", timeout_s=0.1))
        assert caught.value.phase == "timeout"
        echo.gate.set()
        assert first.result().body == b"1"
    assert echo.busy == [b"1"]


def test_idle_connections_are_used_last_in_first_out(face: Any, scripted: Any) -> None:
    used: list[int] = []
    barrier = threading.Barrier(4)

    def script(exchange: Exchange) -> None:
        while True:
            body = exchange.read_request()[1]
            if body == b"together":
                barrier.wait(PATIENCE_SECONDS)
            else:
                used.append(exchange.number)
            exchange.send(answer(body))

    client = face(scripted(script))
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda _: client.whole(post(b"together")), range(4)))
    assert client.statistics()["idle"] == 4
    for _ in range(10):
        client.whole(post(b"alone"))
    assert len(set(used)) == 1


async def test_idle_connections_close_after_their_time(scripted: Any) -> None:
    together = threading.Barrier(5)

    def script(exchange: Exchange) -> None:
        exchange.read_request()
        together.wait(PATIENCE_SECONDS)
        exchange.send(answer())
        exchange.until_closed()

    for idle_s, left in ((3600, {"open": 5, "idle": 5, "in_use": 0, "waiting": 0}), (0.05, EMPTY)):
        server = scripted(script)
        transport = AsyncTransport(HttpOptions(server.host, server.port, keepalive_timeout_s=idle_s))
        await asyncio.gather(*(echoed(transport, b"x") for _ in range(5)))
        await until(lambda t=transport, left=left: t.statistics() == left, f"they may be idle for {idle_s} s")
        assert server.connections == 5
        await transport.close()


def test_idle_connections_of_threads_close_when_somebody_comes_by(scripted: Any) -> None:
    server = scripted(Echo())
    transport = SyncTransport(HttpOptions(server.host, server.port, keepalive_timeout_s=0))
    for number in range(1, 4):
        assert transport.send(post(b"x")).read() == b"x"
        assert server.connections == number
    transport.close()


def test_connections_have_an_age_and_a_generation(face: Any, scripted: Any) -> None:
    server = scripted(Echo())
    client = face(server, max_connection_age_s=1e-9)
    client.whole(post(b"x"))
    client.whole(post(b"x"))
    assert server.connections == 2 and client.statistics() == EMPTY
    client = face(server)
    client.whole(post(b"x"))
    client.do(client.transport.close_connections)
    client.whole(post(b"x"))
    assert server.connections == 4
    assert client.statistics()["open"] == 1


def test_a_closed_transport_opens_again(face: Any, scripted: Any) -> None:
    client = face(scripted(Echo()))
    for _ in range(2):
        assert client.whole(post(b"x")).body == b"x"
        client.do(client.transport.close)
        assert client.statistics() == EMPTY


async def test_closing_ends_requests_and_the_line(scripted: Any) -> None:
    echo = Echo()
    echo.gate.clear()
    server = scripted(echo)
    transport = AsyncTransport(HttpOptions(server.host, server.port, connector_limit=1))
    tasks = [asyncio.create_task(echoed(transport, b"%d" % number)) for number in range(3)]
    await until(lambda: echo.busy, "one is served")
    await transport.close()
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(result, OperationalError) and "closed" in str(result) for result in results), results
    assert transport.statistics() == EMPTY
    echo.gate.set()


@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_one_loop_at_a_time(scripted: Any) -> None:
    server = scripted(Echo())
    transport = AsyncTransport(HttpOptions(server.host, server.port))
    assert asyncio.run(echoed(transport, b"x")) == b"x"
    # The first loop is closed, and its connections with it.
    assert asyncio.run(echoed(transport, b"y")) == b"y"

    async def from_another_loop() -> None:
        await echoed(transport, b"z")
        with ThreadPoolExecutor(1) as thread:
            with pytest.raises(ProgrammingError, match="another event loop"):
                thread.submit(asyncio.run, echoed(transport, b"x")).result()
        await transport.close()

    asyncio.run(from_another_loop())
    # asyncio warns of what a program leaves open when it leaves its loop, which this one does on purpose.
    gc.collect()


async def test_nothing_is_lost_by_cancellations_at_any_moment(direct: Endpoint) -> None:
    """Random requests, cancelled after a random number of turns of the loop or milliseconds."""
    seed = 0x5EED02
    chance = random.Random(seed)
    transport = AsyncTransport(HttpOptions(direct.host, direct.port, connector_limit=6))
    signed_in(transport, direct)
    direct.sql("CREATE TABLE t (a UInt64) ENGINE = Null")
    before = asyncio.all_tasks()

    async def small() -> None:
        assert await echoed(transport, b"SELECT 1") == b"1\n"

    async def stream() -> None:
        response = await transport.send(post(b"SELECT number, repeat('x', 100) FROM numbers(200000)"))
        blocks = BlockStream(response, Chunks(response.body), 0)
        while await blocks.next() is not None:
            pass

    async def insert() -> None:
        async def body() -> Any:
            for _ in range(20):
                yield b"1\n" * 10_000
                await asyncio.sleep(0)

        response = await transport.send(Request("POST", "/?query=INSERT+INTO+t+FORMAT+TSV", body=body(), encoding="lz4"))
        assert response.status == 200, await response.read()
        await response.read()

    async def cancelled(kind: Callable[[], Any], turns: int, pause_s: float) -> None:
        task = asyncio.create_task(kind())
        for _ in range(turns):
            await asyncio.sleep(0)
        asyncio.get_running_loop().call_later(pause_s, task.cancel)
        try:
            await task
        except asyncio.CancelledError:
            pass

    for _ in range(12):
        kinds = [chance.choice([small, stream, insert]) for _ in range(20)]
        await asyncio.gather(
            *(cancelled(kind, chance.randrange(12), chance.choice([0, 0, chance.random() / 50])) for kind in kinds),
            *(small() for _ in range(5)),
        )
    await until(lambda: transport.statistics()["in_use"] == 0, f"seed {seed:#x}: connections are free again")
    statistics = transport.statistics()
    assert statistics["waiting"] == 0 and statistics["open"] == statistics["idle"] <= 6, f"seed {seed:#x}"
    await asyncio.gather(*(small() for _ in range(20)))
    await transport.close()
    assert transport.statistics() == EMPTY
    assert asyncio.all_tasks() == before


def test_threads_share_a_pool(direct: Endpoint) -> None:
    transport = SyncTransport(HttpOptions(direct.host, direct.port, connector_limit=4))
    signed_in(transport, direct)

    def one(number: int) -> None:
        assert transport.send(post(b"SELECT %d" % number)).read() == b"%d\n" % number

    with ThreadPoolExecutor(16) as threads:
        list(threads.map(one, range(300)))
    statistics = transport.statistics()
    assert statistics["waiting"] == statistics["in_use"] == 0 and 1 <= statistics["open"] <= 4
    transport.close()
    assert transport.statistics() == EMPTY


class Interrupted(BaseException):
    """Stands for a KeyboardInterrupt, which would end the test run if it came a moment too late."""


def waits_in_line(thread: int) -> bool:
    """Whether the thread has come to where it does nothing but wait for a connection, and an exception finds all in order."""
    frame = sys._current_frames().get(thread)
    waits = frame is not None and frame.f_code is threading.Condition.wait.__code__ and "gotit" in frame.f_locals
    while frame is not None and frame.f_code is not Pool._wait.__code__:
        frame = frame.f_back
    return waits and frame is not None


@pytest.mark.parametrize("where", ["head", "body", "sending", "line"])
def test_an_interrupt_leaves_nothing_behind(scripted: Any, where: str) -> None:
    main = threading.get_ident()

    def interrupt() -> None:
        signal.pthread_kill(main, signal.SIGUSR1)

    def handler(*_: object) -> None:
        raise Interrupted

    def script(exchange: Exchange) -> None:
        exchange.read_head()
        if where == "body":
            exchange.send(head("200 OK", {"Transfer-Encoding": "chunked"}) + chunk(b"x"))
        if where != "line":
            interrupt()
        exchange.until_closed()

    server = scripted(script)
    transport = SyncTransport(HttpOptions(server.host, server.port, connector_limit=1))
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        if where == "line":
            thread = threading.Thread(target=lambda: pytest.raises(OperationalError, lambda: transport.send(post(b""))))
            thread.start()
            eventually(lambda: transport.statistics()["in_use"] == 1, "the only connection is busy")
            in_line = threading.Thread(target=lambda: eventually(lambda: waits_in_line(main), "it waits") and interrupt())
            in_line.start()
            with pytest.raises(Interrupted):
                transport.send(post(b""))
            in_line.join()
            assert transport.statistics()["waiting"] == 0
            for connection in list(transport._pool._all):
                connection.socket.shutdown(socket.SHUT_RDWR)
            thread.join()
        else:
            with pytest.raises(Interrupted):
                transport.send(post(b"x" * (32 << 20) if where == "sending" else b"")).read()
    finally:
        signal.signal(signal.SIGUSR1, before)
    eventually(lambda: transport.statistics() == EMPTY, "the connection is closed and its place free")
    transport.close()


@pytest.mark.filterwarnings("ignore:.*multi-threaded")
def test_a_fork_has_connections_of_its_own(scripted: Any) -> None:
    server = scripted(Echo())
    transport = SyncTransport(HttpOptions(server.host, server.port))
    assert transport.send(post(b"parent")).read() == b"parent"
    child = os.fork()
    if child == 0:
        try:
            fine = transport.statistics() == EMPTY and transport.send(post(b"child")).read() == b"child"
            os._exit(0 if fine else 1)
        finally:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert transport.send(post(b"parent")).read() == b"parent"
    assert server.connections == 2
    transport.close()
