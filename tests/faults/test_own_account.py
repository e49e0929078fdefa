"""The gateway's own account at a server that it did not start: a wrong password shows, and costs nothing that was acknowledged."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.eventually import eventually
from harness.gateway import flat
from harness.inserts import HELD_NOT_WAITING, INTO_T, ids, make_table, rows
from harness.dead_letters import DeadLetters
from harness.raw_http import RawConnection, head
from harness.remote import RemoteGateway, backend_url
from harness.users import TESTER, User

WRONG = User(TESTER.name, "wrong", ())


@pytest.fixture
def direct(tmp_path: Path) -> Iterator[Endpoint]:
    engine = Engine(tmp_path / "engine")
    make_table(engine.direct)
    yield engine.direct
    engine.stop()


def metric(gateway: RemoteGateway, name: str) -> str:
    with RawConnection(gateway.admin) as connection:
        lines = connection.exchange(head("GET", "/metrics", (("Host", "x"),)), "GET").text.splitlines()
    return next(line.split()[-1] for line in lines if line.startswith(f"{name} "))


def start(folder: Path, direct: Endpoint, account: User) -> RemoteGateway:
    return RemoteGateway(folder, backend_url(account, f"127.0.0.1:{direct.port}"), direct)


def test_a_wrong_password_shows(tmp_path: Path, direct: Endpoint) -> None:
    gateway = start(tmp_path / "gateway", direct, WRONG)
    status, text = gateway.ready()
    assert status == 503 and "own user 'tester'" in text and "`backend`" in text and "Code: 516" in text, text
    assert metric(gateway, "windrow_backend_up") == "0"
    assert any("own user" in str(event) for event in map(flat, gateway.log_events())), "the log says so"
    assert gateway.stop() == 0


def test_inserts_in_the_journal_wait_for_the_right_one(tmp_path: Path, direct: Endpoint) -> None:
    folder = tmp_path / "gateway"
    gateway = start(folder, direct, TESTER)
    tested = gateway.http.as_user(TESTER.name, TESTER.password)
    for number in range(20):
        assert tested.insert(INTO_T, rows(number), **HELD_NOT_WAITING).status == 200
    gateway.kill()
    gateway.backend_url = backend_url(WRONG, f"127.0.0.1:{direct.port}")
    gateway.start()
    refused = lambda: [event for event in map(flat, gateway.log_events()) if "own account is refused" in str(event)]
    eventually(refused, "storing them is tried in vain")
    assert DeadLetters(gateway, direct.database).all() == [] and ids(direct) == []
    gateway.kill()
    gateway.backend_url = backend_url(TESTER, f"127.0.0.1:{direct.port}")
    gateway.start()
    eventually(lambda: ids(direct) == list(range(20)), "they are stored")
    assert gateway.ready() == (200, "ready\n")
    assert gateway.stop() == 0
