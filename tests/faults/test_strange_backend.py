"""A backend that has never answered as ClickHouse does: nobody waits for it, and /readyz says what to look at."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from harness import strange
from harness.command_line import append
from harness.endpoint import Reply
from harness.engine import Engine
from harness.inserts import INTO_T, rows
from harness.ports import free_port, port_of_nobody
from harness.remote import RemoteGateway
from harness.strange import Strange

# Less than the two minutes that an insert waits for a backend which has been there.
PATIENCE_SECONDS = 60
LEVELS = ({"wait_for_async_insert": 1}, {"wait_for_async_insert": 0}, {"windrow_ack": "memory"})
LOOK = "the setting `backend` names its HTTP port"
NOT_AS_CLICKHOUSE = "but not as ClickHouse does"


@contextmanager
def nobody() -> Iterator[str]:
    with port_of_nobody() as port:
        yield f"http://127.0.0.1:{port}"


@contextmanager
def silent() -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def plain_where_tls_is_asked_for() -> Iterator[str]:
    with Strange(strange.NGINX).listening() as url:
        yield url.replace("http:", "https:")


Backend = Callable[[], AbstractContextManager[str]]
# Each with what /readyz says of it as soon as it has been asked.
BACKENDS: dict[str, tuple[Backend, str]] = {
    "refuses": (nobody, f"Connection refused (os error 111); see that ClickHouse runs there, and that {LOOK}"),
    "never answers": (silent, f"has not answered since Windrow's start; see that ClickHouse runs there, and that {LOOK}"),
    "a byte a second": (lambda: Strange(strange.HALF, pause_seconds=1).listening(), "has not answered"),
    "answers rubbish": (lambda: Strange(strange.RUBBISH).listening(), LOOK),
    "another protocol": (lambda: Strange(strange.SSH).listening(), LOOK),
    "half an answer": (lambda: Strange(strange.HALF).listening(), LOOK),
    "half a body": (lambda: Strange(strange.HALF_BODY).listening(), LOOK),
    "nginx without its backend": (lambda: Strange(strange.NGINX).listening(), f"status 502, {NOT_AS_CLICKHOUSE}; see"),
    "a page for everything": (lambda: Strange(strange.WELCOME).listening(), f"status 200, {NOT_AS_CLICKHOUSE}; see"),
    "another database": (lambda: Strange(strange.ELASTIC).listening(), f"status 405, {NOT_AS_CLICKHOUSE}; see"),
    "speaks no TLS": (plain_where_tls_is_asked_for, "does not speak TLS: write http:// in the setting `backend`"),
}


@pytest.mark.parametrize(("backend", "says"), BACKENDS.values(), ids=BACKENDS.keys())
def test_an_insert_is_refused_soon(backend: Backend, says: str, tmp_path: Path) -> None:
    with backend() as url:
        gateway = RemoteGateway(tmp_path, url, None)
        for reply in at_every_level(gateway):
            assert (reply.status, reply.headers["retry-after"]) == (503, "1"), reply.text
            assert "cannot be reached" in reply.text and "not answered since" in reply.text
        assert gateway.ready().status == 503
        if says:
            assert says in gateway.ready().text, gateway.ready().text
        assert gateway.stop() == 0


def at_every_level(gateway: RemoteGateway) -> list[Reply]:
    """All at once, since each is waited for."""
    insert = lambda level: gateway.http.insert(INTO_T, rows(1), patience_seconds=PATIENCE_SECONDS, async_insert=1, **level)
    with ThreadPoolExecutor(len(LEVELS)) as threads:
        return list(threads.map(insert, LEVELS))


@pytest.fixture(scope="module")
def clickhouse(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Engine, int]]:
    """With the port of its native protocol."""
    engine = Engine(tmp_path_factory.mktemp("engine"))
    yield engine, engine.native_port
    engine.stop()


def test_the_native_port_is_told(clickhouse: tuple[Engine, int], tmp_path: Path) -> None:
    engine, native = clickhouse
    gateway = RemoteGateway(tmp_path, f"http://127.0.0.1:{native}", None)
    status, text = gateway.ready()
    expected = f":{native} is the port of ClickHouse's native protocol; that of its HTTP interface is {engine.direct.port}"
    assert status == 503 and expected in text and LOOK in text, text
    assert any("native protocol" in str(event) for event in gateway.log_events()), "the log says so"
    assert gateway.stop() == 0


def test_an_append_to_a_plain_clickhouse_is_told(clickhouse: tuple[Engine, int], tmp_path: Path) -> None:
    engine, native = clickhouse
    (tmp_path / "rows.csv").write_text("a\n1\n")
    for port, status in ((engine.direct.port, 404), (native, 400)):
        ended = append(f"http://127.0.0.1:{port}", "t", "--quiet", tmp_path / "rows.csv")
        expected = f"windrow: --to: http://127.0.0.1:{port} answered with status {status}, but not as a Windrow does: "
        assert ended.code == 1 and ended.errors.startswith(expected), ended
        assert "a Windrow's HTTP port" in ended.errors and len(ended.errors.splitlines()) == 1, ended.errors
