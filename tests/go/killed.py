"""Go programs that write rows and are killed."""

from __future__ import annotations

import fcntl
import json
import signal
import subprocess
import termios
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from harness.endpoint import Endpoint

ROW = 8
DRAIN_SECONDS = 120


def waiting_bytes(pipe: int) -> int:
    """What was written to a pipe and not read yet."""
    return int.from_bytes(fcntl.ioctl(pipe, termios.FIONREAD, bytes(4)), "little")


@dataclass(frozen=True)
class Killed:
    """How many rows a program's calls had that had returned when it was killed."""

    round: int
    completed: int


class Said:
    """What a program says: after each call, how many rows it has written."""

    def __init__(self) -> None:
        self.bytes = bytearray()

    def calls(self) -> int:
        return len(self.bytes) // ROW

    def rows(self) -> int:
        end = self.calls() * ROW
        return int.from_bytes(self.bytes[end - ROW : end], "little") if end else 0


class GoProgram:
    """`given`: address of the server and buffer, as the program takes them."""

    def __init__(self, built: Path, **given: Any) -> None:
        self.built, self.given = built, given

    def run_and_kill(self, number: int, calls: int, disturb: Callable[[], None] | None = None) -> Killed:
        """Kills it when at least so many of its calls have returned, half of them after it was disturbed."""
        command = [str(self.built), json.dumps({**self.given, "round": number})]
        said = Said()
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as process:
            assert process.stdout and process.stderr
            self._hear(process, said, calls // 2)
            if disturb:
                disturb()
                calls += waiting_bytes(process.stdout.fileno()) // ROW
            self._hear(process, said, calls)
            process.send_signal(signal.SIGKILL)
            said.bytes += process.stdout.read()
        return Killed(number, said.rows())

    def stop_and_go_on(self, number: int, rows: int, meanwhile: Callable[[], None]) -> Killed:
        """Stops it in the middle of so many rows; it goes on when something has happened, and ends in order."""
        command = [str(self.built), json.dumps({**self.given, "round": number, "rows": rows})]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0) as process:
            assert process.stdout and process.stderr
            said = Said()
            self._hear(process, said, 5)
            process.send_signal(signal.SIGSTOP)
            try:
                meanwhile()
            finally:
                process.send_signal(signal.SIGCONT)
            said.bytes += process.stdout.read()
            assert process.wait(DRAIN_SECONDS) == 0, process.stderr.read().decode()[-3000:]
        return Killed(number, said.rows())

    def _hear(self, process: subprocess.Popen[bytes], said: Said, calls: int) -> None:
        assert process.stdout and process.stderr
        while said.calls() < calls:
            piece = process.stdout.read(min(4096, calls * ROW - len(said.bytes)))
            assert piece, f"the program ended by itself: {process.stderr.read().decode()[-3000:]}"
            said.bytes += piece

    def write(self, number: int, rows: int) -> Killed:
        """Writes so many rows, and ends in order."""
        self._run({"round": number, "rows": rows})
        return Killed(number, rows)

    def drain(self) -> None:
        """Stores what killed programs have left."""
        self._run({"drain": True})

    def _run(self, more: dict[str, Any]) -> None:
        command = [str(self.built), json.dumps({**self.given, **more})]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=DRAIN_SECONDS, check=False)
        assert ended.returncode == 0, ended.stderr[-3000:]


def address_of(endpoint: Endpoint) -> str:
    account = f"{quote(endpoint.user, '')}:{quote(endpoint.password, '')}"
    return f"http://{account}@{endpoint.host}:{endpoint.port}/{endpoint.database}"


def all_are_there_once(table: Endpoint, killed: list[Killed]) -> None:
    """What calls had taken when their program was killed is there, and nothing is there twice."""
    counted = {}
    for line in table.sql("SELECT round, groupUniqArray(n), count() FROM t GROUP BY round").splitlines():
        number, found, count = line.split("\t")
        counted[int(number)] = (set(json.loads(found)), int(count))
    wrong = []
    for one in killed:
        found, count = counted.get(one.round, (set(), 0))
        missing = sorted(set(range(one.completed)) - found)
        if missing or count != len(found):
            wrong.append(f"round {one.round}: of {one.completed} rows are missing {missing[:9]}, doubled {count - len(found)}")
    assert not wrong, wrong
    assert table.sql("SELECT count() FROM t WHERE text != repeat('x', n % 100)").strip() == "0"
