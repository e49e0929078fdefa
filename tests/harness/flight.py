"""Flight SQL of a gateway, as an ADBC client uses it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass

import adbc_driver_flightsql
import adbc_driver_flightsql.dbapi
from adbc_driver_manager import dbapi

from harness.endpoint import Endpoint


@dataclass(frozen=True)
class Service:
    """Flight SQL of a gateway, and the same gateway's data port to see what came of it."""

    uri: str
    user: str
    password: str
    database: str
    http: Endpoint
    is_duckdb: bool

    def connect(self, **options: str) -> dbapi.Connection:
        """Tables without a database are in the test's own. An option that is empty is left out."""
        header = adbc_driver_flightsql.DatabaseOptions.RPC_CALL_HEADER_PREFIX.value
        known = {"username": self.user, "password": self.password, f"{header}database": self.database}
        given = {name: value for name, value in {**known, **options}.items() if value or name == "password"}
        if "username" not in given:
            del given["password"]
        return adbc_driver_flightsql.dbapi.connect(self.uri, db_kwargs=given, autocommit=True)

    @contextlib.contextmanager
    def cursor(self, **options: str) -> Iterator[dbapi.Cursor]:
        with self.connect(**options) as connection, connection.cursor() as cursor:
            yield cursor

    def create(self, name: str, columns: str, order: str = "tuple()", constraint: str = "") -> None:
        """`columns` in ClickHouse's types; Nullable is what all are in DuckDB."""
        if self.is_duckdb:
            columns = re.sub(r"Nullable\((\w+)\)", r"\1", columns)
            self.sql(f"CREATE TABLE {name} ({columns}{constraint and f', CHECK ({constraint})'})")
        else:
            named = constraint and f", CONSTRAINT c CHECK {constraint}"
            self.sql(f"CREATE TABLE {name} ({columns}{named}) ENGINE = MergeTree ORDER BY {order}")

    def sql(self, statement: str) -> str:
        return self.http.sql(statement)

    def left_overs(self) -> list[str]:
        """Tables that Windrow made for itself and has not dropped."""
        catalog = "duckdb_tables()" if self.is_duckdb else "system.tables"
        column = "table_name" if self.is_duckdb else "name"
        found = self.sql(f"SELECT {column} FROM {catalog} WHERE substring({column}, 1, 9) = '__windrow' FORMAT TSV")
        return found.splitlines()
