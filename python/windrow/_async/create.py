"""get_async_client: from arguments to a client that has asked its server."""

from __future__ import annotations

from typing import Any

from windrow._async.client import MODE, AsyncClient
from windrow._shared.options import client_options


async def get_async_client(
    *,
    host: str | None = None,
    username: str | None = None,
    password: str = "",
    database: str | None = None,
    interface: str | None = None,
    port: int | None = None,
    secure: bool | str = False,
    dsn: str | None = None,
    settings: dict[str, Any] | None = None,
    generic_args: dict[str, Any] | None = None,
    **options: Any,
) -> AsyncClient:
    """A client that is ready: the server has been asked for its version, zone and settings.

        client = await get_async_client(host="localhost", username="default", settings={"max_threads": 4})

    `dsn` is `http://user:password@host:port/database?option=value`; what is given by name wins. Further options:
    access_token, token_provider (a function or coroutine function that gives a token, called again when the server
    refuses it), headers, compress (True: lz4 unless the server is on this machine; or "lz4", "zstd", "gzip", "br", or
    False), query_limit, query_retries, connect_timeout and send_receive_timeout (seconds; None: no limit), client_name,
    verify, ca_cert ("certifi" or a file), client_cert, client_cert_key, tls_mode, server_host_name, http_proxy,
    https_proxy, proxy_path, connector_limit, connector_limit_per_host, keepalive_timeout (seconds), session_id,
    autogenerate_session_id, autogenerate_query_id, tz_source ("auto", "server", "local"), tz_mode ("naive_utc",
    "aware", "schema"), show_clickhouse_errors (True, False or "scrub"), form_encode_query_params,
    rename_response_column.

    ProgrammingError when arguments contradict each other, TypeError for an option that isn't known, OperationalError
    when the server can't be reached, DatabaseError when it refuses.
    """
    made = client_options(
        MODE,
        host=host,
        username=username,
        password=password,
        database=database,
        interface=interface,
        port=port,
        secure=secure,
        dsn=dsn,
        settings=settings,
        generic_args=generic_args,
        others=options,
    )
    client = AsyncClient(made)
    try:
        await client._initialize()
    except BaseException:
        await client.close()
        raise
    return client
