"""How a server is reached: addresses, limits, proxies and certificates, as both transports understand them."""

from __future__ import annotations

import base64
import os
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

from windrow._shared.errors import ProgrammingError

KEEPALIVE_PROBES_S = 30
KEEPALIVE_PROBES = 3


@dataclass(frozen=True)
class Proxy:
    """An HTTP proxy; `authorization` is a header's value."""

    host: str
    port: int
    tls: bool
    authorization: str | None = field(repr=False)


@dataclass(frozen=True)
class HttpOptions:
    """Where the server is, and how much patience and how many connections it gets; times in seconds."""

    host: str
    port: int
    scheme: str = "http"
    connect_timeout_s: float | None = 10
    send_receive_timeout_s: float | None = 300
    connector_limit: int = 100
    connector_limit_per_host: int = 20
    keepalive_timeout_s: float = 30
    max_connection_age_s: float | None = 600
    verify: bool = True
    ca_cert: str | None = None
    client_cert: str | None = None
    client_cert_key: str | None = None
    http_proxy: str | None = field(default=None, repr=False)
    https_proxy: str | None = field(default=None, repr=False)
    server_host_name: str | None = None
    high_water_bytes: int = 1 << 20

    @property
    def most_connections(self) -> int:
        """Both limits mean the same here: a client talks to one host. 0 is no limit."""
        limits = [limit for limit in (self.connector_limit, self.connector_limit_per_host) if limit > 0]
        return min(limits) if limits else 1 << 30

    @property
    def tls_name(self) -> str:
        """The name that the server's certificate has to have."""
        return self.server_host_name or self.host

    @property
    def authority(self) -> str:
        """Host and port as they stand in a URL."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"

    def way(self, proxy: Proxy | None) -> str:
        """Host and port of the server, and of the proxy before it."""
        return self.authority if proxy is None else f"{self.authority} through the proxy {proxy.host}:{proxy.port}"

    def ssl_context(self) -> ssl.SSLContext | None:
        """None for http."""
        if self.scheme != "https":
            return None
        context = ssl.create_default_context()
        if not self.verify:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif self.ca_cert:
            context.load_verify_locations(certifi_file() if self.ca_cert == "certifi" else self.ca_cert)
        if self.client_cert:
            context.load_cert_chain(self.client_cert, self.client_cert_key)
        return context

    def proxy(self, environment: Mapping[str, str] = os.environ) -> Proxy | None:
        """The proxy that was asked for, or that the environment names for this host."""
        if self.http_proxy and self.https_proxy:
            raise ProgrammingError("http_proxy and https_proxy were given: a client has one proxy, leave one out")
        url = self.http_proxy or self.https_proxy or proxy_of_environment(environment, self.scheme, self.host, self.port)
        return proxy_of_url(url) if url else None


def certifi_file() -> str:
    """The certificates of the package certifi."""
    try:
        import certifi
    except ImportError:
        raise ProgrammingError('ca_cert="certifi" needs the package certifi: pip install certifi') from None
    return str(certifi.where())


def proxy_of_url(url: str) -> Proxy:
    """`http://user:password@host:port`; without a scheme it is http."""
    parts = urlsplit(url if "://" in url else f"http://{url}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ProgrammingError("A proxy's URL looks like http://user:password@host:port")
    authorization = None
    if parts.username is not None:
        credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        authorization = "Basic " + base64.b64encode(credentials.encode()).decode()
    tls = parts.scheme == "https"
    return Proxy(parts.hostname, parts.port or (443 if tls else 80), tls, authorization)


def proxy_of_environment(environment: Mapping[str, str], scheme: str, host: str, port: int) -> str | None:
    """`http_proxy` or `https_proxy`, unless `no_proxy` names the host, the host with its port, or a domain of it."""
    url = environment.get(f"{scheme}_proxy") or environment.get(f"{scheme}_proxy".upper())
    exceptions = environment.get("no_proxy") or environment.get("NO_PROXY") or ""
    if not url or exceptions == "*":
        return None
    host = host.lower()
    for item in exceptions.split(","):
        name = item.strip().lstrip(".").lower()
        if name and (name in (host, f"{host}:{port}") or host.endswith("." + name)):
            return None
    return url


def set_socket_options(set_option: Callable[[int, int, int], object]) -> None:
    """No delay for small requests, and probes that find a dead peer under a silent connection."""
    set_option(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    set_option(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    wanted = {"TCP_KEEPINTVL": KEEPALIVE_PROBES_S, "TCP_KEEPCNT": KEEPALIVE_PROBES, "TCP_KEEPIDLE": KEEPALIVE_PROBES_S}
    for name, value in wanted.items():
        option = getattr(socket, name, None)
        if option is not None:
            set_option(socket.IPPROTO_TCP, option, value)
