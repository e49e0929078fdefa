"""Messages of one schema in protobuf, written by hand: `uint64 id = 1; string name = 2; double value = 3`."""

from __future__ import annotations

import struct


def varint(value: int) -> bytes:
    written = b""
    while value > 0x7F:
        written += bytes([value & 0x7F | 0x80])
        value >>= 7
    return written + bytes([value])


def event(id: int, name: str, value: float = 1.5) -> bytes:
    text = name.encode()
    return b"\x08" + varint(id) + b"\x12" + varint(len(text)) + text + b"\x19" + struct.pack("<d", value)


def field(number: int, content: bytes) -> bytes:
    """Of a text, or of a message in another."""
    return bytes([number << 3 | 2]) + varint(len(content)) + content


def delimited(message: bytes) -> bytes:
    """With its length before it, as many of them stand one after the other."""
    return varint(len(message)) + message
