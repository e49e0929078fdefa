"""Queries: rows as a stream, parameters, errors."""

from __future__ import annotations

import datetime
import decimal

import pyarrow
import pytest
from adbc_driver_manager import Error, NotSupportedError, OperationalError, ProgrammingError

from harness.eventually import eventually
from harness.flight import Service


def numbers(service: Service, count: int) -> str:
    if service.is_duckdb:
        return f"SELECT range AS n FROM range({count})"
    return f"SELECT number AS n FROM numbers({count})"


def test_rows_and_their_types(service: Service) -> None:
    day = "DATE '2026-02-03'" if service.is_duckdb else "toDate32('2026-02-03')"
    exact = "CAST('12.50' AS DECIMAL(9, 2))"
    with service.cursor() as cursor:
        cursor.execute(f"SELECT 1 AS a, 'ü' AS s, NULL AS nothing, 1.5e0 AS f, {day} AS d, {exact} AS e")
        expected = (1, "ü", None, 1.5, datetime.date(2026, 2, 3), decimal.Decimal("12.50"))
        assert cursor.fetchall() == [expected]
        assert [column[0] for column in cursor.description] == ["a", "s", "nothing", "f", "d", "e"]


def test_a_statement_without_rows_runs_once(service: Service) -> None:
    service.create("t", "a Int32")
    with service.cursor() as cursor:
        cursor.execute("INSERT INTO t VALUES (1)")
        assert cursor.fetchall() in ([], [(1,)])
        cursor.execute("SELECT count(*) FROM t")
        assert cursor.fetchone() == (1,)


def test_a_large_result_comes_whole(service: Service) -> None:
    with service.cursor() as cursor:
        cursor.execute(numbers(service, 3_000_000))
        table = cursor.fetch_arrow_table()
    assert table.num_rows == 3_000_000
    assert table["n"].to_pylist()[::500_000] == list(range(0, 3_000_000, 500_000))


def test_a_result_that_is_closed_early_ends_the_query(service: Service) -> None:
    endless = numbers(service, 10**15)
    with service.connect() as connection:
        for _ in range(20):
            with connection.cursor() as cursor:
                cursor.execute(endless)
                reader = cursor.fetch_record_batch()
                assert reader.read_next_batch().num_rows > 0
        if not service.is_duckdb:
            running = "SELECT count() FROM system.processes WHERE query LIKE '%numbers(1000000000000000)%'"
            eventually(lambda: service.sql(running) == "1", "only the question itself runs")
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
            assert cursor.fetchone() == (1,)


def test_an_error_in_the_middle_of_the_rows(service: Service) -> None:
    fails = (
        # One thread's work. Where several are at it, DuckDB may tell of its stopping the others instead: that is not mended.
        "SELECT CASE WHEN i = 150000 THEN error('no more') END FROM (SELECT unnest(range(200000)) AS i)"
        if service.is_duckdb
        else "SELECT throwIf(number = 3000000, 'no more') FROM numbers(5000000)"
    )
    with service.cursor() as cursor:
        with pytest.raises((OSError, pyarrow.ArrowException, OperationalError), match="no more"):
            cursor.execute(fails)
            for _ in cursor.fetch_record_batch():
                pass


def test_parameters_are_values_and_nothing_else(service: Service) -> None:
    service.create("t", "a Int32, s String")
    service.sql("INSERT INTO t SELECT 1, 'it''s' UNION ALL SELECT 2, 'x'")
    with service.cursor() as cursor:
        for value in ("it's", "x' OR '1'='1", "\\", "?", "-- ", "ü😀"):
            cursor.execute("SELECT a FROM t WHERE s = ? AND 'it?' != '' -- ?", (value,))
            assert cursor.fetchall() == ([(1,)] if value == "it's" else [])
        for value in (-7, 2**62, 1.25, -0.5, True, "a\nb", None):
            cursor.execute("SELECT 1 WHERE ? IS NOT NULL AND 5 -? = 5 -?", (value, 1, 1))
            assert cursor.fetchall() == ([] if value is None else [(1,)])


def test_parameters_keep_their_values(service: Service) -> None:
    moment = datetime.datetime(2026, 2, 3, 4, 5, 6, 789000)
    values = (-7, 1.5, "it's", b"\x00\xff", moment, datetime.date(1969, 12, 31))
    with service.cursor() as cursor:
        for value in values:
            as_bytes = not service.is_duckdb and isinstance(value, bytes)
            setting = " SETTINGS output_format_arrow_string_as_string = 0" if as_bytes else ""
            cursor.execute(f"SELECT ? AS v{setting}", (value,))
            (got,) = cursor.fetchone()
            if isinstance(got, datetime.datetime):
                got = got.replace(tzinfo=None)
            assert got == value


def test_texts_that_are_not_utf_8(over_clickhouse: Service) -> None:
    setting = "output_format_arrow_string_as_string"
    with over_clickhouse.cursor() as cursor, pytest.raises((Error, OSError), match=setting):
        cursor.execute("SELECT unhex('FF') AS s")
        cursor.fetchall()


def test_errors_are_the_databases_own(service: Service) -> None:
    with service.cursor() as cursor:
        with pytest.raises(ProgrammingError, match="Code: 60") as missing:
            cursor.execute("SELECT * FROM no_such_table")
        assert "no_such_table" in str(missing.value)
        with pytest.raises(ProgrammingError, match="Code: 62"):
            cursor.execute("SELEC 1")
        with pytest.raises(ProgrammingError, match="1 are bound"):
            cursor.execute("SELECT ? + ?", (1,))


def test_a_long_error_is_cut_in_its_middle(service: Service) -> None:
    with service.cursor() as cursor, pytest.raises(ProgrammingError) as refused:
        cursor.execute(f"SELECT {'x' * 50_000} FROM no_such_table")
    assert len(str(refused.value)) < 4_000


def test_the_schema_of_a_query_without_running_it(service: Service) -> None:
    service.create("t", "a Int32, s Nullable(String)")
    with service.cursor() as cursor:
        schema = cursor.adbc_execute_schema("SELECT a, s FROM t; -- of it")
        assert schema.names == ["a", "s"]
        assert schema.field("a").type == pyarrow.int32()
        parameters = cursor.adbc_prepare("INSERT INTO t (s, a) VALUES (?, ?)")
        assert parameters.names == ["s", "a"]
        assert parameters.field("a").type == pyarrow.int32()


def test_transactions_are_refused_in_words(service: Service) -> None:
    with service.connect() as connection, pytest.raises(NotSupportedError):
        connection.adbc_connection.set_autocommit(False)
