"""Numbered messages, the table that they go to, and the count at the end: each once, and each partition in its order.

Message n has the id n and stands in partition n modulo the number of partitions; its row keeps where it came from.
"""

from __future__ import annotations

import json

from harness.endpoint import ClickHouseError, Endpoint
from harness.eventually import eventually
from harness.kafka_topics import Message

COLUMNS = "id UInt64, text String, _partition Int32, _offset Int64"
DUCKDB_COLUMNS = "id UBIGINT, text VARCHAR, _partition INTEGER, _offset BIGINT"
# Rows keep the number of the block they came in and their place in it, also through merges: the order of insertion can be asked for.
ORDERED = "enable_block_number_column = 1, enable_block_offset_column = 1"
WINDOW = "non_replicated_deduplication_window = 10000"
SHOWN = 10


def value(number: int) -> bytes:
    return b'{"id":%d,"text":"w%d"}' % (number, number)


def numbered(first: int, end: int, partitions: int, timestamp_ms: int | None = None) -> list[Message]:
    return [Message(value(n), partition=n % partitions, timestamp_ms=timestamp_ms) for n in range(first, end)]


class Target:
    """The table in ClickHouse. `more`: further columns and constraints, with a comma before them."""

    order = "_block_number, _block_offset"

    def __init__(self, direct: Endpoint, name: str = "events", more: str = "", settings: str = f"{ORDERED}, {WINDOW}"):
        self.direct, self.name = direct, name
        direct.sql(self.create(more, settings))

    def create(self, more: str, settings: str) -> str:
        return f"CREATE TABLE {self.name} ({COLUMNS}{more}) ENGINE = MergeTree ORDER BY tuple() SETTINGS {settings}"

    @property
    def full_name(self) -> str:
        return f"{self.direct.database}.{self.name}"

    def ask(self, query: str) -> list[list]:
        return [json.loads(line) for line in self.direct.sql(f"{query} FORMAT JSONCompactEachRow").splitlines()]

    def count(self) -> int:
        return self.ask(f"SELECT count(*) FROM {self.name}")[0][0]

    def stored(self) -> int | None:
        """As `count`, or nothing while the database is away."""
        try:
            return self.count()
        except (OSError, ClickHouseError, ValueError):
            return None

    def wait(self, number: int, deadline_seconds: float = 120) -> None:
        eventually(lambda: (self.stored() or 0) >= number, f"{number} rows are in the table", deadline_seconds)

    def ids(self) -> list[int]:
        return [id for [id] in self.ask(f"SELECT id FROM {self.name} ORDER BY id")]

    def check(self, ids: range | list[int]) -> None:
        """Each of these once and whole, no others, every partition in its order."""
        there, wanted = self.ids(), set(ids)
        found = set(there)
        twice = sorted(id for at, id in enumerate(there[1:]) if id == there[at])
        faults = {
            "missing": sorted(wanted - found),
            "twice": twice,
            "not asked for": sorted(found - wanted),
            "altered": [id for [id] in self.ask(f"SELECT id FROM {self.name} WHERE text != concat('w', id::VARCHAR)")],
            "out of order": self.disorder(),
        }
        said = [f"{len(cases)} {kind}: {cases[:SHOWN]}" for kind, cases in faults.items() if cases]
        assert not said, "; ".join([f"{len(there)} rows of {len(wanted)}", *said])

    def disorder(self) -> list[list]:
        """Partition and offset of rows that stand behind one of a later offset."""
        window = f"PARTITION BY _partition ORDER BY {self.order} ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW"
        inner = f"SELECT _partition, _offset, max(_offset) OVER ({window}) AS latest FROM {self.name}"
        return self.ask(f"SELECT _partition, _offset FROM ({inner}) AS t WHERE _offset < latest")


class DuckDbTarget(Target):
    order = "rowid"

    def create(self, more: str, settings: str) -> str:
        return f"CREATE TABLE {self.name} ({DUCKDB_COLUMNS}{more})"

    @property
    def full_name(self) -> str:
        return f"main.{self.name}"
