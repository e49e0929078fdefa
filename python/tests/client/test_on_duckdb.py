"""The client against DuckDB, through the gateway."""

from __future__ import annotations

import datetime
import uuid
from collections.abc import Iterator
from decimal import Decimal

import pytest
import windrow
from windrow.exceptions import DatabaseError

from harness.duckdb import DuckDbGateway


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[windrow.Client]:
    gateway = DuckDbGateway(tmp_path_factory.mktemp("duck"))
    with windrow.get_client(host=gateway.http.host, port=gateway.http.port) as client:
        yield client
    gateway.stop()


def test_values_come_as_pythons_own(client: windrow.Client) -> None:
    result = client.query(
        "SELECT 1 AS a, 'x' AS b, [1, NULL] AS c, {'k': 2} AS d, 'b'::ENUM('a', 'b') AS e, 1.5::DECIMAL(9,2) AS f, "
        "TIMESTAMP '2020-01-02 03:04:05' AS g, UUID '61f0c404-5cb3-11e7-907b-a6006ad3dba0' AS h, MAP {'a': 1} AS i, "
        "170141183460469231731687303715884105727::HUGEINT AS j, NULL AS k, DATE '2020-01-02' AS l"
    )
    assert result.result_rows == [(
        1, "x", [1, None], {"k": 2}, "b", Decimal("1.5"), datetime.datetime(2020, 1, 2, 3, 4, 5),
        uuid.UUID("61f0c404-5cb3-11e7-907b-a6006ad3dba0"), {"a": 1}, 2**127 - 1, None, datetime.date(2020, 1, 2),
    )]  # fmt: skip


def test_tables_are_made_filled_and_read(client: windrow.Client) -> None:
    client.command("CREATE TABLE filled (id BIGINT NOT NULL, name VARCHAR, tags VARCHAR[])")
    client.insert("filled", [[1, "a", ["x"]], [2, None, []]], column_names=["id", "name", "tags"])
    read = client.query("SELECT * FROM filled WHERE id <= {most:Int64} ORDER BY id", parameters={"most": 2})
    assert read.result_rows == [(1, "a", ["x"]), (2, None, [])]
    assert client.query_arrow("SELECT id FROM filled ORDER BY id").column("id").to_pylist() == [1, 2]


def test_a_million_rows_come_in_order(client: windrow.Client) -> None:
    table = client.query_arrow("SELECT range AS n FROM range(1000000) ORDER BY n")
    assert table.column("n").to_pylist() == list(range(1_000_000))


def test_errors_are_the_clients_own(client: windrow.Client) -> None:
    with pytest.raises(DatabaseError, match="code: 60"):
        client.query("SELECT * FROM nowhere")
