"""Queries over HTTP, in the database's own SQL."""

from __future__ import annotations

import io

import pyarrow
import pyarrow.parquet
import pytest

from harness.adbc import READER, create
from harness.endpoint import Endpoint
from harness.eventually import eventually

NUMBERS = "SELECT n, n::text AS t, n / 2.0::double precision AS h FROM generate_series(1::bigint, 3) AS n ORDER BY n"


@pytest.mark.parametrize(
    ("form", "answer"),
    [
        ("CSVWithNames", '"n","t","h"\n1,"1",0.5\n2,"2",1\n3,"3",1.5'),
        ("TSV", "1\t1\t0.5\n2\t2\t1\n3\t3\t1.5"),
        ("JSONCompactEachRow", '["1", "1", 0.5]\n["2", "2", 1]\n["3", "3", 1.5]'),
        ("Values", "(1,'1',0.5),(2,'2',1),(3,'3',1.5)"),
    ],
)
def test_results_have_clickhouses_formats(form: str, answer: str, pg: Endpoint) -> None:
    settings = {"output_format_json_quote_64bit_integers": 1}
    assert pg.sql(f"{NUMBERS} FORMAT {form}", **settings) == answer


def test_results_in_arrow_and_parquet(pg: Endpoint) -> None:
    arrow = pg.request(None, f"{NUMBERS} FORMAT ArrowStream".encode()).body
    assert pyarrow.ipc.open_stream(arrow).read_all().column("n").to_pylist() == [1, 2, 3]
    parquet = pg.request(None, f"{NUMBERS} FORMAT Parquet".encode()).body
    assert pyarrow.parquet.read_table(io.BytesIO(parquet)).column("t").to_pylist() == ["1", "2", "3"]


def test_long_results_stream(pg: Endpoint) -> None:
    reply = pg.request(None, b"SELECT sum(n) FROM (SELECT generate_series(1, 1000000) AS n) AS s")
    assert reply.text == "500000500000\n"
    assert len(pg.sql("SELECT generate_series(1, 1000000) AS n").splitlines()) == 1_000_000


def test_parameters_are_literals(pg: Endpoint, lite: Endpoint) -> None:
    for database in (pg, lite):
        table = create(database, "id bigint, name text")
        assert database.insert(f"INSERT INTO {table} FORMAT CSV", "1,it's\n2,b\n").status == 200
        found = f"SELECT id FROM {table} WHERE name = {{name:String}} OR id = {{id:UInt8}} ORDER BY id"
        assert database.sql(found, param_name="it's", param_id=2) == "1\n2"
        assert database.sql(f"SELECT count(*) FROM {{t:Identifier}}", param_t=table) == "2"
        assert database.request(None, found.encode(), {"param_name": "x", "param_id": "1 OR 1"}).code == 457
        assert database.sql(f"SELECT count(*) FROM default.{table} AS x") == "2"


def test_questions_about_tables(pg: Endpoint, lite: Endpoint) -> None:
    for database in (pg, lite):
        table = create(database, "id bigint NOT NULL, name text")
        described = [line.split("\t")[:2] for line in database.sql(f"DESCRIBE TABLE {table}").splitlines()]
        assert described == [["id", "Int64"], ["name", "Nullable(String)"]]
        assert table in database.sql("SHOW TABLES").splitlines()
        assert database.sql(f"EXISTS TABLE {table}") == "1"
        assert database.sql("EXISTS TABLE nowhere") == "0"
    assert "public" in pg.sql("SHOW DATABASES").splitlines()


def test_changes_say_how_many_rows_they_made(pg: Endpoint) -> None:
    table = create(pg, "id bigint")
    reply = pg.request(None, f"INSERT INTO {table} SELECT generate_series(1, 5)".encode())
    assert (reply.status, reply.summary["written_rows"]) == (200, "5")
    assert pg.sql(f"DELETE FROM {table} WHERE id > 3 RETURNING id") in ("4\n5", "5\n4")
    assert pg.request(None, f"UPDATE {table} SET id = 0".encode()).summary["written_rows"] == "3"


@pytest.mark.parametrize(
    ("statement", "code"),
    [
        ("SELEC 1", 62),
        ("SELECT * FROM nowhere", 60),
        ("SELECT nothing FROM pg_class", 47),
        ("SELECT 1/0", 153),
        ("SELECT nothing()", 46),
        ("SELECT 1; SELECT 2", 62),
        ("SET work_mem = 1", 48),
        ("COPY pg_class TO '/tmp/x'", 497),
        ("SELECT 'x'::integer", 117),
        ("OPTIMIZE TABLE x", 48),
    ],
)
def test_errors_have_clickhouses_codes(statement: str, code: int, pg: Endpoint) -> None:
    reply = pg.request(None, statement.encode())
    assert reply.code == code, reply.text


def test_a_reader_changes_nothing(pg: Endpoint, lite: Endpoint) -> None:
    table = create(pg, "id bigint")
    pg.sql("CREATE SEQUENCE of_a_reader")
    reader = pg.as_user(*READER)
    assert reader.sql(f"SELECT count(*) FROM {table}") == "0"
    for statement in (
        f"INSERT INTO {table} SELECT 1",
        f"WITH x AS (INSERT INTO {table} SELECT 1 RETURNING id) SELECT * FROM x",
        "SELECT nextval('of_a_reader')",
        "CREATE TABLE of_a_reader (id bigint)",
    ):
        assert reader.request(None, statement.encode()).code == 164, statement
    # What one request sets is gone with it.
    assert reader.sql("SELECT set_config('default_transaction_read_only', 'off', false)") == "off"
    assert reader.request(None, b"SELECT nextval('of_a_reader')").code == 164
    assert pg.sql(f"SELECT count(*) FROM {table}") == "0"
    assert lite.as_user(*READER).request(None, b"CREATE TABLE of_a_reader (id INTEGER)").code == 164
    assert pg.request("SELECT 1", method="GET").text == "1\n"
    assert pg.request(f"DELETE FROM {table}", method="GET").code == 164


def test_a_query_out_of_time_is_stopped(pg: Endpoint) -> None:
    reply = pg.request(None, b"SELECT pg_sleep(600)", {"max_execution_time": 1})
    assert reply.code == 159
    running = "SELECT count(*) FROM pg_stat_activity WHERE query LIKE '%pg_sleep(600)%' AND pid <> pg_backend_pid()"
    eventually(lambda: pg.sql(running) == "0", "PostgreSQL has stopped it")
