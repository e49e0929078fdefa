"""Small helpers over a client."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from windrow._async.client import AsyncClient
from windrow._shared.identifiers import quote_identifier
from windrow._shared.summary import QuerySummary
from windrow._sync.client import Client

__all__ = ["insert_file", "insert_file_async"]


def insert_file(
    client: Client,
    table: str,
    file_path: str,
    fmt: str | None = None,
    column_names: Sequence[str] | None = None,
    database: str | None = None,
    settings: dict[str, Any] | None = None,
    compression: str | None = None,
) -> QuerySummary:
    """Inserts a file as it is: CSV with a header line unless `fmt` or `column_names` say otherwise; *.gz is gzip."""
    with Path(file_path).open("rb") as file:
        return client.raw_insert(
            full_name(table, database),
            column_names=column_names,
            insert_block=file,
            fmt=fmt or ("CSV" if column_names else "CSVWithNames"),
            settings=settings,
            compression=compression or compression_of(file_path),
        )


async def insert_file_async(
    client: AsyncClient,
    table: str,
    file_path: str,
    fmt: str | None = None,
    column_names: Sequence[str] | None = None,
    database: str | None = None,
    settings: dict[str, Any] | None = None,
    compression: str | None = None,
) -> QuerySummary:
    """As insert_file, with an asynchronous client."""
    content = await asyncio.get_running_loop().run_in_executor(None, Path(file_path).read_bytes)
    return await client.raw_insert(
        full_name(table, database),
        column_names=column_names,
        insert_block=content,
        fmt=fmt or ("CSV" if column_names else "CSVWithNames"),
        settings=settings,
        compression=compression or compression_of(file_path),
    )


def full_name(table: str, database: str | None) -> str:
    """The table as it stands in the INSERT."""
    if database:
        return ".".join(map(quote_identifier, (database, table)))
    return table if table[0] not in "`'" and "." in table else quote_identifier(table)


def compression_of(file_path: str) -> str | None:
    """What the file's name says."""
    return "gzip" if file_path.endswith((".gz", ".gzip")) else None
