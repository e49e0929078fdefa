"""Rights that are taken away, at every level of acknowledgement, and the journal that a crash leaves behind them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from harness.disguise import Disguise
from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.eventually import eventually
from harness.inserts import HELD_NOT_WAITING, INTO_T, ids, make_table, rows
from harness.dead_letters import DeadLetters
from harness.remote import RemoteGateway, backend_url
from harness.users import TESTER, User

# An answer is asked for again after half of it.
CONFIG = "[gather]\nschema_ttl_ms = 1000\nadmission_ttl_ms = 1000\n"
MAY = User("sue_before", "s", ("GRANT INSERT ON *.*",))
LOSSES = {
    "REVOKE": (User("sue_may_nothing", "s", ()), 497),
    "REVOKE of a role's right": (User("sue_may_read", "s", ("GRANT SELECT ON *.*",)), 497),
    "ALTER USER IDENTIFIED": (User("sue_rekeyed", "another", ("GRANT INSERT ON *.*",)), 516),
    "DROP USER": (None, 516),
}
LEVELS = {"default": {}, "memory": {"windrow_ack": "memory"}, "disk": {"windrow_ack": "disk"}, "stored": {"windrow_ack": "stored"}}


@dataclass
class Stage:
    engine: Engine
    relay: Disguise
    gateway: RemoteGateway

    def sue(self) -> Endpoint:
        return self.gateway.http.as_user("sue", "s")

    def become(self, user: User | None) -> None:
        """At the engine, from one request to the next: it knows no GRANT."""
        self.relay.wear("sue", user.name if user else "sue_is_nobody")


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("rights")
    engine = Engine(folder / "engine", users=(MAY, *(user for user, _ in LOSSES.values() if user)))
    with Disguise(engine.direct.port) as relay:
        gateway = RemoteGateway(folder / "gateway", backend_url(TESTER, relay.address), engine.direct, CONFIG)
        yield Stage(engine, relay, gateway)
        assert gateway.stop() == 0
    engine.stop()


@pytest.fixture
def own(stage: Stage) -> Iterator[Endpoint]:
    """A table of the test's own, with all rights given."""
    stage.engine.direct.sql("DROP TABLE IF EXISTS t")
    make_table(stage.engine.direct)
    stage.become(MAY)
    eventually(lambda: stage.sue().insert(INTO_T, rows(0), async_insert=1).status == 200, "sue may insert")
    yield stage.engine.direct


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("loss", LOSSES)
def test_what_is_taken_away_at_every_level(stage: Stage, own: Endpoint, loss: str, level: str) -> None:
    """Refused for good from the first refusal on; whatever is stored was acknowledged, and whatever was acknowledged is stored or a letter."""
    becomes, code = LOSSES[loss]
    letters = DeadLetters(stage.gateway, "default")
    before = len(letters.all())
    acknowledged, number = [], 1_000

    def is_refused() -> bool:
        nonlocal number
        number += 1
        reply = stage.sue().insert(INTO_T, rows(number), async_insert=1, **LEVELS[level])
        if reply.status == 200:
            acknowledged.append(number)
            return False
        assert reply.code == code, reply.text
        return True

    assert not is_refused()
    stage.become(becomes)
    eventually(is_refused, "the loss is noticed")
    for _ in range(20):
        assert is_refused(), "and stays so"
    # ClickHouse has no queue of its own then, and says so.
    stage.gateway.http.as_user(TESTER.name, TESTER.password).request("SYSTEM FLUSH ASYNC INSERT QUEUE")

    def stored() -> list[int]:
        return [number for number in ids(own) if number >= 1_000]

    if level == "memory":
        # What was refused then is lost, as that level says.
        assert set(stored()) <= set(acknowledged)
    else:
        eventually(lambda: len(stored()) + len(letters.all()) - before == len(acknowledged), "all have come to their end")
        assert set(stored()) <= set(acknowledged)


def test_a_crash_between_the_acknowledgement_and_the_loss(stage: Stage, own: Endpoint) -> None:
    """What was rightly acknowledged is stored by Windrow's own account: no password is kept. What comes after the loss is refused."""
    stage.engine.direct.sql("TRUNCATE TABLE t")
    for number in range(10):
        assert stage.sue().insert(INTO_T, rows(number), **HELD_NOT_WAITING).status == 200
    stage.gateway.kill()
    stage.become(LOSSES["REVOKE"][0])
    stage.gateway.start()
    eventually(lambda: ids(own) == list(range(10)), "the journal is stored")
    for level in LEVELS.values():
        assert stage.sue().insert(INTO_T, rows(99), async_insert=1, **level).code == 497
    assert ids(own) == list(range(10))


def test_a_wrong_password_in_the_journals_time(stage: Stage, own: Endpoint) -> None:
    """Nothing that was refused before a crash is there after it."""
    for level in LEVELS.values():
        assert stage.gateway.http.as_user("sue", "wrong").insert(INTO_T, rows(77), **{**HELD_NOT_WAITING, **level}).code == 516
    stage.gateway.kill()
    stage.gateway.start()
    eventually(lambda: stage.sue().insert(INTO_T, rows(5), async_insert=1).status == 200, "the gateway is back")
    assert 77 not in ids(own)
