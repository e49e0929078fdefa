"""All writers at once, and the sums of what they were promised."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from chaos.kinds import KINDS, Kind
from chaos.language import ClickHouse, DuckDb
from chaos.writer import Writer
from harness.endpoint import Endpoint

WRITERS_PER_KIND = 4
LONGEST_END_SECONDS = 90


class Load:
    """Runs from `with` to its end. The numbers of writers begin at `first`, so that several loads can share tables."""

    def __init__(
        self,
        where: Callable[[], Endpoint | None],
        seed: int,
        first: int = 0,
        kinds: tuple[Kind, ...] = KINDS,
        per_kind: int = WRITERS_PER_KIND,
    ):
        run = f"{seed}-{first}"
        chosen = [kind for kind in kinds for _ in range(per_kind)]
        self.writers = [Writer(first + at, kind, where, run, seed) for at, kind in enumerate(chosen)]

    def __enter__(self) -> Load:
        for writer in self.writers:
            writer.start()
        return self

    def __exit__(self, *_: object) -> None:
        for writer in self.writers:
            writer.stopping.set()
        for writer in self.writers:
            writer.join(LONGEST_END_SECONDS)
            assert not writer.is_alive(), f"a writer of kind {writer.kind.name} still waits for an answer"

    def acknowledged(self) -> int:
        return sum(len(writer.promises.acknowledged) for writer in self.writers)

    def acknowledged_more(self, by: int) -> Callable[[], bool]:
        goal = self.acknowledged() + by
        return lambda: self.acknowledged() >= goal

    def every_writer_more(self, by: int) -> Callable[[], bool]:
        goals = [(writer, len(writer.promises.acknowledged) + by) for writer in self.writers]
        return lambda: all(len(writer.promises.acknowledged) >= goal for writer, goal in goals)

    def figures(self) -> str:
        """Acknowledged inserts by kind, and what else came of the others."""
        by_kind: Counter[str] = Counter()
        for writer in self.writers:
            by_kind[writer.kind.name] += len(writer.promises.acknowledged)
        refused = sum(len(writer.promises.refused) for writer in self.writers)
        left_open = sum(len(writer.promises.open) for writer in self.writers)
        repeats = sum(writer.promises.repeats for writer in self.writers)
        kinds = " ".join(f"{name}={count}" for name, count in by_kind.items())
        return f"acknowledged {kinds}; refused {refused}, open {left_open}, repeats {repeats}"

    def errors(self) -> list[str]:
        return [f"{writer.kind.name}: {error}" for writer in self.writers for error in writer.promises.errors]


def create_tables(direct: Endpoint, language: ClickHouse | DuckDb) -> None:
    for table in language.tables:
        for statement in language.create(table):
            direct.sql(statement)
