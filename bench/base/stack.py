"""What is measured: a gateway with its ClickHouse or DuckDB, started here or running already, and the empty handlers."""

import http.client
import json
import os
import signal
import tempfile
import time
import urllib.parse
from argparse import Namespace
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from harness.duckdb import duckdb_library
from harness.endpoint import Endpoint
from harness.gateway import Gateway
from harness.metrics import metrics_of
from harness.paths import ROOT, gateway_binary
from harness.process import wait_gone

from bench.base.processes import Program, Usage, descendants, usage

# Large answers are read by pieces that take little of the CPU.
READ_BYTES = 1 << 20
# Who asks without a name.
NOBODY = ("default", "")


def binary(name: str) -> Path:
    """A program of this workspace, built beside the others."""
    path = Path(os.environ.get("BENCH_BIN") or ROOT / "target" / "dist") / name
    if not path.exists():
        raise SystemExit(f"{path} is missing: run benchmarks through bench/run, which builds it")
    return path


def endpoint_of_url(url: str) -> Endpoint:
    """Reads `http://[user[:password]@]host:port`."""
    parts = urllib.parse.urlsplit(url)
    if parts.scheme != "http" or not parts.hostname or not parts.port:
        raise SystemExit(f"{url!r} is not of the form http://user:password@host:port")
    login = [urllib.parse.unquote(part or "") for part in (parts.username, parts.password)]
    return Endpoint(parts.hostname, parts.port, login[0] or NOBODY[0], login[1])


def url_of_endpoint(endpoint: Endpoint) -> str:
    user, password = (urllib.parse.quote(part, safe="") for part in (endpoint.user, endpoint.password))
    return f"http://{user}:{password}@{endpoint.host}:{endpoint.port}"


class Server(Gateway):
    """A gateway without the users of the tests, on whatever is to be behind it."""

    def __init__(
        self,
        folder: Path,
        backend: str = "embedded",
        environment: dict[str, str] | None = None,
        config: str = "",
        flight: str = "",
    ) -> None:
        self.backend, self.flight_listener = backend, flight
        library = {"WINDROW_DUCKDB_LIBRARY": str(duckdb_library())} if backend.startswith("duckdb:") else {}
        # Not as an argument, which others on the machine can see: it may hold a password.
        given = {**library, **(environment or {}), "WINDROW_BACKEND": backend}
        super().__init__(folder, config, environment=given)

    def users(self) -> str:
        return ""

    def command(self) -> list[str]:
        ports = ["--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--flight", self.flight_listener]
        ports += [] if self.backend.startswith("duckdb:") else ["--native", "127.0.0.1:0"]
        where = ["--config", str(self.config_path), "--data-dir", str(self.data_dir)]
        return [str(gateway_binary()), "serve", *where, *ports, "--log-format", "json"]

    def direct_endpoint(self) -> Endpoint:
        """The way around the gateway. To a DuckDB there is none: the gateway itself."""
        if self.backend == "embedded":
            known = json.loads((self.data_dir / "embedded" / "endpoint.json").read_text())
            self.direct_native_port = known["native_port"]
            return replace(endpoint_of_url(known["url"]), user=known["user"], password=known["password"])
        return self.http if self.backend.startswith("duckdb:") else endpoint_of_url(self.backend)

    def end(self) -> None:
        """As its users would let it."""
        if code := self.stop():
            raise SystemExit(f"the gateway ended with {code}; its last lines:\n{self.child.log()[-3000:]}")


@dataclass(frozen=True)
class Snapshot:
    """The processes' cost up to now; the difference of two is the cost of what lay between."""

    gateway: Usage = Usage()
    clickhouse: Usage = Usage()

    def cpu_since(self, before: "Snapshot") -> tuple[float, float]:
        """Of the gateway and of ClickHouse."""
        of = lambda after, before: max(0.0, after.cpu_seconds - before.cpu_seconds)
        return of(self.gateway, before.gateway), of(self.clickhouse, before.clickhouse)


class Stack:
    """Both ways to the same ClickHouse: `clickhouse` around the gateway, `gateway` through it."""

    def __init__(self, options: Namespace, environment: dict[str, str] | None = None, duckdb: bool = False) -> None:
        self.options, self.own = options, None
        self.folder = tempfile.TemporaryDirectory(prefix="windrow-bench-")
        self._gateway: Endpoint | None
        if options.clickhouse and not duckdb:
            self.clickhouse = endpoint_of_url(options.clickhouse)
            self._gateway = endpoint_of_url(options.gateway) if options.gateway else None
        else:
            backend = f"duckdb://{self.folder.name}/stored.duckdb" if duckdb else "embedded"
            given = dict(pair.split("=", 1) for pair in options.env)
            self.own = Server(Path(self.folder.name), backend, {**(environment or {}), **given})
            self.clickhouse, self._gateway = self.own.direct, self.own.http
        self.clickhouse.sql(f"CREATE {'SCHEMA' if duckdb else 'DATABASE'} IF NOT EXISTS bench")

    @property
    def gateway(self) -> Endpoint:
        """For a benchmark that makes no sense without one."""
        if self._gateway is None:
            raise SystemExit("this benchmark needs a gateway: add --gateway URL")
        return self._gateway

    def native_port(self, through_gateway: bool) -> int:
        """Of the native protocol."""
        assert self.own is not None, "only one's own gateway is spoken to natively"
        port = self.own.native_port if through_gateway else self.own.direct_native_port
        assert port is not None, "there is no native port"
        return port

    @property
    def has_gateway(self) -> bool:
        return self._gateway is not None

    @property
    def gateway_pid(self) -> int:
        pid = self.own.child.pid if self.own else self.options.gateway_pid
        if pid is None:
            raise SystemExit("add --gateway-pid PID")
        return pid

    def another_gateway(self, config: str, folder: Path, flight: str = "", backend: str = "") -> Server:
        """One more in front of the same ClickHouse, or of something else, with settings of its own."""
        environment = dict(pair.split("=", 1) for pair in self.options.env)
        return Server(folder, backend or url_of_endpoint(self.clickhouse), environment, config, flight)

    def kill_and_start(self) -> None:
        """As a machine that loses its power would, and starts both on the same data."""
        assert self.own is not None, "only a gateway of one's own can be killed"
        started_by_it = descendants(self.gateway_pid)
        self.own.kill()
        for pid in started_by_it:
            os.kill(pid, signal.SIGKILL)
            wait_gone(pid)
        self.own.start()
        self.clickhouse, self._gateway = self.own.direct, self.own.http

    def metric(self, name: str) -> float:
        """The sum of a metric's samples."""
        assert self.own is not None, "only one's own gateway is asked for metrics"
        return metrics_of(self.own).sum(name)

    def snapshot(self) -> Snapshot:
        gateway = self.own.child.pid if self.own else self.options.gateway_pid
        pids = [self.options.clickhouse_pid] if self.options.clickhouse_pid else descendants(gateway) if gateway else []
        all_of_it = [usage(pid) for pid in pids]
        clickhouse = Usage(sum(one.cpu_seconds for one in all_of_it), sum(one.resident_bytes for one in all_of_it))
        return Snapshot(usage(gateway), clickhouse)

    def close(self) -> None:
        if self.own:
            self.own.end()
        self.folder.cleanup()


def empty_handler(example: str, environment: list[str]) -> tuple[Program, str]:
    """What the load generator reaches when a server does nothing but HTTP, and its address."""
    given = dict(pair.split("=", 1) for pair in environment)
    name, *arguments = example.split()
    program = Program([str(binary(name)), "127.0.0.1:0", *arguments], given)
    return program, program.line().rpartition(" ")[2]


def read_all(
    server: Endpoint, query: str, take: Callable[[memoryview], object] = len, settings: dict[str, object] | None = None
) -> tuple[int, float]:
    """How many bytes the answer has, and how many seconds it took."""
    connection = http.client.HTTPConnection(server.host, server.port, timeout=120)
    began, buffer, length = time.perf_counter(), memoryview(bytearray(READ_BYTES)), 0
    connection.request("POST", server.target(None, settings), query.encode(), server.with_auth(None))
    answer = connection.getresponse()
    if answer.status != 200:
        raise SystemExit(f"{query}: {answer.read(4096)!r}")
    while read := answer.readinto(buffer):
        take(buffer[:read])
        length += read
    connection.close()
    return length, time.perf_counter() - began
