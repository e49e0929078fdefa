"""Fixtures of the package's tests: one embedded ClickHouse per worker, a database per test, and what else they speak to.

What runs is what `import windrow` finds: the tree with PYTHONPATH=python, the installed package in `make test`, which names its
folder in WINDROW_TEST_INSTALLED so that nothing else can be tested by mistake.

A test may be a coroutine function: it runs in an event loop of its own.
"""

from __future__ import annotations

import asyncio
import inspect
import os
import re
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.eventually import eventually
from harness.redis import Redis
from harness.remote import RemoteGateway
from harness.scripted import Exchange, ScriptedServer
from harness.users import TESTER

#: Bounds a test that hangs in its event loop; no passing test depends on it.
LONGEST_ASYNC_TEST_SECONDS = 170.0


def pytest_report_header() -> str:
    import windrow

    return f"windrow: {Path(windrow.__file__).parent}"


def pytest_sessionstart() -> None:
    import windrow

    installed = os.environ.get("WINDROW_TEST_INSTALLED")
    if installed and not Path(windrow.__file__).is_relative_to(installed):
        raise pytest.UsageError(f"the package in {installed} is to be tested, not {windrow.__file__}")


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in inspect.signature(pyfuncitem.obj).parameters}
    run(pyfuncitem.obj(**arguments))
    return True


def run(coroutine: Any) -> Any:
    return asyncio.run(asyncio.wait_for(coroutine, LONGEST_ASYNC_TEST_SECONDS))


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """The ClickHouse of this worker, without a gateway."""
    started = Engine(tmp_path_factory.mktemp("engine"))
    yield started
    started.stop()


@pytest.fixture
def start_engine(tmp_path: Path) -> Iterator[Callable[[], Engine]]:
    """Starts engines that a test may kill."""
    running: list[Engine] = []

    def start() -> Engine:
        running.append(Engine(tmp_path / f"engine-{len(running)}"))
        return running[-1]

    yield start
    for started in running:
        started.stop()


@pytest.fixture(scope="session")
def gateway(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteGateway]:
    """Windrow in front of this worker's ClickHouse."""
    direct = engine.direct
    url = f"http://{quote(TESTER.name)}:{quote(TESTER.password)}@{direct.host}:{direct.port}"
    started = RemoteGateway(tmp_path_factory.mktemp("gateway"), url, direct)
    yield started
    assert started.stop() == 0, started.child.log()[-3000:]


@pytest.fixture
def database(engine: Engine, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database of the test's own."""
    name = re.sub(r"\W+", "_", f"d_{request.node.path.stem}_{request.node.name}").lower()[:120]
    engine.direct.sql(f"DROP DATABASE IF EXISTS {name}")
    engine.direct.sql(f"CREATE DATABASE {name}")
    yield name
    engine.direct.sql(f"DROP DATABASE IF EXISTS {name}")


@pytest.fixture
def direct(engine: Engine, database: str) -> Endpoint:
    """SQL on the test's database past the package: `direct.sql("SELECT ...")` answers text."""
    return engine.direct.using(database)


@pytest.fixture
def where(direct: Endpoint) -> dict[str, Any]:
    """Arguments for `get_client` and `get_async_client`, also clickhouse-connect's: ClickHouse itself."""
    return arguments_for(direct)


@pytest.fixture
def gateway_where(gateway: RemoteGateway, database: str) -> dict[str, Any]:
    """The same through Windrow."""
    return arguments_for(gateway.http.as_user(TESTER.name, TESTER.password).using(database))


def arguments_for(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "host": endpoint.host,
        "port": endpoint.port,
        "username": endpoint.user,
        "password": endpoint.password,
        "database": endpoint.database,
    }


@pytest.fixture(scope="session")
def redis_of_worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Redis]:
    started = Redis(tmp_path_factory.mktemp("redis"))
    yield started
    started.stop()


@pytest.fixture
def redis(redis_of_worker: Redis) -> Redis:
    """This worker's redis-server, empty; `redis.address` is `redis://host:port`."""
    redis_of_worker.call("FLUSHALL")
    return redis_of_worker


@pytest.fixture
def start_redis(tmp_path: Path) -> Iterator[Callable[..., Redis]]:
    """Starts redis-servers that a test may kill."""
    running: list[Redis] = []

    def start(*arguments: str) -> Redis:
        running.append(Redis(tmp_path / f"redis-{len(running)}", arguments))
        return running[-1]

    yield start
    for started in running:
        started.stop()


@pytest.fixture
def scripted() -> Iterator[Callable[[Callable[[Exchange], None]], ScriptedServer]]:
    """`scripted(script)` starts a server whose connections each run the script; see harness/scripted.py."""
    running: list[ScriptedServer] = []

    def start(script: Callable[[Exchange], None]) -> ScriptedServer:
        running.append(ScriptedServer(script))
        return running[-1]

    yield start
    for server in running:
        server.close()


@pytest.fixture
def threads_unchanged() -> Iterator[None]:
    """After the test the same threads run as before it."""
    before = set(threading.enumerate())
    yield
    eventually(lambda: not set(threading.enumerate()) - before, "threads that the test started have ended")
