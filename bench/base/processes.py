"""What the processes under test cost, from /proc, and programs that are asked things line by line."""

import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from harness.process import ENDS_WITH_US, children_of

TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")
PAGE_BYTES = os.sysconf("SC_PAGESIZE")


@dataclass(frozen=True)
class Usage:
    cpu_seconds: float = 0.0
    resident_bytes: int = 0


def usage(pid: int | str | None) -> Usage:
    """All zero when the process is gone."""
    try:
        return parse_stat(Path(f"/proc/{pid}/stat").read_text())
    except (OSError, ValueError):
        return Usage()


def parse_stat(text: str) -> Usage:
    """The second field is the program's name in parentheses and may hold spaces and parentheses itself."""
    fields = text.rpartition(")")[2].split()
    if len(fields) < 22:
        raise ValueError(f"not a process: {text!r}")
    return Usage((int(fields[11]) + int(fields[12])) / TICKS_PER_SECOND, int(fields[21]) * PAGE_BYTES)


def descendants(pid: int) -> list[int]:
    """The processes that `pid` started, and those that they started."""
    return [found for child in children_of(pid) for found in (child, *descendants(child))]


def reset_peak(pid: int) -> None:
    """Lets `peak_bytes` begin anew. The kernel does so for one's own processes."""
    Path(f"/proc/{pid}/clear_refs").write_text("5")


def peak_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmHWM"))


def raise_open_files() -> int:
    """Inherited by the servers: thousands of connections need as many files at both ends."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    return most


def own_cpu_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def answer(what: object) -> None:
    """Of a program that is asked, and who says first that it is ready."""
    print(json.dumps(what), flush=True)


def asked_lines() -> Iterator[Any]:
    answer("ready")
    yield from map(json.loads, sys.stdin)


class Program:
    """A child that answers each line with a line, and ends with the benchmark."""

    def __init__(self, command: list[str], environment: dict[str, str] | None = None) -> None:
        env = {**os.environ, **(environment or {})}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen([*ENDS_WITH_US, *command], env=env, **pipes)

    @property
    def input(self) -> IO[bytes]:
        assert self.process.stdin is not None
        return self.process.stdin

    @property
    def pid(self) -> int:
        return self.process.pid

    def line(self) -> str:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"{self.process.args} ended with {self.process.wait()}")
        return line.decode().strip()

    def answer(self) -> Any:
        return json.loads(self.line())

    def tell(self, what: object) -> None:
        self.input.write(json.dumps(what).encode() + b"\n")
        self.input.flush()

    def ask(self, what: object) -> Any:
        self.tell(what)
        return self.answer()

    def end(self) -> None:
        """When its input ends, it does."""
        self.input.close()
        if code := self.process.wait(60):
            raise SystemExit(f"{self.process.args} ended with {code}")

    def __enter__(self) -> "Program":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(30)
