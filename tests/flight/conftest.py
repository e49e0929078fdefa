"""Flight SQL over both databases: a test that takes `service` runs against DuckDB and against ClickHouse."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from harness.duckdb import DuckDbGateway
from harness.flight import Service
from harness.gateway import Gateway
from harness.users import TESTER


@pytest.fixture(scope="session")
def duck_gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDbGateway]:
    folder = tmp_path_factory.mktemp("duck")
    started = DuckDbGateway(folder, f"duckdb://{folder / 'file.db'}")
    yield started
    code = started.stop()
    assert code == 0, f"the gateway ended with {code}:\n{started.child.log()[-3000:]}"


@pytest.fixture
def over_clickhouse(gateway: Gateway, database: str) -> Service:
    http = gateway.http.as_user(TESTER.name, TESTER.password).using(database)
    return Service(gateway.flight, TESTER.name, TESTER.password, database, http, False)


@pytest.fixture
def over_duckdb(gateway: Gateway, duck_gateway: DuckDbGateway, request: pytest.FixtureRequest) -> Service:
    name = re.sub(r"\W+", "_", request.node.name).lower()[:60]
    duck_gateway.http.sql(f"DROP SCHEMA IF EXISTS {name} CASCADE")
    duck_gateway.http.sql(f"CREATE SCHEMA {name}")
    return Service(duck_gateway.flight, "default", "", name, duck_gateway.http.using(name), True)


@pytest.fixture(params=["duckdb", "clickhouse"])
def service(request: pytest.FixtureRequest, gateway: Gateway) -> Service:
    return request.getfixturevalue(f"over_{request.param}")
