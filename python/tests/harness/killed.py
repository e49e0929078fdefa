"""Programs that write rows and are killed: a process that has the package imported forks one for each round.

Run as a script it is that process: it reads `number arguments-as-JSON` lines, forks, and answers with the child's
number. The child writes rows one after the other and says on its pipe which call has returned.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROW = 8


def child(arguments: dict[str, Any], said: int) -> None:
    import windrow

    client = windrow.get_client(**arguments["where"])
    writer = client.writer("t", ["round", "n", "text"], **arguments["options"])
    number = 0
    while True:
        writer.write_row((arguments["round"], number, "x" * (number % 100)))
        os.write(said, number.to_bytes(ROW, "little"))
        number += 1


def fork_server() -> None:
    import windrow  # noqa: F401 - imported once, for all rounds

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        arguments = json.loads(line)
        said = os.open(arguments["pipe"], os.O_WRONLY)
        pid = os.fork()
        if pid == 0:
            try:
                child(arguments, said)
            finally:
                os._exit(1)
        os.close(said)
        print(pid, flush=True)


@dataclass
class Killed:
    """What a program had written when it was killed."""

    round: int
    completed: int


class Programs:
    """Starts programs and kills them."""

    def __init__(self, folder: Path) -> None:
        self.pipe = folder / "said"
        os.mkfifo(self.pipe)
        command = [sys.executable, str(Path(__file__).resolve())]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run_and_kill(self, round_number: int, calls: int, where: dict[str, Any], options: dict[str, Any]) -> Killed:
        """Kills a program when at least so many of its calls have returned."""
        arguments = {"round": round_number, "where": where, "options": options, "pipe": str(self.pipe)}
        assert self.process.stdin and self.process.stdout
        reader = os.open(self.pipe, os.O_RDONLY | os.O_NONBLOCK)
        os.set_blocking(reader, True)
        with os.fdopen(reader, "rb", buffering=0) as said:
            self.process.stdin.write(json.dumps(arguments) + "\n")
            self.process.stdin.flush()
            pid = int(self.process.stdout.readline())
            heard = 0
            while heard < calls * ROW:
                piece = said.read(min(65536, calls * ROW - heard))
                assert piece, "the program ended by itself"
                heard += len(piece)
            os.kill(pid, signal.SIGKILL)
            while piece := said.read(65536):
                heard += len(piece)
        return Killed(round_number, heard // ROW)

    def stop(self) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait(30)
        self.process.stdout.close()


if __name__ == "__main__":
    fork_server()
