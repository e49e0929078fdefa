"""Follows a log file and ships its lines, through a buffer on disk.

    python examples/python_log_shipper.py access.log [http://user:password@localhost:8123] [--until-end]

Where it stands in the file is written down after the lines are in the buffer, which survives `kill -9`. Killed in between, it reads
some lines again; the table keeps one of each position. `--until-end` ships what is there and ends.
"""

from __future__ import annotations

import argparse
import datetime
import os
import signal
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import windrow

TABLE = """
CREATE TABLE IF NOT EXISTS log_lines (file String, position UInt64, read_at DateTime, line String)
ENGINE ReplacingMergeTree ORDER BY (file, position) SETTINGS non_replicated_deduplication_window = 1000
"""
LINES_AT_ONCE = 1000
LOOKS_AGAIN_SECONDS = 0.2


class Line(NamedTuple):
    start: int
    end: int
    text: str


def whole_lines(path: Path, position: int) -> Iterator[Line]:
    """The lines from there on that have their end."""
    with path.open("rb") as file:
        file.seek(position)
        for line in file:
            if not line.endswith(b"\n"):
                return
            yield Line(position, position + len(line), line[:-1].decode("utf-8", "replace"))
            position += len(line)


def ship(path: Path, dsn: str, until_end: bool, ended: threading.Event) -> None:
    mark = path.with_name(path.name + ".position")
    position = int(mark.read_text()) if mark.exists() else 0
    with windrow.get_client(dsn=dsn) as client:
        client.command(TABLE)
        columns = ["file", "position", "read_at", "line"]
        with client.writer("log_lines", columns, buffer=f"disk:{path}.buffer", on_error=lambda error: print(error)) as writer:
            while not ended.is_set():
                lines = list(islice(whole_lines(path, position), LINES_AT_ONCE))
                if lines:
                    now = datetime.datetime.now(datetime.timezone.utc)
                    # Comes back when the rows are in the buffer, or waits for room if ClickHouse is away for long.
                    writer.write_rows([(path.name, line.start, now, line.text) for line in lines])
                    position = lines[-1].end
                    note(mark, position)
                elif until_end:
                    break
                else:
                    ended.wait(LOOKS_AGAIN_SECONDS)


def note(mark: Path, position: int) -> None:
    """Whole or not at all."""
    fresh = mark.with_name(mark.name + ".new")
    fresh.write_text(str(position))
    os.replace(fresh, mark)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    parser.add_argument("dsn", nargs="?", default="http://localhost:8123")
    parser.add_argument("--until-end", action="store_true")
    options = parser.parse_args()
    ended = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ended.set())
    signal.signal(signal.SIGINT, lambda *_: ended.set())
    ship(options.file, options.dsn, options.until_end, ended)
