"""What is known of tables: their columns (from DESCRIBE), and whether they recognise a repeated insert.

Both are remembered for a while, since an insert of ten rows must not cost two round trips. A table is forgotten when
this client changes it, or when ClickHouse refuses an insert for a reason that may come from an old structure.
"""

from __future__ import annotations

import re
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from windrow._shared.errors import ProgrammingError

REMEMBERED_S = 60.0
MAX_TABLES = 1000

# NOT_FOUND_COLUMN_IN_BLOCK, NO_SUCH_COLUMN_IN_TABLE, NUMBER_OF_COLUMNS_DOESNT_MATCH, CANNOT_PARSE_TEXT...,
# ILLEGAL_COLUMN, UNKNOWN_IDENTIFIER, TYPE_MISMATCH, UNKNOWN_TABLE, CANNOT_CONVERT_TYPE, INCOMPATIBLE_COLUMNS: what an
# insert gets that was made for columns which the table doesn't have any more.
STRUCTURE_CODES = frozenset((7, 8, 10, 16, 20, 44, 47, 50, 53, 60, 70, 117, 122, 349))


@dataclass(frozen=True)
class Column:
    """One column of a table; `default_type` is "", "DEFAULT", "MATERIALIZED", "ALIAS" or "EPHEMERAL"."""

    name: str
    type_name: str
    default_type: str

    @property
    def insertable(self) -> bool:
        """Whether it is among the columns of an INSERT that names none."""
        return self.default_type not in ("ALIAS", "MATERIALIZED")


@dataclass(frozen=True)
class Table:
    """A table's columns, and when they were asked for."""

    columns: tuple[Column, ...]
    asked_at_s: float

    def chosen(self, table: str, names: str | Sequence[str] | None) -> tuple[Column, ...]:
        """The columns of those names, in that order; all insertable ones for None and "*"."""
        every = {column.name: column for column in self.columns if column.insertable}
        if names is None or isinstance(names, str) and names == "*":
            return tuple(every.values())
        wanted = [names] if isinstance(names, str) else names
        try:
            return tuple(every[name] for name in wanted)
        except KeyError as missing:
            raise ProgrammingError(f"The table {table} has no column {missing} to insert into") from None


class Remembered:
    """Values by name, each for a limited time; the oldest go when there are too many."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._known: OrderedDict[Any, tuple[float, Any]] = OrderedDict()

    def get(self, key: Any) -> Any:
        """The value, or None."""
        found = self._known.get(key)
        if found is None or self._clock() - found[0] > REMEMBERED_S:
            return None
        return found[1]

    def put(self, key: Any, value: Any) -> None:
        """Remembers the value from now on."""
        self._known[key] = (self._clock(), value)
        while len(self._known) > MAX_TABLES:
            try:
                self._known.popitem(last=False)
            except KeyError:  # another thread was faster
                break

    def forget(self, key: Any) -> None:
        """Forgets one value."""
        self._known.pop(key, None)

    def clear(self) -> None:
        """Forgets all."""
        self._known.clear()


def table_of(rows: Sequence[Sequence[Any]], now_s: float) -> Table:
    """The table from the rows of DESCRIBE TABLE."""
    columns = tuple(Column(row[0], row[1].replace("\n", "").strip(), row[2]) for row in rows)
    return Table(columns, now_s)


def dedups(definition: str) -> bool:
    """Whether a table recognises a block that it has stored already, so that an insert may be repeated.

    `definition` is what SHOW CREATE TABLE says. What the server's own configuration sets for all tables isn't seen
    there, so that the answer may be no where it could be yes.
    """
    engine = _ENGINE.search(definition)
    name = engine.group(1) if engine else ""
    windows: dict[str, str] = dict(_WINDOW.findall(definition))
    if not name.endswith("MergeTree"):
        return False
    if name.startswith(("Replicated", "Shared")):
        return windows.get("replicated") != "0"
    return windows.get("non_replicated", "0") != "0"


_ENGINE = re.compile(r"\bENGINE = (\w+)")
_WINDOW = re.compile(r"\b(non_replicated|replicated)_deduplication_window = (\d+)")
