"""A nightly report: tables made and filled, read back in several forms."""

import asyncio
import json
import sys
from datetime import datetime, timedelta, timezone

import clickhouse_connect
from clickhouse_connect.driver.asyncclient import AsyncClient
from clickhouse_connect.driver.exceptions import ClickHouseError, DatabaseError

START = datetime(2024, 3, 1, tzinfo=timezone.utc)


async def fill(client: AsyncClient) -> int:
    await client.command("CREATE TABLE orders (id UInt32, at DateTime, customer LowCardinality(String), cents Nullable(Int64)) ORDER BY id")
    rows = [[n, START + timedelta(minutes=7 * n), f"c{n % 11}", None if n % 13 == 0 else n * 5] for n in range(500)]
    context = await client.create_insert_context("orders", ["id", "at", "customer", "cents"])
    for begin in range(0, len(rows), 100):
        context.data = rows[begin : begin + 100]
        await client.data_insert(context)
    return await client.command("SELECT count() FROM orders")


async def report(client: AsyncClient) -> dict:
    query = "SELECT customer, count() AS n, sum(cents) AS total FROM orders WHERE at >= {since:DateTime} GROUP BY customer ORDER BY customer"
    result = await client.query(query, parameters={"since": START + timedelta(days=1)})
    frame = await client.query_df("SELECT toDate(at) AS day, avg(cents) AS mean FROM orders GROUP BY day ORDER BY day")
    seen = 0
    async with await client.query_row_block_stream("SELECT id FROM orders WHERE id IN %(ids)s", parameters={"ids": (1, 2, 499)}) as stream:
        async for block in stream:
            seen += sum(row[0] for row in block)
    return {
        "customers": [list(row) for row in result.result_rows],
        "first": result.first_item,
        "days": frame["day"].astype(str).tolist(),
        "mean": [round(value, 6) for value in frame["mean"].tolist()],
        "dtypes": [str(kind) for kind in frame.dtypes],
        "seen": seen,
    }


async def main() -> None:
    client = await clickhouse_connect.get_async_client(**json.loads(sys.argv[1]))
    try:
        stored = await fill(client)
        found = await report(client)
        try:
            await client.query("SELECT * FROM order")
        except DatabaseError as error:
            found["error"] = [type(error).__name__, error.code, error.name, isinstance(error, ClickHouseError)]
        print(json.dumps({"stored": stored, **found}))
    finally:
        await client.close()


asyncio.run(main())
