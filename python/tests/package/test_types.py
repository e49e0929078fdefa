"""The package is typed throughout, and its types agree with its code."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from harness.paths import CACHE, ROOT

import windrow

PYTHON = ROOT / "python"


def test_mypy_finds_nothing() -> None:
    command = [sys.executable, "-m", "mypy", "--cache-dir", str(CACHE / "mypy")]
    checked = subprocess.run(command, cwd=PYTHON, capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


PROGRAM = """
import windrow

async def main() -> None:
    client = await windrow.get_async_client(host="localhost")
    reveal_type(await client.query("SELECT 1"))
"""


def test_a_program_sees_the_types(tmp_path: Path) -> None:
    """What `py.typed` promises: a checker takes the types from the package as it is found."""
    (tmp_path / "program.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(CACHE / "mypy-program"), "program.py"]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=with_package())
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "QueryResult" in checked.stdout


def with_package() -> dict[str, str]:
    folder = str(Path(windrow.__file__).parent.parent)
    return {**os.environ, "MYPYPATH": folder if "site-packages" not in folder else "", "PYTHONPATH": folder}
