"""A relay between gateway and engine that lets a user come to the engine as another one, from one request to the next.

The embedded engine knows no GRANT, REVOKE or ALTER USER: its users are those of its start. Who loses a privilege, the password or
the account comes here as somebody who never had it, and every answer is the engine's own. Bodies pass as they are.
"""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator

from harness.relay import ON_THE_WAY_IN, PIECE_BYTES, Fault, Relay

END_OF_HEAD = b"\r\n\r\n"


class Disguise(Relay):
    def __init__(self, port: int):
        self.worn: dict[bytes, bytes] = {}
        self.held: tuple[bytes, ...] = ()
        self.holding = 0
        super().__init__(port, seed=0)

    def wear(self, user: str, other: str) -> None:
        """From now on, requests of `user` are `other`'s; their passwords stay as they are."""
        self.worn = {**self.worn, user.encode(): other.encode()}

    def hold(self, *users: str) -> None:
        """From now on, requests of users whose names begin so reach the engine never; `behave` cuts them off."""
        self.held = tuple(user.encode() for user in users)

    async def _pieces(self, source: asyncio.StreamReader, way: tuple[Fault, ...]) -> AsyncIterator[bytes]:
        if way is not ON_THE_WAY_IN:
            async for piece in super()._pieces(source, way):
                yield piece
            return
        try:
            while True:
                head = await source.readuntil(END_OF_HEAD)
                if self._is_held(head):
                    self.holding += 1
                    await self.behaving.wait()
                    return
                yield self._disguised(head)
                async for piece in body(head, source):
                    yield piece
        except asyncio.IncompleteReadError as ended:
            yield ended.partial

    def _is_held(self, head: bytes) -> bool:
        fields = [line.partition(b":") for line in head.split(b"\r\n")]
        users = [value.strip() for name, _, value in fields if name.lower() == b"x-clickhouse-user"]
        return bool(self.held) and any(user.startswith(self.held) for user in users)

    def _disguised(self, head: bytes) -> bytes:
        return b"\r\n".join(self._field(line) for line in head.split(b"\r\n"))

    def _field(self, line: bytes) -> bytes:
        name, _, value = line.partition(b":")
        if name.lower() == b"x-clickhouse-user":
            return name + b": " + self._other(value.strip())
        if name.lower() == b"authorization" and value.strip().lower().startswith(b"basic "):
            user, _, password = base64.b64decode(value.split()[1]).partition(b":")
            return name + b": Basic " + base64.b64encode(self._other(user) + b":" + password)
        return line

    def _other(self, user: bytes) -> bytes:
        return self.worn.get(user, user)


async def body(head: bytes, source: asyncio.StreamReader) -> AsyncIterator[bytes]:
    fields = dict(line.lower().split(b":", 1) for line in head.split(b"\r\n")[1:] if line)
    if b"chunked" in fields.get(b"transfer-encoding", b""):
        async for piece in chunks(source):
            yield piece
    else:
        async for piece in exactly(int(fields.get(b"content-length", b"0")), source):
            yield piece


async def chunks(source: asyncio.StreamReader) -> AsyncIterator[bytes]:
    size = 1
    while size:
        line = await source.readuntil(b"\r\n")
        size = int(line.split(b";")[0], 16)
        yield line
        async for piece in exactly(size, source):
            yield piece
        if size:
            yield await source.readexactly(2)
    # Trailers, of which there may be none, and the empty line.
    while line != b"\r\n":
        line = await source.readuntil(b"\r\n")
        yield line


async def exactly(length: int, source: asyncio.StreamReader) -> AsyncIterator[bytes]:
    while length:
        piece = await source.read(min(length, PIECE_BYTES))
        if not piece:
            return
        length -= len(piece)
        yield piece
