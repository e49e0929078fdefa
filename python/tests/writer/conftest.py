"""A table with a constraint, and a client for it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import windrow
from harness.endpoint import Endpoint


@pytest.fixture
def table(direct: Endpoint) -> Endpoint:
    """`t (n UInt64, text String, more Nullable(Int32) DEFAULT 7)`; n = 999, 1999 ... are refused."""
    direct.sql(
        "CREATE TABLE t (n UInt64, text String, more Nullable(Int32) DEFAULT 7, CONSTRAINT even CHECK n % 1000 != 999) "
        "ENGINE = MergeTree ORDER BY n SETTINGS non_replicated_deduplication_window = 100000"
    )
    return direct


@pytest.fixture
def client(where: dict[str, Any]) -> Iterator[windrow.Client]:
    with windrow.get_client(**where) as opened:
        yield opened
