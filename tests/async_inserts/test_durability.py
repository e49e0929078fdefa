"""What is acknowledged as kept on disk is stored in the end, whatever dies in between."""

from __future__ import annotations

import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.inserts import INTO_T, ids, make_table, rows
from harness.process import surroundings
from harness.remote import RemoteGateway
from harness.users import TESTER

StartGateway = Callable[..., Gateway]
# The answers of the backend hold for a moment only: whoever comes later has to go by what it said last.
FORGETFUL = "[gather]\nadmission_ttl_ms = 1\n"
KEPT = {"wait_for_async_insert": 0}


def as_tester(gateway: Gateway) -> Endpoint:
    return gateway.http.as_user(TESTER.name, TESTER.password)


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Engine]:
    """A ClickHouse that the gateway did not start, and that the test may end and start again."""
    engine = Engine(tmp_path / "engine")
    make_table(engine.direct)
    yield engine
    engine.child.signal(signal.SIGCONT)
    engine.stop()


@pytest.fixture
def start_remote(tmp_path: Path, backend: Engine) -> Iterator[Callable[..., RemoteGateway]]:
    """Starts gateways in front of that ClickHouse."""
    running: list[RemoteGateway] = []

    def start(config: str = FORGETFUL) -> RemoteGateway:
        # Windrow's own account, which may do everything.
        url = f"http://{quote(TESTER.name)}:{quote(TESTER.password)}@127.0.0.1:{backend.direct.port}"
        running.append(RemoteGateway(tmp_path / f"gateway-{len(running)}", url, backend.direct, config))
        return running[-1]

    yield start
    for gateway in running:
        gateway.stop()


def kept(tested: Endpoint, *numbers: int) -> None:
    for number in numbers:
        reply = tested.insert(INTO_T, rows(number), **KEPT)
        assert reply.status == 200, reply.text


def all_there(direct: Endpoint, count: int) -> None:
    eventually(lambda: direct.answers() and len(ids(direct)) >= count, "everything is stored", 60)
    assert ids(direct) == list(range(count))


def test_nobody_notices_that_the_backend_is_away(backend: Engine, start_remote: Callable[..., RemoteGateway]) -> None:
    tested = as_tester(start_remote())
    kept(tested, *range(5))
    backend.stop()
    kept(tested, *range(5, 40))
    backend.start()
    kept(tested, *range(40, 45))
    all_there(backend.direct, 45)


def test_nobody_notices_that_the_backend_hangs(backend: Engine, start_remote: Callable[..., RemoteGateway]) -> None:
    tested = as_tester(start_remote())
    kept(tested, *range(5))
    backend.child.signal(signal.SIGSTOP)
    kept(tested, *range(5, 40))
    backend.child.signal(signal.SIGCONT)
    all_there(backend.direct, 40)


def test_an_earlier_answer_ends_with_a_refusal(backend: Engine, start_remote: Callable[..., RemoteGateway]) -> None:
    """What the backend said last is what counts: while it is there, it is asked."""
    tested = as_tester(start_remote())
    kept(tested, 0)
    backend.direct.sql("DROP TABLE t SYNC")
    reply = tested.insert(INTO_T, rows(1), **KEPT)
    assert (reply.status, reply.code) == (404, 60), reply.text


def test_a_directory_belongs_to_one_gateway(start_remote: Callable[..., RemoteGateway]) -> None:
    """Also where the ClickHouse is somebody else's: the journal is the gateway's own."""
    first = start_remote()
    second = subprocess.run(first.command(), capture_output=True, text=True, timeout=60, env=surroundings(), check=False)
    said = second.stdout + second.stderr
    assert second.returncode == 1 and str(first.data_dir) in said and str(first.child.pid) in said, said
    assert first.data_dir.stat().st_mode & 0o777 == 0o700
    assert as_tester(first).sql("SELECT 1") == "1"


def test_it_stays_ready_while_the_backend_is_away(backend: Engine, start_remote: Callable[..., RemoteGateway]) -> None:
    gateway = start_remote()
    kept(as_tester(gateway), 0)
    assert gateway.ready() == (200, "ready\n")
    backend.stop()
    eventually(lambda: "the backend is away" in gateway.ready().text, "it is noticed")
    assert gateway.ready().status == 200
    newcomer = start_remote()
    assert newcomer.ready().status == 503, "it knows nothing of the backend and can take nothing for it"
