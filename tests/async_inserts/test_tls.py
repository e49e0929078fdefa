"""TLS on the data port and towards the backend."""

from __future__ import annotations

import socket
import ssl
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from harness.certificate import made_in
from harness.gateway import Gateway
from harness.raw_http import RawConnection, head
from harness.remote import RemoteGateway
from harness.users import TESTER


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    return made_in(tmp_path)


def test_https(start_gateway, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    gateway: Gateway = start_gateway(f"[http]\ntls_certificate = '{cert}'\ntls_key = '{key}'\n")
    gateway.direct.sql("CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
    trusting = ssl.create_default_context(cafile=str(cert))
    url = f"https://127.0.0.1:{gateway.http.port}/?query=INSERT+INTO+t+FORMAT+JSONEachRow"
    with urllib.request.urlopen(url, data=b'{"a":1}', context=trusting, timeout=60) as answer:
        assert answer.status == 200
    url = f"https://127.0.0.1:{gateway.http.port}/?query=SELECT+sum(number)+FROM+numbers(1000000)"
    with urllib.request.urlopen(url, context=trusting, timeout=60) as answer:
        assert answer.read() == b"499999500000\n"
    assert gateway.direct.sql("SELECT a FROM t") == "1"


def test_plain_text_to_a_tls_port(start_gateway, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    gateway: Gateway = start_gateway(f"[http]\ntls_certificate = '{cert}'\ntls_key = '{key}'\n")
    with RawConnection(gateway.http) as connection:
        connection.send(head("GET", "/ping", (("Host", "x"),)))
        assert b"Ok." not in connection.rest()
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    with socket.create_connection(("127.0.0.1", gateway.http.port)) as plain, old.wrap_socket(plain) as secured:
        secured.sendall(head("GET", "/ping", (("Host", "x"), ("Connection", "close"))))
        assert secured.recv(12) == b"HTTP/1.1 200"


def behind(gateway: Gateway, folder: Path, ca_file: Path | None) -> RemoteGateway:
    """A gateway whose backend is the data port of another one: the only TLS server for ClickHouse's interface at hand."""
    trust = f"[backend_tls]\nca_file = '{ca_file}'\n" if ca_file else ""
    url = f"https://{TESTER.name}:{TESTER.password}@127.0.0.1:{gateway.http.port}"
    return RemoteGateway(folder, url, gateway.direct, trust)


def test_https_backend(start_gateway, certificate: tuple[Path, Path], tmp_path: Path) -> None:
    cert, key = certificate
    backend: Gateway = start_gateway(f"[http]\ntls_certificate = '{cert}'\ntls_key = '{key}'\n")
    backend.direct.sql("CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
    front = behind(backend, tmp_path / "front", cert)
    try:
        tested = front.http.as_user(TESTER.name, TESTER.password)
        assert tested.insert("INSERT INTO t FORMAT JSONEachRow", '{"a":1}{"a":2}').status == 200
        assert tested.sql("SELECT sum(a) FROM t") == "3"
        assert tested.sql("SELECT sum(rows) FROM system.asynchronous_insert_log") == "2"
        assert front.stop() == 0
    finally:
        front.stop()


def test_a_backend_that_nobody_vouches_for_is_not_spoken_to(
    start_gateway, certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    cert, key = certificate
    backend: Gateway = start_gateway(f"[http]\ntls_certificate = '{cert}'\ntls_key = '{key}'\n")
    front = behind(backend, tmp_path / "front", None)
    try:
        tested = front.http.as_user(TESTER.name, TESTER.password)
        reply = tested.insert("INSERT INTO t VALUES", "(1)", wait_for_async_insert_timeout=1)
        assert (reply.status, reply.code) == (503, 210), reply.text
        assert "certificate" in reply.text
        with pytest.raises(urllib.error.HTTPError, match="503"):
            urllib.request.urlopen(f"http://127.0.0.1:{front.admin.port}/readyz", timeout=60)
    finally:
        front.stop()
