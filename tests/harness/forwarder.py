"""A port that leads to another one, opened when a test wants it to be."""

from __future__ import annotations

import socket
import threading

from harness.endpoint import Endpoint


class Forwarder:
    """Listens on the port of 127.0.0.1 until it is closed."""

    def __init__(self, port: int, to: Endpoint) -> None:
        self.to = to
        self.listener = socket.create_server(("127.0.0.1", port))
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Forwarder:
        return self

    def __exit__(self, *_: object) -> None:
        self.listener.close()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            far = socket.create_connection((self.to.host, self.to.port))
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=copy, args=(one, other), daemon=True).start()


def copy(one: socket.socket, other: socket.socket) -> None:
    try:
        while data := one.recv(1 << 16):
            other.sendall(data)
        other.shutdown(socket.SHUT_WR)
    except OSError:
        # Either side has gone; so does the other.
        one.close()
        other.close()
