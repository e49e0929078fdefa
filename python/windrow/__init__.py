"""An async-native ClickHouse client, and a writer that gathers rows and keeps what it took.

    import asyncio
    import windrow

    async def main():
        async with await windrow.get_async_client(host="localhost") as client:
            result = await client.query("SELECT number, toString(number) FROM numbers(3)")
            print(result.result_rows)

    asyncio.run(main())
"""

from windrow import common, driver, exceptions
from windrow._async.client import AsyncClient
from windrow._async.create import get_async_client
from windrow._async.writer import AsyncWriter
from windrow._core import __version__
from windrow._shared.append_types import AppendFaults, AppendResult
from windrow._shared.write_errors import WriteError
from windrow._shared.writer_options import Buffer, Retry, RetryPolicy, WriterStatistics
from windrow._sync.client import Client
from windrow._sync.create import get_client
from windrow._sync.writer import Writer

driver_name = "clickhousedb"
create_client = get_client
create_async_client = get_async_client

__all__ = [
    "AppendFaults",
    "AppendResult",
    "AsyncClient",
    "AsyncWriter",
    "Buffer",
    "Client",
    "Retry",
    "RetryPolicy",
    "WriteError",
    "Writer",
    "WriterStatistics",
    "__version__",
    "common",
    "create_async_client",
    "create_client",
    "driver",
    "driver_name",
    "exceptions",
    "get_async_client",
    "get_client",
]
