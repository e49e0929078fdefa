"""Prepared statements with rows of parameters."""

from __future__ import annotations

import pyarrow
import pytest
from adbc_driver_manager import Error

from harness.flight import Service


def test_rows_of_parameters_are_inserted(service: Service) -> None:
    service.create("t", "a Int32, s Nullable(String), u UInt8", "a")
    with service.cursor() as cursor:
        rows = [(n, None if n % 3 else f"s{n}", n % 200) for n in range(1_000)]
        cursor.executemany("INSERT INTO t VALUES (?, ?, ?)", rows)
        cursor.executemany("INSERT INTO t (u, a) VALUES (?, ?)", [(1, 5_000), (2, 5_001)])
        cursor.execute("INSERT INTO t VALUES (?, ?, ?)", (6_000, "one", 3))
        cursor.execute("SELECT count(*), sum(a), count(s), sum(u) FROM t")
        assert cursor.fetchone() == (1_003, 499_500 + 16_001, 334 + 1, sum(n % 200 for n in range(1_000)) + 6)


def test_a_value_that_does_not_fit_stores_nothing(service: Service) -> None:
    service.create("t", "a Int32, u UInt8", "a")
    with service.cursor() as cursor:
        for values in ([(1, 1), (2, 300)], [(1, 1), (2, -1)], [(1, 1), (2**40, 1)]):
            with pytest.raises(Error, match="Code: 321"):
                cursor.executemany("INSERT INTO t VALUES (?, ?)", values)
        cursor.execute("SELECT count(*) FROM t")
        assert cursor.fetchone() == (0,)


def test_an_insert_with_expressions_runs_for_each_row(service: Service) -> None:
    service.create("t", "a Int32, s String", "a")
    with service.cursor() as cursor:
        cursor.executemany("INSERT INTO t VALUES (? + 1000, upper(?))", [(1, "x'y"), (2, "z")])
        cursor.execute("SELECT a, s FROM t ORDER BY a")
        assert cursor.fetchall() == [(1_001, "X'Y"), (1_002, "Z")]


def test_more_rows_than_are_held_at_once(service: Service) -> None:
    """Past 16 MiB the rows are appended as they come."""
    service.create("t", "a Int64, s String", "a")
    batch = pyarrow.record_batch({"a": range(100_000), "s": ["x" * 80] * 100_000})
    batches = [batch.set_column(0, "a", pyarrow.array(range(at, at + 100_000))) for at in range(0, 500_000, 100_000)]
    with service.cursor() as cursor:
        reader = pyarrow.RecordBatchReader.from_batches(batch.schema, batches)
        cursor.executemany("INSERT INTO t VALUES (?, ?)", reader)
        cursor.execute("SELECT count(*), sum(a), min(length(s)) FROM t")
        assert cursor.fetchone() == (500_000, sum(range(500_000)), 80)


def test_a_statement_is_prepared_once_and_run_often(service: Service) -> None:
    service.create("t", "a Int32", "a")
    with service.cursor() as cursor:
        for n in range(50):
            cursor.execute("INSERT INTO t VALUES (?)", (n,))
        for n in range(50):
            cursor.execute("SELECT count(*) FROM t WHERE a >= ?", (n,))
            assert cursor.fetchone() == (50 - n,)
