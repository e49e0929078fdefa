"""What the arguments of get_client and get_async_client mean: address, who asks, TLS, time limits, compression.

Arguments come from three places: by name, from the query part of a DSN, and as `generic_args` (from the database API);
by name wins. Numbers and truth values that come as text (a DSN has nothing else) are converted to what the option is.
"""

from __future__ import annotations

import difflib
import ipaddress
import logging
from base64 import b64encode
from collections.abc import Callable
from dataclasses import dataclass, field, fields
from typing import Any
from urllib.parse import parse_qs, unquote, urlparse

from windrow import common
from windrow._shared.errors import NotSupportedError, ProgrammingError, shown_as
from windrow._shared.http_options import HttpOptions

logger = logging.getLogger("windrow.options")

TRUE_WORDS = frozenset(("1", "on", "true", "y", "yes"))
FALSE_WORDS = frozenset(("0", "false", "n", "no", "off"))
ENCODINGS = ("lz4", "zstd", "br", "gzip")


@dataclass
class ClientOptions:
    """The options of one client, under the names of the arguments."""

    interface: str = "http"
    host: str = "localhost"
    port: int = 8123
    username: str | None = None
    password: str = field(default="", repr=False)
    database: str | None = None
    access_token: str | None = field(default=None, repr=False)
    token_provider: Callable[[], Any] | None = None
    compress: bool | str = True
    connect_timeout: float | None = 10
    send_receive_timeout: float | None = 300
    client_name: str | None = None
    verify: bool | str = True
    ca_cert: str | None = None
    client_cert: str | None = None
    client_cert_key: str | None = None
    http_proxy: str | None = field(default=None, repr=False)
    https_proxy: str | None = field(default=None, repr=False)
    server_host_name: str | None = None
    tls_mode: str | None = None
    proxy_path: str = ""
    connector_limit: int = 100
    connector_limit_per_host: int = 20
    keepalive_timeout: float = 30.0
    session_id: str | None = None
    settings: dict[str, Any] = field(default_factory=dict, repr=False)
    query_limit: int = 0
    query_retries: int = 2
    tz_source: str | None = None
    tz_mode: str | None = None
    apply_server_timezone: bool | str | None = None
    show_clickhouse_errors: bool | str | None = None
    autogenerate_session_id: bool | None = None
    autogenerate_query_id: bool | None = None
    form_encode_query_params: bool = False
    rename_response_column: str | None = None
    headers: dict[str, str] | None = field(default=None, repr=False)
    native_codec: str | None = None
    dedicated_pool: bool = False

    @property
    def url(self) -> str:
        """Scheme, host, port and path before ClickHouse's own."""
        return f"{self.interface}://{bracketed(self.host)}:{self.port}{self.path}"

    @property
    def path(self) -> str:
        """`proxy_path` with one slash in front of it, or nothing."""
        path = self.proxy_path.lstrip("/")
        return f"/{path}" if path else ""

    @property
    def is_loopback(self) -> bool:
        """Whether the server is on this machine, where compressing costs more than it saves."""
        if self.host == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return False

    @property
    def encoding(self) -> str | None:
        """The compression of answers and inserts; None for none."""
        word = str(self.compress).strip().lower()
        if word in TRUE_WORDS:
            return None if self.is_loopback else "lz4"
        if not self.compress or word in FALSE_WORDS or word in ("none", ""):
            return None
        if word not in ENCODINGS:
            raise ProgrammingError(
                f"compress={self.compress!r} is no compression known here: {', '.join(ENCODINGS)}, True or False"
            )
        return word

    def http_options(self) -> HttpOptions:
        """What the transport needs to know."""
        proxied = str(self.verify).lower() == "proxy"
        return HttpOptions(
            scheme=self.interface,
            host=self.host,
            port=self.port,
            connect_timeout_s=self.connect_timeout,
            send_receive_timeout_s=self.send_receive_timeout,
            connector_limit=self.connector_limit,
            connector_limit_per_host=min(self.connector_limit_per_host, self.connector_limit),
            keepalive_timeout_s=self.keepalive_timeout,
            max_connection_age_s=common.get_setting("max_connection_age"),
            verify=proxied or truth("verify", self.verify),
            ca_cert=self.ca_cert,
            client_cert=self.client_cert,
            client_cert_key=self.client_cert_key,
            http_proxy=self.http_proxy,
            https_proxy=self.https_proxy,
            server_host_name=self.server_host_name,
        )

    def default_headers(self, mode: str) -> dict[str, str]:
        """The headers of every request: who asks, with what program; the user's own come last and win."""
        made = {"User-Agent": common.build_client_name(self.client_name, mode)}
        made.update(self._credentials())
        for name, value in (self.headers or {}).items():
            for known in [other for other in made if other.lower() == name.lower()]:
                del made[known]
            made[name] = value
        return made

    def _credentials(self) -> dict[str, str]:
        tls_mode = self.tls_mode or ("proxy" if str(self.verify).lower() == "proxy" else None)
        made: dict[str, str] = {}
        if self.client_cert and tls_mode in (None, "mutual"):
            if not self.username:
                raise ProgrammingError("A client certificate proves who a user is, but not which: give username too")
            made = {"X-ClickHouse-User": self.username, "X-ClickHouse-SSL-Certificate-Auth": "on"}
        if self.access_token:
            made["Authorization"] = f"Bearer {self.access_token}"
        elif self.username and (not self.client_cert or tls_mode in ("strict", "proxy")):
            pair = f"{self.username}:{self.password}".encode()
            made["Authorization"] = f"Basic {b64encode(pair).decode()}"
        return made


_KINDS: dict[str, type] = {
    **dict.fromkeys(
        ("autogenerate_query_id", "autogenerate_session_id", "dedicated_pool", "form_encode_query_params"), bool
    ),
    **dict.fromkeys(("query_limit", "query_retries", "connector_limit", "connector_limit_per_host"), int),
    **dict.fromkeys(("connect_timeout", "send_receive_timeout", "keepalive_timeout"), float),
}
_NAMES = frozenset(option.name for option in fields(ClientOptions))
_MAY_BE_NONE = frozenset(("connect_timeout", "send_receive_timeout"))  # None: no limit
_OTHER_NAMES = frozenset(("user", "user_name", "compression", "pool_mgr"))  # taken care of, each in its place
_ADDRESS = frozenset(("interface", "host", "port", "username", "password", "database", "settings"))


def client_options(
    mode: str,
    *,
    host: str | None,
    username: str | None,
    password: str,
    database: str | None,
    interface: str | None,
    port: int | None,
    secure: bool | str,
    dsn: str | None,
    settings: dict[str, Any] | None,
    generic_args: dict[str, Any] | None,
    others: dict[str, Any],
) -> ClientOptions:
    """The options for a client; ProgrammingError for contradictions, TypeError for a name that isn't known."""
    if interface == "chdb" or (dsn and dsn.startswith("chdb:")):
        raise NotSupportedError(
            "This package talks to ClickHouse over HTTP; chdb is a database of its own in the process"
        )
    given = set(others)
    others = {name: value for name, value in others.items() if value is not None or name in _MAY_BE_NONE}
    database = None if database == "__default__" else database
    if dsn:
        parsed = urlparse(dsn)
        username = username or _decoded(parsed.username)
        password = password or _decoded(parsed.password) or ""
        host = host or parsed.hostname
        port = port or parsed.port
        if not database:
            database = unquote(parsed.path.removeprefix("/").partition("/")[0]) or database
        for name, values in parse_qs(parsed.query).items():
            others[name] = values[0]
    _refuse_unknown(mode, given.union(others))
    sent = dict(settings or {})
    _take_generic(generic_args or {}, others, sent)
    encrypted = str(secure).lower() == "true" or interface == "https"
    encrypted = encrypted or (not interface and str(port) in ("443", "8443"))
    interface = interface or ("https" if encrypted else "http")
    if not interface.startswith("http"):
        raise ValueError(f"interface={interface!r} can't be spoken here: use 'http' or 'https'")
    username = _user(username, password, others)
    if "compression" in others:
        others.setdefault("compress", others.pop("compression"))
        others.pop("compression", None)
    _refuse(others, username, password)
    return ClientOptions(
        interface=interface,
        host=host or "localhost",
        port=int(port or (8443 if encrypted else 8123)),
        username=username,
        password=password,
        database=database,
        settings=sent,
        **{name: _converted(name, value) for name, value in others.items()},
    )


def _take_generic(generic_args: dict[str, Any], others: dict[str, Any], settings: dict[str, Any]) -> None:
    """Options among the generic arguments go to the options; everything else is a setting (also as `ch_name`)."""
    for name in generic_args:
        value = generic_args[name]
        if name in _NAMES or name == "compression":
            if name in ("headers", "compression"):
                others.setdefault(name, value)
            else:
                others[name] = value
        else:
            settings[name.removeprefix("ch_")] = value


def _user(username: str | None, password: str, others: dict[str, Any]) -> str | None:
    for name in ("user", "user_name"):
        if name in others:
            value = others.pop(name)
            username = value if username is None else username
    return "default" if password and username is None else username


def _refuse_unknown(mode: str, names: set[str]) -> None:
    for name in sorted(names - (_NAMES - _ADDRESS) - _OTHER_NAMES):
        near = difflib.get_close_matches(name, [*_NAMES, *_OTHER_NAMES, "secure", "dsn", "generic_args"], 1)
        hint = f"do you mean {near[0]!r}?" if near else "settings of ClickHouse go into settings={...}"
        maker = "get_async_client" if mode == "async" else "get_client"
        raise TypeError(f"{maker}() got an unexpected keyword argument {name!r}: {hint}")


def _refuse(others: dict[str, Any], username: str | None, password: str) -> None:
    """What can't be served, with the reason."""
    if others.get("pool_mgr") is not None:
        raise ProgrammingError(
            "pool_mgr is urllib3's, which isn't used here: how many connections there may be is said by "
            "connector_limit and connector_limit_per_host."
        )
    others.pop("pool_mgr", None)
    token, provider = others.get("access_token"), others.get("token_provider")
    if (token or provider) and (username or password):
        raise ProgrammingError("A token and a username or password were given: leave one of the two ways out")
    if token and provider:
        raise ProgrammingError("access_token and token_provider were given: keep the one that tokens should come from")
    if not isinstance(others.get("headers") or {}, dict):
        raise ProgrammingError("headers has to be a dictionary, from the names of HTTP headers to their values")


def _converted(name: str, value: Any) -> Any:
    if name == "show_clickhouse_errors":
        return shown_as(value)
    kind = _KINDS.get(name)
    if not isinstance(value, str) or kind is None:
        return value
    if kind is bool:
        return truth(name, value)
    try:
        return kind(value)
    except ValueError:
        raise ProgrammingError(f"{name} has to be a number ({kind.__name__}), not {value!r}") from None


def truth(name: str, value: Any) -> bool:
    """A truth value that may have come as a word."""
    word = str(value).strip().lower()
    if isinstance(value, str) and word not in TRUE_WORDS | FALSE_WORDS:
        raise ProgrammingError(f"{name} is either true or false, not {value!r}")
    return word in TRUE_WORDS if isinstance(value, str) else bool(value)


def bracketed(host: str) -> str:
    """The host as it stands in a URL: an IPv6 address gets brackets."""
    try:
        return f"[{host}]" if ipaddress.ip_address(host).version == 6 else host
    except ValueError:
        return host


def _decoded(value: str | None) -> str | None:
    return None if value is None else unquote(value)
