"""A gateway in front of a DuckDB, and a ClickHouse to compare its answers with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.duckdb import DuckDbGateway
from harness.endpoint import Endpoint
from harness.engine import Engine


@pytest.fixture(scope="module")
def duck_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDbGateway]:
    """One gateway for the tests of a file; each makes tables of its own."""
    started = DuckDbGateway(tmp_path_factory.mktemp("duck"))
    yield started
    code = started.stop()
    assert code == 0, f"the gateway ended with {code}:\n{started.child.log()[-3000:]}"


@pytest.fixture
def duck(duck_server: DuckDbGateway) -> Endpoint:
    return duck_server.http


@pytest.fixture(scope="session")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """ClickHouse itself."""
    engine = Engine(tmp_path_factory.mktemp("oracle"))
    yield engine.direct
    engine.stop()
