from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.engine import Engine


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A ClickHouse alone: the exporter and the blocks under test go to the same one."""
    started = Engine(tmp_path_factory.mktemp("otlp"))
    yield started
    started.stop()
