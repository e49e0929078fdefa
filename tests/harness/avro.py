"""Avro's encoding, as far as tests write it by hand."""

from __future__ import annotations

import json


def long(value: int) -> bytes:
    """Also an int, the branch of a union, or the place of a symbol in an enum."""
    left, written = (value << 1) ^ (value >> 63), b""
    while left > 0x7F:
        written += bytes([left & 0x7F | 0x80])
        left >>= 7
    return written + bytes([left])


def text(value: bytes) -> bytes:
    return long(len(value)) + value


def blocks(*elements: bytes) -> bytes:
    """An array, or a map of keys with values, in one block."""
    return (long(len(elements)) + b"".join(elements) if elements else b"") + long(0)


def avro_file(schema: object, *rows: bytes) -> bytes:
    """An object container file of one block."""
    mark, content = b"m" * 16, b"".join(rows)
    head = b"Obj\x01" + long(1) + text(b"avro.schema") + text(json.dumps(schema).encode()) + long(0) + mark
    return head + long(len(rows)) + text(content) + mark
