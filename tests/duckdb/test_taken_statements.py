"""What is run in DuckDB on somebody's behalf: nothing of it reaches what is Windrow's, or everyone's."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.duckdb import READER
from harness.endpoint import Endpoint
from harness.ordered import Append, native

OF_THE_SERVER = [
    "SET GLOBAL memory_limit = '1GB'",
    "RESET GLOBAL threads",
    "EXPLAIN ANALYZE SET GLOBAL threads = 1",
    "ATTACH ':memory:' AS other",
    "DETACH other",
    "LOAD json",
    "INSTALL httpfs",
    "UPDATE EXTENSIONS",
    "FORCE CHECKPOINT",
    "EXPORT DATABASE 'x'",
    "IMPORT DATABASE 'x'",
    "CREATE SECRET s (TYPE http)",
    "COPY (SELECT 1) TO 'x.csv'",
    "COPY t FROM 'x.csv'",
    "SELECT * FROM force_checkpoint()",
    "SELECT * FROM query('SELECT * FROM enable_logging()')",
]
OF_THE_CONNECTION = ["SET threads = 1", "RESET threads", "PRAGMA threads = 1", "CALL pragma_version()", "USE windrow",
                     "COMMIT"]  # fmt: skip
WINDROWS = [
    "INSERT INTO windrow.batches (id) SELECT uuid()",
    "DELETE FROM windrow.batches",
    'UPDATE "Windrow" . "batches" SET stored_at = now()',
    "WITH x AS (SELECT 1) DELETE FROM windrow.appends",
    "TRUNCATE memory.windrow.batches",
    "DROP SCHEMA windrow CASCADE",
    "DROP VIEW windrow.system_one",
    "CREATE TABLE mine (id UUID REFERENCES windrow.batches (id))",
    "CREATE OR REPLACE MACRO windrow_functions.version() AS 'x'",
]
ESCAPED = [
    "DELETE FROM U&\"windrow\" UESCAPE '!' .batches",
    "DROP SCHEMA u&\"windrow\" CASCADE",
    "SELECT * FROM U&\"force_checkpoint\" UESCAPE '!' ()",
    "SELECT U&'\\'; DROP TABLE windrow.batches --' UESCAPE '!'",
]
TAKEN = ["CHECKPOINT", "ANALYZE", "VACUUM", "CREATE TABLE seen AS SELECT * FROM system.tables", "DROP TABLE seen"]


@pytest.mark.parametrize("query", OF_THE_SERVER)
def test_nobody_changes_the_server(duck: Endpoint, query: str) -> None:
    reply = duck.request(None, query.encode())
    assert (reply.status, reply.code) == (500, 497), reply.text


def test_settings_are_the_configurations(duck: Endpoint) -> None:
    assert "duckdb.memory_limit_bytes" in duck.request(None, b"SET GLOBAL memory_limit = '1GB'").text
    for query in OF_THE_CONNECTION:
        reply = duck.request(None, query.encode())
        assert (reply.status, reply.code) == (501, 48), reply.text


@pytest.mark.parametrize("query", WINDROWS)
def test_what_windrow_keeps_is_changed_by_nobody_else(duck: Endpoint, query: str) -> None:
    duck.sql("CREATE TABLE IF NOT EXISTS t (a INT)")
    duck.insert("INSERT INTO t FORMAT TSV", b"1\n")
    before = duck.sql("SELECT count(*), max(stored_at), (SELECT count(*) FROM windrow.appends) FROM windrow.batches")
    for asked in (duck, duck.using("main")):
        reply = asked.request(None, query.encode())
        assert (reply.status, reply.code) == (500, 497), reply.text
    there = duck.using("windrow").request(None, b"DELETE FROM batches")
    assert (there.status, there.code) == (500, 497), there.text
    assert duck.sql(
        "SELECT count(*), max(stored_at), (SELECT count(*) FROM windrow.appends) FROM windrow.batches"
    ) == before


@pytest.mark.parametrize("query", ESCAPED)
def test_unicode_escapes_hide_nothing(duck: Endpoint, query: str) -> None:
    duck.sql("CREATE TABLE IF NOT EXISTS t (a INT)")
    for asked in (duck, duck.using("windrow")):
        reply = asked.request(None, query.encode())
        assert (reply.status, reply.code) == (400, 62), reply.text
    assert duck.sql('SELECT u & "a" FROM (SELECT 7 AS u, 5 AS a)') == "5"


def test_nothing_is_inserted_or_appended_there(duck: Endpoint) -> None:
    for table in ("windrow.batches", "WINDROW.appends", "windrow_functions.x"):
        insert = duck.request(f"INSERT INTO {table} FORMAT TSV", b"x\n")
        assert (insert.status, insert.code) == (500, 497), insert.text
        append = Append(duck, "").put(0, native(id=[1]), table=table)
        assert (append.status, append.code) == (500, 497), append.text
    # Without the schema it is nobody's.
    assert duck.request(None, b"DELETE FROM batches").code == 60
    duck.sql("CREATE TABLE batches (a INT)")
    duck.sql("INSERT INTO batches SELECT 1")
    duck.sql("DROP TABLE batches")


def test_what_is_harmless_is_taken(duck: Endpoint) -> None:
    for query in TAKEN:
        duck.sql(query)


def test_a_reader_advances_no_sequence(duck: Endpoint) -> None:
    duck.sql("CREATE SEQUENCE counter")
    reader = duck.as_user(*READER)
    for end in ("", " FORMAT Parquet"):
        for reply in (
            duck.request(f"SELECT nextval('counter'){end}", method="GET"),
            duck.request(None, f"SELECT nextval('counter'){end}".encode(), {"readonly": 1}),
            reader.request(None, f"SELECT nextval('counter'){end}".encode()),
        ):
            assert (reply.status, reply.code) == (500, 164), reply.text
    assert duck.sql("SELECT nextval('counter')") == "1"
    assert reader.request("SELECT 42 AS a FORMAT Parquet", method="GET").status == 200


@pytest.mark.parametrize("query", ["SELECT E'a'\n'\\''; DROP TABLE kept --'", "SELECT 1e$$; DROP TABLE kept; --$$"])
def test_a_second_statement_hides_nowhere(duck: Endpoint, query: str) -> None:
    """DuckDB alone runs the second."""
    duck.sql("CREATE TABLE IF NOT EXISTS kept (a INT)")
    for asked, codes in ((duck, (62,)), (duck.as_user(*READER), (62, 164))):
        reply = asked.request(None, query.encode())
        assert reply.code in codes, reply.text
    assert duck.sql("SELECT count(*) FROM kept") == "0"


def test_inserts_know_the_settings_that_queries_know(duck: Endpoint) -> None:
    duck.sql("CREATE TABLE set_here (a INT)")
    for reply in (
        duck.request("INSERT INTO set_here FORMAT TSV", b"1\n", {"zork": 1}),
        duck.request("INSERT INTO set_here SETTINGS zork = 1 FORMAT TSV", b"1\n"),
        duck.request("INSERT INTO set_here FORMAT TSV", b"1\n", {"zork": 1, "async_insert": 0}),
    ):
        assert (reply.status, reply.code) == (404, 115), reply.text
    known = {"max_threads": 4, "input_format_parallel_parsing": 0, "date_time_input_format": "basic", "log_comment": "x"}
    assert duck.request("INSERT INTO set_here FORMAT TSV", b"1\n", known).status == 200
    assert duck.sql("SELECT count(*) FROM set_here") == "1"


def test_duckdb_spills_in_the_data_directory(duck: Endpoint, duck_server: DuckDbGateway) -> None:
    query = "SELECT value FROM duckdb_settings() WHERE name = '{}'"
    folder = Path(duck.sql(query.format("temp_directory")))
    assert folder.parent.name == "tmp" and folder.parent.is_dir()
    assert duck.sql(query.format("max_temp_directory_size")) == "16.0 GiB"
