"""Servers that are no ClickHouse, by what they answer to whatever comes."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Iterator

# Each of them is followed by the end of its connection, and says so. Otherwise the next request may meet that end, and fail.
NGINX = b"HTTP/1.1 502 Bad Gateway\r\nServer: nginx/1.22.1\r\nConnection: close\r\nContent-Type: text/html\r\nContent-Length: 26\r\n\r\n<h1>502 Bad Gateway</h1>\r\n"
WELCOME = b"HTTP/1.1 200 OK\r\nServer: Apache\r\nConnection: close\r\nContent-Type: text/html\r\nContent-Length: 17\r\n\r\n<h1>It works</h1>"
ELASTIC = b'HTTP/1.1 405 Method Not Allowed\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: 36\r\n\r\n{"error":"Incorrect HTTP method"  }\n'
RUBBISH = bytes(range(255, -1, -1)) * 8
HALF = b"HTTP/1.1 200 OK\r\nX-ClickHouse-Summary: {\"read_"
HALF_BODY = b"HTTP/1.1 200 OK\r\nX-ClickHouse-Format: TSV\r\nContent-Length: 100\r\n\r\n1\n"
SSH = b"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n"


class Strange:
    """Takes a request's begin, gives its answer, and closes. With `pause_seconds` between one byte and the next."""

    def __init__(self, answer: bytes, pause_seconds: float = 0):
        self.answer, self.pause_seconds = answer, pause_seconds
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    @contextlib.contextmanager
    def listening(self) -> Iterator[str]:
        yield f"http://127.0.0.1:{self.port}"
        self.listener.close()

    def _accept(self) -> None:
        # Until the listener is closed.
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self.listener.accept()
                threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with connection, contextlib.suppress(OSError):
            connection.recv(1 << 16)
            if not self.pause_seconds:
                connection.sendall(self.answer)
                return
            for byte in self.answer:
                connection.sendall(bytes([byte]))
                time.sleep(self.pause_seconds)
