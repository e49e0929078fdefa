"""A backend that has never answered: nobody waits for it."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.inserts import INTO_T, rows
from harness.remote import RemoteGateway

# Less than the two minutes that an insert waits for a backend which has been there.
PATIENCE_SECONDS = 60


@pytest.fixture(params=["refuses", "never answers"])
def url(request: pytest.FixtureRequest) -> Iterator[str]:
    """Nobody else gets the port meanwhile."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        if request.param == "never answers":
            taken.listen(100)
        yield f"http://127.0.0.1:{taken.getsockname()[1]}"


def test_an_insert_is_refused_soon(url: str, tmp_path: Path) -> None:
    gateway = RemoteGateway(tmp_path, url, None)
    for settings in ({"wait_for_async_insert": 1}, {"wait_for_async_insert": 0}, {"windrow_ack": "memory"}):
        reply = gateway.http.insert(INTO_T, rows(1), patience_seconds=PATIENCE_SECONDS, async_insert=1, **settings)
        assert (reply.status, reply.headers["retry-after"]) == (503, "1"), reply.text
        assert "cannot be reached" in reply.text and "not answered since" in reply.text
    gateway.stop()
