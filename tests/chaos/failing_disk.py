"""A folder whose disk fails as a test says, for a process that runs with `environment`."""

from __future__ import annotations

import struct
from enum import IntEnum
from pathlib import Path

from chaos.preload import built

FIELDS = struct.Struct("<qqq")


class DiskFault(IntEnum):
    """As `failing.c` numbers them."""

    NONE = 0
    SYNC_FAILS = 1
    WRITE_FAILS = 2
    FULL = 3
    READ_ONLY = 4
    NO_DESCRIPTORS = 5
    SYNC_WAITS = 6
    RENAME_WAITS = 7
    # What was taken before can be written to.
    NO_NEW_ROOM = 8


class FailingDisk:
    def __init__(self, folder: Path, preloaded: Path):
        preloaded.mkdir(parents=True)
        self.file = preloaded / "fault"
        self.file.write_bytes(FIELDS.pack(DiskFault.NONE, 0, 0))
        library = str(built("failing", preloaded))
        self.environment = {"LD_PRELOAD": library, "CHAOS_DISK": str(folder), "CHAOS_FAULT": str(self.file)}

    def fail(self, fault: DiskFault, spared: int = 0) -> None:
        """From now on, but so many calls that it concerns are let through before."""
        # In place: the process has the file mapped. What it reads first comes last.
        with self.file.open("r+b") as file:
            file.seek(8)
            file.write(struct.pack("<qq", spared, 0))
            file.flush()
            file.seek(0)
            file.write(struct.pack("<q", fault))

    def mend(self) -> None:
        self.fail(DiskFault.NONE)

    def met(self) -> int:
        """How many calls have met with the fault since it was set."""
        return FIELDS.unpack(self.file.read_bytes())[2]
