"""How names of tables and columns are quoted."""

from __future__ import annotations

from windrow._shared.literals import ESCAPES


def quote_identifier(identifier: str) -> str:
    """The name in backticks; what already stands in quotes stays as it is.

    >>> quote_identifier("order")
    '`order`'
    >>> quote_identifier('"order"')
    '"order"'
    """
    if len(identifier) >= 2 and identifier[0] in "`\"" and identifier[-1] == identifier[0] and _well_quoted(identifier):
        return identifier
    return f"`{identifier.translate(ESCAPES)}`"


def qualified_table(table: str, database: str | None = None) -> str:
    """The table's full name. A name with a dot is taken as already full."""
    if "." in table:
        return table
    return f"{quote_identifier(database)}.{quote_identifier(table)}" if database else quote_identifier(table)


def column_list(names: object) -> str:
    """` (a, b)` for an INSERT, from a sequence of names; nothing for None."""
    if names is None:
        return ""
    return f" ({', '.join(quote_identifier(str(name)) for name in names)})"  # type: ignore[attr-defined]


def _well_quoted(identifier: str) -> bool:
    """Whether the quotes inside are escaped, by a backslash or by being doubled."""
    quote = identifier[0]
    at, end = 1, len(identifier) - 1
    while at < end:
        if identifier[at] == "\\":
            if at + 1 >= end:
                return False
            at += 2
        elif identifier[at] == quote:
            if at + 1 >= end or identifier[at + 1] != quote:
                return False
            at += 2
        else:
            at += 1
    return True
