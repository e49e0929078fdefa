"""Stores that take an append in one transaction: a test that takes `store` runs before each of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from harness.sql_store import STORES, SqlStore


@pytest.fixture(scope="session", params=STORES)
def store(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SqlStore]:
    started = SqlStore(request.param, tmp_path_factory.mktemp(request.param))
    yield started
    started.stop()
