"""A folder that holds only so much: a file system of its own where one may be mounted, else the next best thing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from chaos.preload import built

WAYS = ("mount", "preload")


class SmallDisk:
    """`environment` is for the process that is to be limited; `way` says how it is."""

    def __init__(self, folder: Path, limit_bytes: int, ways: tuple[str, ...] = WAYS):
        self.folder, self.limit_bytes = folder, limit_bytes
        self.environment: dict[str, str] = {}
        self.ballast = folder / "ballast"
        folder.mkdir(parents=True)
        self.way = "mount" if "mount" in ways and self._mounted() else "preload"
        if self.way == "preload":
            library = str(built("disk", folder.parent))
            self.environment = {"LD_PRELOAD": library, "CHAOS_DISK": str(folder), "CHAOS_DISK_BYTES": str(limit_bytes)}

    def _mounted(self) -> bool:
        options = f"size={self.limit_bytes},mode=0700"
        command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(self.folder)]
        return os.geteuid() == 0 and subprocess.run(command, capture_output=True, check=False).returncode == 0

    def fill(self) -> None:
        """Somebody else's file takes all the room there is."""
        if self.way == "mount":
            with self.ballast.open("wb") as file:
                os.posix_fallocate(file.fileno(), 0, self.free_bytes())
        else:
            self.ballast.touch()
            os.truncate(self.ballast, self.limit_bytes)

    def leave(self, free_bytes: int) -> None:
        """The file takes so much less than all."""
        if self.way == "mount":
            os.truncate(self.ballast, max(0, self.ballast.stat().st_size - free_bytes))
        else:
            others = sum(path.stat().st_size for path in self.folder.rglob("*") if path.is_file() and path != self.ballast)
            os.truncate(self.ballast, max(0, self.limit_bytes - others - free_bytes))

    def make_room(self) -> None:
        self.ballast.unlink()

    def free_bytes(self) -> int:
        about = os.statvfs(self.folder)
        return about.f_bavail * about.f_frsize

    def close(self) -> None:
        if self.way == "mount":
            subprocess.run(["umount", "--lazy", str(self.folder)], check=True)
