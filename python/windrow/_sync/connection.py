"""One connection over a blocking socket: what is read goes straight into the parser of the answer."""

from __future__ import annotations

import socket
import ssl
import time
from collections.abc import Callable

from windrow._core import Exchange
from windrow._shared.errors import OperationalError
from windrow._shared.http_errors import network_error, timed_out
from windrow._shared.http_options import HttpOptions, Proxy, set_socket_options
from windrow._shared.http_request import Bytes, connect_head

BUFFER_BYTES = 256 << 10


class Connection:
    """A connected socket and the exchange that it is busy with; used by one thread at a time."""

    def __init__(self, options: HttpOptions, connected: socket.socket, show_errors: bool | str) -> None:
        self.options = options
        self.socket = connected
        self.secure = isinstance(connected, ssl.SSLSocket)
        self.show_errors = show_errors
        self.born = self.idle_since = time.monotonic()
        self.idle_until = 0.0
        self.exchange: Exchange | None = None
        self.deadline: float | None = None
        self.sent = False
        self.reused = False
        self.gone = False
        self.on_dropped: Callable[[], None] | None = None
        self._buffer = bytearray(BUFFER_BYTES)
        self._view = memoryview(self._buffer)

    def begin(self, exchange: Exchange, deadline: float | None) -> None:
        """Takes up an exchange; `deadline` is for all of it, on the monotonic clock."""
        self.exchange = exchange
        self.deadline = deadline
        self.sent = False

    def write(self, data: Bytes) -> None:
        """Sends all of it; raises what the network raises."""
        self._set_timeout()
        self.socket.sendall(data)

    def read(self) -> None:
        """Feeds the exchange with what comes next; at least one byte, or the end."""
        exchange = self.exchange
        if exchange is None or self.gone:
            raise network_error(ConnectionError("the connection was closed"), "sent", self.show_errors)
        try:
            self._set_timeout()
            count = self.socket.recv_into(self._view)
            if count:
                exchange.feed_from(self._buffer, count)
            else:
                exchange.eof()
        except BaseException as error:
            if exchange.status:
                exchange.body.fail(str(error) or type(error).__name__)
            self.close()
            if isinstance(error, Exception):
                raise self.explained(error) from error
            raise

    def explained(self, error: Exception) -> OperationalError:
        """The exception for what the socket raised."""
        if isinstance(error, OperationalError):
            return error
        if isinstance(error, TimeoutError):
            in_time = self.deadline is None or time.monotonic() < self.deadline
            what = "the server sent nothing" if in_time else "the answer was not there"
            patience_s = self.options.send_receive_timeout_s if in_time else None
            return timed_out(what, patience_s, show=self.show_errors, server=self.options.authority)
        return network_error(error, "sent", self.show_errors, self.options.authority)

    def lost_while_idle(self) -> bool:
        """Whether the server closed meanwhile; costs a system call."""
        try:
            self.socket.settimeout(0)
            # Whatever there is to read: an idle connection has nothing to say but its end.
            self.socket.recv(1)
        except (BlockingIOError, ssl.SSLWantReadError):
            return False
        except OSError:
            return True
        return True

    def close(self) -> None:
        """Closes at once; what was going on is lost."""
        self.gone = True
        self.socket.close()

    def __del__(self) -> None:
        dropped = getattr(self, "on_dropped", None)
        if dropped is not None:
            self.close()
            dropped()

    def _set_timeout(self) -> None:
        limit_s = self.options.send_receive_timeout_s or None
        if self.deadline is not None:
            left_s = self.deadline - time.monotonic()
            if left_s <= 0:
                raise TimeoutError
            limit_s = left_s if limit_s is None else min(limit_s, left_s)
        if self.socket.gettimeout() != limit_s:
            self.socket.settimeout(limit_s)


class ProxyRefused(ConnectionError):
    """A proxy that makes no tunnel."""


def dial(
    options: HttpOptions,
    proxy: Proxy | None,
    context: ssl.SSLContext | None,
    patience_s: float | None,
    show_errors: bool | str,
) -> Connection:
    """A connection that is ready for requests."""
    until = None if patience_s is None else time.monotonic() + patience_s
    address = (proxy.host, proxy.port) if proxy else (options.host, options.port)
    raw = socket.create_connection(address, patience_s)
    try:
        set_socket_options(raw.setsockopt)
        if proxy is not None and proxy.tls:
            raw.settimeout(left_of(until))
            raw = ssl.create_default_context().wrap_socket(raw, server_hostname=proxy.host)
        if context is not None:
            if proxy is not None:
                tunnel(raw, options, proxy, until)
            raw.settimeout(left_of(until))
            raw = context.wrap_socket(raw, server_hostname=options.tls_name)
    except BaseException:
        raw.close()
        raise
    return Connection(options, raw, show_errors)


def tunnel(raw: socket.socket, options: HttpOptions, proxy: Proxy, until: float | None) -> None:
    """Asks the proxy for a way through."""
    raw.settimeout(left_of(until))
    raw.sendall(connect_head(options, proxy))
    exchange = Exchange(is_answer_to_head=True)
    while not exchange.status:
        raw.settimeout(left_of(until))
        # Byte by byte, so that nothing of what comes through the tunnel is taken.
        data = raw.recv(1)
        if not data:
            raise ProxyRefused("the proxy closed the connection")
        exchange.feed(data)
    if not 200 <= exchange.status < 300:
        raise ProxyRefused(f"the proxy refused a tunnel with status {exchange.status}")


def left_of(until: float | None) -> float | None:
    """What is left of the patience."""
    if until is None:
        return None
    left_s = until - time.monotonic()
    if left_s <= 0:
        raise TimeoutError("no connection in time")
    return left_s
