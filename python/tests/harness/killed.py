"""Programs that write rows and are killed: a process that has the package imported forks one for each round.

Run as a script it is that process: it reads `number arguments-as-JSON` lines, forks, and answers with the child's
number. The child writes rows, and says on its pipe after each call how many it has written.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

ROW = 8
ENDLESS = 2**62


def child(arguments: dict[str, Any], said: int) -> None:
    import windrow

    client = windrow.get_client(**arguments["where"])
    writer = client.writer("t", ["round", "n", "text"], **arguments["options"])
    sizes = random.Random(arguments["round"])
    number = 0
    while number < arguments["rows"]:
        call = range(number, number + sizes.randint(1, arguments["call_rows"]))
        rows = [(arguments["round"], n, "x" * (n % 100)) for n in call]
        if len(rows) == 1:
            writer.write_row(rows[0])
        else:
            writer.write_rows(rows)
        number = call.stop
        os.write(said, number.to_bytes(ROW, "little"))
    writer.flush()
    writer.close()
    client.close()


def fork_server() -> None:
    import windrow  # noqa: F401 - imported once, for all rounds

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        arguments = json.loads(line)
        said = os.open(arguments["pipe"], os.O_WRONLY)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                child(arguments, said)
                code = 0
            finally:
                os._exit(code)
        os.close(said)
        print(pid, flush=True)


def hear(said: IO[bytes], calls: int) -> bytes:
    heard = b""
    while len(heard) < calls * ROW:
        piece = said.read(min(65536, calls * ROW - len(heard)))
        assert piece, "the program ended by itself"
        heard += piece
    return heard


def rest(said: IO[bytes]) -> bytes:
    return b"".join(iter(lambda: said.read(65536), b""))


def rows_of(heard: bytes) -> int:
    end = len(heard) // ROW * ROW
    return int.from_bytes(heard[end - ROW : end], "little") if end else 0


@dataclass
class Killed:
    """How many rows a program's calls had that had returned when it was killed."""

    round: int
    completed: int


class Programs:
    """Starts programs and kills them."""

    def __init__(self, folder: Path) -> None:
        self.pipe = folder / "said"
        os.mkfifo(self.pipe)
        command = [sys.executable, str(Path(__file__).resolve())]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run_and_kill(
        self, round_number: int, calls: int, where: dict[str, Any], options: dict[str, Any], call_rows: int = 1
    ) -> Killed:
        """Kills a program when at least so many of its calls have returned."""
        with self._start(round_number, where, options, call_rows, ENDLESS) as (said, pid):
            heard = hear(said, calls)
            os.kill(pid, signal.SIGKILL)
            return Killed(round_number, rows_of(heard + rest(said)))

    def stop_and_go_on(
        self, round_number: int, rows: int, where: dict[str, Any], options: dict[str, Any], meanwhile: Callable[[], None]
    ) -> Killed:
        """Stops a program in the middle of so many rows; it goes on when something has happened, and ends in order."""
        with self._start(round_number, where, options, 300, rows) as (said, pid):
            heard = hear(said, 5)
            os.kill(pid, signal.SIGSTOP)
            try:
                meanwhile()
            finally:
                os.kill(pid, signal.SIGCONT)
            # It closes its end when it is through.
            return Killed(round_number, rows_of(heard + rest(said)))

    @contextmanager
    def _start(
        self, round_number: int, where: dict[str, Any], options: dict[str, Any], call_rows: int, rows: int
    ) -> Iterator[tuple[IO[bytes], int]]:
        arguments = {
            "round": round_number, "where": where, "options": options, "pipe": str(self.pipe), "call_rows": call_rows,
            "rows": rows,
        }  # fmt: skip
        assert self.process.stdin and self.process.stdout
        reader = os.open(self.pipe, os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(reader, True)
        with os.fdopen(reader, "rb", buffering=0) as said:
            self.process.stdin.write(json.dumps(arguments) + "\n")
            self.process.stdin.flush()
            yield said, int(self.process.stdout.readline())

    def stop(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


if __name__ == "__main__":
    fork_server()
