"""What a group has committed, asked of the broker byte by byte: librdkafka's Python reads the metadata of an offset beyond its end."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

OFFSET_FETCH, VERSION = 9, 1
SECONDS = 30


@dataclass(frozen=True)
class Offset:
    """`offset` is -1 where nothing is committed."""

    offset: int
    metadata: str


def committed(host: str, port: int, group: str, topic: str, partitions: list[int]) -> dict[int, Offset]:
    """The broker has to be the group's coordinator, as a single one is."""
    asked = b"".join(struct.pack(">i", partition) for partition in partitions)
    body = text(group) + struct.pack(">i", 1) + text(topic) + struct.pack(">i", len(partitions)) + asked
    request = struct.pack(">hhi", OFFSET_FETCH, VERSION, 0) + text("tests") + body
    with socket.create_connection((host, port), SECONDS) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as answer:
            size, _ = struct.unpack(">ii", answer.read(8))
            return parsed(answer.read(size - 4))


def parsed(answer: bytes) -> dict[int, Offset]:
    """Of one topic. One that the group doesn't know is not there."""
    found: dict[int, Offset] = {}
    [topics] = struct.unpack_from(">i", answer)
    if not topics:
        return found
    [length] = struct.unpack_from(">h", answer, 4)
    at = 6 + length
    [partitions] = struct.unpack_from(">i", answer, at)
    at += 4
    for _ in range(partitions):
        partition, offset, length = struct.unpack_from(">iqh", answer, at)
        at += 14
        metadata = answer[at : at + max(length, 0)]
        at += max(length, 0)
        [error] = struct.unpack_from(">h", answer, at)
        at += 2
        # A coordinator that has just begun reads its groups first.
        if error:
            raise CommittedUnknown(f"the broker answers error {error} for partition {partition}")
        found[partition] = Offset(offset, metadata.decode())
    return found


class CommittedUnknown(Exception):
    """For now: it may be asked again."""


def text(value: str) -> bytes:
    encoded = value.encode()
    return struct.pack(">h", len(encoded)) + encoded
