"""The servers of the benchmark of appends: quack, a gateway on DuckDB, and a relay that makes the way to them longer."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from pathlib import Path
from types import TracebackType
from urllib.request import Request, urlopen

HERE = Path(__file__).parent


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Process:
    """A child that says a line when it is ready and ends with the benchmark."""

    def __init__(self, command: list[str], **options: object) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, **options)  # type: ignore[call-overload]

    def line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args} ended with {self.process.wait()}")
        return str(line).strip()

    def ask(self, text: str) -> str:
        assert self.process.stdin is not None
        self.process.stdin.write(text + "\n")
        self.process.stdin.flush()
        return self.line()

    def __enter__(self) -> Process:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.process.terminate()
        self.process.wait(timeout=30)

    def peak_bytes(self) -> int:
        """The most memory that it has had resident."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))

    def forget_peak(self) -> None:
        Path(f"/proc/{self.process.pid}/clear_refs").write_text("5")


class Quack(Process):
    def __init__(self, folder: Path) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        port = self.address.rpartition(":")[2]
        super().__init__([sys.executable, str(HERE / "quack_server.py"), str(folder / "quack.db"), port])
        self.line()

    def sql(self, statement: str) -> str:
        return str(json.loads(self.ask(statement)))


class Gateway(Process):
    def __init__(self, folder: Path) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        self.flight = f"127.0.0.1:{free_port()}"
        command = [os.environ["BENCH_WINDROW"], "serve", "--backend", f"duckdb://{folder / 'windrow.db'}"]
        command += ["--data-dir", str(folder / "data"), "--http", self.address, "--flight", self.flight]
        super().__init__([*command, "--admin", "127.0.0.1:0", "--log-format", "json"], stderr=subprocess.PIPE)
        assert self.process.stderr is not None
        told = ""
        for line in self.process.stderr:
            told += line
            if "windrow is ready" in line:
                break
        else:
            raise SystemExit(f"the gateway did not start:\n{told}")
        # What nobody reads would stop it once the pipe is full.
        threading.Thread(target=self.process.stderr.read, daemon=True).start()

    def sql(self, statement: str) -> str:
        with urlopen(Request(f"http://{self.address}/", statement.encode())) as answer:
            return str(answer.read().decode().strip())


class Relay(Process):
    def __init__(self, to: str, round_trip_ms: float) -> None:
        self.address = f"127.0.0.1:{free_port()}"
        command = [os.environ["BENCH_BINARY"], "relay", "--listen", self.address, "--to", to]
        super().__init__([*command, "--rtt-ms", str(round_trip_ms)])
        self.line()


class Empty(Process):
    """Reads a request and answers it: what the way itself takes."""

    def __init__(self) -> None:
        super().__init__([os.environ["BENCH_EMPTY"], "127.0.0.1:0"])
        self.address = self.line().rpartition(" ")[2]
