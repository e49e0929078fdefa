"""How a format's everyday payloads are handled for each type, and how the documentation says so."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

from differential.contest import GATHERED, Case, Difference
from differential.field import Field
from differential.rendering import FORMATS, everyday
from differential.sources import SOURCES
from harness.paths import ROOT

DOCUMENT = ROOT / "docs" / "formats.md"
COMMAND = "cd tests && ../.venv/bin/python -m differential.write_formats"
PARSED, PASSTHROUGH, BACKEND_READ, FORWARDED = "parsed", "passthrough", "read by ClickHouse", "forwarded"

# Of the documentation's table, behind the format.
COLUMNS = (PASSTHROUGH, BACKEND_READ, FORWARDED)


@dataclass
class Handled:
    form: str
    # Of each source that ClickHouse can render in this format.
    handling: dict[int, str] = field(default_factory=dict)
    differences: list[Difference] = field(default_factory=list)

    @classmethod
    def of(cls, arena: Field, form: str, sources: Iterable[int] = range(len(SOURCES))) -> Handled:
        handled = cls(form)
        cases = [case for source in sources for case in everyday(arena.renderer, form, source)]
        assert cases, f"ClickHouse renders nothing as {form}"
        handled.differences = arena.contest.differences(cases)
        handled.sort(arena, cases)
        arena.contest.empty()
        return handled

    def sort(self, arena: Field, cases: list[Case]) -> None:
        """Sends groups of payloads that are handled alike, halving those that are not."""
        before = arena.contest.handling()
        arena.contest.insert_all(GATHERED, cases)
        found = ways_of_handling(arena.contest.handling() - before)
        if len(found) == 1:
            self.handling.update((case.source, found[0]) for case in cases)
        else:
            middle = len(cases) // 2
            self.sort(arena, cases[:middle])
            self.sort(arena, cases[middle:])

    def line(self) -> str:
        """A line of the documentation's table. All types that it doesn't name are parsed."""
        names = ", ".join(f"`{name}`" for name in (self.form, *FORMATS[self.form]))
        cells = ["all" if set(self.handling.values()) == {column} else ", ".join(self.types(column)) or "–" for column in COLUMNS]
        return f"| {names} | {' | '.join(cells)} |"

    def types(self, wanted: str) -> list[str]:
        """Types by their label where all of the label are handled alike, else each by its name."""
        by_label: dict[str, list[int]] = defaultdict(list)
        for source in self.handling:
            by_label[SOURCES[source].label or SOURCES[source].type].append(source)
        found: list[str] = []
        for label, sources in by_label.items():
            matching = [source for source in sources if self.handling[source] == wanted]
            if len(matching) == len(sources):
                found.append(label)
            else:
                found += [f"`{SOURCES[source].type}`" for source in matching]
        return found


def documented_handling(form: str, source: int) -> str:
    """What docs/formats.md says of a type in a format."""
    lines = [line for line in DOCUMENT.read_text().splitlines() if line.startswith(f"| `{form}`")]
    assert len(lines) == 1, f"docs/formats.md has {len(lines)} lines of {form}: write it anew with `{COMMAND}`"
    _, _, *cells, _ = (cell.strip() for cell in lines[0].split("|"))
    for column, cell in zip(COLUMNS, cells, strict=True):
        rest = cell
        for other in SOURCES:
            # Names of types have commas of their own.
            if f"`{other.type}`" in cell:
                rest = rest.replace(f"`{other.type}`", "")
                if other.type == SOURCES[source].type:
                    return column
        label = SOURCES[source].label or SOURCES[source].type
        if cell == "all" or f", {label}," in f", {rest},":
            return column
    return PARSED


def ways_of_handling(counted: Counter) -> list[str]:
    """How the inserts of a group were handled."""
    passthrough = counted.pop("passthrough", 0)
    gathered = counted.pop("", 0)
    backend_read = counted.pop("read by ClickHouse", 0)
    counts = {PARSED: gathered - passthrough - backend_read, PASSTHROUGH: passthrough, BACKEND_READ: backend_read, FORWARDED: counted.total()}
    return [how for how, count in counts.items() if count]

