"""Who may come in, and what they may do: as on the data port."""

from __future__ import annotations

from base64 import b64encode

import adbc_driver_flightsql
import pyarrow
import pytest
from adbc_driver_manager import Error, ProgrammingError

from harness.duckdb import READER
from harness.flight import Service
from harness.users import ANN, JOE

HEADER = adbc_driver_flightsql.DatabaseOptions.AUTHORIZATION_HEADER.value


def test_a_wrong_password_is_refused(service: Service) -> None:
    for user, password in ((service.user, "wrong"), ("nobody", "")):
        with pytest.raises(ProgrammingError, match="UNAUTHENTICATED.*Code: 516"):
            with service.cursor(username=user, password=password) as cursor:
                cursor.execute("SELECT 1")


def test_credentials_with_each_call(service: Service) -> None:
    """A client that makes no handshake."""
    basic = b64encode(f"{service.user}:{service.password}".encode()).decode()
    options = {"username": "", "password": "", HEADER: f"Basic {basic}"}
    with service.cursor(**options) as cursor:
        cursor.execute("SELECT 1 AS a")
        assert cursor.fetchall() == [(1,)]
    for header in ("Basic !", "Bearer 0123", "Digest x", "Basic " + b64encode(b"nobody:x").decode()):
        with pytest.raises(ProgrammingError, match="UNAUTHENTICATED"):
            with service.cursor(**{**options, HEADER: header}) as cursor:
                cursor.execute("SELECT 1 AS a")


def test_a_reader_of_duckdb_can_not_write(over_duckdb: Service) -> None:
    over_duckdb.create("t", "a Int64")
    over_duckdb.sql("INSERT INTO t VALUES (1)")
    rows = pyarrow.table({"a": [1]})
    with over_duckdb.cursor(username=READER[0], password=READER[1]) as cursor:
        cursor.execute("SELECT a FROM t")
        assert cursor.fetchall() == [(1,)]
        with pytest.raises(Error):
            cursor.execute("INSERT INTO t VALUES (2)")
        with pytest.raises(Error, match="Code: 164"):
            cursor.executemany("INSERT INTO t VALUES (?)", [(2,)])
        for mode in ("append", "create", "replace"):
            with pytest.raises(Error, match="Code: 164"):
                cursor.adbc_ingest("t", rows, mode=mode)
        with pytest.raises(Error):
            cursor.execute("DROP TABLE t")
        cursor.execute("SELECT count(*) FROM t")
        assert cursor.fetchone() == (1,)


def test_privileges_are_clickhouses_own(over_clickhouse: Service) -> None:
    over_clickhouse.create("t", "a Int64")
    rows = pyarrow.table({"a": [1]})
    with over_clickhouse.cursor(username=JOE.name, password=JOE.password) as cursor:
        with pytest.raises(Error, match="Code: 497"):
            cursor.execute("SELECT * FROM t")
        with pytest.raises(Error, match="Code: 497"):
            cursor.adbc_ingest("t", rows, mode="append")
    with over_clickhouse.cursor(username=ANN.name, password=ANN.password) as cursor:
        cursor.executemany("INSERT INTO t VALUES (?)", [(2,)])
        with pytest.raises(Error, match="Code: 497"):
            cursor.execute("DROP TABLE t")
        cursor.execute("SELECT a FROM t")
        assert cursor.fetchall() == [(2,)]
