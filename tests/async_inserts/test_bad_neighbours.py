"""Among a thousand tables some are bad: refuse, throw, are slow, hang. The others are served as if those were not there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.gate import Gate
from harness.gateway import Gateway
from harness.inserts import Background, Waiting
from harness.quick_http import QuickConnection
from harness.spread import DISK, NUMBERS, STORED, Kind, Rows, Told, create_many, insert, names
from harness.users import TESTER

TABLES = names(1000)
POISONED, THROWING, SLOW, HANGING, *GOOD = TABLES
AT_ONCE, BEHIND = 32, 50


class Town:
    def __init__(self, gateway: Gateway, gate: Gate):
        self.gate = gate
        gateway.direct.sql("CREATE DATABASE many")
        self.gateway, self.direct = gateway, gateway.direct.using("many")
        self.tested = gateway.http.as_user(TESTER.name, TESTER.password).using("many")
        create_many(self.direct, TABLES)
        self.direct.sql(f"ALTER TABLE {POISONED} ADD CONSTRAINT never CHECK a = 0")
        gate.stand_behind(self.direct, HANGING)
        for bad, condition in ((THROWING, "throwIf(1) = 0"), (SLOW, "sleep(3) = 0")):
            self.direct.sql(f"CREATE TABLE view_of_{bad} (a UInt64) ENGINE = Null")
            self.direct.sql(f"CREATE MATERIALIZED VIEW through_{bad} TO view_of_{bad} AS SELECT a FROM {bad} WHERE {condition}")

    def insert_everywhere(self, tables: list[str], kind: Kind) -> list[Told]:
        """One insert into each, from many connections."""
        shares = [tables[at::AT_ONCE] for at in range(min(AT_ONCE, len(tables)))]

        def take(share: list[str]) -> list[Told]:
            connection = QuickConnection(self.tested)
            try:
                return [insert(connection, kind, table) for table in share]
            finally:
                connection.close()

        with ThreadPoolExecutor(len(shares)) as threads:
            return [told for share in threads.map(take, shares) for told in share]

    def wait_in(self, background: Background, table: str) -> Waiting:
        return background.insert(json.dumps({"a": next(NUMBERS)}), f"INSERT INTO {table} (a) FORMAT JSONEachRow", **STORED)

    def rows(self) -> Rows:
        return Rows(self.gateway, self.direct)


@pytest.fixture(scope="module")
def town(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Town]:
    gateway = Gateway(tmp_path_factory.mktemp("town"))
    with Gate() as gate:
        yield Town(gateway, gate)
    assert gateway.stop() == 0


def test_others_are_answered_while_one_hangs(town: Town) -> None:
    """Not held up behind it: they are answered when it is still without an answer."""
    with Background(town.tested) as background:
        hanging = [town.wait_in(background, HANGING) for _ in range(8)]
        town.gate.await_insert()
        slow = town.wait_in(background, SLOW)
        told = town.insert_everywhere(GOOD[:BEHIND], Kind(STORED, "a"))
        assert not any(it.answered() for it in hanging), "the others waited for the one that hangs"
        town.gate.open()
        assert {it.reply().status for it in (*hanging, slow)} == {200}
    assert all(it.acknowledged for it in told), "\n".join(map(str, told))
    town.rows().check(told)


@pytest.mark.parametrize("kind", [Kind(STORED, "a"), Kind(DISK, "a")], ids=["stored", "disk"])
def test_a_thousand_tables_beside_bad_ones(town: Town, kind: Kind) -> None:
    """The bad ones get inserts all the while; each of the others stores its rows, and no sender of theirs hears of an error."""
    bad = [POISONED, THROWING, SLOW] * 10
    with ThreadPoolExecutor(1) as beside:
        of_bad = beside.submit(town.insert_everywhere, bad, kind)
        told = town.insert_everywhere(GOOD, kind)
        bad_told = of_bad.result()
    assert all(it.acknowledged for it in told), "\n".join(str(it) for it in told if not it.acknowledged)
    rows = town.rows()
    rows.check(told)
    assert all(rows.there[it.number] == {it.table: 1} for it in told)
    assert {it.code for it in bad_told if it.table == SLOW} == {None}
    rows.check(it for it in bad_told if it.table == SLOW)
    for table, code in ((POISONED, 469), (THROWING, 395)):
        here = [it for it in bad_told if it.table == table]
        words = [it.text for it in here] if kind.settings == STORED else [text for it in here for text in rows.letters[it.number]]
        assert len(words) == len(here) and all(f"Code: {code}." in text for text in words), words[:3]
