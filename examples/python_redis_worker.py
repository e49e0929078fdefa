"""A worker that takes jobs and writes their results through a buffer in Redis. Run as many as you like:

    python examples/python_redis_worker.py redis://localhost:6379/0 [http://user:password@localhost:8123] < jobs

A job is a line with a number, its result is the number's prime factors. When a line comes out on standard output, its result is in
Redis, and a worker that is killed after that has lost nothing: the others, or the next one started, store what it left behind.
"""

from __future__ import annotations

import asyncio
import os
import sys

import windrow

TABLE = """
CREATE TABLE IF NOT EXISTS factors (number UInt64, factors Array(UInt64), worker UInt32)
ENGINE MergeTree ORDER BY number SETTINGS non_replicated_deduplication_window = 1000
"""


def factors_of(number: int) -> list[int]:
    found, divisor = [], 2
    while divisor * divisor <= number:
        while number % divisor == 0:
            found.append(divisor)
            number //= divisor
        divisor += 1
    return [*found, number] if number > 1 else found


async def main(redis: str, dsn: str) -> None:
    loop = asyncio.get_running_loop()
    async with await windrow.get_async_client(dsn=dsn) as client:
        await client.command(TABLE)
        columns = ["number", "factors", "worker"]
        async with client.writer("factors", columns, buffer=f"{redis}?bucket=factors", flush_interval=0.5) as writer:
            while line := await loop.run_in_executor(None, sys.stdin.readline):
                number = int(line)
                await writer.write_row((number, factors_of(number), os.getpid()))
                print(number, flush=True)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "http://localhost:8123"))
