"""What two hundred tasks do at once, in a process that does nothing else: what it holds at the end is theirs."""

from __future__ import annotations

import asyncio
import ctypes
import gc
import os
import random
import resource
import threading
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from harness.eventually import eventually
from transport.both import until as eventually_here

import windrow
from windrow.driver.exceptions import Error

SECONDS = float(os.environ.get("WINDROW_STORM_SECONDS", "60"))
SEED = int(os.environ.get("WINDROW_STORM_SEED", "1"))
TASKS = 200
CONNECTIONS = 60
#: Far longer than anything here takes on a busy machine, also while ClickHouse is started again: reached only by a hang.
HANGS_AFTER_SECONDS = 300.0

#: Held as a whole, so that of this size sixty at once are still little beside what streams.
WHOLE = "SELECT number, toString(number) AS s, now() AS t FROM numbers(20000)"
LARGE = "SELECT number, toString(number) AS s, now() AS t FROM numbers(200000)"
FAILS_AT_ONCE = "SELECT no_such_column FROM system.one"
FAILS_IN_MID_STREAM = "SELECT number, throwIf(number = 150000) FROM numbers(200000) SETTINGS max_block_size = 10000"


def idle_bytes() -> int:
    """What the process holds when nothing is under way and the allocator has given back what it can."""
    gc.collect()
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


class Storm:
    """What the tasks do, and what they saw."""

    def __init__(self, client: Any, table: str) -> None:
        self.client = client
        self.table = table
        self.chance = random.Random(SEED)
        self.next_insert = 0
        self.acknowledged: set[int] = set()
        self.done: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()

    async def small_query(self) -> None:
        wanted = self.chance.randrange(1000)
        result = await self.client.query("SELECT %(n)s + number FROM numbers(10)", parameters={"n": wanted})
        assert [row[0] for row in result.result_rows] == list(range(wanted, wanted + 10))

    async def large_query(self) -> None:
        assert len((await self.client.query(WHOLE)).result_rows) == 20_000

    async def whole_stream(self) -> None:
        rows = 0
        async with await self.client.query_row_block_stream(LARGE) as stream:
            async for block in stream:
                rows += len(block)
        assert rows == 200_000

    async def stream_left_early(self) -> None:
        async with await self.client.query_rows_stream(LARGE) as stream:
            async for row in stream:
                assert row[0] == 0
                break

    async def insert(self) -> None:
        self.next_insert += 1
        number = self.next_insert
        rows = [[number, index] for index in range(20)]
        await self.client.insert(self.table, rows, column_names=["number", "row"])
        self.acknowledged.add(number)

    async def failing_query(self) -> None:
        await self.client.query(FAILS_AT_ONCE)

    async def failing_stream(self) -> None:
        async with await self.client.query_row_block_stream(FAILS_IN_MID_STREAM) as stream:
            async for _ in stream:
                pass

    async def one(self) -> None:
        work = self.chance.choices(
            [
                self.small_query, self.large_query, self.whole_stream, self.stream_left_early, self.insert,
                self.failing_query, self.failing_stream,
            ],
            weights=[40, 3, 3, 4, 30, 10, 3],
        )[0]
        task = asyncio.ensure_future(work())
        if self.chance.random() < 0.15:
            asyncio.get_running_loop().call_later(self.chance.random() * 0.3, task.cancel)
        finished, _ = await asyncio.wait([task], timeout=HANGS_AFTER_SECONDS)
        assert finished, f"{work.__name__} hangs"
        self.count(work.__name__, task)

    def count(self, name: str, task: asyncio.Future[None]) -> None:
        if task.cancelled():
            self.done["cancelled"] += 1
        elif isinstance(task.exception(), Error):
            self.errors[name] += 1
        else:
            task.result()
            self.done[name] += 1

    async def worker(self, until: float) -> None:
        while time.monotonic() < until:
            await self.one()


def busy(statistics: dict[str, int]) -> bool:
    return bool(statistics["in_use"] or statistics["waiting"])


@dataclass
class Seen:
    """What is left of a storm."""

    acknowledged: set[int]
    done: Counter[str]
    errors: Counter[str]
    #: What the process held after each third.
    idle_bytes: list[int]


async def storm(port: int, arguments: dict[str, Any], table: str) -> Seen:
    client = await windrow.get_async_client(
        host="127.0.0.1",
        port=port,
        **arguments,
        connector_limit=CONNECTIONS,
        connector_limit_per_host=CONNECTIONS,
        autogenerate_session_id=False,
    )
    state = Storm(client, table)
    idle = []
    for _ in range(3):
        until = time.monotonic() + SECONDS / 3
        await asyncio.gather(*(state.worker(until) for _ in range(TASKS)))
        # Requests that stop queries at the server are under way a little longer than the tasks that left them.
        await eventually_here(lambda: not busy(client.statistics()), "nothing is in use")
        assert client.statistics()["open"] <= CONNECTIONS, client.statistics()
        await client.close_connections()
        idle.append(idle_bytes())
    await client.close()
    assert client.statistics()["open"] == 0
    own = asyncio.current_task()
    await eventually_here(lambda: asyncio.all_tasks() == {own}, "no task is left")
    return Seen(state.acknowledged, state.done, state.errors, idle)


def run(port: int, arguments: dict[str, Any], table: str) -> Seen:
    """In a process of its own."""
    threads = set(threading.enumerate())
    seen = asyncio.run(storm(port, arguments, table))
    eventually(lambda: set(threading.enumerate()) <= threads, "the client's threads have ended")
    return seen
