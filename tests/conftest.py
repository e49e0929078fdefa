"""Fixtures of the whole-system tests.

`WINDROW_TEST_TARGET=direct` runs everything that concerns plain ClickHouse behaviour against the bare engine, which shows
that a test's expectation is ClickHouse's own; without it the same tests run through a gateway.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Generator, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from harness.compare import Comparison
from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.gateway import Gateway
from harness.users import TESTER

TARGET = os.environ.get("WINDROW_TEST_TARGET", "gateway")


def pytest_configure(config: pytest.Config) -> None:
    if TARGET not in ("gateway", "direct"):
        raise pytest.UsageError("WINDROW_TEST_TARGET is `gateway` or `direct`")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Against the bare engine, what only a gateway can do is not asked."""
    if TARGET == "direct":
        of_gateways = {"gateway", "start_gateway", "start_pipelines", "start_duckdb"}
        about_gateways = [item for item in items if of_gateways & set(item.fixturenames)]
        config.hook.pytest_deselected(items=about_gateways)
        items[:] = [item for item in items if item not in about_gateways]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed test shows what each ClickHouse printed that fell by itself."""
    report = yield
    if report.failed:
        for engine in list(Engine.every):
            if said := engine.why_it_fell():
                report.sections.append((f"ClickHouse fell in {engine.folder}", said))
    return report


# A worker's tests make more tables than have series of their own by default, and ask what was gathered for one of theirs.
SHARED = "[admin]\nmax_tables_in_metrics = 100000\n"


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine | Gateway]:
    """The server of this worker; all tests that don't need settings of their own share it."""
    folder = tmp_path_factory.mktemp("server")
    started = Engine(folder) if TARGET == "direct" else Gateway(folder, SHARED)
    yield started
    code = started.stop()
    if TARGET == "gateway":
        assert code == 0, f"the gateway ended with {code}:\n{started.child.log()[-3000:]}"


@pytest.fixture
def database(server: Engine | Gateway, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database of the test's own."""
    name = re.sub(r"\W+", "_", f"d_{request.node.path.stem}_{request.node.name}").lower()[:120]
    server.direct.sql(f"DROP DATABASE IF EXISTS {name}")
    server.direct.sql(f"CREATE DATABASE {name}")
    yield name
    server.direct.sql(f"DROP DATABASE IF EXISTS {name}")


@pytest.fixture
def direct(server: Engine | Gateway, database: str) -> Endpoint:
    """The engine itself, without a gateway."""
    return server.direct.using(database)


@pytest.fixture
def tested(server: Engine | Gateway, direct: Endpoint) -> Endpoint:
    """The server under test, by the same user as `direct`."""
    return direct if TARGET == "direct" else server.http.as_user(TESTER.name, TESTER.password).using(direct.database)


@pytest.fixture
def native(server: Engine | Gateway, direct: Endpoint) -> Endpoint:
    """The native port of the server under test."""
    return replace(direct, port=server.native_port)


@pytest.fixture
def direct_native(server: Engine | Gateway, direct: Endpoint) -> Endpoint:
    """The native port of the engine itself."""
    return replace(direct, port=server.native_port if TARGET == "direct" else server.direct_native_port)


@pytest.fixture
def both(direct: Endpoint, tested: Endpoint) -> Comparison:
    return Comparison(direct, tested)


@pytest.fixture
def gateway(server: Engine | Gateway) -> Gateway:
    assert isinstance(server, Gateway), "this test is about the gateway: run it without WINDROW_TEST_TARGET=direct"
    return server


@pytest.fixture
def start_gateway(tmp_path: Path) -> Iterator[Callable[..., Gateway]]:
    """Starts gateways with settings of the test's own; stops what is left of them."""
    running: list[Gateway] = []

    def start(config: str = "", arguments: tuple[str, ...] = ()) -> Gateway:
        running.append(Gateway(tmp_path / f"own-{len(running)}", config, arguments))
        return running[-1]

    yield start
    for gateway in running:
        gateway.stop()
