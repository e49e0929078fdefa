"""The program in the package's README runs as it stands, with nothing installed but the package; only the address is another."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import windrow
from harness.endpoint import Endpoint
from harness.paths import ROOT

ADDRESS = 'host="localhost"'


def test_it_runs(where: dict[str, Any], direct: Endpoint, tmp_path: Path) -> None:
    programs = re.findall(r"^```python\n(.*?)^```$", (ROOT / "python" / "README.md").read_text(), re.S | re.M)
    assert len(programs) == 1 and programs[0].count(ADDRESS) == 1
    assert programs[0] in (ROOT / "README.md").read_text(), "the project's README shows the same program"
    program = programs[0].replace(ADDRESS, ", ".join(f"{name}={value!r}" for name, value in where.items()))
    (tmp_path / "program.py").write_text(program)
    ran = subprocess.run([bare_python(), "program.py"], cwd=tmp_path, capture_output=True, text=True, env=environment())
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    assert ran.stdout.startswith("('page', 'clicks', 'uniq(visitor)') [('/0', 1429, 100), ('/1', 1429, 100)"), ran.stdout
    assert direct.sql("SELECT count(), uniqExact(visitor) FROM clicks") == "10000\t100"


def bare_python() -> str:
    """That of the environment that the package was installed into, which has nothing else; of a tree, any."""
    own = Path(windrow.__file__).parents[4] / "bin" / "python"
    return str(own) if os.environ.get("WINDROW_TEST_INSTALLED") else sys.executable


def environment() -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    installed = os.environ.get("WINDROW_TEST_INSTALLED")
    return inherited if installed else {**inherited, "PYTHONPATH": str(Path(windrow.__file__).parent.parent)}
