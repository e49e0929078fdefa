"""A table whose inserts don't end before the test allows it: its rows go to an HTTP server that the test holds shut."""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness.endpoint import Endpoint

LONGEST_HOLD_SECONDS = 60


class Gate:
    """Shut until `open` is called; `reached` is set when the first insert stands before it."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()
        gate = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                gate.reached.set()
                gate.opened.wait(LONGEST_HOLD_SECONDS)
                while size := int(self.rfile.readline(), 16):
                    self.rfile.read(size + 2)
                self.rfile.readline()
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def __enter__(self) -> Gate:
        return self

    def __exit__(self, *_: object) -> None:
        self.open()
        self.server.shutdown()
        self.server.server_close()

    def open(self) -> None:
        self.opened.set()

    def await_insert(self) -> None:
        assert self.reached.wait(60), "no insert came to the gate"

    def stand_behind(self, direct: Endpoint, table: str, column: str = "a") -> None:
        """Every insert into the table has to pass this gate before it ends. `column` is a UInt64 of the table."""
        url = f"http://127.0.0.1:{self.server.server_port}/"
        direct.sql(f"CREATE TABLE gate_of_{table} (a UInt64) ENGINE = URL('{url}', 'TSV')")
        direct.sql(f"CREATE MATERIALIZED VIEW through_{table} TO gate_of_{table} AS SELECT {column} AS a FROM {table}")
