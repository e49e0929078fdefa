"""The engine, passing for a ClickHouse of a later version than there is to test with: what it is asked is answered by the
real one, and only the version in its answer to the gateway's question about a user is another."""

from __future__ import annotations

import http.client
import threading
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from harness.endpoint import Endpoint


class Newer:
    def __init__(self, engine: Endpoint, version: str):
        self.seen: list[str] = []
        front = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                front.seen.append(self.path)
                connection = http.client.HTTPConnection(engine.host, engine.port)
                connection.request("POST", self.path, body, dict(self.headers))
                answer = connection.getresponse()
                content = answer.read()
                if b'["=version",' in content:
                    rows = content.splitlines(keepends=True)
                    content = b"".join(version_row(version) if b'"=version"' in row else row for row in rows)
                self.send_response(answer.status)
                for name, value in answer.getheaders():
                    if name.lower().startswith(("x-clickhouse-", "content-type")):
                        self.send_header(name, value)
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)
                connection.close()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        user, password = (urllib.parse.quote(part, safe="") for part in (engine.user, engine.password))
        self.url = f"http://{user}:{password}@127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> Newer:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()


def version_row(version: str) -> bytes:
    return f'["=version","{version}",""]\n'.encode()
