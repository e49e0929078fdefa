"""One client in a process of its own: reads the name of a scenario per line, runs it, answers with a line of JSON."""

from __future__ import annotations

import asyncio
import gc
import importlib
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from measure import Server, cpu_seconds
from scenarios import BY_NAME, Scenario

IN_FLIGHT = 32


def check(scenario: Scenario, result: Any) -> None:
    """Takes the rows, as a program would, and knows how many there must be."""
    if hasattr(result, "result_rows"):
        rows = len(result.result_rows)
        assert scenario.rows is None or rows == scenario.rows, f"{scenario.name}: {rows} rows"


class AsyncWay:
    """An async client: as many tasks as operations in flight, each taking the next number."""

    def __init__(self, module: str, **options: Any) -> None:
        self.loop = asyncio.new_event_loop()
        package = importlib.import_module(module)
        arguments = Server.from_environment().arguments() | options
        arguments |= {"connector_limit": IN_FLIGHT, "connector_limit_per_host": IN_FLIGHT}
        self.client = self.loop.run_until_complete(package.get_async_client(**arguments))

    def run(self, scenario: Scenario, target: str) -> list[float]:
        return self.loop.run_until_complete(self.all(scenario, target))

    async def all(self, scenario: Scenario, target: str) -> list[float]:
        numbers = iter(range(scenario.operations))
        took: list[float] = []

        async def worker() -> None:
            for number in numbers:
                method, positional, named = scenario.call(number, target)
                began = time.perf_counter()
                check(scenario, await getattr(self.client, method)(*positional, **named))
                took.append(time.perf_counter() - began)

        await asyncio.gather(*(worker() for _ in range(scenario.in_flight)))
        return took

    def close(self) -> None:
        self.loop.run_until_complete(self.client.close())


class ThreadWay:
    """A sync client shared by 32 threads."""

    def __init__(self, module: str, **options: Any) -> None:
        package = importlib.import_module(module)
        arguments = Server.from_environment().arguments() | {"autogenerate_session_id": False} | options
        if module == "clickhouse_connect":
            pools = importlib.import_module("clickhouse_connect.driver.httputil")
            arguments["pool_mgr"] = pools.get_pool_manager(maxsize=IN_FLIGHT)
        self.client = package.get_client(**arguments)
        self.threads = ThreadPoolExecutor(IN_FLIGHT)

    def run(self, scenario: Scenario, target: str) -> list[float]:
        numbers = iter(range(scenario.operations))
        took: list[float] = []

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


WAYS = {
    "windrow": lambda: AsyncWay("windrow"),
    "connect": lambda: AsyncWay("clickhouse_connect"),
    "connect_uncompressed": lambda: AsyncWay("clickhouse_connect", compress=False),
    "connect_threads": lambda: ThreadWay("clickhouse_connect"),
}


def main() -> None:
    name = sys.argv[1]
    way = WAYS[name]()
    print("ready", flush=True)
    for line in sys.stdin:
        scenario = BY_NAME[line.strip()]
        gc.collect()
        cpu, began = cpu_seconds(), time.perf_counter()
        took = way.run(scenario, f"bench.inserts_{name}")
        seconds = time.perf_counter() - began
        print(json.dumps({"seconds": seconds, "cpu": cpu_seconds() - cpu, "took": took}), flush=True)
    way.close()


if __name__ == "__main__":
    main()
