"""A user loses a privilege, the password or the account while inserting into hundreds of tables: soon nothing more is acknowledged
that ClickHouse would refuse, in ClickHouse's words; whoever else inserts notices nothing, and every acknowledged row is there once."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from harness.disguise import Disguise
from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.eventually import eventually
from harness.quick_http import QuickConnection
from harness.remote import RemoteGateway, backend_url
from harness.spread import DISK, KINDS, STORED, Kind, Rows, Spread, Told, acknowledged_late, create_many, insert, names
from harness.users import ANN, TESTER, User

CONFIG = "[gather]\nschema_ttl_ms = 1000\nadmission_ttl_ms = 1000\n"
TABLES = names(300)
SOME, ONE = TABLES[:20], TABLES[7]
ALL_BUT_B = f"GRANT INSERT(a) ON many.{ONE}"
EVERYWHERE, NOT_INTO_ONE = "GRANT INSERT ON many.*", f"REVOKE INSERT ON many.{ONE}"
# joe, who is somebody else at the engine from one moment to the next. None of them may do more than insert: of the tables of
# `system` they see what everybody does.
BEFORE = User("joe_before", "j", (EVERYWHERE,))
NAMING_B = tuple(kind for kind in KINDS if "b" in kind.columns)
FEW = (Kind(STORED, "a"), Kind(DISK, "a"))


@dataclass(frozen=True)
class Loss:
    """What joe has become, and which of his inserts ClickHouse refuses since then, with which code."""

    joe: User
    code: int
    tables: tuple[str, ...] = tuple(TABLES)
    kinds: tuple[Kind, ...] = KINDS

    def concerns(self, it: Told) -> bool:
        return it.table in self.tables and it.kind in self.kinds


LOSSES = {
    "REVOKE INSERT on one table": Loss(User("joe_but_one", "j", (EVERYWHERE, NOT_INTO_ONE)), 497, (ONE,)),
    "REVOKE INSERT of one column": Loss(User("joe_but_b", "j", (EVERYWHERE, NOT_INTO_ONE, ALL_BUT_B)), 497, (ONE,), NAMING_B),
    "REVOKE INSERT on all": Loss(User("joe_may_nothing", "j", ()), 497),
    "DROP USER": Loss(User("joe_is_nobody", "j", ()), 516),
    "ALTER USER IDENTIFIED": Loss(User("joe_rekeyed", "another", (EVERYWHERE,)), 516),
}
KNOWN = (BEFORE, *(loss.joe for name, loss in LOSSES.items() if name != "DROP USER"))


class Stage:
    """joe inserts into all tables without end, ann into some, and somebody tries to be joe with a wrong password."""

    def __init__(self, relay: Disguise, gateway: RemoteGateway):
        self.relay, self.gateway, self.direct = relay, gateway, gateway.direct.using("many")
        create_many(self.direct, TABLES)
        self.http = gateway.http.using("many")
        self.joe, self.guesser = Spread(self.as_joe("j"), TABLES), Spread(self.as_joe("wrong"), SOME, FEW)
        self.ann = Spread(self.http.as_user(ANN.name, ANN.password), SOME, FEW)
        self.joe.watched = self.ann.watched = (ONE,)
        relay.wear("joe", BEFORE.name)

    def as_joe(self, password: str) -> Endpoint:
        return self.http.as_user("joe", password)

    def check_rows(self, told: list[Told]) -> None:
        Rows(self.gateway, self.direct).check(told)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("revocations")
    engine = Engine(folder / "engine", users=KNOWN)
    engine.direct.sql("CREATE DATABASE many")
    with Disguise(engine.direct.port) as relay:
        gateway = RemoteGateway(folder / "gateway", backend_url(TESTER, relay.address), engine.direct, CONFIG)
        stage = Stage(relay, gateway)
        with stage.joe, stage.ann, stage.guesser:
            stage.joe.serves(TABLES, ())
            stage.ann.serves(SOME, ())
            yield stage
        assert gateway.stop() == 0
    engine.stop()


@pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES.keys())
def test_what_is_taken_away_is_gone_soon(stage: Stage, loss: Loss) -> None:
    joe, began_at = stage.joe, time.monotonic()
    stage.relay.wear("joe", loss.joe.name)
    joe.refuses([ONE], loss.kinds)
    joe.refuses(loss.tables, ())
    told = joe.since(began_at)
    concerned = [it for it in told if loss.concerns(it)]
    late = acknowledged_late(concerned)
    assert not late, "\n".join(map(str, late))
    refused = [it for it in concerned if not it.acknowledged]
    assert {it.code for it in refused} == {loss.code}
    own_words = stage.direct.as_user(loss.joe.name, "j").insert(f"INSERT INTO {ONE} (a, b) FORMAT JSONEachRow", '{"a":0}').text
    assert own_words in {it.text for it in refused}
    stage.relay.wear("joe", BEFORE.name)
    joe.serves([ONE])
    told, anns = joe.since(began_at), stage.ann.since(began_at)
    wrong = [it for it in told if not it.acknowledged and not loss.concerns(it)] + [it for it in anns if not it.acknowledged]
    assert not wrong, "\n".join(map(str, wrong[:10]))
    stage.check_rows(told + anns)


def test_a_new_password_serves_instead_of_the_old_one(stage: Stage) -> None:
    assert stage.as_joe("another").insert(f"INSERT INTO {ONE} (a) FORMAT JSONEachRow", '{"a":0}').code == 516
    stage.relay.wear("joe", LOSSES["ALTER USER IDENTIFIED"].joe.name)
    connection = QuickConnection(stage.as_joe("another"))
    told: list[Told] = []

    def is_taken() -> bool:
        told.append(insert(connection, Kind(DISK, "a"), ONE))
        return told[-1].acknowledged

    eventually(is_taken, "the new password is taken")
    stage.joe.refuses([ONE])
    told += [insert(connection, Kind(DISK, "a"), table) for table in SOME]
    stage.relay.wear("joe", BEFORE.name)
    assert {it.code for it in told if not it.acknowledged} <= {516}
    stage.joe.serves([ONE])
    stage.check_rows(told)


def test_a_wrong_password_never_got_a_row_in(stage: Stage) -> None:
    """While all of this happened."""
    stage.guesser.refuses(SOME, ())
    told = list(stage.guesser.told)
    assert {(it.status, it.code) for it in told} == {(403, 516)}
    stage.check_rows(told)
