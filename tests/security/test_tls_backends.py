"""A backend whose certificate does not hold gets no password and no row: expired, of another name, signed by nobody who is trusted, or no TLS at all."""

from __future__ import annotations

import socket
import ssl
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.inserts import INTO_T, rows
from harness.remote import RemoteGateway

PASSWORD = "not to be seen"


def certificate(folder: Path, days: int = 30, name: str = "IP:127.0.0.1") -> tuple[Path, Path]:
    folder.mkdir()
    cert, key, asked, more = (folder / file for file in ("cert.pem", "key.pem", "asked.pem", "more.txt"))
    more.write_text(f"subjectAltName={name}\nbasicConstraints=critical,CA:FALSE\n")
    curve = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=localhost"]
    subprocess.run(["openssl", "req", *curve, "-keyout", str(key), "-out", str(asked)], check=True, capture_output=True)
    signed = ["-req", "-in", str(asked), "-signkey", str(key), "-days", str(days), "-extfile", str(more), "-out", str(cert)]
    subprocess.run(["openssl", "x509", *signed], check=True, capture_output=True)
    return cert, key


class Listener:
    """Takes connections, and keeps what it reads of each behind the handshake."""

    def __init__(self, tls: ssl.SSLContext | None):
        self.tls, self.heard, self.connections = tls, b"", 0
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self) -> None:
        while True:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                return
            self.connections += 1
            try:
                connection.settimeout(60)
                if self.tls:
                    connection = self.tls.wrap_socket(connection, server_side=True)
                self.heard += connection.recv(65536)
            except OSError:
                # The other side did not trust it.
                pass
            connection.close()


@pytest.fixture(params=["expired", "of another name", "of an authority that is not trusted", "no TLS"])
def backend(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[tuple[Listener, Path]]:
    days, name = (-1 if request.param == "expired" else 30), ("IP:127.0.0.2" if request.param == "of another name" else "IP:127.0.0.1")
    cert, key = certificate(tmp_path / "backend", days, name)
    trusted = certificate(tmp_path / "other")[0] if "authority" in request.param else cert
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(cert, key)
    listener = Listener(None if request.param == "no TLS" else tls)
    yield listener, trusted
    listener.socket.close()


def test_nothing_is_said_to_it(backend: tuple[Listener, Path], tmp_path: Path) -> None:
    listener, trusted = backend
    url = f"https://windrow:{PASSWORD.replace(' ', '%20')}@127.0.0.1:{listener.socket.getsockname()[1]}"
    gateway = RemoteGateway(tmp_path / "gateway", url, None, f"[backend_tls]\nca_file = '{trusted}'\n")
    tested = gateway.http.as_user("joe", PASSWORD)
    for settings in ({"wait_for_async_insert": 1}, {"wait_for_async_insert": 0}, {"windrow_ack": "memory"}, {"async_insert": 0}):
        reply = tested.insert(INTO_T, rows(1), **{"async_insert": 1, **settings})
        assert reply.status == 503 and PASSWORD not in reply.text, reply.text
    assert tested.request("SELECT 1").status == 503
    assert gateway.ready().status == 503
    assert PASSWORD not in gateway.child.log()
    assert listener.connections > 0 and b"HTTP" not in listener.heard and b"windrow" not in listener.heard, listener.heard
    gateway.stop()
