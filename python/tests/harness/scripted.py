"""A TCP server that answers what the test tells it to, byte for byte: for what a real server can't be made to do."""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

#: Longest wait for a client that doesn't come or doesn't send: bounds a failing test only.
PATIENCE_SECONDS = 120.0


def answer(body: bytes = b"", status: str = "200 OK", headers: dict[str, str] | None = None) -> bytes:
    """A whole answer with a Content-Length."""
    fields = {"Content-Type": "application/octet-stream", **(headers or {}), "Content-Length": str(len(body))}
    return head(status, fields) + body


def head(status: str, fields: dict[str, str]) -> bytes:
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in fields.items())]
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def chunk(data: bytes) -> bytes:
    """One chunk of a chunked body; of no bytes: its end."""
    return b"%x\r\n%s\r\n" % (len(data), data)


@dataclass
class Exchange:
    """A connection of a client, in the hands of the script."""

    socket: socket.socket
    number: int
    received: bytearray = field(default_factory=bytearray)

    def receive(self, size: int = 65536) -> bytes:
        """What came next; empty when the client has closed its side."""
        data = self.socket.recv(size)
        self.received += data
        return data

    def read_head(self) -> bytes:
        """Up to and with the empty line; what came behind it is left in `received`."""
        while (end := self.received.find(b"\r\n\r\n")) < 0:
            if not self.receive():
                raise ConnectionError("the client closed before its head was whole")
        taken = bytes(self.received[: end + 4])
        del self.received[: end + 4]
        return taken

    def read_request(self) -> tuple[bytes, bytes]:
        """Head and body of one request, whichever framing it has."""
        taken = self.read_head()
        fields = dict(
            (name.strip().lower(), value.strip())
            for name, _, value in (line.partition(b":") for line in taken.split(b"\r\n")[1:])
        )
        if fields.get(b"transfer-encoding", b"").lower() == b"chunked":
            return taken, self._read_chunks()
        return taken, self._exactly(int(fields.get(b"content-length", b"0")))

    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    def reset(self) -> None:
        """Ends the connection by RST."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
        self.socket.close()

    def until_closed(self) -> None:
        """Waits until the client has closed its side, or reset the connection."""
        try:
            while self.receive():
                pass
        except ConnectionError:
            pass

    def _exactly(self, size: int) -> bytes:
        while len(self.received) < size:
            if not self.receive():
                raise ConnectionError("the client closed before its body was whole")
        taken = bytes(self.received[:size])
        del self.received[:size]
        return taken

    def _line(self) -> bytes:
        while (end := self.received.find(b"\r\n")) < 0:
            if not self.receive():
                raise ConnectionError("the client closed inside its body")
        return self._exactly(end + 2)[:-2]

    def _read_chunks(self) -> bytes:
        body = bytearray()
        while size := int(self._line().split(b";")[0], 16):
            body += self._exactly(size)
            self._exactly(2)
        while self._line():
            pass
        return bytes(body)


class ScriptedServer:
    """Listens on loopback; every connection runs `script(exchange)` in a thread of its own and is closed after it.

    An exception of a script other than a broken connection fails the test when the server is closed.
    """

    def __init__(self, script: Callable[[Exchange], None]) -> None:
        self.script = script
        self.connections = 0
        self.failures: list[BaseException] = []
        self.threads: list[threading.Thread] = []
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.host, self.port = self.listener.getsockname()
        self.accepting = threading.Thread(target=self._accept, name="scripted-server", daemon=True)
        self.accepting.start()

    @classmethod
    def of_answers(cls, *answers: bytes) -> ScriptedServer:
        """Every connection gets these answers, one for each request, and is closed after the last."""

        def script(exchange: Exchange) -> None:
            for data in answers:
                exchange.read_request()
                exchange.send(data)

        return cls(script)

    def __enter__(self) -> ScriptedServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        # shutdown wakes the thread in accept; close alone does not.
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.accepting.join(PATIENCE_SECONDS)
        for thread in self.threads:
            thread.join(PATIENCE_SECONDS)
        if self.failures:
            raise self.failures[0]

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            connection.settimeout(PATIENCE_SECONDS)
            exchange = Exchange(connection, self.connections)
            self.connections += 1
            thread = threading.Thread(target=self._run, args=(exchange,), name="scripted-exchange", daemon=True)
            self.threads.append(thread)
            thread.start()

    def _run(self, exchange: Exchange) -> None:
        try:
            self.script(exchange)
        except ConnectionError:
            pass
        except BaseException as failure:  # noqa: BLE001: the test's own thread reports it
            self.failures.append(failure)
        finally:
            exchange.socket.close()
