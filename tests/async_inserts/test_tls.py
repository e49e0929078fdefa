"""The data port speaks HTTPS when it has a certificate."""

from __future__ import annotations

import socket
import ssl
import subprocess
import urllib.request
from pathlib import Path

import pytest

from harness.gateway import Gateway
from harness.raw_http import RawConnection, head


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that nobody else trusts."""
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
         "-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", str(key), "-out", str(cert)],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key


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
