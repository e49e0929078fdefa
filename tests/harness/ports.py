"""Free ports on loopback."""

from __future__ import annotations

import socket


def free_port() -> int:
    """A port that was free a moment ago; whoever listens on it has to cope with having lost it."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
