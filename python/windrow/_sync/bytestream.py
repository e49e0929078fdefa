"""What raw_stream gives: a file of bytes that come from the server while it is read."""

from __future__ import annotations

import io
from collections.abc import Iterator

from windrow._sync.streams import StreamSource


class Pieces(io.RawIOBase):
    """The pieces as a file without a buffer."""

    def __init__(self, source: StreamSource, pieces: Iterator[bytes]) -> None:
        super().__init__()
        self.source = source
        self._pieces = pieces
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: bytearray | memoryview) -> int:  # type: ignore[override]
        if not self._left:
            self._left = memoryview(next(self._pieces, b""))
        size = min(len(buffer), len(self._left))
        buffer[:size] = self._left[:size]
        self._left = self._left[size:]
        return size

    def close(self) -> None:
        if not self.closed:
            super().close()
            self.source.close()


class ByteStream(io.BufferedReader):
    """A file to read from, or to iterate over line by line; closing it early stops the query."""

    def __init__(self, source: StreamSource, pieces: Iterator[bytes]) -> None:
        super().__init__(Pieces(source, pieces), 1 << 18)
        self.source = source
