"""A gateway in front of DuckDB, and one in front of ClickHouse, as the same tests see them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

# A row's place in ClickHouse: parts in the order in which they were made, rows in the order of their part.
IN_PARTS = "toUInt64(splitByChar('_', _part)[-3]), _part_offset"


@dataclass
class Backend:
    """`where` are the arguments of a client of it."""

    name: str
    where: dict[str, Any]

    @property
    def is_duckdb(self) -> bool:
        return self.name == "duckdb"

    @property
    def place(self) -> str:
        """By what rows are ordered as they were stored."""
        return "rowid" if self.is_duckdb else IN_PARTS

    def create(self, table: str, columns: str) -> str:
        """The statement that makes a table; types are ClickHouse's or DuckDB's."""
        if self.is_duckdb:
            return f"CREATE TABLE {table} ({columns})"
        return f"CREATE TABLE {table} ({columns}) ENGINE = MergeTree ORDER BY tuple()"

    def create_numbered(self, table: str) -> str:
        """A table of a number and a text, named n and text."""
        return self.create(table, "n BIGINT, text VARCHAR" if self.is_duckdb else "n Int64, text String")

    def in_order(self, table: str) -> str:
        """The query for that table's rows as they were stored."""
        return f"SELECT n, text FROM {table} ORDER BY {self.place}"
