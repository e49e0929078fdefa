"""A database of which nothing is known but what its driver tells: PostgreSQL's driver, by a name that is not its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.adbc import DRIVERS, READER, AdbcGateway, counted, create
from harness.dead_letters import DeadLetters
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gateway import flat
from harness.ordered import Append, native
from harness.postgres import Postgres

DISK = {"wait_for_async_insert": 0}


@pytest.fixture(scope="module")
def other_server(postgres: Postgres, tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdbcGateway]:
    environment = {"WINDROW_ADBC_DRIVER": DRIVERS["postgresql"](), "WINDROW_ADBC_OPTIONS": f"uri={postgres.url}"}
    # One session is to find its tables nowhere else: ids of batches have their own form here.
    postgres.sql("CREATE SCHEMA IF NOT EXISTS other")
    environment["PGOPTIONS"] = "-c search_path=other"
    started = AdbcGateway(tmp_path_factory.mktemp("other"), "elsewhere://nowhere", environment=environment)
    yield started
    assert started.stop() == 0


@pytest.fixture
def other(other_server: AdbcGateway) -> Endpoint:
    return other_server.http


def test_inserts_are_stored_once(other: Endpoint, other_server: AdbcGateway) -> None:
    table = create(other, "id bigint NOT NULL, name text, u uuid, l integer[]")
    row = '{"id": 1, "name": "a", "u": "61f0c404-5cb3-11e7-907b-a6006ad3dba0", "l": [1, null]}'
    for _ in range(2):
        reply = other.insert(f"INSERT INTO {table} FORMAT JSONEachRow", row, insert_deduplication_token="a")
        assert reply.status == 200, reply.text
    assert other.sql(f"SELECT * FROM {table} FORMAT CSV") == '1,"a","61f0c404-5cb3-11e7-907b-a6006ad3dba0","[1,NULL]"'
    assert counted(other, "windrow_batches") == 1
    said = [flat(event).get("message", "") for event in other_server.log_events()]
    assert not any("at least once" in message for message in said), "its driver has transactions"


def test_bad_rows_are_found(other: Endpoint, other_server: AdbcGateway) -> None:
    table = create(other, "id bigint CHECK (id % 10 <> 3)")
    held = {**DISK, "windrow_flush_policy": "fixed", "async_insert_busy_timeout_ms": 300_000}
    for number in range(20):
        assert other.insert(f"INSERT INTO {table} FORMAT CSV", f"{number}\n", **held).status == 200
    other.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    eventually(lambda: counted(other, table) == 18, "the good ones are stored")
    letters = DeadLetters(other_server, "default")
    eventually(lambda: sum(one["table"] == table for one in letters.all()) == 2, "the bad ones are dead letters")


def test_an_append_lands_as_a_whole(other: Endpoint) -> None:
    table = create(other, "n bigint CHECK (n <> 25), more text DEFAULT 'x'")
    for last, status in ((20, 200), (30, 500)):
        append = Append(other, table)
        for number in (1, 0, 2):
            assert append.put(number, native(n=range(number * 10, min(number * 10 + 10, last)))).status == 200
        reply = append.commit(3)
        assert reply.status == status, reply.text
    assert (reply.code, reply.headers["x-windrow-batch"], reply.headers["x-windrow-row"]) == (469, "2", "5")
    assert other.sql(f"SELECT count(*), count(more) FROM {table}") == "20\t20"


def test_a_type_that_is_not_arrows_takes_no_values(other: Endpoint) -> None:
    table = create(other, "id bigint, address inet")
    reply = other.insert(f"INSERT INTO {table} FORMAT JSONEachRow", '{"id": 1, "address": "10.0.0.1"}')
    assert (reply.code, "address" in reply.text) == (50, True), reply.text
    assert other.insert(f"INSERT INTO {table} (id) FORMAT CSV", "1\n").status == 200


def test_a_reader_is_judged_by_its_words(other: Endpoint) -> None:
    table = create(other, "id bigint")
    reader = other.as_user(*READER)
    assert reader.sql(f"SELECT count(*) FROM {table}") == "0"
    for statement in (f"WITH x AS (INSERT INTO {table} SELECT 1 RETURNING id) SELECT * FROM x", r"SELECT '\\'"):
        assert reader.request(None, statement.encode()).code == 164, statement
    assert other.request(None, b"SELECT {x:String}", {"param_x": "a\\\\b"}).code == 457
    assert counted(other, table) == 0
