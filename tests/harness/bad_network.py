"""What networks do to an append's batches now and then, done often: a proxy before a gateway's data port, by seed.

Batches are lost half way, held back while others pass, sent twice, and handled without an answer. Whatever else is asked
passes as it is.
"""

from __future__ import annotations

import http.client
import random
import threading
from collections import Counter
from enum import Enum
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness.endpoint import Endpoint

# One that is held back lets so many others pass, unless there are none for so long.
PASSED_BY = 4
HELD_SECONDS = 0.03


class Fault(Enum):
    LOST = "half of the batch arrives, then the connection is closed"
    TWICE = "the batch arrives a second time, before the first one's answer is passed on"
    HELD = "others that came later arrive before it"
    UNANSWERED = "the batch arrives, and the connection is closed instead of an answer"


class BadNetwork:
    """Listens as long as it is entered; `endpoint` is the gateway's, by this way. `done` counts what has happened."""

    def __init__(self, to: Endpoint, seed: int, chances: dict[Fault, float]) -> None:
        self.to, self.chances = to, chances
        self.rng = random.Random(seed)
        self.done: Counter[Fault] = Counter()
        self.passed = 0
        self.changed = threading.Condition()
        network = self

        class Exchange(OneConnection):
            def setup(self) -> None:
                super().setup()
                self.network = network

        self.server = Listener(("127.0.0.1", 0), Exchange)
        self.endpoint = Endpoint("127.0.0.1", self.server.server_port, to.user, to.password, to.database)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)

    def __enter__(self) -> BadNetwork:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()

    def drawn(self) -> set[Fault]:
        with self.changed:
            faults = {fault for fault in Fault if self.rng.random() < self.chances.get(fault, 0)}
            self.done.update(faults)
            return faults

    def let_others_pass(self) -> None:
        with self.changed:
            enough = self.passed + PASSED_BY
            self.changed.wait_for(lambda: self.passed >= enough, HELD_SECONDS)

    def has_passed(self) -> None:
        with self.changed:
            self.passed += 1
            self.changed.notify_all()


class Listener(ThreadingHTTPServer):
    daemon_threads = True
    # Whoever closes a connection here does so on purpose.
    block_on_close = False
    request_queue_size = 128


class OneConnection(BaseHTTPRequestHandler):
    """A client's connection, and one to the gateway behind it."""

    protocol_version = "HTTP/1.1"
    network: BadNetwork

    def setup(self) -> None:
        super().setup()
        self.behind: http.client.HTTPConnection | None = None

    def finish(self) -> None:
        self._close_behind()
        super().finish()

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        self._pass_on()

    do_POST = do_PUT = do_DELETE = do_GET

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        is_batch = "/batches/" in self.path
        faults = self.network.drawn() if is_batch else set()
        if Fault.HELD in faults:
            self.network.let_others_pass()
        self.close_connection = True
        if Fault.LOST in faults:
            self._send(body[: len(body) // 2])
            self._close_behind()
            return
        try:
            answer, content = self._exchange(body)
            if Fault.TWICE in faults:
                self._exchange(body)
        except (OSError, http.client.HTTPException):
            # The gateway has closed it, so this side is closed too.
            return
        if is_batch:
            self.network.has_passed()
        if Fault.UNANSWERED in faults:
            return
        self.close_connection = answer.will_close
        self.send_response_only(answer.status, answer.reason)
        for name, value in answer.getheaders():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def _exchange(self, body: bytes) -> tuple[http.client.HTTPResponse, bytes]:
        answer = self._send(body).getresponse()
        return answer, answer.read()

    def _send(self, body: bytes) -> http.client.HTTPConnection:
        """The head as it came, and `body`, which may be less than that announces."""
        if self.behind is None:
            self.behind = http.client.HTTPConnection(self.network.to.host, self.network.to.port, timeout=120)
        self.behind.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
        for name, value in self.headers.items():
            self.behind.putheader(name, value)
        self.behind.endheaders(body)
        return self.behind

    def _close_behind(self) -> None:
        if self.behind is not None:
            self.behind.close()
            self.behind = None
