"""The clients and all that belongs to them, under the module names of clickhouse-connect.

A program that was written for clickhouse_connect.driver finds here what it imports from there.
"""

from windrow._async.client import AsyncClient
from windrow._async.create import get_async_client as create_async_client
from windrow._shared.errors import ProgrammingError
from windrow._sync.client import Client
from windrow._sync.create import get_client as create_client

HttpClient = Client

__all__ = ["AsyncClient", "Client", "HttpClient", "ProgrammingError", "create_async_client", "create_client"]
