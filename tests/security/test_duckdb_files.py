"""No SQL reaches a file through DuckDB: not another's result, not what is spilled, not the database itself."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from adbc_driver_manager import Error

from harness.duckdb import READER, DuckDbGateway
from harness.endpoint import Endpoint
from harness.flight import Service

SECRET = "SELECT 'the secret of ' || range AS s FROM range(200000) ORDER BY range FORMAT Parquet"
# `{file}` is one of FILES.
READS = [
    "SELECT * FROM read_blob('{file}')",
    "SELECT * FROM READ_TEXT /**/ ('{file}')",
    "FROM \"glob\"('{file}')",
    "FROM system.\"main\".read_csv(['{file}'])",
    "FROM read_csv_auto('{file}', header = true)",
    "FROM sniff_csv('{file}')",
    "FROM read_json('{file}')",
    "FROM read_ndjson_objects('{file}')",
    "FROM parquet_scan('{file}')",
    "FROM parquet_metadata('{file}')",
    "FROM read_duckdb('{file}', table_name = 't')",
    "WITH a AS (FROM read_blob('{file}')) FROM a",
    "SELECT (SELECT size FROM read_blob('{file}'))",
    "DESCRIBE SELECT * FROM read_blob('{file}')",
    "SUMMARIZE SELECT * FROM read_blob('{file}')",
    "EXPLAIN ANALYZE SELECT * FROM read_blob('{file}')",
    "PIVOT read_csv('{file}') ON s",
]
# Names that are not spelt out, which DuckDB's lexical rules have.
ESCAPED = [
    "FROM U&\"read_blob\" UESCAPE '!' ('{file}')",
    "FROM u&\"!0072ead_blob\" uescape '!' ('{file}')",
    "EXPLAIN ANALYZE FROM system.main.U&\"read_text\"('{file}')",
    "FROM query_table(U&'{file}')",
]
WRITES = [
    "CREATE VIEW v AS SELECT * FROM read_text('{file}')",
    "CREATE MACRO m(path) AS TABLE SELECT * FROM read_text(path)",
    "CREATE TABLE t AS SELECT * FROM read_blob('{file}')",
    "COPY (SELECT 1) TO '{file}'",
    "COPY (SELECT 1) TO '{file}' (FORMAT parquet)",
]
# Here a name of a file stands in the place of a table's.
NAMED = [
    "FROM '{file}'",
    'FROM "{file}"',
    "FROM query_table('{file}')",
    "SUMMARIZE '{file}'",
    "FROM histogram('{file}', s)",
    "TABLE '{file}'",
    "FROM named('{file}')",
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDbGateway]:
    folder = tmp_path_factory.mktemp("files")
    started = DuckDbGateway(folder, place=f"duckdb://{folder}/kept.db")
    started.http.sql("CREATE MACRO named(path) AS TABLE FROM query_table(path)")
    # These are kept for who goes on reading them.
    assert started.http.request(SECRET, method="HEAD").status == 200
    yield started
    code = started.stop()
    assert code == 0, f"the gateway ended with {code}:\n{started.child.log()[-3000:]}"


@pytest.fixture
def owner(server: DuckDbGateway) -> Endpoint:
    return server.http


@pytest.fixture
def reader(server: DuckDbGateway) -> Endpoint:
    return server.http.as_user(*READER)


@pytest.fixture(scope="module")
def files(server: DuckDbGateway) -> list[Path]:
    temporary = server.data_dir / "tmp"
    return [temporary / "*", temporary / "*.parquet", temporary / "duckdb" / "*", temporary / "duckdb" / "x.csv",
            server.folder / "kept.db", server.folder / "kept.db.wal", Path("/etc/passwd")]  # fmt: skip


def service(server: DuckDbGateway, user: str, password: str) -> Service:
    return Service(server.flight, user, password, "", server.http, is_duckdb=True)


def is_locked(database: Path) -> bool:
    """What DuckDB holds it by is gone when this process closes the file after reading it."""
    opening = subprocess.run(
        [sys.executable, "-c", "import duckdb, sys; duckdb.connect(sys.argv[1])", str(database)],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    return "Could not set lock" in opening.stderr


def test_a_result_has_no_name(server: DuckDbGateway, owner: Endpoint) -> None:
    """Not while it is kept, nor while it is sent."""

    def names() -> list[str]:
        return [path.name for path in (server.data_dir / "tmp").rglob("*") if path.is_file()]

    assert names() == []
    head = owner.request(SECRET, method="HEAD")
    part = owner.request(SECRET, headers={"Range": "bytes=-4"}, method="GET")
    assert (part.status, part.body) == (206, b"PAR1")
    assert part.headers["content-range"].endswith(f"/{head.headers['content-length']}")
    assert names() == []
    whole = owner.request(SECRET, settings={"wait_end_of_query": 1}, method="GET")
    assert whole.status == 200 and names() == []


@pytest.mark.parametrize("statement", READS)
def test_no_function_reads_a_file(
    server: DuckDbGateway, owner: Endpoint, reader: Endpoint, files: list[Path], statement: str
) -> None:
    for file in files:
        sql = statement.format(file=file)
        for reply in (
            owner.request(None, sql.encode()),
            owner.request(None, f"{sql} FORMAT Parquet".encode()),
            reader.request(sql, method="GET"),
        ):
            assert (reply.status, reply.code) in ((500, 497), (500, 164)), (sql, reply.text)
            assert "secret" not in reply.text
    assert is_locked(server.folder / "kept.db")


@pytest.mark.parametrize("statement", ESCAPED)
def test_no_escaped_name_reads_a_file(
    server: DuckDbGateway, owner: Endpoint, reader: Endpoint, files: list[Path], statement: str
) -> None:
    for file in files:
        reply = owner.request(None, statement.format(file=file).encode())
        assert (reply.status, reply.code) == (400, 62) and "U& before a quote" in reply.text, (statement, reply.text)
        assert reader.request(None, statement.format(file=file).encode()).code == 164
    assert is_locked(server.folder / "kept.db")


@pytest.mark.parametrize("statement", WRITES)
def test_nothing_that_reads_a_file_is_made(owner: Endpoint, files: list[Path], statement: str) -> None:
    for file in files:
        reply = owner.request(None, statement.format(file=file).encode())
        assert (reply.status, reply.code) == (500, 497), reply.text
    assert "the machine's files" in reply.text


@pytest.mark.parametrize("statement", NAMED)
def test_no_file_is_a_table(
    server: DuckDbGateway, owner: Endpoint, reader: Endpoint, files: list[Path], statement: str
) -> None:
    for file in files:
        for asked in (owner, reader):
            reply = asked.request(statement.format(file=file), method="GET")
            assert reply.status != 200 and "secret" not in reply.text, (statement, file, reply.text)
    assert is_locked(server.folder / "kept.db")


def test_nor_over_flight_sql(server: DuckDbGateway, files: list[Path]) -> None:
    for user, password in (("default", ""), READER):
        with service(server, user, password).cursor() as cursor:
            for file in files:
                for statement in (*READS, *NAMED, *ESCAPED):
                    with pytest.raises(Error):
                        cursor.execute(statement.format(file=file))
                        cursor.fetchall()
                with pytest.raises(Error, match="497|164"):
                    cursor.adbc_prepare(f"SELECT * FROM read_blob('{file}') WHERE size > ?")
                    cursor.execute(f"SELECT * FROM read_blob('{file}') WHERE size > ?", (0,))
                for path in ("?", "$1"):
                    with pytest.raises(Error):
                        cursor.execute(f"SELECT * FROM query_table({path})", (str(file),))
                        cursor.fetchall()
            cursor.execute("SELECT 42")
            assert cursor.fetchone() == (42,)
    assert is_locked(server.folder / "kept.db")


def test_tables_may_be_called_like_such_functions(owner: Endpoint) -> None:
    owner.sql("CREATE TABLE main.read_csv (a INT)")
    owner.sql("INSERT INTO kept.main.read_csv (a) SELECT 1")
    assert owner.insert("INSERT INTO read_csv (a) FORMAT CSV", b"2\n").status == 200
    assert owner.sql("SELECT sum(a) FROM main.read_csv") == "3"


def test_a_database_is_not_called_like_a_file_of_rows(tmp_path: Path) -> None:
    with pytest.raises(AssertionError, match="Name it .db or .duckdb"):
        DuckDbGateway(tmp_path, place=f"duckdb://{tmp_path}/kept.csv")
