"""Thousands who connect and say nothing, heads and bodies byte by byte, answers that nobody reads: a good client does not notice."""

from __future__ import annotations

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.eventually import eventually
from harness.gateway import Gateway
from harness.good_client import GoodClient
from harness.inserts import INTO_T
from harness.metrics import metrics_of
from harness.raw_http import RawConnection, head
from harness.users import TESTER

# Of the files that a process may have, what else it opens.
OTHER_FILES = 1_000
IDLE = 10_000
SLOW, READERS, AT_ONCE = 200, 4, 100
SHORT = "headers_read_timeout_ms = 1500\nbody_idle_timeout_ms = 1500\nkeep_alive_timeout_ms = 600_000\n"
# For those who are in time, however long a busy machine keeps them from it.
LONG = "headers_read_timeout_ms = 600_000\nkeep_alive_timeout_ms = 600_000\n"
# Head and buffers of a connection that is open, and what an allocator keeps.
CONNECTION_BYTES = 32 << 10


@pytest.fixture(scope="module")
def files() -> Iterator[int]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    yield hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


Stage = tuple[Gateway, GoodClient]


@pytest.fixture(scope="module")
def stage(files: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with staged(tmp_path_factory.mktemp("slow"), files, SHORT) as made:
        yield made


@pytest.fixture
def patient_stage(files: int, tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path, files, LONG) as made:
        yield made


@contextmanager
def staged(folder: Path, files: int, timeouts: str) -> Iterator[Stage]:
    gateway = Gateway(folder, f"[http]\nmax_connections = {min(IDLE, files - OTHER_FILES) + 500}\n{timeouts}")
    for table in ("good", "t"):
        gateway.direct.sql(f"CREATE TABLE {table} (a UInt64) ENGINE = MergeTree ORDER BY tuple()")
    with GoodClient(gateway.http.as_user(TESTER.name, TESTER.password)) as good:
        yield gateway, good
    print(good.times())
    assert gateway.stop() == 0


def begun(gateway: Gateway, sent: bytes, number: int, **options: int) -> list[RawConnection]:
    connections = []
    for _ in range(number):
        connections.append(RawConnection(gateway.http, **options))
        connections[-1].send(sent)
    return connections


def open_connections(gateway: Gateway) -> float:
    return metrics_of(gateway).sum("windrow_http_connections")


def close(connections: list[RawConnection]) -> None:
    for connection in connections:
        connection.close()


def test_ten_thousand_who_say_nothing(patient_stage: Stage, files: int) -> None:
    """Strangers, too: they were refused once, and keep their connections."""
    gateway, good = patient_stage
    number = min(IDLE, files - OTHER_FILES)
    peak = Path(f"/proc/{gateway.child.pid}/status")
    before = resident(peak)
    connections: list[RawConnection] = []
    try:
        for _ in range(number // AT_ONCE):
            some = begun(gateway, head("GET", "/?query=SELECT+1&password=wrong", (("Host", "x"),)), AT_ONCE)
            connections += some
            assert {connection.read_reply("GET").status for connection in some} == {403}
        assert open_connections(gateway) >= len(connections)
        good.goes_on()
        assert resident(peak) - before <= number * CONNECTION_BYTES + (64 << 20)
    finally:
        close(connections)
    eventually(lambda: open_connections(gateway) < 100, "the gateway has let them go")


def resident(status: Path) -> int:
    return next(int(line.split()[1]) * 1024 for line in status.read_text().splitlines() if line.startswith("VmRSS"))


SLOW_BEGINNINGS = {
    "nothing": b"",
    "empty lines": b"\r\n" * 100,
    "half a head": head("POST", "/", (("Host", "x"),))[:-2],
    "a head of a megabyte": b"POST /?query=" + b"x" * 900_000,
    "a body that does not come": head("POST", "/?query=INSERT+INTO+t+FORMAT+JSONEachRow", (("Host", "x"), ("Content-Length", "100"))),
    "half a chunk": head("POST", "/?query=INSERT+INTO+t+FORMAT+JSONEachRow", (("Host", "x"), ("Transfer-Encoding", "chunked"))) + b"ff\r\n{",
}


@pytest.mark.parametrize("beginning", SLOW_BEGINNINGS)
def test_slow_senders_are_let_go(stage: Stage, beginning: str) -> None:
    """After the time-outs of the settings, however they began; one byte now and then is no life of a head."""
    gateway, good = stage
    connections = begun(gateway, SLOW_BEGINNINGS[beginning], SLOW if len(SLOW_BEGINNINGS[beginning]) < 1000 else 20)
    try:
        good.goes_on()
        for connection in connections:
            assert not connection.rest().startswith(b"HTTP/1.1 200")
        good.goes_on()
    finally:
        close(connections)
    assert gateway.direct.sql("SELECT count() FROM t") == "0"


def test_a_head_byte_by_byte(stage: Stage) -> None:
    """The time of a head counts from its first byte."""
    gateway, _ = stage
    with RawConnection(gateway.http) as connection:
        connection.socket.settimeout(0.05)
        sent = iter(head("GET", "/ping", (("Host", "x"), ("X-Long", "x" * 10_000))))

        def is_closed() -> bool:
            try:
                connection.send(bytes([next(sent)]))
                return connection.receive_some().startswith((b"HTTP/1.1 408", b""))
            except TimeoutError:
                return False
            except OSError:
                return True

        eventually(is_closed, "it is let go")


def test_who_reads_no_answer(stage: Stage) -> None:
    """Large answers wait with their readers, in bounded memory."""
    gateway, good = stage
    status = Path(f"/proc/{gateway.child.pid}/status")
    before = resident(status)
    asked = head("GET", "/?query=SELECT+repeat('x',1000)+FROM+numbers(20000)&max_threads=1", (("Host", "x"),))
    connections = begun(gateway, asked, READERS, receive_buffer_bytes=4096)
    try:
        for connection in connections:
            connection.read_head()
        good.goes_on()
        assert resident(status) - before <= READERS * (1 << 20) + (64 << 20)
    finally:
        close(connections)
    good.goes_on()
    assert gateway.http.insert(INTO_T, '{"a":1}').status == 200
