"""Inserts written as SQL whose rows come separately: `INSERT INTO t (a, b) VALUES`, with or without one row of
placeholders.

Only what is certain is recognised: one table, names of columns, VALUES, and then nothing or one placeholder per column.
All else is for ClickHouse to read.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windrow._shared.errors import ProgrammingError
from windrow._shared.sql import Token, tokens

_PLACEHOLDER = re.compile(r"%s|%\(([^)]+)\)s")
_ESCAPED = re.compile(r"\\(.)|(``|\"\")", re.DOTALL)


@dataclass(frozen=True)
class RowsInsert:
    """An insert whose rows come separately; `names` are the placeholders' (None: they are numbered, or there are
    none).
    """

    table: str
    columns: tuple[str, ...] | None
    has_placeholders: bool
    names: tuple[str, ...] | None

    def rows(self, given: Sequence[Any]) -> tuple[Sequence[str] | str, list[list[Any]]]:
        """The columns' names and the rows in their order. ProgrammingError for rows that don't fit together."""
        first = given[0]
        if isinstance(first, Mapping):
            return self._of_mappings(given)
        if not _is_row(first):
            raise ProgrammingError("Rows of an INSERT ... VALUES have to be tuples, lists or dictionaries")
        width = len(self.columns) if self.columns is not None else len(first)
        if width == 0:
            raise ProgrammingError("A row of an INSERT ... VALUES needs at least one value")
        if any(not _is_row(row) or len(row) != width for row in given):
            raise ProgrammingError(f"Every row of this INSERT ... VALUES has to be a tuple or list of {width} values")
        return (self.columns if self.columns is not None else "*"), [list(row) for row in given]

    def _of_mappings(self, given: Sequence[Any]) -> tuple[Sequence[str] | str, list[list[Any]]]:
        if self.columns is None and not self.has_placeholders:
            keys: tuple[str, ...] = tuple(given[0])
            if not keys or not all(isinstance(key, str) for key in keys):
                raise ProgrammingError(
                    "Dictionaries given to INSERT ... VALUES need the columns' names, as text, for keys"
                )
            columns: Sequence[str] | str = keys
        else:
            columns = self.columns if self.columns is not None else "*"
            keys = self.names or self.columns or ()
        if len(set(keys)) != len(keys) and not self.has_placeholders:
            raise ProgrammingError("A column is named twice in this INSERT: name each once")
        wanted = set(keys)
        for row in given:
            if not isinstance(row, Mapping) or (
                set(row) != wanted and not (self.has_placeholders and wanted <= set(row))
            ):
                raise ProgrammingError(
                    f"Every row of this INSERT has to be a dictionary with the keys {', '.join(keys)}"
                )
        return columns, [[row[key] for key in keys] for row in given]


def rows_insert(statement: str) -> RowsInsert | None:
    """What the statement inserts into, or None if it is anything else."""
    words = [token for token in tokens(statement) if token.kind != "space"]
    while words and words[-1].text == ";":
        words.pop()
    at = 0
    for keyword in ("INSERT", "INTO"):
        if at >= len(words) or words[at].text.upper() != keyword:
            return None
        at += 1
    if at < len(words) and words[at].text.upper() == "TABLE":
        at += 1
    table, at = _name(words, at)
    if table is None:
        return None
    columns: tuple[str, ...] | None = None
    if at < len(words) and words[at].text == "(":
        columns, at = _columns(words, at + 1)
        if columns is None:
            return None
    if at >= len(words) or words[at].text.upper() != "VALUES":
        return None
    if at + 1 == len(words):
        return RowsInsert(table, columns, False, None)
    return _with_placeholders(statement[words[at].end : words[-1].end], table, columns)


def ends_with_values(statement: str) -> bool:
    """Whether the statement is an INSERT that ends with the word VALUES."""
    words = [token.text.upper() for token in tokens(statement) if token.kind != "space" and token.text != ";"]
    return bool(words) and words[0] == "INSERT" and words[-1] == "VALUES"


def _with_placeholders(text: str, table: str, columns: tuple[str, ...] | None) -> RowsInsert | None:
    """One row of placeholders, all numbered or all named."""
    inside = text.strip()
    if not (inside.startswith("(") and inside.endswith(")")):
        return None
    found = [_PLACEHOLDER.fullmatch(part.strip()) for part in inside[1:-1].split(",")]
    names = [match.group(1) for match in found if match]
    if len(names) != len(found) or (columns is not None and len(columns) != len(names)):
        return None
    if all(name is None for name in names):
        return RowsInsert(table, columns, True, None)
    if any(name is None for name in names):
        return None
    return RowsInsert(table, columns, True, tuple(names))


def _name(words: list[Token], at: int) -> tuple[str | None, int]:
    """A name, perhaps of several parts, as it is written."""
    parts: list[str] = []
    while at < len(words) and _is_name(words[at]):
        parts.append(words[at].text)
        at += 1
        if at >= len(words) or words[at].text != ".":
            return ".".join(parts), at
        at += 1
    return None, at


def _columns(words: list[Token], at: int) -> tuple[tuple[str, ...] | None, int]:
    columns: list[str] = []
    while True:
        name, at = _name(words, at)
        if name is None or at >= len(words):
            return None, at
        columns.append(unquoted(name))
        if words[at].text == ")":
            return tuple(columns), at + 1
        if words[at].text != ",":
            return None, at
        at += 1


def unquoted(name: str) -> str:
    """The name without its quotes; parts are joined by dots."""
    parts = [token.text for token in tokens(name) if token.text != "."]
    return ".".join(_part(part) for part in parts)


def _part(part: str) -> str:
    if part[:1] not in '`"':
        return part
    return _ESCAPED.sub(lambda found: found.group(1) or found.group(2)[0], part[1:-1])


def _is_name(token: Token) -> bool:
    return token.kind == "word" or (token.kind == "quoted" and token.text[0] in '`"')


def _is_row(row: object) -> bool:
    return isinstance(row, Sequence) and not isinstance(row, (str, bytes, bytearray))
