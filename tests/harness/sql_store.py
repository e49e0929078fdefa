"""A database that Windrow speaks SQL to, whichever it is, and gateways before it."""

from __future__ import annotations

from pathlib import Path

from harness.adbc import AdbcGateway
from harness.duckdb import DuckDbGateway
from harness.endpoint import Endpoint
from harness.postgres import Postgres

STORES = ["duckdb", "postgresql", "sqlite"]
# Who may only read, before any of them.
READER = ("reader", "r")


class SqlStore:
    """Each gateway has a database of its own."""

    def __init__(self, name: str, folder: Path):
        self.name = name
        self.postgres = Postgres(folder / "postgres") if name == "postgresql" else None
        # What tells the order of rows, and the column for it where there is no other.
        self.place, self.place_column = ("place", ", place BIGSERIAL") if self.postgres else ("rowid", "")

    def gateway(self, folder: Path, config: str = "") -> DuckDbGateway | AdbcGateway:
        folder.mkdir(parents=True, exist_ok=True)
        file = folder / "database.file"
        if self.postgres:
            return AdbcGateway(folder, self.postgres.new_database(), config)
        if self.name == "sqlite":
            return AdbcGateway(folder, f"sqlite://{file}", config)
        return DuckDbGateway(folder, f"duckdb://{file}", config)

    def beside(self, gateway: AdbcGateway, folder: Path) -> AdbcGateway:
        """Another one before the same database."""
        folder.mkdir()
        return AdbcGateway(folder, gateway.url)

    def create(self, http: Endpoint, table: str, columns: str) -> None:
        http.sql(f"CREATE TABLE {table} ({columns}{self.place_column})")

    def stop(self) -> None:
        if self.postgres:
            self.postgres.stop()
