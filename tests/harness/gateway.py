"""A gateway with an embedded engine of its own."""

from __future__ import annotations

import http.client
import json
import os
import signal
import subprocess
from pathlib import Path
from typing import NamedTuple

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.paths import engine_library, gateway_binary
from harness.process import Child, children_of
from harness.users import ALL, TESTER

READY = "windrow is ready"
FREE_PORTS = ["--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--native", "127.0.0.1:0"]
if not os.environ.get("WINDROW_TEST_CORE"):
    # A program without its optional parts has no such port.
    FREE_PORTS += ["--flight", "127.0.0.1:0"]


class Ready(NamedTuple):
    status: int
    text: str


class Gateway:
    """Started when constructed; `http` speaks to its data port, `direct` to the engine behind it."""

    stdin = subprocess.DEVNULL

    def __init__(
        self,
        folder: Path,
        config: str = "",
        arguments: tuple[str, ...] = (),
        environment: dict[str, str] | None = None,
    ):
        folder.mkdir(parents=True, exist_ok=True)
        self.environment = {**engine_environment(), **(environment or {})}
        self.direct_native_port: int | None = None
        self.folder, self.data_dir = folder, folder / "data"
        self.config_path = folder / "windrow.toml"
        self.config = config + self.users()
        self.arguments = arguments
        self.starts = 0
        self.start()

    def start(self) -> None:
        self.starts += 1
        self.config_path.write_text(self.config)
        self.child = Child(self.command(), self.folder / f"gateway-{self.starts}.log", self.environment, self.stdin)
        ready = eventually(self._ready_line, "the gateway says that it is ready")
        self.http = endpoint_of(ready["http"])
        self.admin = endpoint_of(ready["admin"])
        ports = [int(address.rsplit(":", 1)[1]) for address in (ready.get("native") or "").split(",") if address]
        self.native_port, self.native_tls_port = [*ports, None, None][:2]
        # Those of OTLP: gRPC, then HTTP, of a gateway whose settings name both.
        self.otlp_ports = [int(at.rsplit(":", 1)[1]) for at in (ready.get("otlp") or "").split(",") if at]
        # Nowhere, with the port closed.
        self.flight = f"grpc://{ready.get('flight')}"
        self.direct = self.direct_endpoint()

    def users(self) -> str:
        """What the settings say of them."""
        return users_toml()

    def command(self) -> list[str]:
        where = ["--config", str(self.config_path), "--backend", "embedded", "--data-dir", str(self.data_dir)]
        return [str(gateway_binary()), "serve", *where, *FREE_PORTS, "--log-format", "json", *self.arguments]

    def direct_endpoint(self) -> Endpoint:
        known = json.loads((self.data_dir / "embedded" / "endpoint.json").read_text())
        host, port = known["url"].removeprefix("http://").rstrip("/").split(":")
        self.direct_native_port = known["native_port"]
        return Endpoint(host, int(port), TESTER.name, TESTER.password)

    def log_events(self) -> list[dict]:
        # The last line may still be under way.
        whole = self.child.log().split("\n")[:-1]
        return [json.loads(line) for line in whole if line.startswith("{")]

    def _ready_line(self) -> dict | None:
        found = [flat(event) for event in self.log_events() if flat(event).get("message") == READY]
        if not found and not self.child.running():
            raise AssertionError(f"the gateway ended at once:\n{self.child.log()[-3000:]}")
        return found[0] if found else None

    def ready(self) -> Ready:
        connection = http.client.HTTPConnection(self.admin.host, self.admin.port, timeout=60)
        connection.request("GET", "/readyz")
        answer = connection.getresponse()
        try:
            return Ready(answer.status, answer.read().decode())
        finally:
            connection.close()

    def engine_pid(self) -> int:
        """The child that holds the engine: the gateway starts no other."""
        pids = eventually(lambda: children_of(self.child.pid), "the gateway has an engine")
        assert len(pids) == 1, f"the gateway has {len(pids)} children"
        return pids[0]

    def kill(self) -> None:
        self.child.signal(signal.SIGKILL)
        self.child.wait()

    def stop(self) -> int:
        return self.child.stop()


def engine_environment() -> dict[str, str]:
    return {"WINDROW_EMBEDDED_ENGINE": str(engine_library())}


def flat(event: dict) -> dict:
    """Fields of a JSON log line, whether they stand beside the message or below `fields`."""
    return {**event, **event.get("fields", {})}


def endpoint_of(address: str) -> Endpoint:
    host, port = address.rsplit(":", 1)
    return Endpoint(host, int(port), "default", "")


def users_toml() -> str:
    entries = []
    for user in ALL:
        grants = json.dumps(list(user.grants))
        entries.append(
            f'\n[[embedded.users]]\nname = "{user.name}"\npassword = "{user.password}"\ngrants = {grants}\n'
        )
    return "".join(entries)
