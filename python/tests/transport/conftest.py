"""Both transports, and what a client's transport needs to know of the engine."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.endpoint import Endpoint
from harness.eventually import eventually
from transport.both import EMPTY, FACES
from windrow._shared.http_options import HttpOptions


@pytest.fixture(params=sorted(FACES))
def face(request: pytest.FixtureRequest, scripted: Any) -> Iterator[Callable[..., Any]]:
    """`face(server, **options)`: a transport to a server; nothing may be left of it when it is closed.

    It is closed before the scripted servers, whose scripts may wait for that.
    """
    opened: list[Any] = []

    def make(server: Any, **options: Any) -> Any:
        opened.append(FACES[request.param](HttpOptions(server.host, server.port, **options)))
        return opened[-1]

    yield make
    for one in opened:
        one.close()
        eventually(lambda one=one: one.transport.statistics() == EMPTY, "all connections are closed")


def signed_in(transport: Any, endpoint: Endpoint) -> None:
    """The transport's requests are those of the endpoint's user."""
    credentials = base64.b64encode(f"{endpoint.user}:{endpoint.password}".encode()).decode()
    transport.headers = [("Authorization", f"Basic {credentials}"), ("X-ClickHouse-Database", endpoint.database)]
