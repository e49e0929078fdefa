"""How results show themselves: a few rows, and of each value a few characters."""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from typing import Any

MOST_ROWS = 10
MOST_COLUMNS = 50
MOST_CHARS = 100

FirstRows = Callable[[int], Sequence[Sequence[Any]]]


def as_text(title: str, names: Sequence[str], types: Sequence[Any], count: int, first: FirstRows) -> str:
    """The columns in one line, and a line for each row that is shown."""
    head = f"{title}({columns(names, types)}; {count} row{'' if count == 1 else 's'})"
    lines = [f"  ({', '.join(cell(value) for value in row[:MOST_COLUMNS])})" for row in first(MOST_ROWS)]
    return "\n".join([head, *lines, *_more(count, "  {} more rows")])


def as_html(names: Sequence[str], types: Sequence[Any], count: int, first: FirstRows) -> str:
    """A table. Names and values are escaped: they may come from anybody."""
    kinds = [getattr(kind, "name", "") for kind in types] or [""] * len(names)
    heads = "".join(
        f'<th title="{html.escape(kind)}">{html.escape(cut(name))}</th>' for name, kind in zip(names[:MOST_COLUMNS], kinds)
    )
    rows = "".join(f"<tr>{''.join(map(_cell_of_table, row[:MOST_COLUMNS]))}</tr>" for row in first(MOST_ROWS))
    below = "".join(f"<p>{line}</p>" for line in _more(count, "{} more rows"))
    return f"<table><thead><tr>{heads}</tr></thead><tbody>{rows}</tbody></table>{below}"


def columns(names: Sequence[str], types: Sequence[Any]) -> str:
    """Names with types, if they are known."""
    kinds = [getattr(kind, "name", "") for kind in types] or [""] * len(names)
    listed = [f"{cut(name)} {cut(kind)}".strip() for name, kind in zip(names, kinds)]
    return ", ".join(listed[:MOST_COLUMNS] + ["..."] * (len(listed) > MOST_COLUMNS))


def cell(value: Any) -> str:
    """The value's repr, cut. Of a long text only the beginning is looked at."""
    return cut(repr(value[: 2 * MOST_CHARS] if isinstance(value, (str, bytes)) else value))


def cut(text: str) -> str:
    """The text, or its beginning."""
    return text if len(text) <= MOST_CHARS else f"{text[: MOST_CHARS - 3]}..."


def _cell_of_table(value: Any) -> str:
    return f"<td>{html.escape(cut(value) if isinstance(value, str) else cell(value))}</td>"


def _more(count: int, words: str) -> list[str]:
    return [words.format(count - MOST_ROWS)] if count > MOST_ROWS else []
