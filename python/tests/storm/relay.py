"""A relay in front of a server that cuts connections in both directions at random places. It has a thread and a loop of its
own, so that what it does can't be delayed by the program under test.
"""

from __future__ import annotations

import asyncio
import random
import threading

CHUNK_BYTES = 64 << 10


class CuttingRelay:
    """`port` listens on loopback; about one in `one_in` connections is cut after a random number of bytes."""

    def __init__(self, host: str, port: int, seed: int, one_in: int, longest_life_bytes: int = 400_000) -> None:
        self.target = host, port
        self.chance = random.Random(seed)
        self.one_in = one_in
        self.longest_life_bytes = longest_life_bytes
        self.cut = 0
        self.ends: set[asyncio.StreamWriter] = set()
        self.loop = asyncio.new_event_loop()
        self.listening = threading.Event()
        self.thread = threading.Thread(target=self._run, name="cutting-relay", daemon=True)
        self.thread.start()
        self.listening.wait()

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        server = self.loop.run_until_complete(asyncio.start_server(self._serve, "127.0.0.1", 0))
        self.port = server.sockets[0].getsockname()[1]
        self.listening.set()
        self.loop.run_forever()
        server.close()
        for end in list(self.ends):
            end.transport.abort()
        self.loop.run_until_complete(asyncio.gather(*asyncio.all_tasks(self.loop)))
        self.loop.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            upstream_reader, upstream_writer = await asyncio.open_connection(*self.target)
        except OSError:
            writer.transport.abort()
            return
        doomed = self.chance.randrange(self.one_in) == 0
        life = [self.chance.randrange(1, self.longest_life_bytes) if doomed else None]
        ends = [writer, upstream_writer]
        self.ends.update(ends)
        await asyncio.gather(
            self._copy(reader, upstream_writer, life, ends), self._copy(upstream_reader, writer, life, ends)
        )

    async def _copy(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        life: list[int | None],
        ends: list[asyncio.StreamWriter],
    ) -> None:
        try:
            while data := await reader.read(CHUNK_BYTES):
                left = life[0]
                if left is not None:
                    if len(data) >= left:
                        writer.write(data[:left])
                        self.cut += 1
                        raise ConnectionResetError
                    life[0] = left - len(data)
                writer.write(data)
                await writer.drain()
        except OSError:
            pass
        finally:
            self.ends.difference_update(ends)
            for end in ends:
                end.transport.abort()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
