"""Programs written for clickhouse-connect's async client, which run with the package as a parameter."""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

Body = Callable[..., Awaitable[Any]]


@dataclass
class Run:
    """What a program gets: the package under one of its two names, and a client of it."""

    package: ModuleType
    where: dict[str, Any]
    folder: Path
    client: Any = None
    opened: list[Any] = field(default_factory=list)

    def module(self, path: str) -> ModuleType:
        """`driver.exceptions` of whichever package it is."""
        return importlib.import_module(f"{self.package.__name__}.{path}")

    async def connect(self, **arguments: Any) -> Any:
        """Another client, closed when the program has ended."""
        self.opened.append(await self.package.get_async_client(**{**self.where, **arguments}))
        return self.opened[-1]

    def connect_sync(self, **arguments: Any) -> Any:
        return self.package.get_client(**{**self.where, **arguments})

    async def table(self, columns: str, name: str = "t", more: str = "ENGINE MergeTree ORDER BY tuple()") -> None:
        await self.client.command(f"CREATE TABLE {name} ({columns}) {more}")

    async def stored(self, query: str = "SELECT * FROM t ORDER BY ALL") -> str:
        """What ClickHouse has, in its own words."""
        return (await self.client.raw_query(query, fmt="TabSeparatedWithNamesAndTypes")).decode("utf-8", "backslashreplace")

    async def raises(self, doing: Awaitable[Any]) -> Any:
        """The error of something that should fail; the kind of its answer, if it didn't."""
        try:
            return f"no error, but a {type(await doing).__name__}"
        except Exception as error:
            return error


@dataclass(frozen=True)
class Program:
    name: str
    body: Body
    arguments: tuple[Any, ...]


PROGRAMS: list[Program] = []


def program(body: Body) -> Body:
    PROGRAMS.append(Program(body.__name__, body, ()))
    return body


def program_for(**cases: Any) -> Callable[[Body], Body]:
    """One program for each case, which it gets as its second argument."""

    def mark(body: Body) -> Body:
        for name, case in cases.items():
            PROGRAMS.append(Program(f"{body.__name__}[{name}]", body, (case,)))
        return body

    return mark


@contextlib.asynccontextmanager
async def run_of(package: str, where: dict[str, Any], folder: Path) -> AsyncIterator[Run]:
    run = Run(importlib.import_module(package), where, folder)
    run.client = await run.connect()
    try:
        yield run
    finally:
        for client in reversed(run.opened):
            await client.close()
