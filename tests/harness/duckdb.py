"""A gateway in front of a DuckDB database."""

from __future__ import annotations

import os
from pathlib import Path

from harness.endpoint import Endpoint
from harness.gateway import FREE_PORTS, Gateway
from harness.paths import ROOT, gateway_binary

# Who may only read.
READER = ("reader", "r")
USERS = f'\n[[duckdb.users]]\nname = "{READER[0]}"\npassword = "{READER[1]}"\nreadonly = true\n'


def duckdb_library() -> Path:
    """Where scripts/setup puts it, unless WINDROW_DUCKDB_LIBRARY says otherwise."""
    named = os.environ.get("WINDROW_DUCKDB_LIBRARY")
    found = [Path(named)] if named else sorted((ROOT / "duckdb" / "node_modules" / "@duckdb").glob("*/libduckdb.*"))
    assert found, "DuckDB's library is missing: run scripts/setup"
    return found[0]


class DuckDbGateway(Gateway):
    """`http` speaks to its data port as `default`."""

    def __init__(
        self,
        folder: Path,
        place: str = "duckdb::memory:",
        config: str = "",
        environment: dict[str, str] | None = None,
    ):
        self.place = place
        library = {"WINDROW_DUCKDB_LIBRARY": str(duckdb_library())}
        super().__init__(folder, config + USERS, environment={**library, **(environment or {})})

    def command(self) -> list[str]:
        where = ["--config", str(self.config_path), "--backend", self.place, "--data-dir", str(self.data_dir)]
        return [str(gateway_binary()), "serve", *where, *FREE_PORTS, "--log-format", "json"]

    def direct_endpoint(self) -> Endpoint:
        """There is no other way in."""
        return self.http.as_user("default", "")

    def start(self) -> None:
        super().start()
        self.http = self.http.as_user("default", "")
