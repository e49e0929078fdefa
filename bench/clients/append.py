"""One way of appending, in a process of its own: `python -m bench.clients.append WAY ADDRESS`.

Each line of its input is a job, `{"rows": 1000000, "times": 1, "table": "t", "ordered": true}`; the answer is the seconds it took. The client
is connected, and the rows are made, before the first job: what is measured is the append.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import pyarrow as pa

Job = Callable[[str, int, int, bool], float]


@cache
def numbers(rows: int) -> pa.Table:
    return pa.table({"i": pa.array(range(rows), pa.int64())})


def quack(address: str) -> Job:
    from bench.clients.quack_server import TOKEN, with_quack

    client = with_quack(":memory:")
    client.execute(f"ATTACH 'quack:{address.replace('127.0.0.1', 'localhost')}' AS rpc (TOKEN '{TOKEN}')")

    def job(table: str, rows: int, times: int, ordered: bool) -> float:
        begun = time.perf_counter()
        for _ in range(times):
            client.execute(f"INSERT INTO rpc.{table} SELECT * FROM range({rows})")
        return time.perf_counter() - begun

    return job


def flight(address: str) -> Job:
    from adbc_driver_flightsql import dbapi

    connection = dbapi.connect(f"grpc://{address}", autocommit=True)

    def job(table: str, rows: int, times: int, ordered: bool) -> float:
        data = numbers(rows)
        with connection.cursor() as cursor:
            begun = time.perf_counter()
            for _ in range(times):
                cursor.adbc_ingest(table, data, mode="append")
            return time.perf_counter() - begun

    return job


def windrow(address: str) -> Job:
    import windrow as package

    host, _, port = address.rpartition(":")
    loop = asyncio.new_event_loop()
    client: Any = loop.run_until_complete(package.get_async_client(host=host, port=int(port), compress=False))

    async def append(table: str, rows: int, times: int, ordered: bool) -> float:
        data = numbers(rows)
        begun = time.perf_counter()
        for _ in range(times):
            await client.append(table, data, ordered=ordered)
        return time.perf_counter() - begun

    return lambda *job: loop.run_until_complete(append(*job))


WAYS: dict[str, Callable[[str], Job]] = {"quack": quack, "flight": flight, "windrow": windrow}


def main() -> None:
    way, address = sys.argv[1:]
    job = WAYS[way](address)
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        asked = json.loads(line)
        numbers(asked["rows"])
        print(json.dumps(job(asked["table"], asked["rows"], asked["times"], asked["ordered"])), flush=True)


if __name__ == "__main__":
    main()
