"""HTTP/1.1 spoken byte by byte, so that tests can say things that no HTTP library would say."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from dataclasses import dataclass, field

from harness.endpoint import ERROR_CODE, Endpoint

RECEIVE_BYTES = 1 << 16


@dataclass
class RawReply:
    version: str
    status: int
    reason: str
    # In the order and spelling of the wire.
    headers: list[tuple[str, str]]
    body: bytes = b""
    # False when the peer closed before the end that its framing had announced.
    complete: bool = True
    # Interim answers (100 Continue) that came before.
    interim: list[int] = field(default_factory=list)

    def all(self, name: str) -> list[str]:
        return [value for key, value in self.headers if key.lower() == name.lower()]

    def get(self, name: str) -> str | None:
        values = self.all(name)
        return values[0] if values else None

    @property
    def text(self) -> str:
        return self.body.decode("utf-8", "replace")

    @property
    def code(self) -> int | None:
        found = ERROR_CODE.search(self.text)
        return int(found.group(1)) if found else None


class RawConnection:
    def __init__(
        self,
        endpoint: Endpoint,
        timeout_seconds: float = 60,
        receive_buffer_bytes: int | None = None,
        source: str | None = None,
    ):
        """`source`: the address that it comes from, such as 127.0.0.2."""
        self.endpoint = endpoint
        self.socket = socket.socket()
        if source:
            self.socket.bind((source, 0))
        if receive_buffer_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        self.socket.settimeout(timeout_seconds)
        self.socket.connect((endpoint.host, endpoint.port))
        self.pending = b""

    def __enter__(self) -> RawConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def end_sending(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)

    def exchange(self, data: bytes, method: str = "POST") -> RawReply:
        self.send(data)
        return self.read_reply(method)

    def receive_some(self) -> bytes:
        try:
            return self.socket.recv(RECEIVE_BYTES)
        except ConnectionResetError:
            return b""

    def closed_by_peer(self) -> bool:
        """Blocks until the peer says something or closes; true when it closed without a word."""
        return not self.pending and self.receive_some() == b""

    def read_reply(self, method: str = "POST") -> RawReply:
        interim: list[int] = []
        reply = self.read_head()
        while reply.status < 200:
            interim.append(reply.status)
            reply = self.read_head()
        reply.interim = interim
        self.read_body(reply, method)
        return reply

    def read_head(self) -> RawReply:
        lines = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
        version, status, reason = (lines[0].split(" ", 2) + [""])[:3]
        headers = [(name, value.strip()) for name, _, value in (line.partition(":") for line in lines[1:])]
        return RawReply(version, int(status), reason, headers)

    def read_body(self, reply: RawReply, method: str) -> None:
        if method == "HEAD" or reply.status in (204, 304):
            return
        if "chunked" in (reply.get("Transfer-Encoding") or "").lower():
            pieces: list[bytes] = []
            reply.complete = self.read_chunks(pieces)
            reply.body = b"".join(pieces)
        elif reply.get("Content-Length") is not None:
            length = int(reply.get("Content-Length") or "0")
            reply.body = self.up_to(length)
            reply.complete = len(reply.body) == length
        else:
            reply.body = self.rest()

    def read_chunks(self, pieces: list[bytes]) -> bool:
        try:
            while True:
                size = int(self.until(b"\r\n").split(b";")[0], 16)
                piece = self.up_to(size)
                pieces.append(piece)
                if len(piece) < size or self.up_to(2) != b"\r\n":
                    return False
                if size == 0:
                    return True
        except EOFError:
            return False

    def until(self, mark: bytes) -> bytes:
        while mark not in self.pending:
            more = self.receive_some()
            if not more:
                raise EOFError(f"the peer closed the connection; it had said {self.pending[:200]!r}")
            self.pending += more
        found, _, self.pending = self.pending.partition(mark)
        return found

    def up_to(self, length: int) -> bytes:
        pieces, got = [self.pending], len(self.pending)
        while got < length:
            more = self.receive_some()
            if not more:
                break
            pieces.append(more)
            got += len(more)
        data = b"".join(pieces)
        self.pending = data[length:]
        return data[:length]

    def rest(self) -> bytes:
        pieces = [self.pending]
        while more := self.receive_some():
            pieces.append(more)
        self.pending = b""
        return b"".join(pieces)


def head(method: str, target: str, headers: Iterable[tuple[str, str]]) -> bytes:
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    return ("\r\n".join(lines) + "\r\n\r\n").encode("latin-1")


def chunked(data: bytes, sizes: Iterable[int]) -> bytes:
    """`data` in chunks of the given sizes (the last one repeated), with the final chunk."""
    pieces, position, size = [], 0, 1
    wanted = iter(sizes)
    while position < len(data):
        size = next(wanted, size)
        piece = data[position : position + size]
        pieces.append(b"%x\r\n%s\r\n" % (len(piece), piece))
        position += size
    return b"".join(pieces) + b"0\r\n\r\n"
