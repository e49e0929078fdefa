"""An example as a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import windrow
from harness.paths import ROOT

EXAMPLES = ROOT / "examples"


def dsn_of(where: dict[str, Any]) -> str:
    user, password = quote(where["username"]), quote(where["password"], safe="")
    return f"http://{user}:{password}@{where['host']}:{where['port']}/{where['database']}"


def environment(**more: str) -> dict[str, str]:
    """What is tested here is what the example imports."""
    return {**os.environ, "PYTHONPATH": str(Path(windrow.__file__).parent.parent), **more}


def start(name: str, *arguments: str, **options: Any) -> subprocess.Popen[str]:
    command = [sys.executable, str(EXAMPLES / name), *arguments]
    return subprocess.Popen(command, env=environment(), text=True, **options)


def run(name: str, *arguments: str) -> str:
    """What it printed; fails with what it complained of."""
    ended = subprocess.run([sys.executable, str(EXAMPLES / name), *arguments], env=environment(), text=True, capture_output=True)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout
