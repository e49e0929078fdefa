"""What a group has committed, and a commit for it, byte by byte: librdkafka's Python reads and writes the metadata of an
offset beyond its end."""

from __future__ import annotations

import socket
import struct
from dataclasses import dataclass

OFFSET_COMMIT, COMMIT_VERSION = 8, 2
OFFSET_FETCH, VERSION = 9, 1
FIND_COORDINATOR, FIND_VERSION = 10, 0
# It loads its groups, or has none to load yet.
NO_COORDINATOR = (14, 15, 16)
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
    return parsed(asked_of(host, port, OFFSET_FETCH, VERSION, body))


def commit(host: str, port: int, group: str, topic: str, partition: int, offset: Offset) -> None:
    """By nobody who is a member: the group must have none."""
    no_generation, as_long_as_others = -1, -1
    who = text(group) + struct.pack(">i", no_generation) + text("") + struct.pack(">q", as_long_as_others)
    body = struct.pack(">i", 1) + text(topic) + struct.pack(">iiq", 1, partition, offset.offset) + text(offset.metadata)
    # A broker begins to keep groups when somebody looks for one.
    asked_of(host, port, FIND_COORDINATOR, FIND_VERSION, text(group))
    answer = asked_of(host, port, OFFSET_COMMIT, COMMIT_VERSION, who + body)
    [error] = struct.unpack(">h", answer[-2:])
    if error in NO_COORDINATOR:
        raise CommittedUnknown(f"the broker answers error {error}")
    assert not error, f"the broker answers error {error}"


def asked_of(host: str, port: int, api: int, version: int, body: bytes) -> bytes:
    request = struct.pack(">hhi", api, version, 0) + text("tests") + body
    with socket.create_connection((host, port), SECONDS) as connection:
        connection.sendall(struct.pack(">i", len(request)) + request)
        with connection.makefile("rb") as answer:
            size, _ = struct.unpack(">ii", answer.read(8))
            return answer.read(size - 4)


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
