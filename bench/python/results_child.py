"""One way to take a million rows, in a process of its own: prints a line of JSON."""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import sys
import time
from typing import Any

from measure import Server, cpu_seconds, resident_bytes

ROWS = 1_000_000
#: Ten columns of the types that tables are made of; 60 bytes a row in Native.
QUERY = (
    "SELECT number AS id, toInt32(number) AS a, number / 3 AS f, toString(number) AS s,"
    " concat('user-', toString(number % 1000)) AS u, toDateTime('2024-01-01 00:00:00') + number AS at,"
    " toDate('2020-01-01') + number % 3000 AS d, if(number % 7 = 0, NULL, number) AS n,"
    " toLowCardinality(toString(number % 100)) AS lc, toDateTime64('2024-01-01 00:00:00', 3) + number / 10 AS at64"
    f" FROM numbers({ROWS})"
)
#: A gigabyte, a kilobyte a row.
LARGE = "SELECT number, repeat('x', 1000) AS text FROM numbers(1000000)"
LARGE_ROWS = 1_000_000
TICK_SECONDS = 0.001


class Watch:
    """Another task on the loop: how late it is woken, and what memory the process has meanwhile."""

    def __init__(self) -> None:
        self.worst_delay = 0.0
        self.peak_bytes = resident_bytes()
        self.task = asyncio.create_task(self.tick())

    async def tick(self) -> None:
        while True:
            due = time.perf_counter() + TICK_SECONDS
            await asyncio.sleep(TICK_SECONDS)
            self.worst_delay = max(self.worst_delay, time.perf_counter() - due)
            self.peak_bytes = max(self.peak_bytes, resident_bytes())

    def stop(self) -> None:
        self.task.cancel()


async def whole(client: Any, method: str) -> int:
    result = await getattr(client, method)(QUERY)
    return len(result.result_rows if method == "query" else result)


async def first_block(client: Any, method: str) -> int:
    """Until the first block can be used; then the stream is left."""
    async with await getattr(client, method)(QUERY) as stream:
        async for block in stream:
            return len(block)
    return 0


async def streamed(client: Any, method: str) -> int:
    rows = 0
    async with await getattr(client, method)(LARGE) as stream:
        async for block in stream:
            rows += len(block) if method != "query_column_block_stream" else len(block[0])
    return rows


KINDS = {"whole": whole, "first": first_block, "stream": streamed}


async def measure(module: str, kind: str, method: str, repeats: int) -> dict[str, list[float]]:
    package = importlib.import_module(module)
    client = await package.get_async_client(**Server.from_environment().arguments())
    # What a first call loads (pandas, pyarrow) is not what is measured.
    if method.startswith("query_df") or "arrow" in method or "_np" in method:
        await getattr(client, method.removesuffix("_stream"))("SELECT 1 AS a, 'b' AS b")
    found: dict[str, list[float]] = {"seconds": [], "cpu": [], "delay": [], "memory": []}
    for _ in range(repeats):
        gc.collect()
        start_bytes = resident_bytes()
        watch = Watch()
        cpu, began = cpu_seconds(), time.perf_counter()
        rows = await KINDS[kind](client, method)
        found["seconds"].append(time.perf_counter() - began)
        found["cpu"].append(cpu_seconds() - cpu)
        watch.stop()
        found["delay"].append(watch.worst_delay)
        found["memory"].append(watch.peak_bytes - start_bytes)
        expected = {"whole": ROWS, "stream": LARGE_ROWS}.get(kind)
        assert rows > 0 and (expected is None or rows == expected), f"{method}: {rows} rows"
    await client.close()
    return found


if __name__ == "__main__":
    print(json.dumps(asyncio.run(measure(sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])))))
