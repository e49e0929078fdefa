"""Each program runs with clickhouse-connect and with Windrow, against the same ClickHouse, in databases of the same name: what
they give is the same, value by value, type by type, error by error.

WINDROW_TEST_COMPAT=clickhouse_connect holds that package against itself, which shows that a program is steady.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from pathlib import Path
from typing import Any

import pytest
from compat.describe import described, differences
from compat.program import PROGRAMS, Program, run_of

import compat.programs
from harness.engine import Engine

OURS = os.environ.get("WINDROW_TEST_COMPAT", "windrow")

for found in pkgutil.iter_modules(compat.programs.__path__, "compat.programs."):
    importlib.import_module(found.name)


async def outcome(package: str, program: Program, where: dict[str, Any], folder: Path) -> Any:
    folder.mkdir()
    async with run_of(package, where, folder) as run:
        try:
            return described(await program.body(run, *program.arguments))
        except Exception as error:
            return ("the program failed", described(error))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)
async def test_a_program_sees_no_difference(program: Program, where: dict[str, Any], engine: Engine, tmp_path: Path) -> None:
    theirs = await outcome("clickhouse_connect", program, where, tmp_path / "theirs")
    assert theirs[0] != "the program failed", theirs
    engine.direct.sql(f"DROP DATABASE {where['database']}")
    engine.direct.sql(f"CREATE DATABASE {where['database']}")
    ours = await outcome(OURS, program, where, tmp_path / "ours")
    found = differences(theirs, ours)
    assert not found, "\n" + "\n".join(found)


def test_there_are_enough_of_them() -> None:
    assert len(PROGRAMS) >= 100
