"""ClickHouse's native protocol byte by byte: for what no well-behaved client sends."""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

import lz4.block
from clickhouse_cityhash.cityhash import CityHash128
from harness.endpoint import Endpoint

NEWEST = 54488
HELLO, QUERY, DATA, CANCEL, PING, TABLES_STATUS, SCALAR = 0, 1, 2, 3, 4, 5, 7
EXCEPTION, PROGRESS, PONG, END_OF_STREAM, PROFILE_INFO, TABLES_STATUS_RESPONSE = 2, 3, 4, 5, 6, 9
LOG, TABLE_COLUMNS, PROFILE_EVENTS, TIMEZONE_UPDATE = 10, 11, 14, 17
SERVER_DATA = 1
SECONDS = 60


def varint(number: int) -> bytes:
    out = bytearray()
    while number >= 0x80:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


def text(value: str | bytes) -> bytes:
    value = value.encode() if isinstance(value, str) else value
    return varint(len(value)) + value


@dataclass
class Packet:
    kind: int
    # Of an exception.
    code: int | None = None
    message: str = ""
    # All of it, as it came, but for its type.
    body: bytes = b""


@dataclass
class Column:
    name: str
    type: str
    values: bytes


@dataclass
class Native:
    """One connection. Bytes go out when they are sent, packets come in when they are asked for."""

    server: Endpoint
    revision: int = NEWEST
    name: str = "a test"
    user: str | None = None
    password: str | None = None
    compressed: bool = False
    # What the client says of the packets that it sends, and of those that it takes.
    framing: tuple[str, str] = ("notchunked", "notchunked")
    agreed: int = 0
    greeting: bytes = b""
    read_bytes: bytearray = field(default_factory=bytearray)
    # What the server says of the packets that it sends, and of those that it takes.
    offered_framing: tuple[str, ...] = ()
    is_framed: bool = False
    # Of the chunk that comes in. Behind a packet's last byte, and before its first, there is none.
    chunk_left: int = 0

    def __post_init__(self) -> None:
        self.socket = socket.create_connection((self.server.host, self.server.port), timeout=SECONDS)

    def __enter__(self) -> Native:
        return self

    def __exit__(self, *_: object) -> None:
        # First the end, then the reset that follows if something was not read: at a reset alone, a ClickHouse 26.7 that runs as a
        # library aborts.
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_WR)
        self.socket.close()

    # What is sent.

    def send(self, data: bytes, chunk: int = 1 << 20) -> None:
        """Whole packets; where they go in chunks, in such of so many bytes."""
        if self.is_framed and self.framing[0] == "chunked":
            data = b"".join(struct.pack("<I", len(part)) + part for part in pieces(data, chunk)) + bytes(4)
        self.socket.sendall(data)

    def hello(self) -> bytes:
        user = self.server.user if self.user is None else self.user
        password = self.server.password if self.password is None else self.password
        head = varint(HELLO) + text(self.name) + varint(26) + varint(7) + varint(self.revision)
        return head + text(self.server.database) + text(user) + text(password)

    def addendum(self) -> bytes:
        out = text("") if self.agreed >= 54458 else b""
        out += text(self.framing[0]) + text(self.framing[1]) if self.agreed >= 54470 else b""
        return out + (varint(8) if self.agreed >= 54471 else b"")

    def query(
        self,
        sql: str,
        settings: dict[str, str] | None = None,
        query_id: str = "",
        important: bool = False,
        secondary: bool = False,
    ) -> bytes:
        """`secondary`: as a server that has it from its own client."""
        revision = self.agreed
        out = varint(QUERY) + text(query_id) + (b"\x02" if secondary else b"\x01") + text("") + text("") + text("0.0.0.0:0")
        out += bytes(8) if revision >= 54449 else b""
        out += b"\x01" + text("me") + text("here") + text(self.name) + varint(26) + varint(7) + varint(self.revision) + text("")
        out += varint(0) if revision >= 54448 else b""
        out += varint(1)
        out += b"\x00" if revision >= 54442 else b""
        out += bytes(3) if revision >= 54453 else b""
        out += bytes(2) if revision >= 54475 else b""
        out += b"\x00" if revision >= 54476 else b""
        out += text("") if revision >= 54485 else b""
        out += b"\x00" if revision >= 54486 else b""
        out += b"\x00" if revision >= 54488 else b""
        for name, value in (settings or {}).items():
            out += text(name) + varint(1 if important else 0) + text(value)
        out += text("")
        out += text(b"\x00") if revision >= 54472 else b""
        out += text("") if revision >= 54441 else b""
        out += varint(2) + varint(int(self.compressed)) + text(sql)
        return out + (text("") if revision >= 54459 else b"")

    def block(self, columns: Iterable[Column] = (), rows: int = 0) -> bytes:
        columns = list(columns)
        out = b"\x01\x00\x02\xff\xff\xff\xff" + (b"\x03\x00" if self.agreed >= 54480 else b"") + b"\x00"
        out += varint(len(columns)) + varint(rows)
        for column in columns:
            out += text(column.name) + text(column.type) + (b"\x00" if self.agreed >= 54454 else b"") + column.values
        return out

    def data(self, columns: Iterable[Column] = (), rows: int = 0) -> bytes:
        block = self.block(columns, rows)
        return varint(DATA) + text("") + (frame(block) if self.compressed else block)

    def start(self) -> Native:
        """Shakes hands."""
        self.send(self.hello())
        packet = self.packet(greeting=True)
        if packet.kind != HELLO:
            raise EOFError(packet.message)
        # Answered when the server has read the addendum. (Left before, a ClickHouse 26.7 may look for the database when it is gone,
        # and aborts then.)
        self.send(self.addendum())
        self.is_framed = True
        self.send(varint(PING))
        assert self.packet().kind == PONG
        return self

    def begin_insert(self, sql: str, settings: dict[str, str] | None = None, **more: object) -> list[Packet]:
        """What comes before an insert's blocks: up to the header, or to an error."""
        self.send(self.query(sql, settings, **more) + self.data())
        return self.up_to(SERVER_DATA, EXCEPTION)

    def insert(
        self, sql: str, columns: Iterable[Column], rows: int, settings: dict[str, str] | None = None, **more: object
    ) -> list[Packet]:
        packets = self.begin_insert(sql, settings, **more)
        if packets[-1].kind == EXCEPTION:
            return packets
        self.send(self.data(columns, rows) + self.data())
        return packets + self.up_to(END_OF_STREAM, EXCEPTION)

    # What comes.

    def up_to(self, *kinds: int) -> list[Packet]:
        packets = [self.packet()]
        while packets[-1].kind not in kinds:
            packets.append(self.packet())
        return packets

    def packet(self, greeting: bool = False) -> Packet:
        self.read_bytes.clear()
        kind = self._varint()
        self.read_bytes.clear()
        packet = Packet(kind)
        if greeting and kind == HELLO:
            self._greeting()
        elif kind == EXCEPTION:
            packet.code = struct.unpack("<i", self._take(4))[0]
            self._text()
            packet.message = self._text().decode()
            self._text()
            self._take(1)
        elif kind == PROGRESS:
            for _ in range(5 + (self.agreed >= 54463) + (self.agreed >= 54460)):
                self._varint()
        elif kind == PROFILE_INFO:
            self._varint(), self._varint(), self._varint(), self._take(1), self._varint(), self._take(1)
            if self.agreed >= 54469:
                self._take(1), self._varint()
        elif kind == TIMEZONE_UPDATE:
            self._text()
        elif kind == TABLES_STATUS_RESPONSE:
            for _ in range(self._varint()):
                self._text(), self._text()
                if self._take(1) != b"\x00":
                    self._varint(), self._varint() if self.agreed >= 54467 else None
        elif kind == TABLE_COLUMNS:
            framed = self.compressed and self.agreed >= 54481
            packet.body = self._frame() if framed else self._text() + self._text()
            return packet
        elif kind in (SERVER_DATA, LOG, PROFILE_EVENTS):
            framed = self.compressed and (kind == SERVER_DATA or self.agreed >= 54481)
            self._text()
            packet.body = self._frame() if framed else self._block()
            return packet
        else:
            assert kind in (PONG, END_OF_STREAM), f"packet {kind}"
        packet.body = bytes(self.read_bytes)
        return packet

    def closed(self) -> bool:
        """Whether the server closes without another word."""
        try:
            return self.socket.recv(1) == b""
        except ConnectionResetError:
            return True

    def _greeting(self) -> None:
        self._text(), self._varint(), self._varint()
        self.agreed = min(self._varint(), self.revision)
        if self.agreed >= 54471:
            self._varint()
        self._text(), self._text(), self._varint()
        if self.agreed >= 54470:
            start = len(self.read_bytes)
            self.offered_framing = (self._text().decode(), self._text().decode())
            del self.read_bytes[start:]
        if self.agreed >= 54461:
            for _ in range(self._varint()):
                self._text(), self._text()
        self.greeting = bytes(self.read_bytes)
        if self.agreed >= 54462:
            self._take(8)
        if self.agreed >= 54474:
            while self._text():
                self._varint(), self._text()
        if self.agreed >= 54477:
            self._varint()
        if self.agreed >= 54479:
            self._varint()

    def _block(self) -> bytes:
        """A block as far as headers, logs and counters have it."""
        start = len(self.read_bytes)
        while field_number := self._varint():
            match field_number:
                case 1:
                    self._take(1)
                case 2:
                    self._take(4)
                case 3:
                    self._take(4 * self._varint())
        columns, rows = self._varint(), self._varint()
        for _ in range(columns):
            self._text()
            kind = self._text().decode()
            if self.agreed >= 54454:
                assert self._take(1) == b"\x00"
            widths = {"UInt8": 1, "Int8": 1, "DateTime": 4, "UInt32": 4, "UInt64": 8, "Int64": 8}
            for _ in range(rows):
                if kind == "String":
                    self._text()
                else:
                    self._take(1 if kind.startswith("Enum8") else widths[kind.split("(")[0]])
        return bytes(self.read_bytes[start:])

    def _frame(self) -> bytes:
        head = self._take(25)
        size, raw = struct.unpack("<II", head[17:25])
        packed = self._take(size - 9)
        return packed if head[16] == 2 else lz4.block.decompress(packed, uncompressed_size=raw)

    def _take(self, count: int) -> bytes:
        out = b""
        if self.is_framed and self.framing[1] == "chunked":
            while len(out) < count:
                while not self.chunk_left:
                    self.chunk_left = struct.unpack("<I", self._receive(4))[0]
                part = self._receive(min(self.chunk_left, count - len(out)))
                self.chunk_left -= len(part)
                out += part
        else:
            out = self._receive(count)
        self.read_bytes += out
        return out

    def _receive(self, count: int) -> bytes:
        out = bytearray()
        while len(out) < count:
            more = self.socket.recv(count - len(out))
            if not more:
                raise EOFError(f"the server closed after {bytes(self.read_bytes + out)!r}")
            out += more
        return bytes(out)

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._take(1)[0]
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return number

    def _text(self) -> bytes:
        return self._take(self._varint())


def pieces(data: bytes, most: int) -> list[bytes]:
    return [data[at : at + most] for at in range(0, len(data), most)]


def frame(raw: bytes, method: int = 0x82) -> bytes:
    """A compressed block, with its checksum."""
    packed = raw if method == 2 else lz4.block.compress(raw, store_size=False)
    checked = bytes([method]) + struct.pack("<II", len(packed) + 9, len(raw)) + packed
    return with_checksum(checked)


def with_checksum(checked: bytes) -> bytes:
    both = CityHash128(checked)
    return struct.pack("<QQ", both >> 64, both & (2**64 - 1)) + checked


def numbers(name: str, values: Iterable[int]) -> Column:
    return Column(name, "UInt64", b"".join(struct.pack("<Q", value) for value in values))
