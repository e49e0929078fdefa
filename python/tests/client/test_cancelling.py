"""A query that nobody waits for any more ends at the server, and leaves nothing behind in the client."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from harness.eventually import eventually

import windrow
from transport.both import silence_may_last
from windrow import exceptions

SLOW = (
    "SELECT sum(sleepEachRow(0.05)) FROM numbers(100000) "
    "SETTINGS max_block_size = 1, function_sleep_max_microseconds_per_block = 0"
)


def runs(direct: Any, query_id: str) -> bool:
    return direct.sql(f"SELECT count() FROM system.processes WHERE query_id = '{query_id}'").strip() != "0"


async def until_it_runs(direct: Any, query_id: str) -> None:
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, lambda: eventually(lambda: runs(direct, query_id), "the query runs"))


async def until_it_ended(direct: Any, query_id: str) -> None:
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(None, lambda: eventually(lambda: not runs(direct, query_id), "the query has ended"))


async def until_nothing_is_in_use(client: Any) -> None:
    """The request that ends the query is under way a little longer than the query."""
    loop = asyncio.get_running_loop()
    await loop.run_in_executor(
        None, lambda: eventually(lambda: client.statistics()["in_use"] == 0, "all is given back")
    )


@pytest.mark.parametrize("method", ["query", "command", "raw_query", "query_df", "query_arrow", "query_rows_stream"])
async def test_a_cancelled_call_ends_its_query(where: dict[str, Any], direct: Any, method: str) -> None:
    async with await windrow.get_async_client(**where) as client:
        query_id = f"cancelled-{method}"
        task = asyncio.create_task(getattr(client, method)(SLOW, settings={"query_id": query_id}))
        await until_it_runs(direct, query_id)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until_it_ended(direct, query_id)
        assert (await client.query("SELECT 1")).result_rows == [(1,)]
        await until_nothing_is_in_use(client)


async def test_a_stream_that_is_left_ends_its_query(where: dict[str, Any], direct: Any) -> None:
    async with await windrow.get_async_client(**where) as client:
        settings = {"query_id": "left-early", "max_block_size": 1}
        async with await client.query_rows_stream("SELECT number FROM system.numbers", settings=settings) as stream:
            assert stream.source.column_names == ("number",)
            async for row in stream:
                if row == (5,):
                    break
        await until_it_ended(direct, "left-early")
        await until_nothing_is_in_use(client)


async def test_a_limit_of_time_ends_the_query(where: dict[str, Any], direct: Any) -> None:
    settings = {"send_progress_in_http_headers": 0}
    async with await windrow.get_async_client(**where, settings=settings) as client:
        # What the client asked when it was opened had all the time that it needed.
        silence_may_last(client._transport, 1)
        with pytest.raises(exceptions.OperationalError):
            await client.command(SLOW, settings={"query_id": "took-too-long"})
        await until_it_ended(direct, "took-too-long")


def test_a_stream_of_the_synchronous_client_that_is_left_ends_its_query(where: dict[str, Any], direct: Any) -> None:
    with windrow.get_client(**where) as client:
        settings = {"query_id": "left-early-sync", "max_block_size": 1}
        with client.query_rows_stream("SELECT number FROM system.numbers", settings=settings) as stream:
            assert next(iter(stream)) == (0,)
        eventually(lambda: not runs(direct, "left-early-sync"), "the query has ended")
        assert client.query("SELECT 1").result_rows == [(1,)]


async def test_a_stream_is_read_within_its_context_only(where: dict[str, Any]) -> None:
    async with await windrow.get_async_client(**where) as client:
        stream = await client.query_rows_stream("SELECT 1")
        with pytest.raises(exceptions.ProgrammingError, match="inside of its block"):
            async for _ in stream:
                pass
        async with stream:
            pass
        with pytest.raises(exceptions.StreamClosedError):
            async with stream:
                pass


async def test_progress_is_told(where: dict[str, Any], direct: Any) -> None:
    direct.sql("CREATE TABLE t (id Int32) ENGINE = Memory")
    seen: list[Any] = []
    async with await windrow.get_async_client(**where) as client:
        await client.query(
            "SELECT number FROM numbers(1000)", progress=lambda now: seen.append((now.read_rows, now.finished))
        )
        assert seen[-1] == (1000, True)
        rows = [(number,) for number in range(20_000)]
        sent: list[int] = []
        await client.insert("t", rows, progress=lambda now: sent.append(now.sent_rows))
        assert sent[-1] == 19_000 and len(sent) > 1
