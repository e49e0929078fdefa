"""The package as it is installed: its name, its files, what it asks for and what it loads."""

from __future__ import annotations

import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path

import pytest

import windrow

INSTALLED = os.environ.get("WINDROW_TEST_INSTALLED")
PACKAGE = Path(windrow.__file__).parent


def test_what_is_tested_is_installed() -> None:
    if INSTALLED:
        assert PACKAGE == Path(INSTALLED) / "windrow"


def test_the_extension_is_for_every_python_from_3_10_on() -> None:
    from windrow import _core

    assert Path(_core.__file__).name == "_core.abi3.so"
    if INSTALLED:
        wheel = importlib.metadata.distribution("windrow").read_text("WHEEL")
        assert wheel is not None and "\nTag: cp310-abi3-" in wheel


def test_it_needs_nothing_else() -> None:
    if INSTALLED:
        metadata = importlib.metadata.metadata("windrow")
        needed = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
        assert needed == []
        assert set(metadata.get_all("Provides-Extra", [])) == {"numpy", "pandas", "arrow", "polars", "sqlalchemy", "server"}
        assert metadata["Requires-Python"] == ">=3.10"
        assert metadata["License-Expression"] == "Apache-2.0"


def test_what_is_in_it() -> None:
    if INSTALLED:
        files = [str(file) for file in importlib.metadata.files("windrow") or [] if "__pycache__" not in str(file)]
        assert {"windrow/py.typed", "windrow/_core.pyi", "windrow/_core.abi3.so"} <= set(files)
        assert any(file.endswith("/licenses/LICENSE") for file in files)
        strangers = [file for file in files if not file.startswith(("windrow/", "windrow-"))]
        assert strangers == []
        sources = {str(file.relative_to(PACKAGE.parent)) for file in PACKAGE.rglob("*.py*") if "__pycache__" not in str(file)}
        assert sources <= set(files)


def test_importing_it_loads_nothing_heavy() -> None:
    program = "import sys, windrow; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert not {"numpy", "pandas", "pyarrow", "polars", "sqlalchemy"} & set(ran.stdout.split())


WITHOUT_EXTRAS = """
import asyncio, sys
import windrow

{blocked}

async def main():
    client = await windrow.get_async_client(**{where!r})
    try:
        await client.{call}
    except Exception as error:
        print(type(error).__name__, error)
    await client.close()

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("call", "extra"),
    [
        ("query_np('SELECT 1')", "numpy"),
        ("query_df('SELECT 1')", "pandas"),
        ("query_arrow('SELECT 1')", "arrow"),
        ("query_df_arrow('SELECT 1', dataframe_library='polars')", "polars"),
    ],
)
def test_what_is_missing_is_named(call: str, extra: str, where: dict[str, object]) -> None:
    blocked = "for name in ('numpy', 'pandas', 'pyarrow', 'polars'): sys.modules[name] = None"
    program = WITHOUT_EXTRAS.format(blocked=blocked, where=where, call=call)
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent)}
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert f"windrow[{extra}]" in ran.stdout, ran.stdout
