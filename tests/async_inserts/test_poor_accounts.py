"""The gateway's own account may nothing, or next to nothing: its users' inserts are gathered all the same, and what changes is seen."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.engine import Engine
from harness.gathered import metric
from harness.quick_http import QuickConnection
from harness.remote import RemoteGateway, backend_url
from harness.spread import DISK, STORED, Kind, Rows, Spread, Told, acknowledged_late, create_many, insert, names
from harness.users import TESTER, User

TABLES = names(20)
CONFIG = "[gather]\nschema_ttl_ms = 1000\nadmission_ttl_ms = 1000\n"
ACCOUNTS = {
    "nothing": User("may_nothing", "n", ()),
    "insert everywhere": User("may_insert", "i", ("GRANT INSERT ON *.*",)),
    # Sees that half of the tables are there, and of none what columns it has.
    "show some": User("may_show", "s", tuple(f"GRANT SHOW TABLES ON many.{table}" for table in TABLES[::2])),
}
# Whose inserts they are: two may no more than insert, one of them only these columns; the third may do everything.
COLUMN_BY_COLUMN = tuple(f"GRANT INSERT(a, b) ON many.{table}" for table in TABLES)
INSERTERS = (User("one_writer", "1", ("GRANT INSERT ON many.*",)), User("other_writer", "2", COLUMN_BY_COLUMN))
NAMING_B = Kind(DISK, "a, b")
WRITERS = (*INSERTERS, TESTER)


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = Engine(tmp_path_factory.mktemp("engine"), users=(*ACCOUNTS.values(), *INSERTERS))
    yield engine
    engine.stop()


class Front:
    def __init__(self, gateway: RemoteGateway):
        self.gateway, self.direct = gateway, gateway.direct.using("many")
        http = gateway.http.using("many")
        self.loads = [Spread(http.as_user(user.name, user.password), TABLES, (Kind(STORED, "a"), NAMING_B)) for user in WRITERS]

    def told(self) -> list[Told]:
        return [it for load in self.loads for it in load.told]

    def check_rows(self, told: list[Told]) -> None:
        Rows(self.gateway, self.direct).check(told)


@pytest.fixture(params=ACCOUNTS.values(), ids=ACCOUNTS.keys())
def front(request: pytest.FixtureRequest, engine: Engine, tmp_path: Path) -> Iterator[Front]:
    direct = engine.direct
    direct.sql("DROP DATABASE IF EXISTS many SYNC")
    direct.sql("CREATE DATABASE many")
    create_many(direct.using("many"), TABLES)
    gateway = RemoteGateway(tmp_path / "gateway", backend_url(request.param, f"127.0.0.1:{direct.port}"), direct, CONFIG)
    yield Front(gateway)
    assert gateway.stop() == 0


def test_inserts_are_stored_and_a_change_is_seen(front: Front) -> None:
    """Who may read what tables are like lends that to the gateway, and is gathered. Of the others ClickHouse itself may take care."""
    table = TABLES[3]
    with contextlib.ExitStack() as running:
        for load in front.loads:
            load.watched = (table,)
            running.enter_context(load)
        for load in front.loads:
            load.serves(TABLES, ())
        assert metric(front.gateway, "windrow_inserts", "many") >= len(TABLES), "those of whom may everything are gathered"
        front.direct.sql(f"ALTER TABLE {table} DROP COLUMN b")
        for load in front.loads:
            load.refuses([table], (NAMING_B,))
            load.serves([TABLES[4]], ())
    told = front.told()
    refused = [it for it in told if not it.acknowledged]
    # Who was granted a column by its name has no right to one that is gone.
    assert all(it.table == table and "b" in it.kind.columns and it.code in (16, 497) for it in refused), "\n".join(map(str, refused[:10]))
    late = [it for load in front.loads for it in acknowledged_late(it for it in load.told if it.table == table)]
    assert not late, "\n".join(map(str, late))
    front.check_rows(told)


def test_a_wrong_password_gets_nothing_in(front: Front) -> None:
    """Nor does the gateway's account lend its rights to anybody."""
    user = WRITERS[0]
    connections = [QuickConnection(front.loads[0].endpoint.as_user(user.name, password)) for password in (user.password, "wrong", "")]
    right, *wrong = [[insert(connection, kind, table) for table in TABLES for kind in (Kind(STORED, "a"), NAMING_B)] for connection in connections]
    assert all(it.acknowledged for it in right)
    assert {(it.status, it.code) for told in wrong for it in told} == {(403, 516)}
    front.check_rows([*right, *wrong[0], *wrong[1]])
