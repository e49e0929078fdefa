"""A redis-server of the tests' own, on a port of its own, without files."""

from __future__ import annotations

import shutil
import signal
import socket
from pathlib import Path

from harness.eventually import eventually
from harness.ports import free_port
from harness.process import Child


class Redis:
    """Started when constructed; `address` is what a buffer's `redis://` begins with."""

    def __init__(self, folder: Path, arguments: tuple[str, ...] = ()) -> None:
        program = shutil.which("redis-server")
        if program is None:
            raise FileNotFoundError("redis-server is missing: run `make setup-test`")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.port = folder, free_port()
        options = {"port": self.port, "bind": "127.0.0.1", "save": "", "appendonly": "no", "dir": folder}
        self.command = [program, *(part for name, value in options.items() for part in (f"--{name}", str(value)))]
        self.command += arguments
        self.start()

    @property
    def address(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Also after its end, on the same port; what it held is gone then, unless the arguments said otherwise."""
        self.child = Child(self.command, self.folder / "redis.log")
        eventually(lambda: self._answers() or self._died(), "redis-server answers")

    def call(self, *words: str | int) -> list[str]:
        """One command; the lines of its answer, as they came."""
        parts = [str(word).encode() for word in words]
        request = b"*%d\r\n" % len(parts) + b"".join(b"$%d\r\n%s\r\n" % (len(part), part) for part in parts)
        with socket.create_connection(("127.0.0.1", self.port), timeout=10) as connection:
            connection.sendall(request + b"*1\r\n$4\r\nQUIT\r\n")
            answer = b"".join(iter(lambda: connection.recv(65536), b""))
        return answer.decode("utf-8", "replace").removesuffix("+OK\r\n").splitlines()

    def keys(self) -> list[str]:
        return self.call("KEYS", "*")[2::2]

    def kill(self) -> None:
        self.child.signal(signal.SIGKILL)
        self.child.wait()

    def pause(self) -> None:
        """Connections stay open and nothing answers, until `resume`."""
        self.child.signal(signal.SIGSTOP)

    def resume(self) -> None:
        self.child.signal(signal.SIGCONT)

    def stop(self) -> None:
        self.resume()
        self.child.stop()

    def _answers(self) -> bool:
        try:
            return self.call("PING") == ["+PONG"]
        except OSError:
            return False

    def _died(self) -> bool:
        if not self.child.running():
            raise AssertionError(f"redis-server ended at once:\n{self.child.log()[-3000:]}")
        return False
