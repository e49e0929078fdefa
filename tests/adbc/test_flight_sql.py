"""Another gateway's Flight SQL port as the database. It has no transactions, so rows are stored at least once, which is said."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.adbc import AdbcGateway, counted, create
from harness.dead_letters import DeadLetters
from harness.duckdb import DuckDbGateway
from harness.eventually import eventually
from harness.gateway import Gateway, flat
from harness.ordered import Append, native
from harness.users import TESTER

AT_LEAST_ONCE = "stored at least once here, not exactly once"


def url(gateway: Gateway, user: str, password: str) -> str:
    return f"flightsql://{user}:{password}@{gateway.flight.removeprefix('grpc://')}"


def warnings(gateway: Gateway) -> list[str]:
    found = [flat(event) for event in gateway.log_events()]
    return [event["message"] for event in found if event.get("level") == "WARN"]


@pytest.fixture(scope="module")
def before_duckdb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AdbcGateway]:
    folder = tmp_path_factory.mktemp("flight")
    duckdb = DuckDbGateway(folder / "duckdb")
    gateway = AdbcGateway(folder / "gateway", url(duckdb, "default", ""))
    yield gateway
    assert gateway.stop() == 0
    assert duckdb.stop() == 0


def test_inserts_are_stored(before_duckdb: AdbcGateway) -> None:
    http = before_duckdb.http
    table = create(http, "id BIGINT NOT NULL, name VARCHAR, d DECIMAL(18, 3), u UUID, l INTEGER[], t TIMESTAMP")
    row = (
        '{"id": 1, "name": "a", "d": 1.5, "u": "61f0c404-5cb3-11e7-907b-a6006ad3dba0", "l": [1, null], '
        '"t": "2020-01-02 03:04:05.123456"}'
    )
    for _ in range(2):
        reply = http.insert(f"INSERT INTO {table} FORMAT JSONEachRow", row, insert_deduplication_token="a")
        assert reply.status == 200, reply.text
    assert http.sql(f"SELECT * FROM {table} FORMAT CSV") == (
        '1,"a",1.5,"61f0c404-5cb3-11e7-907b-a6006ad3dba0","[1,NULL]","2020-01-02 03:04:05.123456"'
    )
    assert any(AT_LEAST_ONCE in message for message in warnings(before_duckdb))


def test_a_batch_fails_as_a_whole(before_duckdb: AdbcGateway) -> None:
    """Nobody knows how much of it was stored, so nothing of it is tried again."""
    http = before_duckdb.http
    table = create(http, "id BIGINT NOT NULL CHECK (id % 10 <> 3)")
    held = {"wait_for_async_insert": 0, "windrow_flush_policy": "fixed", "async_insert_busy_timeout_ms": 300_000}
    for number in range(20):
        assert http.insert(f"INSERT INTO {table} FORMAT CSV", f"{number}\n", **held).status == 200
    http.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    letters = DeadLetters(before_duckdb, "default")
    eventually(lambda: sum(one["table"] == table for one in letters.all()) == 20, "all are dead letters")
    assert counted(http, table) == 0
    assert http.insert(f"INSERT INTO {table} FORMAT CSV", "13\n").code == 469
    assert http.insert("INSERT INTO nowhere FORMAT CSV", "13\n").code == 60


def test_ordered_appends_are_refused_with_the_reason(before_duckdb: AdbcGateway) -> None:
    append = Append(before_duckdb.http, create(before_duckdb.http, "n BIGINT"))
    reply = append.put(0, native(n=[1]))
    assert (reply.status, reply.code) == (501, 48), reply.text
    assert "needs transactions, and this database's ADBC driver has none" in reply.text
    assert counted(before_duckdb.http, append.table) == 0


def test_clickhouse_behind_another_gateway(tmp_path: Path, gateway: Gateway, database: str) -> None:
    gateway.direct.sql(f"CREATE TABLE {database}.t (id Int64, name String) ENGINE = MergeTree ORDER BY id")
    own = AdbcGateway(tmp_path / "own", url(gateway, TESTER.name, TESTER.password))
    try:
        reply = own.http.insert(f"INSERT INTO {database}.t FORMAT CSV", "1,a\n2,b\n")
        assert reply.status == 200, reply.text
        assert gateway.direct.sql(f"SELECT * FROM {database}.t ORDER BY id FORMAT CSV") == '1,"a"\n2,"b"'
        assert any(AT_LEAST_ONCE in message for message in warnings(own))
    finally:
        own.stop()
