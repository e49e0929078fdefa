"""Opening connections: TCP, TLS, and tunnels through proxies, all within one limit of time."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from windrow._core import Exchange
from windrow._async.connection import Connection
from windrow._shared.http_options import HttpOptions, Proxy, set_socket_options
from windrow._shared.http_request import connect_head

T = TypeVar("T")


class ProxyRefused(ConnectionError):
    """A proxy that makes no tunnel."""


async def dial(
    make: Callable[[], Connection],
    options: HttpOptions,
    proxy: Proxy | None,
    context: ssl.SSLContext | None,
) -> Connection:
    """A connection that is ready for requests."""
    loop = asyncio.get_running_loop()
    if proxy is None:
        name = options.tls_name if context else None
        _, connection = await loop.create_connection(make, options.host, options.port, ssl=context, server_hostname=name)
    else:
        to_proxy = ssl.create_default_context() if proxy.tls else None
        _, connection = await loop.create_connection(make, proxy.host, proxy.port, ssl=to_proxy)
        connection.secure = proxy.tls
    try:
        set_socket_options(connection.transport.get_extra_info("socket").setsockopt)
        if proxy is not None and context is not None:
            await tunnel(connection, options, proxy, context)
    except BaseException:
        connection.abort()
        raise
    connection.secure = connection.secure or context is not None
    return connection


async def tunnel(connection: Connection, options: HttpOptions, proxy: Proxy, context: ssl.SSLContext) -> None:
    """Asks the proxy for a way through, and speaks TLS with the server on it."""
    exchange = Exchange(is_answer_to_head=True)
    connection.begin(exchange, None)
    connection.transport.write(connect_head(options, proxy))
    while not exchange.status and not connection.gone:
        await connection.wait()
    if connection.gone:
        raise ProxyRefused("the proxy closed the connection")
    if not 200 <= exchange.status < 300:
        raise ProxyRefused(f"the proxy refused a tunnel with status {exchange.status}")
    connection.exchange = None
    loop = asyncio.get_running_loop()
    plain = connection.transport
    # The protocol is told of nothing but bytes while the transport under it changes.
    secure = await loop.start_tls(plain, connection, context, server_hostname=options.tls_name)
    if secure is None:
        raise ProxyRefused("the proxy closed the connection")
    connection.transport = secure


async def within(coroutine: Coroutine[Any, Any, Connection], timeout_s: float | None) -> Connection:
    """The coroutine's result, or TimeoutError; a connection that comes too late is closed."""
    task = asyncio.ensure_future(coroutine)
    try:
        done, _ = await asyncio.wait({task}, timeout=timeout_s)
    except BaseException:
        task.cancel()
        task.add_done_callback(close_late)
        raise
    if not done:
        task.cancel()
        task.add_done_callback(close_late)
        raise TimeoutError(f"no connection within {timeout_s:g} seconds")
    return task.result()


def close_late(task: asyncio.Future[Connection]) -> None:
    """Nobody waits for this connection any more."""
    if not task.cancelled() and task.exception() is None:
        task.result().abort()
