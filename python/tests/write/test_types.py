"""What is stored of a value of every type, by every way in, is what clickhouse-connect's insert stores of it."""

from __future__ import annotations

from collections.abc import Iterator

import clickhouse_connect
import pytest
from clickhouse_connect.driver.client import Client
from harness.endpoint import Endpoint, Reply
from harness.engine import Engine
from write.cases import BETTER, CASES, TYPE_SETTINGS, Case

from windrow import _core


@pytest.fixture(scope="module")
def table(engine: Engine) -> Iterator[Endpoint]:
    engine.direct.sql("CREATE DATABASE write_types")
    yield engine.direct.using("write_types")
    engine.direct.sql("DROP DATABASE write_types")


@pytest.fixture(scope="module")
def peer(table: Endpoint) -> Iterator[Client]:
    client = clickhouse_connect.get_client(
        host=table.host, port=table.port, username=table.user, password=table.password, database=table.database
    )
    yield client
    client.close()


def stored(table: Endpoint, case: Case) -> bytes:
    columns = "v, dynamicType(v)" if case.type_name.startswith("Dynamic") else "v"
    return checked(table.request(f"SELECT {columns} FROM t ORDER BY i FORMAT TSV")).body


def checked(reply: Reply) -> Reply:
    assert reply.status == 200, reply.text
    return reply


def new_table(table: Endpoint, case: Case) -> None:
    table.sql("DROP TABLE IF EXISTS t")
    table.sql(f"CREATE TABLE t (i UInt32, v {case.type_name}) ENGINE = Memory", **TYPE_SETTINGS)


def insert(table: Endpoint, case: Case, how: str) -> None:
    names, type_names, count = ["i", "v"], ["UInt32", case.type_name], len(case.values)
    rows = list(enumerate(case.values))
    match how:
        case "rows":
            body = _core.Encoder(names, type_names).rows(rows, 0, count)
        case "rows in two blocks":
            encoder = _core.Encoder(names, type_names)
            body = encoder.rows(rows, 0, count // 2) + encoder.rows(rows, count // 2, count, share_gil=True)
        case "lists":
            body = _core.Encoder(names, type_names).rows([list(row) for row in rows], 0, count)
        case "dicts":
            body = _core.Encoder(names, type_names).rows([{"v": v, "i": i} for i, v in rows], 0, count)
        case "columns":
            body = _core.Encoder(names, type_names).columns([range(count), case.values], 0, count)
        case "RowBinary":
            body = _core.RowBinary(names, type_names).encode(rows)
            checked(table.insert("INSERT INTO t FORMAT RowBinary", body, input_format_binary_read_json_as_string=1))
            return
        case _:
            raise AssertionError(how)
    checked(table.insert("INSERT INTO t FORMAT Native", body))


WAYS = ["rows", "rows in two blocks", "lists", "dicts", "columns", "RowBinary"]


@pytest.mark.parametrize("case", CASES, ids=[f"{index}-{case.type_name}" for index, case in enumerate(CASES)])
def test_it_is_stored_as_by_clickhouse_connect(table: Endpoint, peer: Client, case: Case) -> None:
    new_table(table, case)
    peer.insert("t", [list(row) for row in enumerate(case.values)])
    expected = stored(table, case)
    for how in WAYS:
        table.sql("TRUNCATE TABLE t")
        insert(table, case, how)
        assert stored(table, case) == expected, how


@pytest.mark.parametrize(("case", "expected"), BETTER, ids=[case.type_name for case, _ in BETTER])
def test_it_is_taken_where_clickhouse_connect_fails(table: Endpoint, case: Case, expected: list[str]) -> None:
    for how in WAYS:
        new_table(table, case)
        insert(table, case, how)
        assert stored(table, case).decode().splitlines() == expected, how
