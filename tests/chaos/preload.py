"""Small libraries that are loaded into the gateway ahead of its C library, to give it a world that we control."""

from __future__ import annotations

import struct
import subprocess
from pathlib import Path

SOURCES = Path(__file__).resolve().parent


def built(name: str, folder: Path) -> Path:
    """What building Rust needs builds these too."""
    library = folder / f"{name}.so"
    command = ["cc", "-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", str(library), str(SOURCES / f"{name}.c"), "-ldl"]
    subprocess.run(command, check=True)
    return library


class Clock:
    """The wall clock of a process that runs with `environment`."""

    def __init__(self, folder: Path):
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / "clock"
        self.set(0)
        self.environment = {"LD_PRELOAD": str(built("clock", folder)), "CHAOS_CLOCK": str(self.file)}

    def set(self, seconds: float) -> None:
        """So far from the real time it is from now on."""
        self.seconds = seconds
        # In place: the process has the file mapped.
        with self.file.open("r+b" if self.file.exists() else "wb") as file:
            file.write(struct.pack("<q", round(seconds * 1_000_000)))
