"""What kinds of writers there are, the tables that they insert into, and what an insert of theirs looks like."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from harness.native import Column, text

# Rows keep the number of the block they came in and their place in it, also through merges: the order of insertion can be asked for.
ORDERED = "enable_block_number_column = 1, enable_block_offset_column = 1"
COLUMNS = "writer UInt32, number UInt64, row UInt32, text String"
DUCKDB_COLUMNS = "writer UINTEGER NOT NULL, number UBIGINT NOT NULL, row UINTEGER NOT NULL, text VARCHAR NOT NULL"
POSTGRES_COLUMNS = (
    "writer bigint NOT NULL, number bigint NOT NULL, row bigint NOT NULL, text text NOT NULL, "
    "place bigint GENERATED ALWAYS AS IDENTITY"
)
MOST_ROWS = 4


@dataclass(frozen=True)
class Table:
    name: str
    clauses: str
    # In partitions block numbers are counted apart, so they say nothing of the order between them.
    ordered: bool = True
    constraint: str = ""
    # How many tables there are of it: a writer's inserts go into one after the other.
    copies: int = 1

    def names(self) -> list[str]:
        return [self.name] if self.copies == 1 else [f"{self.name}_{copy}" for copy in range(self.copies)]

    def name_for(self, writer: int, number: int) -> str:
        return self.names()[(writer * SCATTER + number) % self.copies]


PLAIN = Table("plain", f"ORDER BY tuple() SETTINGS {ORDERED}")
# The owner's window: ClickHouse deduplicates equal inserts into it, so a repeat needs no token.
WINDOW = Table("windowed", f"ORDER BY tuple() SETTINGS {ORDERED}, non_replicated_deduplication_window = 100000")
# Each insert of several rows goes into several partitions, which ClickHouse commits one after the other.
PARTED = Table("parted", "PARTITION BY row % 2 ORDER BY tuple()", ordered=False)
# One insert in so many is acknowledged and can't be stored: it has to become a dead letter, and no other with it. There must not be so
# many among the hundreds that pile up behind a kill that the search for them is given up, and others become letters with them.
POISON_ONE_IN = 200
# Writers go round copies of a table from places that are far from each other.
SCATTER = 37
CHECKED = Table(
    "checked", f"ORDER BY tuple() SETTINGS {ORDERED}", constraint=f", CONSTRAINT sound CHECK number % {POISON_ONE_IN} != 7"
)
TABLES = (PLAIN, WINDOW, PARTED, CHECKED)
MANY = Table("many", f"ORDER BY tuple() SETTINGS {ORDERED}", copies=300)

STORED = {"wait_for_async_insert": 1, "wait_for_async_insert_timeout": 20}
DISK = {"wait_for_async_insert": 0}
MEMORY = {"wait_for_async_insert": 0, "windrow_ack": "memory"}


# Blocks over the native protocol; all others are formats over HTTP.
NATIVE = "native"
FORMATS = ("JSONEachRow", "CSV", "Values", "RowBinary", NATIVE, NATIVE)
# Those that don't depend on the widths of numbers.
TEXT_FORMATS = ("JSONEachRow", "CSV", "Values")


@dataclass(frozen=True)
class Kind:
    name: str
    table: Table
    settings: dict[str, object] = field(default_factory=dict)
    token: bool = False
    # Sends an insert again until it is acknowledged, and some even after that: there has to be one of each.
    repeats: bool = False
    # One of these for each insert.
    formats: tuple[str, ...] = FORMATS
    # What is acknowledged has to be there. Without, at most once is all that is promised.
    kept: bool = True

    def is_poison(self, number: int) -> bool:
        return self.table is CHECKED and number % POISON_ONE_IN == 7


KINDS = (
    Kind("stored", PLAIN, STORED),
    Kind("disk", PLAIN, DISK),
    Kind("memory", PLAIN, MEMORY, kept=False),
    Kind("stored+token", PLAIN, STORED, token=True, repeats=True),
    Kind("disk+token", PLAIN, DISK, token=True, repeats=True),
    Kind("sync+token", PLAIN, {"async_insert": 0}, token=True, repeats=True),
    Kind("stored+window", WINDOW, STORED, repeats=True),
    Kind("disk+window", WINDOW, DISK, repeats=True),
    Kind("disk+poison", CHECKED, DISK),
    Kind("disk+parts", PARTED, DISK),
    Kind("stored+parts+token", PARTED, STORED, token=True, repeats=True),
)


# Writers each of whom goes round all of the tables.
SPREAD_KINDS = (
    Kind("stored, spread", MANY, STORED),
    Kind("disk, spread", MANY, DISK),
    Kind("memory, spread", MANY, MEMORY, kept=False),
    Kind("stored+token, spread", MANY, STORED, token=True, repeats=True),
    Kind("disk+token, spread", MANY, DISK, token=True, repeats=True),
)


def query_id(run: str, writer: int, number: int) -> str:
    """By which a dead letter is known."""
    return f"{run}-{writer}-{number}"


def rows_of(number: int) -> int:
    """How many rows an insert has."""
    return 1 + number * 7 % MOST_ROWS


def text_of(writer: int, number: int, row: int) -> str:
    return f"w{writer}-{number}-{row}"


def payload(kind: str, writer: int, number: int) -> bytes:
    rows = [(row, text_of(writer, number, row)) for row in range(rows_of(number))]
    if kind == "JSONEachRow":
        lines = (f'{{"writer":{writer},"number":{number},"row":{row},"text":"{text}"}}\n' for row, text in rows)
        return "".join(lines).encode()
    if kind == "CSV":
        return "".join(f'{writer},{number},{row},"{text}"\n' for row, text in rows).encode()
    if kind == "Values":
        return ",".join(f"({writer},{number},{row},'{text}')" for row, text in rows).encode()
    return b"".join(struct.pack("<IQIB", writer, number, row, len(text)) + text.encode() for row, text in rows)


def block(writer: int, number: int) -> list[Column]:
    """The same rows for the native protocol."""
    rows = range(rows_of(number))
    texts = b"".join(text(text_of(writer, number, row)) for row in rows)
    numbers = lambda form, values: b"".join(struct.pack(form, value) for value in values)
    return [
        Column("writer", "UInt32", numbers("<I", [writer for _ in rows])),
        Column("number", "UInt64", numbers("<Q", [number for _ in rows])),
        Column("row", "UInt32", numbers("<I", rows)),
        Column("text", "String", texts),
    ]
