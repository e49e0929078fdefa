"""The native protocol inside TLS, on a port of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from clickhouse_driver import Client
from clickhouse_driver.errors import NetworkError, ServerException

from harness.certificate import made_in
from harness.duckdb import DuckDbGateway
from harness.gateway import Gateway
from harness.users import TESTER


def test_a_client_speaks_tls(start_gateway: Callable[..., Gateway], tmp_path: Path) -> None:
    certificate = made_in(tmp_path)
    config = f'[native]\ntls_certificate = "{certificate.cert}"\ntls_key = "{certificate.key}"\n'
    gateway = start_gateway(config, ("--native-tls", "127.0.0.1:0"))
    login = {"user": TESTER.name, "password": TESTER.password}
    secure = Client("127.0.0.1", port=gateway.native_tls_port, secure=True, ca_certs=str(certificate.cert), **login)
    secure.execute("CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n")
    assert secure.execute("INSERT INTO t VALUES", [(n,) for n in range(1000)]) == 1000
    assert secure.execute("SELECT count(), sum(n) FROM t") == [(1000, 499_500)]
    large = secure.execute("SELECT number, repeat('x', 100) FROM numbers(200000)")
    assert len(large) == 200_000
    # The other port has no TLS, and says so by not shaking hands.
    with pytest.raises((NetworkError, EOFError, OSError)):
        Client("127.0.0.1", port=gateway.native_port, secure=True, verify=False, **login).execute("SELECT 1")


def test_clients_may_have_to_show_a_certificate(start_gateway: Callable[..., Gateway], tmp_path: Path) -> None:
    for name in ("server", "known", "stranger"):
        (tmp_path / name).mkdir()
    server, known, stranger = (made_in(tmp_path / name) for name in ("server", "known", "stranger"))
    config = f'[native]\ntls_certificate = "{server.cert}"\ntls_key = "{server.key}"\ntls_client_ca = "{known.cert}"\n'
    gateway = start_gateway(config, ("--native-tls", "127.0.0.1:0"))

    def client(**certificate: str) -> Client:
        login = {"user": TESTER.name, "password": TESTER.password, "ca_certs": str(server.cert)}
        return Client("127.0.0.1", port=gateway.native_tls_port, secure=True, **login, **certificate)

    shown = {"certfile": str(known.cert), "keyfile": str(known.key)}
    assert client(**shown).execute("SELECT 1") == [(1,)]
    for refused in ({}, {"certfile": str(stranger.cert), "keyfile": str(stranger.key)}):
        with pytest.raises((NetworkError, EOFError, OSError)):
            client(**refused).execute("SELECT 1")
    # The lock comes before the password, not in its place.
    with pytest.raises(ServerException):
        Client("127.0.0.1", port=gateway.native_tls_port, secure=True, ca_certs=str(server.cert), user="nobody", **shown).execute("SELECT 1")


@pytest.mark.parametrize("duckdb", [False, True])
def test_what_goes_by_the_gateways_own_port_minds_no_name(
    start_gateway: Callable[..., Gateway], tmp_path: Path, duckdb: bool
) -> None:
    """Its certificate is for the name by which others reach it."""
    certificate = made_in(tmp_path, "DNS:windrow.example")
    config = f'[http]\ntls_certificate = "{certificate.cert}"\ntls_key = "{certificate.key}"\n'
    if duckdb:
        gateway: Gateway = DuckDbGateway(tmp_path / "duckdb", config=config)
        client = Client("127.0.0.1", port=gateway.native_port, user="default", password="")
        assert client.execute("SELECT 42") == [(42,)]
        assert gateway.stop() == 0
        return
    client = Client("127.0.0.1", port=start_gateway(config).native_port, user=TESTER.name, password=TESTER.password)
    assert client.execute("SELECT count() FROM system.windrow_dead_letters") == [(0,)]
