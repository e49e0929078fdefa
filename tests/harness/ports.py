"""Free ports on loopback."""

from __future__ import annotations

import contextlib
import itertools
import os
import random
import re
import socket
from collections.abc import Iterator
from pathlib import Path

RANGE_OF_THE_SYSTEM = Path("/proc/sys/net/ipv4/ip_local_port_range")
# Those of the system begin here where it doesn't say; well-known servers listen below.
USUAL_BEGIN, LOWEST = 32768, 10_000
WORKERS = 16


def ours() -> range:
    """Ports that the system gives nobody who asks for any, neither a server nor a connection's own end; each worker of the tests has some."""
    try:
        begin = int(RANGE_OF_THE_SYSTEM.read_text().split()[0])
    except OSError:
        begin = USUAL_BEGIN
    lowest = min(LOWEST, begin // 2)
    share = (begin - lowest) // WORKERS
    worker = int(re.sub(r"\D", "", os.environ.get("PYTEST_XDIST_WORKER", "")) or 0) % WORKERS
    return range(lowest + worker * share, lowest + (worker + 1) * share)


# Somewhere among them: two runs on one machine seldom try the same ones at the same time.
_next = itertools.cycle(random.sample(ours(), len(ours())))


def free_port() -> int:
    """A port that nobody listens on, and that nobody else is given: who stops listening on it for a while finds it free again."""
    for port in itertools.islice(_next, len(ours())):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue
    raise AssertionError(f"no port of {ours()} is free")


@contextlib.contextmanager
def port_of_nobody(port: int = 0) -> Iterator[int]:
    """A port at which connections are refused: it is taken, so that nobody comes to listen there, and its owner doesn't listen either.
    One that was listened at until now may be named."""
    with socket.socket() as owner:
        # Connections that have ended may still be remembered by it.
        owner.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1 if port else 0)
        owner.bind(("127.0.0.1", port))
        yield owner.getsockname()[1]
