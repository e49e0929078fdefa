"""Inserts through ADBC: every format, every ack level, what is stored once, and what is refused with which words."""

from __future__ import annotations

import pytest
from clickhouse_driver import Client

from harness.adbc import READER, AdbcGateway, counted, create
from harness.dead_letters import DeadLetters
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.every_format import FORMATS, expect_the_rows_of, source_of_everything
from harness.postgres import Postgres

# Columns in ClickHouse, in PostgreSQL, and expressions of a number in ClickHouse's SQL.
COLUMNS = [
    ("n", "Int64", "bigint NOT NULL", "toInt64(number)"),
    ("i", "Nullable(Int32)", "integer", "if(number % 7 = 3, NULL, toInt32(number) * -7)"),
    ("f", "Nullable(Float64)", "double precision", "if(number % 5 = 4, NULL, number / 7)"),
    ("d", "Nullable(Decimal(18, 4))", "numeric(18, 4)", "toDecimal64(number, 4) / 8"),
    ("b", "Nullable(Bool)", "boolean", "number % 2 = 0"),
    ("s", "Nullable(String)", "text", "if(number % 11 = 5, NULL, concat('ä\\'\"\\\\\\t,;', toString(number)))"),
    ("day", "Nullable(Date32)", "date", "toDate32('1955-03-01') + number"),
    ("moment", "Nullable(DateTime64(6))", "timestamp", "toDateTime64('2020-01-01 00:00:00.123456', 6) + 3601 * number"),
    ("u", "Nullable(UUID)", "uuid", "toUUID(concat('61f0c404-5cb3-11e7-907b-a6006ad3d', toString(100 + number)))"),
    ("l", "Array(Nullable(Int32))", "integer[]", "[toInt32(number), NULL, -1]"),
]


@pytest.fixture(scope="session")
def source(oracle: Endpoint) -> Endpoint:
    return source_of_everything(oracle, COLUMNS)


@pytest.mark.parametrize("form", FORMATS)
def test_rows_of_every_format_are_those_that_clickhouse_has(form: str, pg: Endpoint, source: Endpoint) -> None:
    table = create(pg, ", ".join(f"{name} {kind}" for name, _, kind, _ in COLUMNS))
    expect_the_rows_of(source, form, pg, table)


@pytest.mark.parametrize("ack", ["stored", "disk", "memory"])
def test_every_ack_level_ends_in_the_table(ack: str, pg: Endpoint) -> None:
    table = create(pg, "id bigint")
    settings = {"wait_for_async_insert": int(ack == "stored"), **({"windrow_ack": "memory"} if ack == "memory" else {})}
    for number in range(20):
        assert pg.insert(f"INSERT INTO {table} FORMAT CSV", f"{number}\n", **settings).status == 200
    eventually(lambda: counted(pg, table) == 20, "all rows are stored")
    assert pg.sql(f"SELECT sum(id) FROM {table}") == str(sum(range(20)))


def test_a_batch_has_its_id_beside_its_rows(pg: Endpoint) -> None:
    table = create(pg, "id bigint")
    assert pg.insert(f"INSERT INTO {table} FORMAT CSV", "0\n").status == 200
    before = counted(pg, "windrow_batches")
    assert pg.insert(f"INSERT INTO {table} FORMAT CSV", "1\n2\n").status == 200
    assert counted(pg, "windrow_batches") > before


def test_a_repeated_token_stores_once(pg: Endpoint) -> None:
    table = create(pg, "id bigint")
    for _ in range(3):
        reply = pg.insert(f"INSERT INTO {table} FORMAT CSV", "1\n", insert_deduplication_token="a")
        assert reply.status == 200
    assert pg.insert(f"INSERT INTO {table} FORMAT CSV", "1\n", insert_deduplication_token="b").status == 200
    assert counted(pg, table) == 2


def test_columns_that_are_left_out_take_their_defaults(pg: Endpoint) -> None:
    table = create(
        pg, "id bigint GENERATED ALWAYS AS IDENTITY, a text DEFAULT 'x', b integer, c integer GENERATED ALWAYS AS (b * 2) STORED"
    )
    assert pg.insert(f"INSERT INTO {table} (b) FORMAT CSV", "1\n2\n").status == 200
    assert pg.insert(f"INSERT INTO {table} FORMAT JSONEachRow", '{"a": "y", "b": null}').status == 200
    rows = pg.sql(f"SELECT id, a, b, c FROM {table} ORDER BY id FORMAT CSV")
    assert rows.splitlines() == ['1,"x",1,2', '2,"x",2,4', '3,"y",\\N,\\N']


def test_names_are_quoted(pg: Endpoint, lite: Endpoint) -> None:
    for database in (pg, lite):
        database.sql('CREATE TABLE "T ""1" ("Some Name" integer, "select" text)')
        reply = database.insert('INSERT INTO `T "1` (`Some Name`, `select`) FORMAT CSV', "1,a\n")
        assert reply.status == 200, reply.text
        assert database.sql('SELECT * FROM "T ""1" FORMAT CSV') == '1,"a"'


def test_tables_of_other_schemas_are_databases(pg: Endpoint) -> None:
    pg.sql("CREATE SCHEMA elsewhere")
    pg.sql("CREATE TABLE elsewhere.t (id bigint, more jsonb)")
    assert pg.insert("INSERT INTO elsewhere.t (id) FORMAT CSV", "1\n").status == 200
    assert pg.using("elsewhere").insert("INSERT INTO t FORMAT JSONEachRow", '{"id": 2, "more": "{}"}').status == 200
    assert pg.using("elsewhere").sql("SELECT id FROM t ORDER BY id FORMAT CSV") == "1\n2"


@pytest.mark.parametrize(
    ("columns", "row", "code", "words"),
    [
        ("id bigint PRIMARY KEY", '{"id": 1}', 469, "duplicate key value"),
        ("id bigint CHECK (id < 0)", '{"id": 1}', 469, "violates check constraint"),
        ("id bigint NOT NULL", '{"id": null}', 349, "id"),
        ("id bigint, v varchar(3)", '{"id": 1, "v": "long"}', 117, "value too long"),
        ("id bigint, v inet", '{"id": 1, "v": "nonsense"}', 117, "invalid input syntax for type inet"),
        ("id bigint, v jsonb", '{"id": 1, "v": "{"}', 117, "Column `v`"),
        ("id bigint, v text", '{"id": 1, "v": "\\u0000"}', 117, "invalid byte sequence"),
        ("id smallint", '{"id": 40000}', 27, "row 1"),
    ],
)
def test_a_bad_row_is_its_senders_alone(columns: str, row: str, code: int, words: str, pg: Endpoint) -> None:
    table = create(pg, columns)
    if "PRIMARY" in columns:
        pg.sql(f"INSERT INTO {table} SELECT 1")
    before = counted(pg, table)
    reply = pg.insert(f"INSERT INTO {table} FORMAT JSONEachRow", row)
    assert (reply.code, words in reply.text) == (code, True), reply.text
    assert counted(pg, table) == before


# What a trigger does with the one row that never fits, and whether that is certain at once.
NEVER_FITS = {
    "raises an error": ("RAISE EXCEPTION 'database is locked, server closed the connection'", "IMMEDIATE", True),
    "raises one of its own at the commit": ("RAISE EXCEPTION 'no' USING ERRCODE = 'MY001'", "DEFERRED", True),
    "takes longer than it may": (
        "RAISE EXCEPTION 'canceling statement due to statement timeout' USING ERRCODE = '57014'", "IMMEDIATE", False
    ),
    "ends its connection": ("PERFORM pg_terminate_backend(pg_backend_pid())", "IMMEDIATE", False),
}


@pytest.mark.parametrize(("does", "when", "is_certain"), NEVER_FITS.values(), ids=NEVER_FITS.keys())
def test_a_row_that_never_fits_holds_up_nobody(
    pg: Endpoint, pg_server: AdbcGateway, postgres: Postgres, does: str, when: str, is_certain: bool
) -> None:
    table = create(pg, "id bigint")
    postgres.sql(
        f"CREATE FUNCTION of_{table}() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN IF NEW.id = 13 THEN {does}; END IF; RETURN NEW; END $$"
    )
    postgres.sql(
        f"CREATE CONSTRAINT TRIGGER of_row AFTER INSERT ON {table} DEFERRABLE INITIALLY {when} "
        f"FOR EACH ROW EXECUTE FUNCTION of_{table}()"
    )
    into = f"INSERT INTO {table} FORMAT CSV"
    for number in (1, 13, 2):
        assert pg.insert(into, f"{number}\n", wait_for_async_insert=0).status == 200
    for number in (3, 4):
        reply = pg.insert(into, f"{number}\n")
        assert reply.status == 200, reply.text
    stored = lambda: pg.sql(f"SELECT id FROM {table} ORDER BY id").split()
    eventually(lambda: stored() == ["1", "2", "3", "4"], "all others are stored, once")
    letters = lambda: [one for one in DeadLetters(pg_server, "default").all() if one["table"] == table]
    if is_certain:
        eventually(lambda: len(letters()) == 1, "it is a dead letter")
        assert pg.insert(into, "13\n").status != 200, "who waits is told"
        return
    # It may pass, and does when the table is mended.
    postgres.sql(f"DROP TRIGGER of_row ON {table}")
    eventually(lambda: stored() == ["1", "2", "3", "4", "13"] or len(letters()) == 1, "it is stored, or given up")


def test_good_inserts_of_a_batch_are_stored_and_bad_ones_become_dead_letters(pg: Endpoint, pg_server: AdbcGateway) -> None:
    table = create(pg, "id bigint CHECK (id % 10 <> 3), more jsonb")
    held = {"wait_for_async_insert": 0, "windrow_flush_policy": "fixed", "async_insert_busy_timeout_ms": 300_000}
    for number in range(30):
        row = f'{{"id": {number}, "more": "{{}}"}}'
        reply = pg.insert(f"INSERT INTO {table} FORMAT JSONEachRow", row, **held)
        assert reply.status == 200, reply.text
    pg.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    eventually(lambda: counted(pg, table) == 27, "the good ones are stored")
    letters = eventually(
        lambda: (found := [one for one in DeadLetters(pg_server, "default").all() if one["table"] == table]) and len(found) == 3 and found,
        "the bad ones are dead letters",
    )
    assert all("violates check constraint" in letter["error"] for letter in letters)


def test_a_reader_does_not_insert(pg: Endpoint) -> None:
    table = create(pg, "id bigint")
    assert pg.as_user(*READER).insert(f"INSERT INTO {table} FORMAT CSV", "1\n").code == 164
    assert pg.as_user("reader", "wrong").insert(f"INSERT INTO {table} FORMAT CSV", "1\n").code == 516
    assert pg.insert("INSERT INTO windrow_batches FORMAT CSV", "1\n").code == 497
    assert pg.insert("INSERT INTO nowhere FORMAT CSV", "1\n").code == 60


def test_a_table_that_is_altered_underneath_takes_what_fits_it_now(pg: Endpoint, postgres: Postgres) -> None:
    table = create(pg, "id bigint, v bigint")
    insert = f"INSERT INTO {table} (id, v) FORMAT CSV"
    assert pg.insert(insert, "1,1\n").status == 200
    # Of the same width: in binary form PostgreSQL itself would take one for the other.
    postgres.sql(f"ALTER TABLE {table} ALTER v TYPE double precision")
    assert pg.insert(insert, "2,2\n").status == 200
    postgres.sql(f"ALTER TABLE {table} ALTER v TYPE text")
    assert pg.insert(insert, "3,3\n").status in (200, 400)
    eventually(lambda: pg.insert(insert, "4,x\n").status == 200, "the gateway knows the new type")
    rows = dict(line.split(",") for line in pg.sql(f"SELECT id, v FROM {table} FORMAT CSV").splitlines())
    assert {key: value.strip('"') for key, value in rows.items() if key != "3"} == {"1": "1", "2": "2", "4": "x"}


def test_a_table_that_is_dropped_and_made_again_takes_rows(pg: Endpoint, postgres: Postgres) -> None:
    table = create(pg, "id bigint")
    assert pg.insert(f"INSERT INTO {table} FORMAT CSV", "1\n").status == 200
    postgres.sql(f"DROP TABLE {table}")
    assert pg.insert(f"INSERT INTO {table} FORMAT CSV", "1\n").code == 60
    postgres.sql(f"CREATE TABLE {table} (id bigint)")
    eventually(lambda: pg.insert(f"INSERT INTO {table} FORMAT CSV", "2\n").status == 200, "it is seen again")
    assert pg.sql(f"SELECT * FROM {table}") == "2"


def test_ids_whose_table_was_dropped_are_kept_again(pg: Endpoint, postgres: Postgres) -> None:
    table = create(pg, "id bigint")
    assert pg.insert(f"INSERT INTO {table} FORMAT CSV", "1\n").status == 200
    postgres.sql("DROP TABLE windrow_batches")
    assert pg.insert(f"INSERT INTO {table} FORMAT CSV", "2\n").status == 200
    assert counted(pg, table) == 2
    assert counted(pg, "windrow_batches") == 1


def test_small_inserts_over_the_native_protocol(pg: Endpoint, pg_server: AdbcGateway) -> None:
    table = create(pg, "id bigint, name text")
    client = Client("127.0.0.1", port=pg_server.native_port, user="default", password="")
    client.execute(f"INSERT INTO {table} (id, name) VALUES", [(1, "a"), (2, None)])
    assert client.execute(f"SELECT id, name FROM {table} ORDER BY id") == [(1, "a"), (2, None)]
