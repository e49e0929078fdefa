"""The clients' own test suites over the native protocol: what passes straight against ClickHouse passes through the gateway."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from clients.own_suites import golang, python_driver
from clients.own_suites.outcome import Outcome, Suite, compare
from clients.routes import forwarded_by_reason, samples
from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.remote import RemoteGateway, backend_url
from harness.users import TESTER, User

# The suites put the password into URLs as it is.
SUITE = User("suite", "suite", ("GRANT ALL ON *.* WITH GRANT OPTION",))
# The suites expect the zone to be called like this.
UTC = "<timezone>UTC</timezone>"

GO = Suite("clickhouse-go", least=930, only_through=rf"\w+\.({'|'.join(golang.BREAK_OFF)})")
PYTHON = Suite(
    "clickhouse-driver",
    least=190,
    only_through=r"tests\.test_(connect|dbapi)\.\w+\.test_(exception_on_hello|unknown_packet_on_connect|exception_execute)",
)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    started = Engine(tmp_path_factory.mktemp("suites-engine"), config=UTC, users=(SUITE,), environment={"TZ": "UTC"})
    yield started
    started.stop()


@pytest.fixture(scope="module")
def gateway(engine: Engine, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteGateway]:
    url = backend_url(TESTER, f"127.0.0.1:{engine.direct.port}")
    native = f'[backend_native]\naddress = "127.0.0.1:{engine.native_port}"\n'
    started = RemoteGateway(tmp_path_factory.mktemp("suites-gateway"), url, engine.direct, native)
    yield started
    assert started.stop() == 0


def both(engine: Engine, gateway: RemoteGateway, run: Callable[[Endpoint, int, bool], Outcome]) -> tuple[Outcome, Outcome]:
    server = replace(engine.direct, user=SUITE.name, password=SUITE.password, database="suite")
    outcomes = []
    ports = ((engine.native_port, engine.direct.port), (gateway.native_port, gateway.http.port))
    for (port, http_port), is_straight in zip(ports, (True, False), strict=True):
        outcomes.append(run(replace(server, port=port), http_port, is_straight))
        assert not engine.fell(), f"ClickHouse itself fell:\n{engine.child.log()[-3000:]}"
    return outcomes[0], outcomes[1]


def gathered(gateway: RemoteGateway) -> int:
    return sum(value for labels, value in samples(gateway, "windrow_inserts_total") if labels["result"] == "stored")


def test_clickhouse_go(engine: Engine, gateway: RemoteGateway) -> None:
    before = gathered(gateway)
    compare(GO, *both(engine, gateway, golang.run))
    # The rest has settings, types and sessions with which it is forwarded.
    assert gathered(gateway) - before > 400, forwarded_by_reason(gateway)


def test_clickhouse_driver(engine: Engine, gateway: RemoteGateway, tmp_path: Path) -> None:
    folders = iter((tmp_path / "straight", tmp_path / "through"))

    def run(server: Endpoint, http_port: int, is_straight: bool) -> Outcome:
        return python_driver.run(server, http_port, is_straight, next(folders))

    compare(PYTHON, *both(engine, gateway, run))
