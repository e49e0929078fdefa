"""A gateway in front of a database behind an ADBC driver."""

from __future__ import annotations

import uuid
from pathlib import Path

import adbc_driver_flightsql
import adbc_driver_postgresql
import adbc_driver_sqlite

from harness.endpoint import Endpoint
from harness.gateway import Gateway
from harness.paths import gateway_binary

# Who may only read.
READER = ("reader", "r")
USERS = f'\n[[adbc.users]]\nname = "{READER[0]}"\npassword = "{READER[1]}"\nreadonly = true\n'
DRIVERS = {
    "postgresql": adbc_driver_postgresql._driver_path,
    "sqlite": adbc_driver_sqlite._driver_path,
    "flightsql": adbc_driver_flightsql._driver_path,
}


class AdbcGateway(Gateway):
    """`url` is what stands behind `adbc:`. `http` speaks to its data port as `default`."""

    def __init__(self, folder: Path, url: str, config: str = "", environment: dict[str, str] | None = None):
        self.url = url
        known = DRIVERS.get(url.split(":")[0])
        driver = {"WINDROW_ADBC_DRIVER": known()} if known else {}
        super().__init__(folder, config + USERS, environment={**driver, **(environment or {})})

    def command(self) -> list[str]:
        ports = ["--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--flight", "", "--native", "127.0.0.1:0"]
        where = ["--config", str(self.config_path), "--backend", f"adbc:{self.url}", "--data-dir", str(self.data_dir)]
        return [str(gateway_binary()), "serve", *where, *ports, "--log-format", "json"]

    def users(self) -> str:
        return ""

    def direct_endpoint(self) -> Endpoint:
        return self.http.as_user("default", "")

    def start(self) -> None:
        super().start()
        self.http = self.http.as_user("default", "")


def create(database: Endpoint, columns: str) -> str:
    """A table for one test."""
    name = f"t_{uuid.uuid4().hex[:12]}"
    database.sql(f"CREATE TABLE {name} ({columns})")
    return name


def counted(database: Endpoint, table: str) -> int:
    return int(database.sql(f"SELECT count(*) FROM {table}"))
