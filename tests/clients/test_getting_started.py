"""What docs/getting-started.md tells people to do works, and shows what it says it shows."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Callable

from harness.gateway import Gateway
from harness.paths import ROOT

PAGE = ROOT / "docs" / "getting-started.md"
ADDRESS = "127.0.0.1:8123"
BLOCK = re.compile(r"^```(sh|python|text)\n(.*?)^```$", re.S | re.M)


def without_numbers(text: str) -> str:
    return re.sub(r"\d+", "0", text)


def test_every_step_works(start_gateway: Callable[..., Gateway]) -> None:
    gateway = start_gateway()
    host, port = gateway.http.host, str(gateway.http.port)
    blocks = BLOCK.findall(PAGE.read_text())
    assert {kind for kind, _ in blocks} == {"sh", "python", "text"}
    for (kind, block), (kind_after, shown) in zip(blocks, [*blocks[1:], ("", "")], strict=True):
        if kind == "text":
            continue
        if kind == "sh":
            command = ["bash", "-euo", "pipefail", "-c", block.replace(ADDRESS, f"{host}:{port}")]
        else:
            command = [sys.executable, "-c", block.replace("port=8123", f"port={port}")]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert (ran.returncode, ran.stderr) == (0, ""), block
        wanted = shown if kind_after == "text" else ""
        assert without_numbers(ran.stdout) == without_numbers(wanted), block
    parts = gateway.direct.sql("SELECT max(max_block_number) FROM system.parts WHERE table = 'gathered'")
    assert int(parts) < 100, "two hundred inserts were gathered"
