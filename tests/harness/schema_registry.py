"""What a schema registry answers that speaks Confluent's interface, as far as a reader asks for it; and messages that name their schema."""

from __future__ import annotations

import json
import struct
import threading
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

BY_ID = "/schemas/ids/"


class SchemaRegistry:
    """While `away` is set it answers 503. `asked` has every request's path, `answered` the ids of those that got a schema."""

    def __init__(self, schemas: dict[int, dict], user: str = "", password: str = ""):
        self.schemas, self.user, self.password = schemas, user, password
        self.asked: list[str] = []
        self.answered: list[int] = []
        self.away = threading.Event()
        registry = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                status, body = registry._answer(self.path, self.headers.get("Authorization"))
                content = json.dumps(body).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                self.send_header("Content-Length", str(len(content)))
                self.end_headers()
                self.wfile.write(content)

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self) -> SchemaRegistry:
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def _answer(self, path: str, authorization: str | None) -> tuple[int, dict]:
        self.asked.append(path)
        if self.away.is_set():
            return 503, {"error_code": 50003, "message": "away"}
        wanted = "Basic " + b64encode(f"{self.user}:{self.password}".encode()).decode()
        if self.user and authorization != wanted:
            return 401, {"error_code": 40101, "message": "Unauthorized"}
        found = path.split("?")[0].removeprefix(BY_ID)
        schema = self.schemas.get(int(found)) if found.isdigit() else None
        if schema is None:
            return 404, {"error_code": 40403, "message": "Schema not found"}
        self.answered.append(int(found))
        return 200, {"schema": json.dumps(schema)}


def confluent(schema_id: int, *values: int | float | str) -> bytes:
    """A message of that schema, whose fields are these: long, double and string."""
    return b"\0" + struct.pack(">I", schema_id) + b"".join(map(avro, values))


def avro(value: int | float | str) -> bytes:
    if isinstance(value, str):
        return avro(len(value.encode())) + value.encode()
    if isinstance(value, float):
        return struct.pack("<d", value)
    left = value << 1 if value >= 0 else (-value << 1) - 1
    written = b""
    while left > 0x7F:
        written += bytes([left & 0x7F | 0x80])
        left >>= 7
    return written + bytes([left])
