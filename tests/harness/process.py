"""A child process whose log is kept, and that is ended by its own pid."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

from harness.eventually import eventually

# However the tests end, what they started ends with them.
ENDS_WITH_US = ["setpriv", "--pdeathsig", "TERM"] if shutil.which("setpriv") else []


class Child:
    def __init__(
        self, command: list[str], log_path: Path, environment: dict[str, str] | None = None, stdin: int = subprocess.DEVNULL
    ):
        self.log_path = log_path
        with log_path.open("ab") as log:
            self.process = subprocess.Popen(
                [*ENDS_WITH_US, *command],
                stdin=stdin,
                stdout=log,
                stderr=log,
                env={**inherited_environment(), **(environment or {})},
                start_new_session=True,
            )

    @property
    def pid(self) -> int:
        return self.process.pid

    def log(self) -> str:
        return self.log_path.read_text("utf-8", "replace")

    def running(self) -> bool:
        return self.process.poll() is None

    def signal(self, number: signal.Signals) -> None:
        if self.running():
            self.process.send_signal(number)

    def wait(self, deadline_seconds: float = 180) -> int:
        return self.process.wait(deadline_seconds)

    def stop(self) -> int:
        """SIGTERM, and SIGKILL when that is not obeyed; the exit code."""
        self.signal(signal.SIGTERM)
        try:
            return self.wait()
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.wait()


def inherited_environment() -> dict[str, str]:
    """Our environment without the settings that a developer's shell may hold."""
    return {name: value for name, value in os.environ.items() if not name.startswith("WINDROW_")}


def is_alive(pid: int) -> bool:
    """Whether a process that need not be our child runs; a zombie does not."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state not in "ZX"


def children_of(pid: int) -> list[int]:
    tasks = Path(f"/proc/{pid}/task")
    try:
        return [int(child) for task in tasks.iterdir() for child in (task / "children").read_text().split()]
    except (FileNotFoundError, ProcessLookupError):
        return []


def wait_gone(pid: int, deadline_seconds: float = 180) -> None:
    eventually(lambda: not is_alive(pid), f"process {pid} ends", deadline_seconds)


def resident_bytes(pid: int) -> int:
    return _status_bytes(pid, "VmRSS")


def most_resident_bytes(pid: int) -> int:
    """Since it began."""
    return _status_bytes(pid, "VmHWM")


def _status_bytes(pid: int, field: str) -> int:
    with open(f"/proc/{pid}/status") as status:
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith(field))
