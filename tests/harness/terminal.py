"""A terminal that a program writes to, without anybody before it."""

from __future__ import annotations

import fcntl
import os
import signal
import struct
import subprocess
import termios
from collections.abc import Callable

from harness.process import inherited_environment


def on_terminal(
    columns: int,
    arguments: list[str],
    environment: dict[str, str] | None = None,
    output: str = "stderr",
    until: Callable[[str], bool] = lambda _: False,
) -> tuple[int, str]:
    """The exit code, and what was written to a terminal of that width and 24 lines, which is the program's `output`.

    Once what is written fulfils `until`, the program gets a SIGINT."""
    ours, theirs = os.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    streams = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, output: theirs}
    inherited = {**inherited_environment(), **(environment or {})}
    child = subprocess.Popen(arguments, stdin=subprocess.DEVNULL, env=inherited, **streams)
    os.close(theirs)
    written, interrupted = b"", False
    while True:
        try:
            read = os.read(ours, 4096)
        except OSError:
            # So a terminal ends that nobody writes to any more.
            break
        written += read
        if not interrupted and until(written.decode("utf-8", "replace")):
            interrupted = True
            child.send_signal(signal.SIGINT)
    os.close(ours)
    return child.wait(), written.decode()
