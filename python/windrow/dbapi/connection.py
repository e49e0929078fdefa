"""Connections of the database API: one client each."""

from __future__ import annotations

from typing import Any

from windrow._shared.results import QueryResult
from windrow._sync.create import get_client
from windrow.dbapi.cursor import Cursor


class Connection:
    """A connection; `windrow.dbapi.connect` makes it. `client` is the client that it uses."""

    def __init__(
        self,
        dsn: str | None = None,
        username: str = "",
        password: str = "",
        host: str | None = None,
        database: str | None = None,
        interface: str | None = None,
        port: int | None = None,
        secure: bool | str = False,
        **kwargs: Any,
    ) -> None:
        self.client = get_client(
            host=host,
            username=username or None,
            password=password,
            database=database,
            interface=interface,
            port=port,
            secure=secure,
            dsn=dsn,
            generic_args=kwargs,
        )
        self.timezone = self.client.server_tz

    def __repr__(self) -> str:
        return f"Connection({self.client!r})"

    def close(self) -> None:
        """Gives the connection back."""
        self.client.close()

    def commit(self) -> None:
        """Nothing: statements take effect at once."""

    def rollback(self) -> None:
        """Nothing: there is nothing to take back."""

    def cursor(self) -> Cursor:
        """A cursor, which executes statements and holds a result."""
        return Cursor(self.client)

    def command(self, cmd: str) -> Any:
        """As the client's `command`."""
        return self.client.command(cmd)

    def raw_query(self, query: str) -> QueryResult:
        """As the client's `query`."""
        return self.client.query(query)

    def __enter__(self) -> Connection:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
