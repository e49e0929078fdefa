"""Whole programs written for clickhouse-connect run with nothing changed but the word in their imports."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import windrow
from harness.engine import Engine

SOURCES = sorted((Path(__file__).parent / "sources").glob("*.py"))


def said(source: str, where: dict[str, Any], folder: Path) -> Any:
    folder.mkdir()
    (folder / "program.py").write_text(source)
    environment = {**os.environ, "PYTHONPATH": str(Path(windrow.__file__).parent.parent)}
    command = [sys.executable, "program.py", json.dumps(where)]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, env=environment)
    assert ran.returncode == 0, ran.stderr
    return json.loads(ran.stdout)


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_changed_import_is_enough(path: Path, where: dict[str, Any], engine: Engine, tmp_path: Path) -> None:
    source = path.read_text()
    theirs = said(source, where, tmp_path / "theirs")
    engine.direct.sql(f"DROP DATABASE {where['database']}")
    engine.direct.sql(f"CREATE DATABASE {where['database']}")
    ours = said(source.replace("clickhouse_connect", "windrow"), where, tmp_path / "ours")
    assert ours == theirs
