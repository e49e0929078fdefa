"""Writes the table of docs/formats.md as a gateway and its engine have it."""

from __future__ import annotations

import tempfile
from pathlib import Path

from differential.field import Field
from differential.handled import DOCUMENT, Handled
from differential.rendering import FORMATS
from harness.gateway import Gateway

BEGIN, END = "<!-- begin formats: written by tests/differential/write_formats.py, edits are lost -->", "<!-- end formats -->"
HEAD = "| format | passthrough | read by ClickHouse | forwarded |\n|---|---|---|---|"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="windrow-formats-") as folder:
        gateway = Gateway(Path(folder))
        try:
            arena = Field(gateway)
            lines = [written(Handled.of(arena, form)) for form in FORMATS]
        finally:
            gateway.stop()
    before, rest = DOCUMENT.read_text().split(BEGIN)
    behind = rest.split(END)[1]
    table = "\n".join((HEAD, *lines))
    DOCUMENT.write_text(f"{before}{BEGIN}\n{table}\n{END}{behind}")


def written(handled: Handled) -> str:
    for difference in handled.differences:
        print(f"differs from ClickHouse: {difference}")
    return handled.line()


if __name__ == "__main__":
    main()
