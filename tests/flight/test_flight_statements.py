"""Statements over Flight SQL: those that are not taken, and what the gateway learns of those that are."""

from __future__ import annotations

import pyarrow
import pytest
from adbc_driver_manager import Error

from harness.flight import Service

NOT_TAKEN = [
    ("SET GLOBAL threads = 1", 497),
    ("EXPLAIN ANALYZE SET GLOBAL threads = 1", 497),
    ("SET threads = 1", 48),
    ("PRAGMA threads = 1", 48),
    ("BEGIN", 48),
    ("DELETE FROM windrow.batches", 497),
    ("DROP SCHEMA windrow CASCADE", 497),
    ("ATTACH ':memory:' AS other", 497),
    ("SELECT * FROM force_checkpoint()", 497),
    ("SELECT 1; DROP TABLE t", 62),
]


@pytest.mark.parametrize(("query", "code"), NOT_TAKEN)
def test_what_is_not_taken_over_http_is_not_taken_here(over_duckdb: Service, query: str, code: int) -> None:
    over_duckdb.create("t", "a Int32", "a")
    with over_duckdb.cursor() as cursor:
        with pytest.raises(Error, match=f"Code: {code}"):
            cursor.execute(query)
            cursor.fetchall()
        cursor.execute("SELECT count(*) FROM t")
        assert cursor.fetchone() == (0,)


def test_statements_with_parameters_stay_in_their_transaction(over_duckdb: Service) -> None:
    over_duckdb.create("t", "a Int32", "a")
    with over_duckdb.cursor() as cursor:
        second = ["INSERT INTO t SELECT ?; COMMIT", "INSERT INTO t SELECT ?; SELECT 1"]
        for query in (*second, "DELETE FROM windrow.batches WHERE 1 = ?"):
            with pytest.raises(Error, match="Code: (62|497)"):
                cursor.executemany(query, [(1,), (2,)])
        cursor.execute("SELECT count(*) FROM t")
        assert cursor.fetchone() == (0,)


def test_nothing_is_ingested_into_what_is_windrows(over_duckdb: Service) -> None:
    rows = pyarrow.table({"id": ["4c3c2a6e-5b1f-4b7c-8a51-0d6b0d3a6f11"]})
    with over_duckdb.cursor() as cursor:
        for table, mode in (("batches", "append"), ("batches", "replace"), ("fresh", "create")):
            with pytest.raises(Error, match="Code: 497"):
                cursor.adbc_ingest(table, rows, mode=mode, db_schema_name="windrow")
        with pytest.raises(Error, match="Code: 497"):
            cursor.executemany("INSERT INTO windrow.batches (id) VALUES (?)", [(rows["id"][0].as_py(),)])


def test_inserts_over_http_see_what_was_changed_here(over_duckdb: Service) -> None:
    over_duckdb.create("t", "a Int32", "a")
    http = over_duckdb.http
    http.insert("INSERT INTO t FORMAT JSONEachRow", b'{"a": 1}')
    with over_duckdb.cursor() as cursor:
        cursor.execute("ALTER TABLE t ADD COLUMN b VARCHAR")
        http.insert("INSERT INTO t FORMAT JSONEachRow", b'{"a": 2, "b": "x"}')
        assert http.sql("SELECT b FROM t WHERE a = 2") == "x"
        cursor.execute("DROP TABLE t")
        cursor.execute("CREATE TABLE t (c DOUBLE)")
    http.insert("INSERT INTO t FORMAT JSONEachRow", b'{"c": 0.5}')
    assert http.sql("SELECT * FROM t") == "0.5"
