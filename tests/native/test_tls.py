"""The native protocol inside TLS, on a port of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from clickhouse_driver import Client
from clickhouse_driver.errors import NetworkError

from harness.certificate import made_in
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
