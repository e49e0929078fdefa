"""A kept connection that costs the test little: for tens of thousands of requests, of whose answers not much is asked."""

from __future__ import annotations

import re
import socket
import time
from dataclasses import dataclass

from harness.endpoint import Endpoint

RECEIVE_BYTES = 1 << 16
# ClickHouse closes connections that were idle for 10 s or more, as it is set.
MOST_IDLE_SECONDS = 5
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
CLOSE = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)


@dataclass(frozen=True)
class QuickReply:
    status: int
    head: bytes
    body: bytes

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "backslashreplace")


class QuickConnection:
    def __init__(self, endpoint: Endpoint, timeout_seconds: float = 120):
        self.endpoint, self.timeout_seconds = endpoint, timeout_seconds
        self.socket: socket.socket | None = None
        self.pending = b""
        self.used_at = 0.0
        self.common = f"Host: {endpoint.host}:{endpoint.port}\r\nAuthorization: {endpoint.basic_auth()}\r\n"

    def post(self, target: str, body: bytes) -> QuickReply:
        if time.monotonic() - self.used_at > MOST_IDLE_SECONDS:
            self.close()
        if self.socket is None:
            self.socket = socket.create_connection((self.endpoint.host, self.endpoint.port), self.timeout_seconds)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.pending = b""
        head = f"POST {target} HTTP/1.1\r\n{self.common}Content-Length: {len(body)}\r\n\r\n"
        self.socket.sendall(head.encode() + body)
        reply = self.read()
        self.used_at = time.monotonic()
        if CLOSE.search(reply.head):
            self.close()
        return reply

    def close(self) -> None:
        if self.socket is not None:
            self.socket.close()
            self.socket = None

    def read(self) -> QuickReply:
        head = self.until(b"\r\n\r\n")
        if CHUNKED.search(head):
            return QuickReply(int(head[9:12]), head, b"".join(self.chunks()))
        length = LENGTH.search(head)
        return QuickReply(int(head[9:12]), head, self.exactly(int(length.group(1))) if length else b"")

    def chunks(self):
        while size := int(self.until(b"\r\n"), 16):
            yield self.exactly(size + 2)[:-2]
        self.exactly(2)

    def until(self, mark: bytes) -> bytes:
        while (at := self.pending.find(mark)) < 0:
            self.receive()
        taken, self.pending = self.pending[: at + len(mark)], self.pending[at + len(mark) :]
        return taken

    def exactly(self, length: int) -> bytes:
        while len(self.pending) < length:
            self.receive()
        taken, self.pending = self.pending[:length], self.pending[length:]
        return taken

    def receive(self) -> None:
        assert self.socket is not None
        received = self.socket.recv(RECEIVE_BYTES)
        if not received:
            raise ConnectionError(f"the server closed the connection within its answer: {self.pending[:200]!r}")
        self.pending += received
