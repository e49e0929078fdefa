"""DuckDB's own Python client reads the data through the gateway, while the gateway writes."""

from __future__ import annotations

import threading
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import duckdb
import duckdb_extension_httpfs
import pytest

from harness.endpoint import Endpoint


@pytest.fixture
def client() -> Iterator[duckdb.DuckDBPyConnection]:
    """A DuckDB of the client's own, that reads over HTTP."""
    connection = duckdb.connect()
    folder = Path(next(iter(duckdb_extension_httpfs.__path__)))
    connection.load_extension(str(next(folder.glob("extensions/*/httpfs.duckdb_extension"))))
    yield connection
    connection.close()


def url(duck: Endpoint, query: str) -> str:
    return f"{duck.url}?" + urllib.parse.urlencode({"query": query, "default_format": "Parquet"})


class Writer(threading.Thread):
    """Inserts numbers, one each time, until it is told to end."""

    def __init__(self, duck: Endpoint, table: str):
        super().__init__(daemon=True)
        self.duck, self.table, self.stored, self.ending = duck, table, 0, threading.Event()

    def run(self) -> None:
        while not self.ending.is_set():
            reply = self.duck.insert(f"INSERT INTO {self.table} FORMAT CSV", f"{self.stored}\n")
            assert reply.status == 200, reply.text
            self.stored += 1


def test_a_reader_sees_what_is_stored_while_more_is_written(duck: Endpoint, client: duckdb.DuckDBPyConnection) -> None:
    duck.sql("CREATE OR REPLACE TABLE written (a BIGINT)")
    writer = Writer(duck, "written")
    writer.start()
    seen, query = [], f"SELECT count(*), max(a) FROM read_parquet('{url(duck, 'SELECT a FROM written')}')"
    try:
        while len(seen) < 20 or writer.stored < 20:
            before = writer.stored
            rows, largest = client.sql(query).fetchone()
            after = writer.stored + 1
            assert before <= rows <= after and (rows == 0 or largest == rows - 1), (before, rows, largest, after)
            seen.append(rows)
    finally:
        writer.ending.set()
        writer.join(30)
    assert seen == sorted(seen) and writer.stored > 0


def test_results_are_tables_of_the_client(duck: Endpoint, client: duckdb.DuckDBPyConnection) -> None:
    query = "SELECT range AS a, 'x' || range AS b, DATE '2020-01-01' + range::INTEGER AS c FROM range(1000)"
    client.execute(f"CREATE TABLE mine AS FROM read_parquet('{url(duck, query)}')")
    sums = client.sql("SELECT count(*), sum(a), max(b), min(c)::VARCHAR FROM mine").fetchone()
    assert sums == (1000, 499500, "x999", "2020-01-01")
    json = f"{duck.url}?" + urllib.parse.urlencode({"query": "SELECT 42 AS answer", "default_format": "JSONEachRow"})
    assert client.sql(f"SELECT answer FROM read_json('{json}')").fetchone() == (42,)
