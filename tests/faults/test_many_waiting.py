"""A thousand inserts wait when the gateway is asked to end: all are answered, and what was acknowledged is stored."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.eventually import eventually
from harness.inserts import HELD, HELD_NOT_WAITING, INTO_T, ids, make_table, queued_inserts, rows
from harness.metrics import metrics_of
from harness.raw_http import RawConnection, RawReply, head
from harness.remote import RemoteGateway, backend_url
from harness.users import TESTER

WAITING, NOT_WAITING = 1000, 200
SHUTTING_DOWN = "shutting down"


class Limited(RemoteGateway):
    """Started where a process may have only so many files and connections open; `limit` is for the shell's `ulimit`."""

    def __init__(self, folder: Path, engine: Engine, limit: str, config: str = ""):
        self.limit = limit
        super().__init__(folder, backend_url(TESTER, f"127.0.0.1:{engine.direct.port}"), engine.direct, config)

    def command(self) -> list[str]:
        return ["sh", "-c", f'ulimit {self.limit} && exec "$@"', "sh", *super().command()]

    @property
    def tested(self) -> Endpoint:
        return self.http.as_user(TESTER.name, TESTER.password)


@pytest.fixture(autouse=True)
def many_connections() -> Iterator[None]:
    """Ours to the gateway."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    started = Engine(tmp_path / "engine")
    make_table(started.direct)
    yield started
    started.stop()


class Many:
    """Inserts that wait, each on a connection of its own, and others that don't."""

    def __init__(self, gateway: Limited):
        self.gateway = gateway
        tested = gateway.tested
        for number in range(WAITING, WAITING + NOT_WAITING):
            assert tested.insert(INTO_T, rows(number), **HELD_NOT_WAITING).status == 200
        fixed = (("Host", tested.host), ("Authorization", tested.basic_auth()))
        self.connections = [RawConnection(tested) for _ in range(WAITING)]
        for number, connection in enumerate(self.connections):
            body = rows(number).encode()
            connection.send(head("POST", tested.target(INTO_T, HELD), (*fixed, ("Content-Length", str(len(body))))) + body)
        eventually(lambda: queued_inserts(tested) == WAITING + NOT_WAITING, "all are queued")

    def end(self, signals: int) -> list[RawReply | None]:
        """As many SIGTERMs, the second when the first has been heard. What was answered, if anything was."""
        self.gateway.child.signal(signal.SIGTERM)
        for _ in range(signals - 1):
            eventually(lambda: SHUTTING_DOWN in self.gateway.child.log(), "the signal is heard")
            self.gateway.child.signal(signal.SIGTERM)
        replies = [reply_of(connection) for connection in self.connections]
        for connection in self.connections:
            connection.close()
        return replies


def reply_of(connection: RawConnection) -> RawReply | None:
    try:
        return connection.read_reply()
    except EOFError:
        return None


@pytest.mark.parametrize("signals", [1, 2])
def test_all_are_stored_and_answered(engine: Engine, tmp_path: Path, signals: int) -> None:
    """Also where a shell allows 256 open files: Windrow takes what the system grants."""
    gateway = Limited(tmp_path / "gateway", engine, "-Sn 256")
    replies = Many(gateway).end(signals)
    assert all(reply and reply.status == 200 for reply in replies)
    assert gateway.child.wait() == 0, gateway.child.log()[-3000:]
    assert ids(engine.direct) == list(range(WAITING + NOT_WAITING))


def test_an_end_without_a_backend(engine: Engine, tmp_path: Path) -> None:
    """All are answered. What was acknowledged stays in the journal; nothing is stored that was said not to be."""
    gateway = Limited(tmp_path / "gateway", engine, "-Sn 256", "[gather]\nshutdown_timeout_ms = 1000\n")
    many = Many(gateway)
    engine.stop()
    replies = many.end(signals=2)
    assert all(reply and reply.status == 503 for reply in replies), f"{replies.count(None)} have no answer"
    refused = {number for number, reply in enumerate(replies) if "may or may not" not in reply.text}
    assert gateway.child.wait() == 0, gateway.child.log()[-3000:]
    engine.start()
    gateway.start()
    not_waiting = set(range(WAITING, WAITING + NOT_WAITING))
    eventually(lambda: not_waiting <= set(ids(engine.direct)), "what was acknowledged is stored")
    assert gateway.stop() == 0
    there = ids(engine.direct)
    assert len(there) == len(set(there)) and not refused & set(there)


def test_few_open_files(engine: Engine, tmp_path: Path) -> None:
    """Connections that come are left waiting, not the inserts that are there; when there are fewer, all goes on."""
    gateway = Limited(tmp_path / "gateway", engine, "-n 64")
    told = [event for event in gateway.log_events() if "limit of open files" in str(event)]
    assert len(told) == 1 and "'limit': 64" in str(told) and "ulimit -n" in str(told), told
    tested = gateway.tested
    assert tested.insert(INTO_T, rows(0), wait_for_async_insert=0).status == 200
    body = rows(1).encode()
    fields = (("Host", "x"), ("Authorization", tested.basic_auth()), ("Content-Length", str(len(body))))
    request = head("POST", tested.target(INTO_T, {"wait_for_async_insert": 0}), fields) + body
    with RawConnection(tested) as first:
        assert first.exchange(request).status == 200
        crowd = [RawConnection(tested) for _ in range(100)]
        eventually(lambda: "could not be accepted" in gateway.child.log(), "there are too many")
        acknowledged = sum(first.exchange(request).status == 200 for _ in range(20))
        for connection in crowd:
            connection.close()
    assert acknowledged == 20
    assert tested.insert(INTO_T, rows(2)).status == 200
    eventually(lambda: len(ids(engine.direct)) == acknowledged + 3, "all are stored")
    assert metrics_of(gateway).sum("windrow_backend_up") == 1
    assert gateway.stop() == 0
