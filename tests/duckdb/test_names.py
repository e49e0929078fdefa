"""DuckDB calls a database as its file is called, and a schema may have that name as well."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness.duckdb import DuckDbGateway


@pytest.mark.parametrize("name", ["windrow", "main", "events", "a table's \"file\""])
def test_a_file_may_be_called_as_anything_else(tmp_path: Path, name: str) -> None:
    gateway = DuckDbGateway(tmp_path / "gateway", f"duckdb:{tmp_path / name}.duckdb")
    try:
        gateway.http.sql("CREATE SCHEMA events")
        tested = gateway.http.using("events")
        tested.sql("CREATE TABLE t (a BIGINT)")
        for statement in ("INSERT INTO events.t FORMAT JSONEachRow", "INSERT INTO t FORMAT JSONEachRow"):
            reply = tested.insert(statement, '{"a":1}\n')
            assert reply.status == 200, reply.text
        assert tested.sql("SELECT count(*) FROM t") == "2"
        assert "t" in tested.sql("SHOW TABLES").splitlines()
        assert tested.sql("SELECT name FROM system.tables WHERE database = 'events'") == "t"
        assert gateway.stop() == 0
        gateway.start()
        assert gateway.http.using("events").sql("SELECT sum(a) FROM t") == "2"
    finally:
        gateway.stop()
