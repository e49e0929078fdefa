"""Gateways in front of a PostgreSQL and of an SQLite, and a ClickHouse to compare their answers with."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.adbc import AdbcGateway
from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.postgres import Postgres


@pytest.fixture(scope="session")
def postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Postgres]:
    started = Postgres(tmp_path_factory.mktemp("postgres") / "cluster")
    yield started
    started.stop()


@pytest.fixture(scope="session")
def pg_server(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdbcGateway]:
    """One gateway for all tests; each makes tables of its own."""
    started = AdbcGateway(tmp_path_factory.mktemp("gateway"), postgres.url)
    yield started
    code = started.stop()
    assert code == 0, f"the gateway ended with {code}:\n{started.child.log()[-3000:]}"


@pytest.fixture
def pg(pg_server: AdbcGateway) -> Endpoint:
    return pg_server.http


@pytest.fixture(scope="session")
def lite_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdbcGateway]:
    folder = tmp_path_factory.mktemp("sqlite")
    started = AdbcGateway(folder, f"sqlite://{folder / 'a.db'}")
    yield started
    code = started.stop()
    assert code == 0, f"the gateway ended with {code}:\n{started.child.log()[-3000:]}"


@pytest.fixture
def lite(lite_server: AdbcGateway) -> Endpoint:
    return lite_server.http


@pytest.fixture(scope="session")
def oracle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    """ClickHouse itself."""
    engine = Engine(tmp_path_factory.mktemp("oracle"))
    yield engine.direct
    engine.stop()
