"""Servers that keep the contract of ordered appends, and clients of theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.appends import AppendServer


@pytest.fixture
def append_server() -> Iterator[Callable[..., AppendServer]]:
    """`append_server(on_request)` starts a server of appends; see harness/appends.py."""
    running: list[AppendServer] = []

    def start(on_request: Any = None) -> AppendServer:
        running.append(AppendServer(on_request))
        return running[-1]

    yield start
    for server in running:
        server.close()
