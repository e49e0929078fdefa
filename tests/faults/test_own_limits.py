"""Users with limits of their own, which one insert exceeds every time: nobody waits behind it, and it comes to an end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.dead_letters import DeadLetters
from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.eventually import eventually
from harness.inserts import ids
from harness.remote import RemoteGateway, backend_url
from harness.users import TESTER, User

EVERYTHING = ("GRANT ALL ON *.*",)
LITTLE = User("little", "l", EVERYTHING, profile=f"<max_memory_usage_for_user>{16 << 20}</max_memory_usage_for_user>")
BRIEF = User("brief", "b", EVERYTHING, profile="<max_execution_time>1</max_execution_time>")
DISK = {"async_insert": 1, "wait_for_async_insert": 0}
STORED = {"async_insert": 1, "wait_for_async_insert": 1}
LARGE_BYTES = 9 << 20
MOST_ATTEMPTS = 4


@dataclass
class Stage:
    direct: Endpoint
    gateway: RemoteGateway

    def of(self, user: User) -> Endpoint:
        return self.gateway.http.as_user(user.name, user.password)

    def letters(self, table: str) -> list[dict]:
        return DeadLetters(self.gateway, "default").all(table=table)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("limits")
    engine = Engine(folder / "engine", users=(LITTLE, BRIEF))
    address = f"{engine.direct.host}:{engine.direct.port}"
    gateway = RemoteGateway(folder / "gateway", backend_url(TESTER, address), engine.direct)
    yield Stage(engine.direct, gateway)
    assert gateway.stop() == 0, gateway.child.log()[-3000:]
    engine.stop()


def test_an_insert_that_is_too_large_for_its_user(stage: Stage) -> None:
    stage.direct.sql("CREATE TABLE large (a UInt64, s String) ENGINE = MergeTree ORDER BY a")
    tested, into = stage.of(LITTLE), "INSERT INTO large FORMAT JSONEachRow"
    row = lambda number, text: f'{{"a": {number}, "s": "{text}"}}\n'
    for number in (1, 13, 2):
        text = "x" * LARGE_BYTES if number == 13 else ""
        assert tested.insert(into, row(number, text), **DISK).status == 200
    for number in (3, 4, 5):
        reply = tested.insert(into, row(number, ""), **STORED)
        assert reply.status == 200, reply.text
    eventually(lambda: ids(stage.direct, "large") == [1, 2, 3, 4, 5], "all others are stored")
    letter = eventually(lambda: stage.letters("large"), "it is a dead letter")[0]
    assert "241" in letter["error"], letter


def test_a_view_that_is_slower_than_its_user_may_be(stage: Stage) -> None:
    """Each attempt stores the row and says that it failed, and the table knows no repeat."""
    stage.direct.sql("CREATE TABLE slow (a UInt64) ENGINE = MergeTree ORDER BY a")
    stage.direct.sql("CREATE TABLE behind (a UInt64) ENGINE = MergeTree ORDER BY a")
    stage.direct.sql("CREATE MATERIALIZED VIEW slows TO behind AS SELECT a FROM slow WHERE a != 13 OR sleep(2) = 0")
    tested, into = stage.of(BRIEF), "INSERT INTO slow FORMAT CSV"
    assert tested.insert(into, "13\n", **DISK).status == 200
    letter = eventually(lambda: stage.letters("slow"), "it is a dead letter")[0]
    assert "may or may not be stored" in letter["error"], letter
    assert tested.insert(into, "1\n", **STORED).status == 200
    stored = ids(stage.direct, "slow")
    assert 1 <= stored.count(13) <= MOST_ATTEMPTS and stored.count(1) == 1, stored
