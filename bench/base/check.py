"""The row that is inserted, and what was stored of it compared with what was acknowledged, id by id.

A row is what a probe of article 1 reports, under an id that is unique, and with a value that follows from the id, so that a row which
was lost, doubled or mangled on its way shows.
"""

from dataclasses import dataclass

from harness.endpoint import Endpoint

# The load generator's: the connection, the number of its insert, and the value.
NUMBERS = ("conn", "seq", "value")
COLUMNS: list[tuple[str, str, str | int]] = [
    ("conn", "UInt32", "conn"), ("seq", "UInt64", "seq"), ("time", "DateTime", 1_700_000_000), ("site", "String", "example.com"),
    ("city", "String", "Oslo"), ("latency_us", "UInt32", "value"),
]  # fmt: skip
DECLARED = ", ".join(f"{name} {kind}" for name, kind, _ in COLUMNS)
# Ids that one statement asks for; keeps it far below ClickHouse's limit on a query's size.
IDS_PER_QUERY = 5_000
LARGE_QUERY = {"max_query_size": 10_000_000, "max_ast_elements": 1_000_000, "max_expanded_ast_elements": 1_000_000}


@dataclass(frozen=True)
class Ids:
    """Of one connection: 0 to `sent` - 1 were sent, of which these were refused, or are without an answer."""

    sent: int
    unacknowledged: tuple[int, ...] = ()

    @property
    def acknowledged(self) -> int:
        return self.sent - len(self.unacknowledged)


@dataclass(frozen=True)
class Found:
    """What the table holds of one connection."""

    conn: int
    rows: int
    distinct: int
    max_seq: int
    mangled: int


@dataclass
class Stored:
    rows: int = 0
    # Acknowledged, but not there.
    lost: int = 0
    # There more than once.
    doubled: int = 0
    # There, though never sent or not as sent.
    foreign: int = 0
    # There, though not acknowledged: refused with an error, or never answered. Not wrong for an unanswered one.
    unacknowledged_but_there: int = 0

    @property
    def is_exact(self) -> bool:
        return self.lost == self.doubled == self.foreign == 0


@dataclass(frozen=True)
class RowsIn:
    """Where a run's rows are: a table, or what else may stand behind FROM, in which other runs' rows have other numbers."""

    source: str
    conns: range | None = None
    # SQL for the number of the table that the insert chose. So a row that came into another's table shows.
    target: str = "0"

    @property
    def first_conn(self) -> int:
        return self.conns.start if self.conns else 0

    @property
    def condition(self) -> str:
        return f"conn >= {self.conns.start} AND conn < {self.conns.stop}" if self.conns else "1 = 1"

    @property
    def is_mangled(self) -> str:
        value = f"(conn * 7919 + seq * 104729 + ({self.target}) * 15485863) % 1000000"
        as_sent = f"latency_us = {value} AND site = 'example.com' AND city = 'Oslo' AND time = '2023-11-14 22:13:20'"
        return f"NOT ({as_sent})"


def check(sql: Endpoint, where: RowsIn, ids: list[Ids]) -> Stored:
    """A row is looked for in all of `source` at once, so that one which is in two tables counts as doubled."""
    figures = f"count(*), count(DISTINCT seq), max(seq), sum(CASE WHEN {where.is_mangled} THEN 1 ELSE 0 END)"
    found = [found_of(line) for line in grouped(sql, where, figures, where.condition)]
    there = [0] * len(ids)
    # Ids that were not acknowledged, but are in the table nevertheless.
    pairs = [f"({conn + where.first_conn},{seq})" for conn, of in enumerate(ids) for seq in of.unacknowledged]
    for begin in range(0, len(pairs), IDS_PER_QUERY):
        chosen = f"(conn, seq) IN ({','.join(pairs[begin : begin + IDS_PER_QUERY])})"
        for line in grouped(sql, where, "count(DISTINCT seq)", chosen, **LARGE_QUERY):
            conn, count = map(int, line.split("\t"))
            there[conn] += count
    return compare(ids, found, there)


def grouped(sql: Endpoint, where: RowsIn, what: str, condition: str, **settings: object) -> list[str]:
    query = f"SELECT conn - {where.first_conn}, {what} FROM {where.source} WHERE {condition} GROUP BY conn FORMAT TSV"
    return sql.sql(query, **settings).splitlines()


def found_of(line: str) -> Found:
    return Found(*(int(field) for field in line.split("\t")))


def compare(ids: list[Ids], found: list[Found], unacknowledged_there: list[int]) -> Stored:
    stored = Stored(unacknowledged_but_there=sum(unacknowledged_there))
    acknowledged_there = [0] * len(ids)
    for one in found:
        stored.rows += one.rows
        stored.doubled += one.rows - one.distinct
        stored.foreign += one.mangled
        if one.conn < len(ids) and one.max_seq < ids[one.conn].sent:
            acknowledged_there[one.conn] = max(0, one.distinct - unacknowledged_there[one.conn])
        else:
            stored.foreign += one.rows
    stored.lost = sum(max(0, of.acknowledged - there) for of, there in zip(ids, acknowledged_there))
    return stored
