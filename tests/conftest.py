"""Fixtures of the whole-system tests."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.compare import Comparison
from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.gateway import Gateway
from harness.paths import TARGET
from harness.users import TESTER


@pytest.fixture
def database(server: Engine | Gateway, request: pytest.FixtureRequest) -> Iterator[str]:
    """A database of the test's own."""
    name = re.sub(r"\W+", "_", f"d_{request.node.module.__name__}_{request.node.name}").lower()[:120]
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
