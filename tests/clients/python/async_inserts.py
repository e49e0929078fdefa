"""Every way to insert that clickhouse-connect's asyncio client offers, each into a table of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import clickhouse_connect
from clickhouse_connect.driver.asyncclient import AsyncClient
from clickhouse_connect.driver.exceptions import DatabaseError
from report import Report, equal
from settings import CONNECTION
from small_table import NAMES, ROWS, arrow_frame, arrow_table, create, frame, native_rows

report = Report()
WAITING = {"async_insert": 1, "wait_for_async_insert": 1}
NOT_WAITING = {"async_insert": 1, "wait_for_async_insert": 0}
Insert = Callable[[AsyncClient, str], Awaitable[object]]


async def stored(client: AsyncClient, table: str) -> object:
    while await client.command(f"SELECT count() FROM {table}") < len(ROWS):
        pass
    return equal(native_rows((await client.query(f"SELECT * FROM {table} ORDER BY id")).result_rows), ROWS)


async def case(client: AsyncClient, table: str, insert: Insert, inserts: int = 1) -> None:
    async def body() -> object:
        await client.command(create(report.sends(table, inserts)))
        await insert(client, table)
        return await stored(client, table)

    await report.run_async(f"insert {table}", body)


def rows_with(**options: object) -> Insert:
    return lambda client, table: client.insert(table, ROWS, column_names=NAMES, **options)


async def a_row_each(client: AsyncClient, table: str) -> object:
    inserts = (client.insert(table, [row], column_names=NAMES, settings=WAITING) for row in ROWS)
    return equal([summary.written_rows for summary in await asyncio.gather(*inserts)], [1] * len(ROWS))


def packed(compress: object) -> Insert:
    async def insert(_: AsyncClient, table: str) -> object:
        own = await clickhouse_connect.get_async_client(**CONNECTION, compress=compress, autogenerate_session_id=False)
        try:
            return await own.insert(table, ROWS, column_names=NAMES)
        finally:
            await own.close()

    return insert


def raw(fmt: str) -> Insert:
    async def insert(client: AsyncClient, table: str) -> object:
        payload = await client.raw_query("SELECT * FROM rows_plain ORDER BY id", fmt=fmt)
        return await client.raw_insert(table, insert_block=payload, fmt=fmt)

    return insert


async def refused(client: AsyncClient, table: str) -> object:
    """The constraint's error comes back to the one insert that hurts it."""
    await client.command(create(report.sends(table, len(ROWS))))
    await client.command(f"ALTER TABLE {table} ADD CONSTRAINT small CHECK id < {len(ROWS) - 1}")
    inserts = (client.insert(table, [row], column_names=NAMES, settings=WAITING) for row in ROWS)
    *fine, guilty = await asyncio.gather(*inserts, return_exceptions=True)
    assert isinstance(guilty, DatabaseError) and "469" in str(guilty), guilty
    equal([summary.written_rows for summary in fine], [1] * len(fine))
    return equal(await client.command(f"SELECT count() FROM {table}"), len(fine))


async def read_frames(client: AsyncClient) -> object:
    query = "SELECT * FROM rows_plain ORDER BY id"
    equal(list((await client.query_df(query))["s"]), [row[1] for row in ROWS])
    got = await client.query_arrow(query, use_strings=True)
    equal(got.column("tags").to_pylist(), [row[6] for row in ROWS])
    async with await client.query_arrow_stream(query, use_strings=True) as stream:
        return equal(sum([batch.num_rows async for batch in stream]), len(ROWS))


async def main() -> None:
    client = await clickhouse_connect.get_async_client(**CONNECTION, autogenerate_session_id=False)
    try:
        await case(client, "rows_plain", rows_with())
        await case(client, "rows_waiting", rows_with(settings=WAITING))
        await case(client, "rows_not_waiting", rows_with(settings=NOT_WAITING))
        await case(client, "rows_one_by_one", a_row_each, len(ROWS))
        for compress in ("lz4", "zstd", "gzip", "br", False):
            await case(client, f"rows_{compress or 'uncompressed'}".lower(), packed(compress))
        await case(client, "frame", lambda own, table: own.insert_df(table, frame(), settings=WAITING))
        await case(client, "frame_arrow", lambda own, table: own.insert_df_arrow(table, arrow_frame()))
        await case(client, "arrow", lambda own, table: own.insert_arrow(table, arrow_table(), settings=WAITING))
        for fmt in ("JSONEachRow", "CSVWithNames", "Parquet"):
            await case(client, f"raw_{fmt.lower()}", raw(fmt))
        await report.run_async("constraint is 469", lambda: refused(client, "checked"))
        await report.run_async("read as frames and Arrow", lambda: read_frames(client))
    finally:
        await client.close()
    report.print()


asyncio.run(main())
