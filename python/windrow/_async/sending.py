"""Bodies that don't fit into one write: sent as fast as the server takes them, and no further than it wants them.

An answer that comes before the end of the request is an error as a rule (the table doesn't exist, a value can't be parsed):
the rest isn't sent, and the connection, which has half a request in it, isn't used again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Iterable
from typing import Any, cast

from windrow._async.connection import Connection
from windrow._core import Compressor, Exchange
from windrow._shared.http_request import Bytes, Request
from windrow._shared.workers import Workers

PIECE_BYTES = 256 << 10
JOINED_BYTES = 64 << 10
INLINE_COMPRESSION_BYTES = 32 << 10


async def send_pieces(connection: Connection, exchange: Exchange, head: bytes, pieces: list[Bytes]) -> None:
    """Sends a body that is there."""
    connection.transport.write(head)
    for piece in pieces:
        with memoryview(piece) as whole, whole.cast("B") as view:
            for start in range(0, len(view), PIECE_BYTES):
                if not await has_room(connection, exchange):
                    connection.sending_stopped()
                    return
                connection.transport.write(view[start : start + PIECE_BYTES])
                # Eight large bodies at once, each as fast as the network takes it, would leave others no turn for milliseconds.
                await asyncio.sleep(0)
    await end_sending(connection, exchange, b"")


async def send_made(
    connection: Connection, exchange: Exchange, head: bytes, request: Request, workers: Workers
) -> None:
    """Sends a body while it is made; an exception of its maker ends the request."""
    maker = pieces_made(request.body, workers)
    if request.encoding and getattr(request.body, "encoding", None) != request.encoding:
        maker = compressed_while_made(maker, request.encoding, workers)
    connection.transport.write(head)
    try:
        while True:
            # As long as we are the ones to speak, the server's silence means nothing.
            connection.patient = True
            piece = await next_piece(maker)
            connection.patient = False
            connection.heard()
            if piece is None:
                break
            if not await has_room(connection, exchange):
                connection.sending_stopped()
                return
            if len(piece):
                write_chunk(connection, piece)
        await end_sending(connection, exchange, b"0\r\n\r\n")
    finally:
        close = getattr(maker, "aclose", None)
        if close is not None:
            await close()


def write_chunk(connection: Connection, piece: Bytes) -> None:
    """Not by writelines: before Python 3.12.9 and 3.13.2 it never tells that the buffer is full (CVE-2024-12254)."""
    size = piece.nbytes if isinstance(piece, memoryview) else len(piece)
    if size <= JOINED_BYTES:
        connection.transport.write(b"".join((b"%x\r\n" % size, piece, b"\r\n")))
        return
    connection.transport.write(b"%x\r\n" % size)
    connection.transport.write(piece)
    connection.transport.write(b"\r\n")


async def end_sending(connection: Connection, exchange: Exchange, last: bytes) -> None:
    """Sends the last piece; what is left in the transport's buffer then goes out by itself."""
    if await has_room(connection, exchange):
        connection.transport.write(last)
        connection.request_sent()
    else:
        connection.sending_stopped()


async def has_room(connection: Connection, exchange: Exchange) -> bool:
    """Waits for room; False if sending makes no sense any more."""
    await connection.writable()
    if connection.gone or exchange.ended:
        return False
    return not exchange.status or exchange.status < 400


async def next_piece(maker: AsyncIterator[Bytes]) -> Bytes | None:
    """None at the end."""
    try:
        return await maker.__anext__()
    except StopAsyncIteration:
        return None


def pieces_made(body: Any, workers: Workers) -> AsyncIterator[Bytes]:
    """An asynchronous iterator over any body; synchronous ones are asked on a worker thread."""
    if hasattr(body, "__aiter__"):
        return cast(AsyncIterable[Bytes], body).__aiter__()
    return made_on_workers(body, workers)


async def made_on_workers(body: Iterable[Bytes], workers: Workers) -> AsyncIterator[Bytes]:
    """What a synchronous iterable gives."""
    loop = asyncio.get_running_loop()
    end = object()
    iterator = iter(body)
    while True:
        piece = await loop.run_in_executor(workers.executor, next, iterator, end)
        if piece is end:
            return
        yield cast(Bytes, piece)


async def compressed_while_made(maker: AsyncIterator[Bytes], encoding: str, workers: Workers) -> AsyncIterator[Bytes]:
    """The same body, compressed."""
    loop = asyncio.get_running_loop()
    compressor = Compressor(encoding)
    try:
        async for piece in maker:
            data = piece if isinstance(piece, bytes) else bytes(piece)
            if len(data) <= INLINE_COMPRESSION_BYTES:
                yield compressor.step(data)
            else:
                yield await loop.run_in_executor(workers.executor, compressor.step, data)
    finally:
        close = getattr(maker, "aclose", None)
        if close is not None:
            await close()
    yield compressor.finish()
