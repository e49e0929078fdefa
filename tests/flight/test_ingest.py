"""Bulk ingest: all rows land, in their order, or none do."""

from __future__ import annotations

import datetime
import decimal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow
import pytest
from adbc_driver_manager import Error, NotSupportedError, ProgrammingError

from harness.eventually import eventually
from harness.flight import Service

MILLION = 1_000_000


def a_million() -> pyarrow.Table:
    values = pyarrow.array(range(MILLION), pyarrow.int64())
    texts: list[str | None] = [f"v{n}" for n in range(1_000)] * 1_000
    texts[::7] = [None] * len(texts[::7])
    return pyarrow.table({"n": values, "s": pyarrow.array(texts)})


def test_a_million_rows_are_created_appended_and_replaced(service: Service) -> None:
    table = a_million()
    summary = "SELECT count(*), sum(n), count(s), min(s), max(s) FROM t"
    once = (MILLION, sum(range(MILLION)), MILLION - 142_858, "v0", "v999")
    with service.cursor() as cursor:
        for mode, times in (("create", 1), ("append", 2), ("create_append", 3), ("replace", 1)):
            rows = cursor.adbc_ingest("t", table, mode=mode, db_schema_name=service.database)
            assert rows == MILLION
            cursor.execute(summary)
            count, total, texts, least, most = cursor.fetchone()
            assert (count, total, texts) == (times * once[0], times * once[1], times * once[2])
            assert (least, most) == once[3:]
    assert service.left_overs() == []


def test_rows_land_in_their_order(service: Service) -> None:
    batches = pyarrow.table({"n": range(200_000)}).to_batches(max_chunksize=1_000)
    with service.cursor() as cursor:
        reader = pyarrow.RecordBatchReader.from_batches(batches[0].schema, batches)
        cursor.adbc_ingest("t", reader, mode="create", db_schema_name=service.database)
        if service.is_duckdb:
            cursor.execute("SELECT n FROM t")
        else:
            block = "toUInt64(splitByChar('_', _part)[2])"
            cursor.execute(f"SELECT n FROM t ORDER BY {block}, _part_offset")
        assert cursor.fetch_arrow_table()["n"].to_pylist() == list(range(200_000))


def test_types_come_back_as_they_went(service: Service) -> None:
    moment = datetime.datetime(2026, 2, 3, 4, 5, 6, 789_123)
    utc = datetime.timezone.utc
    columns = {
        "i8": pyarrow.array([-128, None], pyarrow.int8()),
        "u64": pyarrow.array([2**64 - 1, None], pyarrow.uint64()),
        "f32": pyarrow.array([1.5, None], pyarrow.float32()),
        "b": pyarrow.array([True, None]),
        "s": pyarrow.array(["ü\n'", None]),
        "d": pyarrow.array([datetime.date(1960, 1, 2), None]),
        "e": pyarrow.array([decimal.Decimal("-123.456"), None], pyarrow.decimal128(18, 3)),
        "t": pyarrow.array([moment, None], pyarrow.timestamp("us")),
        "z": pyarrow.array([moment.replace(tzinfo=utc), None], pyarrow.timestamp("us", "UTC")),
        "l": pyarrow.array([[1, None, 3], []], pyarrow.list_(pyarrow.int32())),
    }
    with service.cursor() as cursor:
        cursor.adbc_ingest("t", pyarrow.table(columns), mode="create", db_schema_name=service.database)
        cursor.execute("SELECT * FROM t ORDER BY i8 NULLS LAST")
        back = cursor.fetch_arrow_table().to_pylist()
    first, second = back
    # ClickHouse's DateTime64 has a zone always, if only the server's own.
    first["t"] = first["t"].replace(tzinfo=None)
    first["z"] = first["z"].astimezone(utc)
    assert first == {name: values[0].as_py() for name, values in columns.items()}
    assert second == {name: values[1].as_py() for name, values in columns.items()}


def test_columns_are_matched_by_name(service: Service) -> None:
    service.create("t", "a Int64, b Nullable(String), c Int64 DEFAULT 7", "a")
    with service.cursor() as cursor:
        cursor.adbc_ingest("t", pyarrow.table({"b": ["x"], "a": [1]}), mode="append")
        cursor.execute("SELECT a, b, c FROM t")
        assert cursor.fetchall() == [(1, "x", 7)]
        with pytest.raises(Error, match="no_such_column"):
            cursor.adbc_ingest("t", pyarrow.table({"a": [1], "no_such_column": [1]}), mode="append")
        cursor.execute("SELECT count(*) FROM t")
        assert cursor.fetchone() == (1,)


def test_what_can_t_be_ingested_stores_nothing(service: Service) -> None:
    service.create("t", "a Int64", "a", "a < 700000")
    rows = pyarrow.table({"a": range(MILLION)})
    with service.cursor() as cursor:
        with pytest.raises(Error, match="Code: 469"):
            cursor.adbc_ingest("t", rows, mode="append")
        with pytest.raises(Error, match="Code: 57"):
            cursor.adbc_ingest("t", rows, mode="create")
        with pytest.raises(ProgrammingError, match="Code: 60"):
            cursor.adbc_ingest("no_such_table", rows, mode="append")
        with pytest.raises(Error):
            cursor.adbc_ingest("t", pyarrow.table({"a": ["x", "y"]}), mode="append")
        with pytest.raises(NotSupportedError, match="temporary"):
            cursor.adbc_ingest("other", rows, mode="create", temporary=True)
        cursor.execute("SELECT count(*) FROM t")
        assert cursor.fetchone() == (0,)
    assert service.left_overs() == []


def test_no_rows_at_all(service: Service) -> None:
    empty = pyarrow.record_batch({"a": pyarrow.array([], pyarrow.int64())})
    with service.cursor() as cursor:
        cursor.adbc_ingest("t", empty, mode="create")
        cursor.adbc_ingest("t", empty, mode="append")
        cursor.execute("SELECT count(*) FROM t")
        assert cursor.fetchone() == (0,)
        # Of a table without a batch the driver sends nothing, not even which table it is for.
        with pytest.raises(ProgrammingError, match="nothing was sent"):
            cursor.adbc_ingest("t", pyarrow.table({"a": pyarrow.array([], pyarrow.int64())}).slice(0, 0), mode="append")


def test_eight_clients_at_once(service: Service) -> None:
    service.create("t", "who Int64, n Int64", "(who, n)")

    def ingest(who: int) -> int:
        rows = pyarrow.table({"who": [who] * 50_000, "n": range(50_000)})
        with service.cursor() as cursor:
            return cursor.adbc_ingest("t", rows, mode="append")

    with ThreadPoolExecutor(8) as clients:
        assert list(clients.map(ingest, range(8))) == [50_000] * 8
    with service.cursor() as cursor:
        cursor.execute("SELECT who, count(*), sum(n) FROM t GROUP BY who ORDER BY who")
        assert cursor.fetchall() == [(who, 50_000, sum(range(50_000))) for who in range(8)]


ENDLESS = """
import sys, threading
import adbc_driver_flightsql.dbapi as flight, pyarrow

uri, user, password, database, *modes = sys.argv[1:]
under_way = threading.Barrier(len(modes))

def rows():
    for n in range(10**9):
        yield pyarrow.record_batch({"a": range(20_000)})
        if n == 20 and under_way.wait() == 0:
            print("under way", flush=True)

def ingest(mode):
    options = {"username": user, "password": password}
    with flight.connect(uri, db_kwargs=options, autocommit=True) as connection, connection.cursor() as cursor:
        schema = pyarrow.schema({"a": pyarrow.int64()})
        reader = pyarrow.RecordBatchReader.from_batches(schema, rows())
        cursor.adbc_ingest("t_" + mode, reader, mode=mode, db_schema_name=database)

for mode in modes:
    threading.Thread(target=ingest, args=[mode]).start()
"""


def test_a_client_that_is_killed_leaves_nothing(service: Service) -> None:
    """Tables that were there are as they were; one that was made for the rows goes again."""
    there = ("t_append", "t_replace")
    with service.cursor() as cursor:
        for table in there:
            service.create(table, "a Int64", "a")
            cursor.adbc_ingest(table, pyarrow.record_batch({"a": [5]}), mode="append")
    where = [service.uri, service.user, service.password, service.database]
    client = [sys.executable, "-c", ENDLESS, *where, "append", "replace", "create"]
    with subprocess.Popen(client, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == "under way\n"
        running.kill()
    eventually(lambda: service.left_overs() == [], "what was begun is dropped")
    eventually(lambda: not exists(service, "t_create"), "the table that was made is dropped again")
    with service.cursor() as cursor:
        for table in there:
            cursor.execute(f"SELECT a FROM {table}")
            assert cursor.fetchall() == [(5,)]
            cursor.adbc_ingest(table, pyarrow.table({"a": [1]}), mode="append")
            cursor.execute(f"SELECT count(*) FROM {table}")
            assert cursor.fetchone() == (2,)


def exists(service: Service, table: str) -> bool:
    with service.cursor() as cursor:
        try:
            cursor.execute(f"SELECT * FROM {table} LIMIT 0")
            cursor.fetchall()
        except ProgrammingError as error:
            assert "Code: 60" in str(error)
            return False
        return True


def test_a_source_that_fails_leaves_nothing(service: Service) -> None:
    """Nor does a stream that is cancelled look like one that has ended."""
    service.create("t", "a Int64", "a")

    def rows() -> Iterator[pyarrow.RecordBatch]:
        for _ in range(30):
            yield pyarrow.record_batch({"a": range(20_000)})
        raise ValueError("the source has failed")

    schema = pyarrow.schema({"a": pyarrow.int64()})
    with service.cursor() as cursor:
        for table, mode in (("t", "append"), ("made", "create")):
            with pytest.raises((Error, ValueError), match="the source has failed"):
                cursor.adbc_ingest(table, pyarrow.RecordBatchReader.from_batches(schema, rows()), mode=mode)
        cursor.execute("SELECT count(*) FROM t")
        assert cursor.fetchone() == (0,)
    eventually(lambda: not exists(service, "made"), "the table that was made is dropped again")


def test_readers_see_all_or_nothing(service: Service) -> None:
    """A reader that counts all the while sees the table before, or after, and nothing between."""
    service.create("t", "a Int64", "a")
    seen, first, done = set(), threading.Event(), threading.Event()

    def count() -> None:
        with service.cursor() as cursor:
            cursor.execute("SELECT count(*) FROM t")
            seen.add(cursor.fetchone()[0])
            first.set()
            while not done.is_set():
                cursor.execute("SELECT count(*) FROM t")
                seen.add(cursor.fetchone()[0])

    reader = threading.Thread(target=count)
    reader.start()
    try:
        assert first.wait(180)
        with service.cursor() as cursor:
            cursor.adbc_ingest("t", pyarrow.table({"a": range(MILLION)}), mode="append")
        eventually(lambda: MILLION in seen or not reader.is_alive(), "the reader sees the rows")
    finally:
        done.set()
        reader.join()
    assert seen == {0, MILLION}
