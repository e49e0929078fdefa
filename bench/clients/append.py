"""One way of appending, in a process of its own: `python -m bench.clients.append WAY ADDRESS`.

Each line of its input is a job, `{"rows": 1000000, "times": 1, "table": "t", "ordered": true}`; the answer is the seconds it took. The
client is connected, and the rows are made, before the first job: what is measured is the append. `quack-server FILE PORT` is what the
first of the ways appends to.
"""

import asyncio
import sys
import time
from collections.abc import Callable
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa

from bench.base.processes import answer, asked_lines

TOKEN = "bench-token"
Job = Callable[[str, int, int, bool], float]


@cache
def numbers(rows: int) -> pa.Table:
    return pa.table({"i": pa.array(range(rows), pa.int64())})


def with_quack(path: str) -> Any:
    import duckdb

    connection = duckdb.connect(path)
    for name in ("httpfs", "quack"):
        folder = Path(next(iter(import_module(f"duckdb_extension_{name}").__path__)))
        connection.load_extension(str(next(folder.glob(f"extensions/*/{name}.duckdb_extension"))))
    return connection


def quack_server(path: str, port: str) -> None:
    """Runs each line of its input and answers the single value it gives."""
    server = with_quack(path)
    server.execute(f"CALL quack_serve('quack:localhost:{port}', token='{TOKEN}')")
    for statement in asked_lines():
        row = server.cursor().execute(statement).fetchone()
        answer(row[0] if row else None)


def quack(address: str) -> Job:
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
    way, *arguments = sys.argv[1:]
    if way == "quack-server":
        return quack_server(*arguments)
    job = WAYS[way](*arguments)
    for asked in asked_lines():
        numbers(asked["rows"])
        answer(job(asked["table"], asked["rows"], asked["times"], asked["ordered"]))


if __name__ == "__main__":
    main()
