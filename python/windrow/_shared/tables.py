"""What is known of tables: their columns (from DESCRIBE), and whether they recognise a repeated insert.

Both are remembered for a while, since an insert of ten rows must not cost two round trips. A table is forgotten when
this client changes it, or when ClickHouse refuses an insert for a reason that may come from an old structure.

Somebody else may have changed it since, and ClickHouse casts what comes in a type that isn't the column's: 0.5 that was
encoded for an Int32 would be stored as 0. So remembered types are only used in a form in which ClickHouse compares all
of them, by their names: RowBinaryWithNamesAndTypes. Native, the form of everything that is large, takes an Enum's
numbers for those of another Enum, a UInt8 for a Bool, the values of a Tuple by their places, whatever it is told: a
table is described anew before such an insert, and ClickHouse refuses to cast what changes in between.
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
# INCORRECT_DATA, of a header with other names or types than the table's.
HEADER_CODE = 117


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


#: Settings with which ClickHouse refuses a Native block that isn't in the columns' own types, instead of casting it or
#: storing a default for its NULL. Before 23.3 it has no first one, and casts nothing.
NO_CASTS = (("input_format_native_allow_types_conversion", "0"), ("input_format_null_as_default", "0"))
#: Whether ClickHouse compares the types of RowBinaryWithNamesAndTypes. Servers without it don't.
COMPARES_HEADERS = "input_format_with_types_use_header"

# Values of the first are sent as text, which ClickHouse has to cast; of the others it would take numbers and elements for
# those of another type of that name when it casts nothing.
_NEEDS_CASTS = re.compile(r"\b(JSON|Dynamic|Object|Enum8\(|Enum16\(|Tuple\(|Nested\()")
_NOT_IN_ROWS = re.compile(r"\b(JSON|Dynamic|Object|Variant|AggregateFunction|QBit)\b")


def may_forbid_casts(type_names: Sequence[str]) -> bool:
    """Whether ClickHouse may be told to cast nothing of a Native block in these types."""
    return not any(_NEEDS_CASTS.search(name) for name in type_names)


def may_be_rows(type_names: Sequence[str]) -> bool:
    """Whether values of these types are the same in RowBinary as in Native, whatever settings are in force."""
    return not any(_NOT_IN_ROWS.search(name) for name in type_names)


def rows_header(names: Sequence[str], type_names: Sequence[str]) -> bytes:
    """What stands before the rows of RowBinaryWithNamesAndTypes."""
    texts = [text.encode() for text in (*names, *type_names)]
    return _varint(len(names)) + b"".join(_varint(len(text)) + text for text in texts)


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*out, number))


_ENGINE = re.compile(r"\bENGINE = (\w+)")
_WINDOW = re.compile(r"\b(non_replicated|replicated)_deduplication_window = (\d+)")
