"""Drives a ClickHouse HTTP endpoint with clickhouse-connect's asyncio client."""

from __future__ import annotations

import asyncio
import uuid

import clickhouse_connect
from clickhouse_connect.driver.asyncclient import AsyncClient
from clickhouse_connect.driver.exceptions import DatabaseError
from report import Report, equal
from settings import CONNECTION
from values import COLUMNS, aware, create, row

report = Report()
ASYNC = {"async_insert": 1, "wait_for_async_insert": 1}
AT_ONCE = 40


async def raises(call, code: int) -> str:
    try:
        await call
    except DatabaseError as error:
        text = str(error)
        assert f"code {code}" in text or f"Code: {code}." in text, text
        return text
    raise AssertionError("no error was raised")


async def all_types(client: AsyncClient) -> object:
    await client.command(create("kinds_async"))
    summary = await client.insert("kinds_async", [row(n) for n in range(3)], column_names=list(COLUMNS))
    equal(summary.written_rows, 3)
    got = (await client.query("SELECT * FROM kinds_async ORDER BY id")).result_rows
    return equal([aware(line) for line in got], [row(n) for n in range(3)])


async def rows_at_once(client: AsyncClient) -> object:
    """Many coroutines insert a row each; without sessions they don't serialise themselves."""
    await client.command("CREATE TABLE at_once (id UInt64) ENGINE = MergeTree ORDER BY id")

    async def one(number: int) -> int:
        return (await client.insert("at_once", [[number]], column_names=["id"], settings=ASYNC)).written_rows

    equal(await asyncio.gather(*(one(n) for n in range(AT_ONCE))), [1] * AT_ONCE)
    got = (await client.query("SELECT id FROM at_once ORDER BY id")).result_columns[0]
    return equal(list(got), list(range(AT_ONCE)))


async def raw_rows_at_once(client: AsyncClient) -> object:
    async def one(number: int) -> int:
        block = b'{"id": %d}' % (1000 + number)
        summary = await client.raw_insert("at_once", insert_block=block, fmt="JSONEachRow", settings=ASYNC)
        return summary.written_rows

    equal(await asyncio.gather(*(one(n) for n in range(AT_ONCE))), [1] * AT_ONCE)
    return equal(await client.command("SELECT count() FROM at_once WHERE id >= 1000"), AT_ONCE)


async def without_waiting(client: AsyncClient) -> object:
    settings = {"async_insert": 1, "wait_for_async_insert": 0}
    await asyncio.gather(*(client.insert("at_once", [[2000 + n]], column_names=["id"], settings=settings) for n in range(10)))
    return "accepted"


async def streamed_read(client: AsyncClient) -> object:
    rows, blocks = 0, 0
    settings = {"max_block_size": 10_000}
    async with await client.query_row_block_stream("SELECT number FROM numbers(100000)", settings=settings) as stream:
        async for block in stream:
            rows, blocks = rows + len(block), blocks + 1
    assert blocks > 1, "one block is no stream"
    return equal(rows, 100_000)


async def parameters(client: AsyncClient) -> object:
    got = await client.query("SELECT {n:UInt8} + 1, {s:String}", parameters={"n": 4, "s": "ü'"})
    return equal(list(got.first_row), [5, "ü'"])


async def session(client: AsyncClient) -> object:
    own = await clickhouse_connect.get_async_client(**CONNECTION, session_id=str(uuid.uuid4()))
    try:
        await own.command("CREATE TEMPORARY TABLE scratch (n UInt8)")
        await own.insert("scratch", [[1], [2]], column_names=["n"])
        return equal(await own.command("SELECT sum(n) FROM scratch"), 3)
    finally:
        await own.close()


async def compressions(client: AsyncClient) -> object:
    await client.command("CREATE TABLE packed_async (id UInt64, s String) ENGINE = MergeTree ORDER BY id")
    for name in ("lz4", "zstd", "gzip", "br", False):
        packed = await clickhouse_connect.get_async_client(**CONNECTION, compress=name, autogenerate_session_id=False)
        try:
            rows = [[n, f"{name}" * 50] for n in range(300)]
            equal((await packed.insert("packed_async", rows, column_names=["id", "s"])).written_rows, 300)
            query = "SELECT s FROM packed_async WHERE s = {s:String}"
            got = await packed.query(query, parameters={"s": f"{name}" * 50})
            equal(len(got.result_rows), 300)
        finally:
            await packed.close()
    return "lz4, zstd, gzip, br, none"


async def queries_at_once(client: AsyncClient) -> object:
    answers = await asyncio.gather(*(client.command(f"SELECT {n} * 2") for n in range(AT_ONCE)))
    return equal(answers, [2 * n for n in range(AT_ONCE)])


async def query_id_echo(client: AsyncClient) -> object:
    wanted = str(uuid.uuid4())
    return equal((await client.query("SELECT 1", settings={"query_id": wanted})).query_id, wanted)


CHECKS = (
    all_types,
    rows_at_once,
    raw_rows_at_once,
    without_waiting,
    streamed_read,
    parameters,
    session,
    compressions,
    queries_at_once,
    query_id_echo,
)


async def main() -> None:
    client = await clickhouse_connect.get_async_client(**CONNECTION, autogenerate_session_id=False)
    try:
        await report.run_async("ping", client.ping)
        for check in CHECKS:
            await report.run_async(check.__name__.replace("_", " "), lambda check=check: check(client))
        await report.run_async("unknown table is 60", lambda: raises(client.query("SELECT * FROM nowhere"), 60))
        await report.run_async("syntax error is 62", lambda: raises(client.command("SELEC 1"), 62))
    finally:
        await client.close()
    report.print()


asyncio.run(main())
