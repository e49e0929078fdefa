"""A fresh Debian for each test."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.clean_root import CleanRoot


@pytest.fixture
def root(tmp_path: Path) -> Iterator[CleanRoot]:
    root = CleanRoot(tmp_path / "root")
    root.bring_duckdb()
    yield root
    root.remove()
