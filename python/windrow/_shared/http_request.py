"""Requests as bytes: heads are assembled from parts that are made once."""

from __future__ import annotations

import re
from collections.abc import AsyncIterable, Callable, Iterable, Sequence
from typing import Union

from windrow._core import Compressor
from windrow._shared.errors import ProgrammingError
from windrow._shared.http_options import HttpOptions, Proxy

Bytes = Union[bytes, bytearray, memoryview]
RequestBody = Union[Bytes, Sequence[bytes], Iterable[bytes], AsyncIterable[bytes], None]
Headers = Iterable[tuple[str, str]]

_NOT_IN_TARGET = re.compile(r"[^\x21-\x7e]")
_NOT_IN_NAME = re.compile(r"[^!#$%&'*+.^_`|~0-9A-Za-z-]")
_NOT_IN_VALUE = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
_OF_THE_TRANSPORT = {"host", "content-length", "transfer-encoding"}


class Request:
    """What is sent: `target` is the path with its query string, `encoding` what the body is compressed with on its way.

    `timeout_s` limits the whole exchange. `may_repeat` says that doing it twice does no harm: then it is sent again, once, when
    a connection that had been idle turns out to be closed.
    """

    __slots__ = ("body", "encoding", "headers", "may_repeat", "method", "on_progress", "target", "timeout_s")

    def __init__(
        self,
        method: str,
        target: str,
        headers: Headers = (),
        body: RequestBody = None,
        timeout_s: float | None = None,
        may_repeat: bool = False,
        encoding: str | None = None,
        on_progress: Callable[[str], object] | None = None,
    ) -> None:
        self.method = method
        self.target = target
        self.headers = headers
        self.body = body
        self.timeout_s = timeout_s
        self.may_repeat = may_repeat
        self.encoding = encoding
        self.on_progress = on_progress


class HeadMaker:
    """Makes the heads of requests to one server."""

    def __init__(self, options: HttpOptions, proxy: Proxy | None) -> None:
        forwarded = proxy is not None and options.scheme == "http"
        self._target_prefix = f"http://{options.authority}" if forwarded else ""
        own = [("Host", options.server_host_name or options.authority)]
        if forwarded and proxy is not None and proxy.authorization:
            own.append(("Proxy-Authorization", proxy.authorization))
        self._own_lines = header_lines(own)
        self._lines = self._own_lines

    def set_headers(self, headers: Headers) -> None:
        """The fields that every request has."""
        self._lines = self._own_lines + header_lines(own_fields_left_out(headers))

    def head(self, request: Request, length: int | None) -> bytes:
        """The head of a request; a length of None means that the body comes in chunks."""
        target = request.target
        if _NOT_IN_TARGET.search(target):
            raise ProgrammingError("A request's target has characters that must be quoted")
        start = f"{request.method} {self._target_prefix}{target} HTTP/1.1\r\n".encode("ascii")
        lines = header_lines(request.headers) if request.headers else b""
        if request.encoding:
            lines += b"Content-Encoding: %s\r\n" % request.encoding.encode("ascii")
        if length is None:
            return b"%b%b%bTransfer-Encoding: chunked\r\n\r\n" % (start, self._lines, lines)
        if not length and request.method == "GET":
            return b"%b%b%b\r\n" % (start, self._lines, lines)
        return b"%b%b%bContent-Length: %d\r\n\r\n" % (start, self._lines, lines, length)


def own_fields_left_out(headers: Headers) -> list[tuple[str, str]]:
    """Without the fields that the transport sets."""
    return [(name, value) for name, value in headers if name.lower() not in _OF_THE_TRANSPORT]


def header_lines(headers: Headers) -> bytes:
    """Header fields as bytes; what would break out of its line is refused."""
    lines = []
    for name, value in headers:
        if not name or _NOT_IN_NAME.search(name) or _NOT_IN_VALUE.search(value):
            raise ProgrammingError(f"{name!r} can't be sent as a header: it has characters that no header may have")
        lines.append(f"{name}: {value}\r\n")
    return "".join(lines).encode()


def connect_head(options: HttpOptions, proxy: Proxy) -> bytes:
    """Asks a proxy for a tunnel."""
    fields = [("Host", options.authority)]
    if proxy.authorization:
        fields.append(("Proxy-Authorization", proxy.authorization))
    return f"CONNECT {options.authority} HTTP/1.1\r\n".encode("ascii") + header_lines(fields) + b"\r\n"


def pieces_of(body: RequestBody) -> list[Bytes] | None:
    """The pieces of a body that is there already; None for one that is still to be made."""
    if body is None:
        return []
    if isinstance(body, (bytes, bytearray, memoryview)):
        return [body]
    if isinstance(body, (list, tuple)):
        return list(body)
    return None


def byte_count(pieces: list[Bytes]) -> int:
    """The length of a body in pieces."""
    return sum(piece.nbytes if isinstance(piece, memoryview) else len(piece) for piece in pieces)


def compressed(pieces: list[Bytes], encoding: str) -> list[Bytes]:
    """The pieces as one compressed body."""
    compressor = Compressor(encoding)
    made: list[Bytes] = [compressor.step(piece if isinstance(piece, bytes) else bytes(piece)) for piece in pieces]
    made.append(compressor.finish())
    return [piece for piece in made if len(piece)]
