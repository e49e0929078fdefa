"""docs/benchmarks.md: the method, written by hand beside this, and one region per benchmark, replaced by its last full run. Every
region names the command that fills it, so no figure stands there without one."""

from dataclasses import dataclass, field
from pathlib import Path
from textwrap import TextWrapper

PROSE = Path(__file__).with_name("prose.md").read_text()
METHOD = Path(__file__).with_name("method.md").read_text().strip()
# The order of the page, whatever the order of the runs.
REGIONS = (
    "inserts", "tables", "durability", "replay", "formats", "bulk", "parsing", "culprit", "select", "idle",
    "native", "native-go", "native-large", "native-flush", "native-idle", "article", "clients", "results", "writer", "duckdb", "adbc", "appends", "kafka", "otlp", "cluster",
)  # fmt: skip
WIDTH = 110


@dataclass(frozen=True)
class Section:
    """What one benchmark has to say."""

    name: str
    title: str
    # What to type to measure it again.
    command: str
    body: str
    # File names and contents, for the folder beside the page.
    charts: dict[str, str] = field(default_factory=dict)

    def markdown(self, machine: str) -> str:
        return f"## {self.title}\n\n`{self.command}`\n\n{wrapped(machine.strip())}\n\n{wrapped(self.body.strip())}\n"


def prose(name: str, **filled_in: object) -> str:
    """A section of prose.md as paragraphs that are a line each: the page wraps them again."""
    text = PROSE.partition(f"\n## {name}\n")[2].partition("\n## ")[0].strip().format(**filled_in)
    return "\n\n".join(" ".join(paragraph.splitlines()) for paragraph in text.split("\n\n")) + "\n\n"


def wrapped(text: str) -> str:
    """Prose in lines of at most 110 characters; tables, code, headings and pictures as they are."""
    lines: list[str] = []
    is_code = False
    for line in text.splitlines():
        is_code ^= line.startswith("```")
        if is_code or line.startswith(tuple("|#!<`")):
            lines.append(line)
            continue
        indent = "  " if line.startswith("- ") else ""
        wrapper = TextWrapper(WIDTH, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
        lines += wrapper.wrap(line) or [""]
    return "\n".join(lines)


def write_section(docs: Path, section: Section, machine: str) -> None:
    """Into `benchmarks.md` of this folder, and its charts beside it."""
    (docs / "benchmarks").mkdir(parents=True, exist_ok=True)
    for name, svg in section.charts.items():
        (docs / "benchmarks" / name).write_text(svg)
    page = docs / "benchmarks.md"
    page.write_text(compose(page.read_text() if page.exists() else "", section.name, section.markdown(machine)))


def compose(old: str, name: str, text: str) -> str:
    page = METHOD + "\n"
    for region in REGIONS:
        begin, end = f"<!-- begin {region}: written by bench/run, edits are lost -->", f"<!-- end {region} -->"
        inner = text if region == name else old.partition(begin)[2].partition(end)[0]
        if inner:
            page += f"\n{begin}\n{inner.strip()}\n{end}\n"
    return page
