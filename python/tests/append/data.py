"""Rows to append, and rows as a server got them."""

from __future__ import annotations

import array
import asyncio
import io
from collections.abc import Callable, Iterator
from typing import Any

import pyarrow

from harness.appends import Append
from harness.eventually import eventually

NAMES = ["n", "text"]


def rows(count: int, first: int = 0) -> list[tuple[int, str]]:
    return [(number, f"row {number}") for number in range(first, first + count)]


def dicts(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [dict(zip(NAMES, row, strict=True)) for row in rows(count, first)]


def table(count: int, first: int = 0) -> pyarrow.Table:
    return pyarrow.Table.from_pylist(dicts(count, first), schema=schema())


def schema() -> pyarrow.Schema:
    return pyarrow.schema([("n", pyarrow.int64()), ("text", pyarrow.string())])


def read_back(append: Append) -> list[tuple[Any, ...]]:
    """What was committed, decoded."""
    found: list[tuple[Any, ...]] = []
    for body in append.committed:
        if append.formats == {"Native"}:
            found += of_native(body)
        else:
            found += [tuple(row.values()) for row in pyarrow.ipc.open_stream(body).read_all().to_pylist()]
    return found


def of_native(body: bytes) -> Iterator[tuple[int, str]]:
    """The rows of Native blocks of an Int64 and a String."""
    read = io.BytesIO(body)
    while read.tell() < len(body):
        columns, count = varint(read), varint(read)
        assert columns == 2
        assert [text(read), text(read)] == ["n", "Int64"]
        numbers = array.array("q", read.read(8 * count))
        assert [text(read), text(read)] == ["text", "String"]
        yield from [(number, text(read)) for number in numbers]


def text(read: io.BytesIO) -> str:
    return read.read(varint(read)).decode()


def varint(read: io.BytesIO) -> int:
    value = shift = 0
    while True:
        byte = read.read(1)[0]
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return value


async def until(holds: Callable[[], bool], what: str) -> None:
    """Waits beside the event loop."""
    await asyncio.get_running_loop().run_in_executor(None, lambda: eventually(holds, what))
