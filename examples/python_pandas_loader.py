"""Loads a CSV file into a table by way of pandas, and reads a summary back as a frame.

    pip install 'windrow[pandas]'
    python examples/python_pandas_loader.py measurements.csv [http://user:password@localhost:8123]

The file has the columns station, at and celsius; readings without a temperature are stored as NULL.
"""

from __future__ import annotations

import asyncio
import sys

import pandas

import windrow

TABLE = """
CREATE TABLE IF NOT EXISTS measurements (station LowCardinality(String), at DateTime('UTC'), celsius Nullable(Float32))
ENGINE MergeTree ORDER BY (station, at)
"""
SUMMARY = """
SELECT station, count() AS readings, countIf(celsius IS NULL) AS missing, round(avg(celsius), 2) AS mean, max(at) AS latest
FROM measurements GROUP BY station ORDER BY station
"""
ROWS_AT_ONCE = 50_000


async def main(path: str, dsn: str) -> None:
    async with await windrow.get_async_client(dsn=dsn) as client:
        await client.command(TABLE)
        loaded = 0
        for frame in pandas.read_csv(path, parse_dates=["at"], chunksize=ROWS_AT_ONCE):
            await client.insert_df("measurements", frame)
            loaded += len(frame)
            print(f"{loaded} rows loaded", file=sys.stderr)
        summary = await client.query_df(SUMMARY)
        print(summary.to_string(index=False))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "http://localhost:8123"))
