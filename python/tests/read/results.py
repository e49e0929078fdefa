"""Results in ClickHouse's Native format: fetched past the package, or made by hand; and what is seen of a value."""

from __future__ import annotations

from datetime import datetime, time, timezone
from typing import Any

from harness.endpoint import Endpoint

from windrow._core import Block, Decoder
from windrow._shared.reading import read_options

ROWS, COLUMNS, BLOCK = 0, 1, 2

SETTINGS = {
    "allow_suspicious_low_cardinality_types": 1,
    "enable_time_time64_type": 1,
    "allow_experimental_variant_type": 1,
    "allow_experimental_dynamic_type": 1,
    "allow_experimental_json_type": 1,
    "allow_experimental_qbit_type": 1,
}
# What the client sends with every query.
AS_CLIENT = {
    "client_protocol_version": 54405,
    "output_format_native_use_flattened_dynamic_and_json_serialization": 1,
    "cast_string_to_dynamic_use_inference": 1,
    "default_format": "Native",
}


def native(endpoint: Endpoint, query: str, **settings: object) -> bytes:
    """The bytes of a result."""
    reply = endpoint.request(None, query.encode(), settings={**SETTINGS, **AS_CLIENT, **settings})
    assert reply.status == 200, reply.text
    return reply.body


def options(**arguments: Any) -> Any:
    """Options as a client makes them that found a server in UTC."""
    return read_options(**{"server_tz": timezone.utc, "apply_server_tz": True, **arguments})


def decoder(data: bytes, **arguments: Any) -> Decoder:
    return Decoder.of_bytes(data, options(**arguments))


def rows(data: bytes, **arguments: Any) -> list[tuple[Any, ...]]:
    reading = decoder(data, **arguments)
    found = [row for block in reading.advance(ROWS) for row in block]
    reading.finish()
    return found


def columns(data: bytes, **arguments: Any) -> list[list[Any]]:
    reading = decoder(data, **arguments)
    blocks = reading.advance(COLUMNS)
    reading.finish()
    return [sum(parts, []) for parts in zip(*blocks, strict=True)]


def blocks(data: bytes, **arguments: Any) -> list[Block]:
    return decoder(data, **arguments).advance(BLOCK)


def block_of(count: int, *named: tuple[str, str, bytes]) -> bytes:
    """A block by hand: for each column its name, its type and the bytes of its values."""
    made = b"\x01\x00\x02\xff\xff\xff\xff\x00" + varint(len(named)) + varint(count)
    for name, type_name, data in named:
        made += text(name) + text(type_name) + data
    return made


def text(value: str | bytes) -> bytes:
    encoded = value.encode() if isinstance(value, str) else value
    return varint(len(encoded)) + encoded


def varint(value: int) -> bytes:
    made = b""
    while value > 0x7F:
        made += bytes([value & 0x7F | 0x80])
        value >>= 7
    return made + bytes([value])


def told(value: Any) -> Any:
    """All that there is to see of a value: its class, its zone, its fold, the sign of its zero."""
    if isinstance(value, (datetime, time)):
        return type(value).__name__, value.replace(tzinfo=None), str(value.tzinfo), value.fold, value.utcoffset()
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [told(element) for element in value]
    if isinstance(value, dict):
        return "dict", sorted((repr(key), told(element)) for key, element in value.items())
    return type(value).__name__, repr(value)
