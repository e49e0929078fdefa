"""A session takes one query at a time, and a query that was left holds it until the server has ended it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from harness.eventually import eventually

import windrow
from client.test_cancelling import SLOW, runs, until_it_runs
from windrow import exceptions

ENDLESS = "SELECT number FROM system.numbers"
LEFT = 10


def test_a_session_is_used_on_after_a_stream_that_was_left(where: dict[str, Any]) -> None:
    """The synchronous client has a session of its own."""
    with windrow.get_client(**where) as client:
        client.command("CREATE TEMPORARY TABLE mine (a UInt8)")
        for _ in range(LEFT):
            with client.query_rows_stream(ENDLESS) as rows:
                assert next(iter(rows)) == (0,)
            assert client.query("SELECT count() FROM mine").result_rows == [(0,)]
            with client.raw_stream(ENDLESS, fmt="TSV") as data:
                assert data.read(2) == b"0\n"
            client.insert("mine", [[1]], column_names=["a"], column_type_names=["UInt8"])
            client.command("TRUNCATE TABLE mine")


async def test_a_session_is_used_on_after_a_call_that_was_cancelled(where: dict[str, Any], direct: Any) -> None:
    async with await windrow.get_async_client(**where, session_id="used-on") as client:
        await client.command("CREATE TEMPORARY TABLE mine (a UInt8)")
        for number in range(LEFT):
            query_id = f"cancelled-in-a-session-{number}"
            task = asyncio.create_task(client.query(SLOW, settings={"query_id": query_id}))
            await until_it_runs(direct, query_id)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert (await client.query("SELECT count() FROM mine")).result_rows == [(0,)]


def test_a_session_that_somebody_else_uses_is_an_error(where: dict[str, Any], direct: Any) -> None:
    with windrow.get_client(**where, session_id="shared") as one, windrow.get_client(**where, session_id="shared") as other:
        with one.query_rows_stream(ENDLESS, settings={"query_id": "holds-the-session"}) as rows:
            assert next(iter(rows)) == (0,)
            with pytest.raises(exceptions.DatabaseError) as caught:
                other.query("SELECT 1")
        assert (caught.value.code, caught.value.name) == (373, "SESSION_IS_LOCKED")
        eventually(lambda: not runs(direct, "holds-the-session"), "the query has ended")
        assert one.query("SELECT 1").result_rows == [(1,)]
