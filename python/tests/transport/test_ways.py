"""Ways to a server: TLS with its certificates, proxies, the environment."""

from __future__ import annotations

import base64
import socket
import ssl
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from harness.scripted import PATIENCE_SECONDS, Exchange, ScriptedServer, answer
from windrow._shared.http_options import HttpOptions, proxy_of_environment, proxy_of_url
from windrow._shared.http_request import Request
from windrow.exceptions import OperationalError, ProgrammingError

ANSWER = answer(b"hello")


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`server.pem` for 127.0.0.1 and the name clickhouse.test, `client.pem`, each with its key and trusted by nobody."""
    folder = tmp_path_factory.mktemp("certificates")
    for name, alternatives in (("server", "IP:127.0.0.1,DNS:clickhouse.test"), ("client", "DNS:joe")):
        subprocess.run(
            ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30",
             "-subj", f"/CN={name}", "-addext", f"subjectAltName={alternatives}",
             "-keyout", str(folder / f"{name}.key"), "-out", str(folder / f"{name}.pem")],
            check=True, capture_output=True,
        )  # fmt: skip
    return folder


class TlsServer(ScriptedServer):
    """Speaks TLS first; asks for the client's certificate when it has one to compare with."""

    def __init__(self, script: Any, certificates: Path, client: str | None = None) -> None:
        self.context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self.context.load_cert_chain(certificates / "server.pem", certificates / "server.key")
        if client:
            self.context.verify_mode = ssl.CERT_REQUIRED
            self.context.load_verify_locations(certificates / client)
        self.names: list[str | None] = []
        self.context.sni_callback = lambda _socket, name, _context: self.names.append(name)
        super().__init__(script)

    def _run(self, exchange: Exchange) -> None:
        try:
            exchange.socket = self.context.wrap_socket(exchange.socket, server_side=True)
        except OSError:
            exchange.socket.close()
            return
        super()._run(exchange)


def answers(exchange: Exchange) -> None:
    while True:
        exchange.read_request()
        exchange.send(ANSWER)


@pytest.fixture
def secured(certificates: Path) -> Any:
    with TlsServer(answers, certificates) as server:
        yield server


def post(body: Any = b"x") -> Request:
    return Request("POST", "/path?x=1", body=body)


def test_a_trusted_certificate(secured: Any, face: Any, certificates: Path) -> None:
    client = face(secured, scheme="https", ca_cert=str(certificates / "server.pem"))
    for body in (b"x", b"x" * (8 << 20), iter([b"x" * 100_000] * 20)):
        assert client.whole(post(body)).body == b"hello"
    assert secured.connections == 1


def test_a_certificate_that_nobody_trusts(secured: Any, face: Any) -> None:
    with pytest.raises(OperationalError, match="CERTIFICATE_VERIFY_FAILED") as caught:
        face(secured, scheme="https").whole(post())
    assert caught.value.phase == "connect"
    assert face(secured, scheme="https", verify=False).whole(post()).body == b"hello"


def test_the_name_in_the_certificate(secured: Any, face: Any, certificates: Path) -> None:
    trusted = {"scheme": "https", "ca_cert": str(certificates / "server.pem")}
    assert face(secured, server_host_name="clickhouse.test", **trusted).whole(post()).body == b"hello"
    with pytest.raises(OperationalError, match="CERTIFICATE_VERIFY_FAILED"):
        face(secured, server_host_name="other.test", **trusted).whole(post())
    assert secured.names[-2:] == ["clickhouse.test", "other.test"]


def test_the_client_s_certificate(face: Any, scripted: Any, certificates: Path) -> None:
    trusted = {"scheme": "https", "ca_cert": str(certificates / "server.pem")}
    mine = {"client_cert": str(certificates / "client.pem"), "client_cert_key": str(certificates / "client.key")}
    with TlsServer(answers, certificates, client="client.pem") as server:
        known = face(server, **trusted, **mine)
        assert known.whole(post()).body == b"hello"
        stranger = face(server, **trusted)
        with pytest.raises(OperationalError):
            stranger.whole(post())
        known.do(known.transport.close)


def test_a_cut_tls_answer(face: Any, certificates: Path) -> None:
    def script(exchange: Exchange) -> None:
        exchange.read_request()
        exchange.send(ANSWER[:-2])

    with TlsServer(script, certificates) as server:
        with pytest.raises(OperationalError) as caught:
            face(server, scheme="https", verify=False).whole(post())
        assert caught.value.phase == "sent"


def test_an_early_answer_over_tls(face: Any, certificates: Path) -> None:
    def script(exchange: Exchange) -> None:
        exchange.read_head()
        exchange.send(answer(b"Code: 60", "404 Not Found"))
        exchange.until_closed()

    with TlsServer(script, certificates) as server:
        client = face(server, scheme="https", verify=False)
        assert client.whole(post(b"x" * (1 << 20))).status == 404
        client.do(client.transport.close)


class Tunnels:
    """A proxy: plain requests are answered by itself, tunnels are led to a server."""

    def __init__(self, refuses: bool = False) -> None:
        self.heads: list[bytes] = []
        self.refuses = refuses

    def __call__(self, exchange: Exchange) -> None:
        first = exchange.read_head()
        self.heads.append(first)
        if not first.startswith(b"CONNECT "):
            exchange.send(answer(b"from the proxy"))
            return
        if self.refuses:
            exchange.send(answer(b"who are you?", "407 Proxy Authentication Required"))
            return
        host, port = first.split()[1].decode().rsplit(":", 1)
        with socket.create_connection((host, int(port)), PATIENCE_SECONDS) as server:
            exchange.send(b"HTTP/1.1 200 Connection established\r\nContent-Length: 5\r\n\r\n")
            back = threading.Thread(target=self.copy, args=(server, exchange.socket))
            back.start()
            self.copy(exchange.socket, server)
            back.join(PATIENCE_SECONDS)

    @staticmethod
    def copy(source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass


def test_a_proxy_for_http(face: Any, scripted: Any) -> None:
    proxy = Tunnels()
    port = scripted(proxy).port
    server = type("Elsewhere", (), {"host": "clickhouse.test", "port": 8123})
    client = face(server, http_proxy=f"http://joe:p%40ss@127.0.0.1:{port}")
    assert client.whole(post()).body == b"from the proxy"
    lines = proxy.heads[0].split(b"\r\n")
    assert lines[0] == b"POST http://clickhouse.test:8123/path?x=1 HTTP/1.1"
    assert b"Host: clickhouse.test:8123" in lines
    assert b"Proxy-Authorization: Basic " + base64.b64encode(b"joe:p@ss") in lines


def test_a_proxy_for_https(scripted: Any, secured: Any, face: Any, certificates: Path) -> None:
    proxy = Tunnels()
    port = scripted(proxy).port
    client = face(
        secured, scheme="https", ca_cert=str(certificates / "server.pem"), https_proxy=f"joe:pw@127.0.0.1:{port}"
    )
    for body in (b"x", b"x" * (2 << 20)):
        assert client.whole(post(body)).body == b"hello"
    assert len(proxy.heads) == 1
    lines = proxy.heads[0].split(b"\r\n")
    assert lines[0] == b"CONNECT 127.0.0.1:%d HTTP/1.1" % secured.port
    assert b"Proxy-Authorization: Basic " + base64.b64encode(b"joe:pw") in lines
    client.do(client.transport.close)


def test_a_proxy_that_refuses(face: Any, scripted: Any) -> None:
    port = scripted(Tunnels(refuses=True)).port
    server = type("Elsewhere", (), {"host": "clickhouse.test", "port": 8443})
    client = face(server, scheme="https", https_proxy=f"http://127.0.0.1:{port}")
    with pytest.raises(OperationalError, match="refused a tunnel with status 407") as caught:
        client.whole(post())
    assert caught.value.phase == "connect"


def test_a_proxy_that_hangs_up(face: Any, scripted: Any) -> None:
    port = scripted(lambda exchange: exchange.read_head()).port
    server = type("Elsewhere", (), {"host": "clickhouse.test", "port": 8443})
    with pytest.raises(OperationalError, match="proxy closed the connection"):
        face(server, scheme="https", https_proxy=f"http://127.0.0.1:{port}").whole(post())


@pytest.mark.parametrize(
    ("environment", "scheme", "host", "proxy"),
    [
        ({}, "http", "h", None),
        ({"http_proxy": "p:1"}, "http", "h", "p:1"),
        ({"HTTP_PROXY": "p:1"}, "http", "h", "p:1"),
        ({"http_proxy": "p:1"}, "https", "h", None),
        ({"https_proxy": "p:1"}, "https", "h", "p:1"),
        ({"http_proxy": "p:1", "no_proxy": "*"}, "http", "h", None),
        ({"http_proxy": "p:1", "no_proxy": "a, h"}, "http", "H", None),
        ({"http_proxy": "p:1", "NO_PROXY": "h:8123"}, "http", "h", None),
        ({"http_proxy": "p:1", "no_proxy": "h:9"}, "http", "h", "p:1"),
        ({"http_proxy": "p:1", "no_proxy": ".example.org"}, "http", "a.example.org", None),
        ({"http_proxy": "p:1", "no_proxy": "example.org"}, "http", "a.example.org", None),
        ({"http_proxy": "p:1", "no_proxy": "example.org"}, "http", "anexample.org", "p:1"),
    ],
)
def test_proxies_of_the_environment(environment: dict[str, str], scheme: str, host: str, proxy: str | None) -> None:
    """As clickhouse-connect reads it."""
    from clickhouse_connect.driver import httputil

    assert proxy_of_environment(environment, scheme, host, 8123) == proxy
    with pytest.MonkeyPatch.context() as patch:
        for name in ("http_proxy", "HTTP_PROXY", "https_proxy", "HTTPS_PROXY", "no_proxy", "NO_PROXY"):
            patch.delenv(name, raising=False)
        for name, value in environment.items():
            patch.setenv(name, value)
        assert httputil.check_env_proxy(scheme, host, 8123) == proxy


def test_what_is_no_proxy() -> None:
    with pytest.raises(ProgrammingError):
        proxy_of_url("socks5://h:1")
    with pytest.raises(ProgrammingError, match="http_proxy and https_proxy"):
        HttpOptions("h", 1, http_proxy="a:1", https_proxy="b:1").proxy()
    assert proxy_of_url("https://h").port == 443


def test_limits() -> None:
    assert HttpOptions("h", 1).most_connections == 20
    assert HttpOptions("h", 1, connector_limit=5).most_connections == 5
    assert HttpOptions("h", 1, connector_limit=0, connector_limit_per_host=0).most_connections > 1000
    assert HttpOptions("::1", 8123).authority == "[::1]:8123"
