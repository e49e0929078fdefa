"""A table among hundreds changes while inserts run into all of them: who writes to it is told what ClickHouse says, in time;
nobody else notices anything, and every acknowledged row is there once."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Iterator

import pytest

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.inserts import HELD
from harness.quick_http import QuickConnection
from harness.spread import (
    DISK, KINDS, NUMBERS, STORED, Kind, Rows, Spread, Told, acknowledged_late, create_many, insert, names, query_id,
)  # fmt: skip
from harness.users import TESTER

TABLES = 300
CONFIG = "[gather]\nschema_ttl_ms = 1000\nadmission_ttl_ms = 1000\n"
NAMING_B = tuple(kind for kind in KINDS if "b" in kind.columns)
NOT_NAMING_B = tuple(kind for kind in KINDS if kind not in NAMING_B)
# Tables that tests change: they get inserts only while their test runs.
CHANGING = 32
# A table that is dropped while a part of it is written says so in words of its own, or nobody knows any more (210).
NOT_THERE = {60, 210, 218}


class Many:
    """A gateway before hundreds of tables, with writers that never stop."""

    def __init__(self, gateway: Gateway):
        gateway.direct.sql("CREATE DATABASE many")
        self.gateway, self.direct = gateway, gateway.direct.using("many")
        self.tested = gateway.http.as_user(TESTER.name, TESTER.password).using("many")
        tables = names(TABLES)
        create_many(self.direct, tables)
        self.changing, self.load = iter(tables[:CHANGING]), Spread(self.tested, tables[CHANGING:], per_kind=2)

    def rows(self) -> Rows:
        return Rows(self.gateway, self.direct)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Many]:
    gateway = Gateway(tmp_path_factory.mktemp("many"), CONFIG)
    many = Many(gateway)
    with many.load as load:
        load.serves(load.tables, ())
        yield many
    beside = set(load.tables)
    many.rows().check(it for it in load.told if it.table in beside)
    assert gateway.stop() == 0


class Change:
    """A table that the test changes, directly or through the gateway, and the inserts into it and beside it since then."""

    def __init__(self, many: Many, ddl: Endpoint):
        self.many, self.load, self.ddl, self.table = many, many.load, ddl, next(many.changing)
        self.began_at, self.tables = time.monotonic(), ()
        self.watch(self.table)

    def watch(self, *more: str) -> None:
        self.load.watched = self.tables = (*self.tables, *more)
        self.load.serves(more)

    def make(self, *statements: str) -> float:
        for statement in statements:
            self.ddl.sql(statement.replace("{t}", self.table))
        return time.monotonic()

    def here(self, kinds: tuple[Kind, ...] = KINDS) -> list[Told]:
        return [it for it in self.load.since(self.began_at) if it.table in self.tables and it.kind in kinds]

    def is_refused(self, since: float, codes: set[int], kinds: tuple[Kind, ...]) -> None:
        """Who was refused once is not taken again; if the gateway saw the change, nobody is taken after it."""
        self.load.refuses(self.tables, kinds)
        late = acknowledged_late(self.here(kinds), None if self.ddl is self.many.direct else since)
        assert not late, "\n".join(map(str, late))
        other_words = [it for it in self.here(kinds) if not it.acknowledged and it.code not in codes]
        assert not other_words, "\n".join(map(str, other_words[:10]))

    def check(self, refused: tuple[Kind, ...] = (), may_be_gone: Callable[[Told], bool] = lambda _: False) -> Rows:
        """Nobody else was refused, and each row is where it has to be."""
        beside = set(self.load.tables)
        told = [it for it in self.load.since(self.began_at) if it.table in beside] + self.here()
        wrong = [it for it in told if not it.acknowledged and not (it.table in self.tables and it.kind in refused)]
        assert not wrong, "\n".join(map(str, wrong[:10]))
        rows = self.many.rows()
        rows.check(told, may_be_gone)
        return rows


@pytest.fixture(params=["directly", "through the gateway"])
def change(request: pytest.FixtureRequest, many: Many) -> Iterator[Change]:
    yield Change(many, many.direct if request.param == "directly" else many.tested)
    many.load.watched = ()


def test_a_dropped_column(change: Change) -> None:
    dropped = change.make("ALTER TABLE {t} DROP COLUMN b")
    change.is_refused(dropped, {16}, NAMING_B)
    change.load.serves([change.table], NOT_NAMING_B)
    change.check(NAMING_B)


def test_a_renamed_table_and_another_one_under_its_name(change: Change) -> None:
    renamed = change.make("RENAME TABLE {t} TO {t}_old")
    change.is_refused(renamed, {60}, KINDS)
    anew = change.make("CREATE TABLE {t} AS {t}_old")
    change.load.serves([change.table])
    rows = change.check(KINDS)
    later = [it for it in change.here() if it.sent_at > renamed and it.number in rows.there]
    assert later and all(rows.there[it.number] == {change.table: 1} for it in later), "the old table got a row of a later insert"
    assert all(it.acknowledged for it in change.here() if it.sent_at > anew) or change.ddl is change.many.direct


def test_exchanged_tables(change: Change) -> None:
    change.make("CREATE TABLE {t}_other (b String, c UInt8 DEFAULT 7, a UInt64) ENGINE = MergeTree ORDER BY a")
    exchanged = change.make("EXCHANGE TABLES {t} AND {t}_other")
    change.load.serves([change.table])
    rows = change.check()
    later = [it for it in change.here() if it.sent_at > exchanged and it.number in rows.there]
    assert later and all(rows.there[it.number] == {change.table: 1} for it in later), "a name was taken for the other table"
    assert change.many.direct.sql(f"SELECT DISTINCT c, b = '' OR b = concat('b', toString(a)) FROM {change.table}") == "7\t1"


def test_a_table_that_is_made_anew_with_other_columns(change: Change) -> None:
    change.make("DROP TABLE {t} SYNC")
    anew = change.make("CREATE TABLE {t} (c String DEFAULT 'new', a UInt64) ENGINE = MergeTree ORDER BY a")
    change.is_refused(anew, {16, *NOT_THERE}, NAMING_B)
    change.load.serves([change.table], NOT_NAMING_B)
    assert {it.code for it in change.here(NOT_NAMING_B) if not it.acknowledged} <= NOT_THERE
    assert all(it.sent_at < anew for it in change.here() if it.code == 210), "what nobody knows is what was under way"
    change.check(KINDS, lambda it: it.table == change.table and it.sent_at < anew)


def test_a_truncated_table(change: Change) -> None:
    truncated = change.make("TRUNCATE TABLE {t}")
    change.load.serves([change.table])
    change.check((), lambda it: it.table == change.table and it.sent_at < truncated)


@pytest.mark.parametrize("settings", [STORED, DISK], ids=["stored", "disk"])
def test_an_added_column(change: Change, settings: dict[str, object]) -> None:
    """Its values are kept as soon as it is known of; no insert is refused for lack of them."""
    change.make("ALTER TABLE {t} ADD COLUMN later String")
    is_kept = lambda: change.many.direct.sql(f"SELECT count() FROM {change.table} WHERE later = 'kept'") != "0"

    def insert_later() -> bool:
        number = next(NUMBERS)
        row = json.dumps({"a": number, "later": "kept"})
        reply = change.many.tested.insert(f"INSERT INTO {change.table} FORMAT JSONEachRow", row, query_id=query_id(number), **settings)
        return reply.status == 200 or pytest.fail(reply.text)

    at_once = change.ddl is change.many.tested
    assert insert_later()
    eventually(lambda: is_kept() or not at_once and insert_later() and is_kept(), "a value of the new column is kept")
    change.check()


@pytest.mark.parametrize(("statement", "code"), [("ALTER TABLE {t} DROP COLUMN b", 16), ("RENAME TABLE {t} TO {t}_old", 60)])
def test_a_change_is_seen_before_anything_is_stored(change: Change, statement: str, code: int) -> None:
    """No flush is refused that could say so: the batch is held for as long as the test wants."""
    table, taken = next(change.many.changing), []
    connection, held = QuickConnection(change.many.tested), Kind({**HELD, **DISK}, "a, b")

    def is_refused() -> bool:
        taken.append(insert(connection, held, table))
        return not taken[-1].acknowledged

    assert not is_refused()
    change.make(statement.replace("{t}", table))
    assert is_refused() or change.ddl is change.many.direct
    eventually(is_refused, "an insert is refused")
    assert {it.code for it in taken if not it.acknowledged} == {code}
    rows = change.check()
    rows.check(taken)
    letters = [error for it in taken for error in rows.letters.get(it.number, ())]
    assert len(letters) == sum(it.acknowledged for it in taken) and all(f"Code: {code}." in error for error in letters)


def test_several_tables_that_change_at_once(change: Change) -> None:
    change.watch(*itertools.islice(change.many.changing, 4))
    for table in change.tables:
        dropped = change.make(f"ALTER TABLE {table} DROP COLUMN b")
    change.is_refused(dropped, {16}, NAMING_B)
    change.load.serves(change.tables, NOT_NAMING_B)
    change.check(NAMING_B)
