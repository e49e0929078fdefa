"""clickhouse-driver, connected to the native port, and what its programs expect of it."""

from __future__ import annotations

from collections.abc import Callable

from clickhouse_driver import Client
from clickhouse_driver.errors import ServerException
from settings import DATABASE, HOST, PASSWORD, PORT, USER

# Whoever waits for a packet that nobody sends is to say so before the program is given up.
PATIENCE_SECONDS = 60
WAITING = {"async_insert": 1, "wait_for_async_insert": 1}
NOT_WAITING = {"async_insert": 1, "wait_for_async_insert": 0}
PINNED_OFF = {"async_insert": 0}


def connect(**options: object) -> Client:
    where = {"host": HOST, "port": PORT, "user": USER, "password": PASSWORD, "database": DATABASE}
    return Client(**where, send_receive_timeout=PATIENCE_SECONDS, sync_request_timeout=PATIENCE_SECONDS, **options)


def value(client: Client, query: str, **options: object) -> object:
    """The one value of an answer."""
    ((only,),) = client.execute(query, **options)
    return only


def raises(code: int, call: Callable[[], object]) -> str:
    """ClickHouse's code, as the driver's typed error has it."""
    try:
        call()
    except ServerException as error:
        assert error.code == code, f"code {error.code} instead of {code}: {error}"
        return str(error)
    raise AssertionError("no error was raised")
