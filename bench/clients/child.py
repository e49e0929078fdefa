"""One client in a process of its own, told by lines of JSON: `python -m bench.clients.child WAY ARGUMENTS`. `{"scenario": …}` runs one of
the article's; `{"kind": …, "method": …}` takes a million rows, or a gigabyte."""

import asyncio
import gc
import importlib
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from bench.base.processes import answer, asked_lines, own_cpu_seconds, usage
from bench.clients.scenarios import BY_NAME, LARGE, LARGE_ROWS, MILLION, ROWS_OF_MILLION, Scenario

IN_FLIGHT = 32
TICK_SECONDS = 0.001


def check(scenario: Scenario, result: Any) -> None:
    """Takes the rows, as a program would, and knows how many there must be."""
    if hasattr(result, "result_rows"):
        rows = len(result.result_rows)
        assert scenario.rows is None or rows == scenario.rows, f"{scenario.name}: {rows} rows"


class AsyncWay:
    """An async client: as many tasks as operations in flight, each taking the next number."""

    def __init__(self, module: str, arguments: dict[str, Any]) -> None:
        self.loop = asyncio.new_event_loop()
        package = importlib.import_module(module)
        arguments = {"connector_limit": IN_FLIGHT, "connector_limit_per_host": IN_FLIGHT, **arguments}
        self.client = self.loop.run_until_complete(package.get_async_client(**arguments))

    def run(self, scenario: Scenario, target: str) -> list[float]:
        return self.loop.run_until_complete(self.all(scenario, target))

    async def all(self, scenario: Scenario, target: str) -> list[float]:
        numbers, took = iter(range(scenario.operations)), list[float]()

        async def worker() -> None:
            for number in numbers:
                method, positional, named = scenario.call(number, target)
                began = time.perf_counter()
                check(scenario, await getattr(self.client, method)(*positional, **named))
                took.append(time.perf_counter() - began)

        await asyncio.gather(*(worker() for _ in range(scenario.in_flight)))
        return took

    def take(self, kind: str, method: str) -> dict[str, float]:
        return self.loop.run_until_complete(self.taking(kind, method))

    async def taking(self, kind: str, method: str) -> dict[str, float]:
        # What a first call loads (pandas, pyarrow) is not what is measured.
        if method.startswith("query_df") or "arrow" in method or "_np" in method:
            await getattr(self.client, method.removesuffix("_stream"))("SELECT 1 AS a, 'b' AS b")
        gc.collect()
        start_bytes, watch = usage("self").resident_bytes, Watch()
        cpu, began = own_cpu_seconds(), time.perf_counter()
        rows = await KINDS[kind](self.client, method)
        found = {"seconds": time.perf_counter() - began, "cpu": own_cpu_seconds() - cpu}
        watch.task.cancel()
        expected = {"whole": ROWS_OF_MILLION, "stream": LARGE_ROWS}.get(kind)
        assert rows > 0 and expected in (None, rows), f"{method}: {rows} rows"
        return found | {"delay": watch.worst_delay, "memory": watch.peak_bytes - start_bytes}

    def close(self) -> None:
        self.loop.run_until_complete(self.client.close())


class ThreadWay:
    """A sync client shared by 32 threads."""

    def __init__(self, module: str, arguments: dict[str, Any]) -> None:
        pools = importlib.import_module(f"{module}.driver.httputil")
        own = {"autogenerate_session_id": False, "pool_mgr": pools.get_pool_manager(maxsize=IN_FLIGHT)}
        self.client = importlib.import_module(module).get_client(**arguments, **own)
        self.threads = ThreadPoolExecutor(IN_FLIGHT)

    def run(self, scenario: Scenario, target: str) -> list[float]:
        numbers, took = iter(range(scenario.operations)), list[float]()

        def worker() -> None:
            for number in numbers:
                method, positional, named = scenario.call(number, target)
                began = time.perf_counter()
                check(scenario, getattr(self.client, method)(*positional, **named))
                took.append(time.perf_counter() - began)

        for future in [self.threads.submit(worker) for _ in range(scenario.in_flight)]:
            future.result()
        return took

    def close(self) -> None:
        self.client.close()
        self.threads.shutdown()


class Watch:
    """Another task on the loop: how late it is woken, and what memory the process has meanwhile."""

    def __init__(self) -> None:
        self.worst_delay, self.peak_bytes = 0.0, usage("self").resident_bytes
        self.task = asyncio.create_task(self.tick())

    async def tick(self) -> None:
        while True:
            due = time.perf_counter() + TICK_SECONDS
            await asyncio.sleep(TICK_SECONDS)
            self.worst_delay = max(self.worst_delay, time.perf_counter() - due)
            self.peak_bytes = max(self.peak_bytes, usage("self").resident_bytes)


async def whole(client: Any, method: str) -> int:
    result = await getattr(client, method)(MILLION)
    return len(result.result_rows if method == "query" else result)


async def first_block(client: Any, method: str) -> int:
    """Until the first block can be used; then the stream is left."""
    async with await getattr(client, method)(MILLION) as stream:
        async for block in stream:
            return len(block)
    return 0


async def streamed(client: Any, method: str) -> int:
    async with await getattr(client, method)(LARGE) as stream:
        return sum([len(block) async for block in stream])


KINDS = {"whole": whole, "first": first_block, "stream": streamed}
WAYS = {
    "windrow": lambda given: AsyncWay("windrow", given),
    "connect": lambda given: AsyncWay("clickhouse_connect", given),
    "connect_uncompressed": lambda given: AsyncWay("clickhouse_connect", {**given, "compress": False}),
    "connect_threads": lambda given: ThreadWay("clickhouse_connect", given),
}


def main() -> None:
    name, arguments = sys.argv[1:]
    way = WAYS[name](json.loads(arguments))
    for asked in asked_lines():
        if "kind" in asked:
            answer(way.take(asked["kind"], asked["method"]))
            continue
        gc.collect()
        cpu, began = own_cpu_seconds(), time.perf_counter()
        took = way.run(BY_NAME[asked["scenario"]], f"bench.inserts_{name}")
        answer({"seconds": time.perf_counter() - began, "cpu": own_cpu_seconds() - cpu, "took": took})
    way.close()


if __name__ == "__main__":
    main()
