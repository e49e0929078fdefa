"""From figures to text: medians, ratios, tables in Markdown, and what the project promises beside what was measured."""

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Any

NONE = "–"


def median(values: Iterable[float]) -> float:
    """The middle value, or the mean of the two in the middle; 0 of nothing."""
    values = list(values)
    return statistics.median(values) if values else 0.0


def paired_ratio(values: Sequence[float], references: Sequence[float]) -> float:
    """The median of the ratios of values that were measured one right after the other: whatever slowed the machine down for
    a while slowed both. 0 when there is nothing to compare."""
    return median(value / reference for value, reference in zip(values, references) if reference > 0)


def count(value: float) -> str:
    """A number of things."""
    return f"{round(value):,}"


def figure(value: float | None) -> str:
    """With as many digits as it deserves."""
    if value is None:
        return NONE
    size = abs(value)
    digits = 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 0.1 or not size else 3
    return f"{value:,.0f}" if size >= 1000 else f"{value:.{digits}f}"


class Rows(list[dict[str, Any]]):
    """What was measured: a row per run, with what was run beside what came of it."""

    def where(self, **wanted: object) -> "Rows":
        return Rows(row for row in self if all(row.get(key) == value for key, value in wanted.items()))

    def values(self, key: str) -> list[float]:
        return [row[key] for row in self if row.get(key) is not None]

    def median(self, key: str) -> float | None:
        values = self.values(key)
        return median(values) if values else None

    def most(self, key: str) -> float | None:
        return max(self.values(key), default=None)

    def mean(self, key: str) -> float | None:
        values = self.values(key)
        return statistics.fmean(values) if values else None

    def ratio(self, other: "Rows", key: str) -> float | None:
        """Round by round. None unless both were run."""
        return paired_ratio(self.values(key), other.values(key)) or None

    def groups(self, *keys: str) -> list[tuple[tuple[Any, ...], "Rows"]]:
        """The rows that agree in these, in the order in which the first of them came."""
        found: dict[tuple[Any, ...], Rows] = {}
        for row in self:
            found.setdefault(tuple(row[key] for key in keys), Rows()).append(row)
        return list(found.items())


Column = tuple[str, Callable[[Rows], object]]


def columns(groups: Iterable[Rows], shown: Sequence[Column]) -> str:
    """A line for each group of rows. What a column gives is text, or a figure."""

    def cell(value: object) -> str:
        return value if isinstance(value, str) else figure(value)  # type: ignore[arg-type]

    return table([name for name, _ in shown], [[cell(of(rows)) for _, of in shown] for rows in groups])


def of(key: str) -> Callable[[Rows], object]:
    """The median of a figure, or a text that all rows of a group share."""
    return lambda rows: rows[0][key] if isinstance(rows[0].get(key), str) else rows.median(key)


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """Reads well in a terminal and is Markdown all the same. Figures stand on the right."""
    lines = [list(line) + [""] * (len(head) - len(line)) for line in lines]
    every = [list(head), *lines]
    widths = [max(3, *(len(line[at]) for line in every)) for at in range(len(head))]
    right = [all(set(line[at]) <= set("0123456789,.-–± ") for line in lines) for at in range(len(head))]
    padded = [[c.rjust(w) if r else c.ljust(w) for c, w, r in zip(line, widths, right)] for line in every]
    rule = "|".join("-" * (w + 1) + ":" if r else "-" * (w + 2) for w, r in zip(widths, right))
    text = [f"| {' | '.join(line)} |" for line in padded]
    return "\n".join([text[0], f"|{rule}|", *text[1:]]) + "\n"


def limit(goal: float) -> str:
    return f"{goal:,.0f}" if goal >= 1000 else f"{goal:g}"


class Goals:
    """What the project promises. A goal about what was not measured is left out."""

    def __init__(self) -> None:
        self.lines: list[list[str]] = []

    def at_least(self, what: str, goal: float, measured: float | None) -> None:
        if measured is not None:
            self._add(f"{what}: at least {limit(goal)}", measured, measured >= goal)

    def at_most(self, what: str, goal: float, measured: float | None) -> None:
        if measured is not None:
            self._add(f"{what}: at most {limit(goal)}", measured, measured <= goal)

    def _add(self, what: str, measured: float, met: bool) -> None:
        self.lines.append([what, figure(measured), "yes" if met else "**no**"])

    def __str__(self) -> str:
        return table(["goal", "measured", "met"], self.lines) if self.lines else ""
