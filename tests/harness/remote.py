"""A gateway in front of a ClickHouse that it did not start."""

from __future__ import annotations

import urllib.parse
from pathlib import Path

from harness.endpoint import Endpoint
from harness.gateway import FREE_PORTS, Gateway
from harness.paths import gateway_binary
from harness.users import User


class RemoteGateway(Gateway):
    """`direct` is the backend's own endpoint, which the caller knows."""

    def __init__(
        self,
        folder: Path,
        backend_url: str,
        direct: Endpoint,
        config: str = "",
        environment: dict[str, str] | None = None,
    ):
        self.backend_url, self._direct = backend_url, direct
        super().__init__(folder, config, environment=environment)

    def command(self) -> list[str]:
        where = ["--config", str(self.config_path), "--backend", self.backend_url, "--data-dir", str(self.data_dir)]
        return [str(gateway_binary()), "serve", *where, *FREE_PORTS, "--log-format", "json"]

    def users(self) -> str:
        """Those of the backend."""
        return ""

    def direct_endpoint(self) -> Endpoint:
        return self._direct


def backend_url(account: User, address: str) -> str:
    """Of a backend that the gateway itself asks as this user."""
    user, password = (urllib.parse.quote(part, safe="") for part in (account.name, account.password))
    return f"http://{user}:{password}@{address}"
