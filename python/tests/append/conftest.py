"""Servers that keep the contract of ordered appends, and clients of theirs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from append.backends import Backend
from harness.appends import AppendServer
from harness.duckdb import DuckDbGateway


@pytest.fixture
def append_server() -> Iterator[Callable[..., AppendServer]]:
    """`append_server(on_request)` starts a server of appends; see harness/appends.py."""
    running: list[AppendServer] = []

    def start(on_request: Any = None) -> AppendServer:
        running.append(AppendServer(on_request))
        return running[-1]

    yield start
    for server in running:
        server.close()


@pytest.fixture(scope="session")
def duck_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDbGateway]:
    """Windrow in front of a DuckDB file."""
    folder = tmp_path_factory.mktemp("duck-gateway")
    started = DuckDbGateway(folder, f"duckdb://{folder}/tables.duckdb")
    yield started
    assert started.stop() == 0, started.child.log()[-3000:]


@pytest.fixture(params=["duckdb", "clickhouse"])
def backend(request: pytest.FixtureRequest) -> Iterator[Backend]:
    """Each test once with each backend, in a database of its own."""
    if request.param == "clickhouse":
        yield Backend("clickhouse", request.getfixturevalue("gateway_where"))
        return
    gateway: DuckDbGateway = request.getfixturevalue("duck_gateway")
    name = re.sub(r"\W+", "_", request.node.name).lower()[:60]
    gateway.http.sql(f"CREATE SCHEMA {name}")
    yield Backend("duckdb", {"host": gateway.http.host, "port": gateway.http.port, "database": name})
    gateway.http.sql(f"DROP SCHEMA {name} CASCADE")
