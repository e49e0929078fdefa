"""Users whose quota is used up, and users who may see some rows of a table only."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from harness.disguise import Disguise
from harness.endpoint import Endpoint, Reply
from harness.engine import Engine
from harness.eventually import eventually
from harness.inserts import HELD_IN_MEMORY, HELD_NOT_WAITING, INTO_T, ids, make_table, rows
from harness.dead_letters import DeadLetters
from harness.ordered import Append, native
from harness.remote import RemoteGateway, backend_url
from harness.users import TESTER, User

# An answer is asked for again after half of it.
CONFIG = "[gather]\nschema_ttl_ms = 1000\nadmission_ttl_ms = 1000\n"
QUOTA_EXCEEDED = 201
PATIENCE_SECONDS = 60

# Questions about an account count as its queries, and an INSERT of no rows as an insert.
QUOTAS = {"queries": 10, "query_inserts": 6, "written_bytes": 100}
MODES = {
    "waiting": {"async_insert": 1}, "memory": {"async_insert": 1, "windrow_ack": "memory"}, "disk": {"async_insert": 1, "windrow_ack": "disk"},
    "stored": {"async_insert": 1, "windrow_ack": "stored"}, "forwarded": {"async_insert": 0},
}  # fmt: skip
MAY_INSERT = ("GRANT SELECT, INSERT ON *.*",)


def limited(name: str, quota: str, bound: int, seconds: int) -> User:
    return User(name, "s", MAY_INSERT, quota=f"<duration>{seconds}</duration><{quota}>{bound}</{quota}>")


LIMITED = {(quota, mode): limited(f"{quota}_{mode}", quota, bound, 100_000_000) for quota, bound in QUOTAS.items() for mode in MODES}
SHORTLY = limited("shortly", "query_inserts", 4, 3)
FREE = User("free", "s", MAY_INSERT)
HERS, HIS = "hers qJ7", "his"
# Sees his own rows of one table, and of no other.
BOB = User("bob", "s", MAY_INSERT, rows=f"<default><kept><filter>s = '{HIS}'</filter></kept></default>")


@dataclass
class Stage:
    engine: Engine
    relay: Disguise
    gateway: RemoteGateway

    def as_user(self, user: User) -> Endpoint:
        return self.gateway.http.as_user(user.name, user.password)


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("quotas")
    engine = Engine(folder / "engine", users=(*LIMITED.values(), SHORTLY, FREE, BOB))
    with Disguise(engine.direct.port) as relay:
        gateway = RemoteGateway(folder / "gateway", backend_url(TESTER, relay.address), engine.direct, CONFIG)
        yield Stage(engine, relay, gateway)
        assert gateway.stop() == 0
    engine.stop()


class Inserter:
    """Inserts one row after the other, and remembers what was acknowledged."""

    def __init__(self, endpoint: Endpoint, settings: dict[str, object]):
        self.endpoint, self.settings = endpoint, settings
        self.sent, self.acknowledged = 0, []

    def is_taken(self) -> bool:
        self.sent += 1
        reply = self.endpoint.insert(INTO_T, rows(self.sent), patience_seconds=PATIENCE_SECONDS, **self.settings)
        if reply.status == 200:
            self.acknowledged.append(self.sent)
            return True
        assert reply.code == QUOTA_EXCEEDED, reply.text
        assert f"Quota for user `{self.endpoint.user}`" in reply.text, reply.text
        return False

    def is_refused(self) -> bool:
        return not self.is_taken()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("quota", QUOTAS)
def test_a_quota_that_is_used_up(stage: Stage, quota: str, mode: str) -> None:
    """It is refused in ClickHouse's words from then on, and nobody else is. What was acknowledged is stored, or a letter."""
    database = f"{quota}_{mode}"
    direct = stage.engine.direct.using(database)
    stage.engine.direct.sql(f"CREATE DATABASE {database}")
    make_table(direct)
    user = LIMITED[quota, mode]
    inserter = Inserter(stage.as_user(user).using(database), MODES[mode])
    assert inserter.is_taken()
    eventually(inserter.is_refused, "it is used up")
    make_table(direct, name="others")
    others = stage.as_user(FREE).using(database)
    for number in range(5):
        assert inserter.is_refused(), "and stays so"
        reply = others.insert("INSERT INTO others FORMAT JSONEachRow", rows(number), patience_seconds=PATIENCE_SECONDS, **MODES[mode])
        assert reply.status == 200, reply.text
    eventually(lambda: ids(direct, "others") == list(range(5)), "what others inserted is stored")
    stage.relay.wear(user.name, FREE.name)
    eventually(inserter.is_taken, "a quota that is lifted refuses nothing more")
    assert all(inserter.is_taken() for _ in range(3))
    check_kept(stage, direct, inserter, may_lose=mode == "memory")


def check_kept(stage: Stage, direct: Endpoint, inserter: Inserter, *, may_lose: bool) -> None:
    """The last ones, for which there is no quota, surely."""
    eventually(lambda: ids(direct)[-3:] == inserter.acknowledged[-3:], "the last ones are stored")
    if not may_lose:
        letters = DeadLetters(stage.gateway, direct.database)
        eventually(lambda: len(ids(direct)) + len(letters.all()) == len(inserter.acknowledged), "all have come to their end")
    assert set(ids(direct)) <= set(inserter.acknowledged) and len(set(ids(direct))) == len(ids(direct))


def test_a_quota_for_a_short_time(stage: Stage) -> None:
    """Inserts go on when the time is over, by themselves."""
    stage.engine.direct.sql("CREATE DATABASE shortly")
    direct = stage.engine.direct.using("shortly")
    make_table(direct)
    inserter = Inserter(stage.as_user(SHORTLY).using("shortly"), MODES["waiting"])
    eventually(inserter.is_taken, "it is taken")
    eventually(inserter.is_refused, "it is used up")
    eventually(inserter.is_taken, "and is no more")
    letters = DeadLetters(stage.gateway, "shortly")
    eventually(lambda: len(ids(direct)) + len(letters.all()) == len(inserter.acknowledged), "all have come to their end")


# What somebody may say to hear of her rows: in what he inserts, and by what is wrong with it.
ASKING = (
    "INSERT INTO kept (a, s, t) VALUES (7, 'his', (SELECT arrayStringConcat(groupArray(s)) FROM kept))", "INSERT INTO kept (a, s, t) VALUES (7, 'his', (SELECT min(s) FROM default.kept))",
    "INSERT INTO kept (a, s, t) VALUES (1000, 'his', (SELECT min(s) FROM kept))", "INSERT INTO kept (a, s, t) VALUES (1000, 'his', '')",
    "INSERT INTO kept (a, s, t) VALUES (7, 'his', (SELECT toString(count()) FROM kept WHERE s != 'his'))",
    "INSERT INTO kept (a, s, t) SELECT 7, 'his', (SELECT min(s) FROM kept)", "INSERT INTO kept (a, s, t) SELECT 7, 'his', s FROM kept",
)  # fmt: skip
BOBS_MODES = {**MODES, "held": HELD_NOT_WAITING, "held in memory": HELD_IN_MEMORY}
READING = (
    "SELECT * FROM kept", "SELECT * FROM default.kept", "SELECT count() FROM kept WHERE s != 'his'", "SELECT * FROM merge('default', 'kept')",
    *(f"SELECT * FROM system.{table}" for table in ("asynchronous_inserts", "asynchronous_insert_log", "windrow_dead_letters", "query_log", "processes")),
)  # fmt: skip


@pytest.fixture
def kept(stage: Stage) -> Iterator[Endpoint]:
    """Her rows are there: stored, in a letter and waiting."""
    direct = stage.engine.direct
    direct.sql("DROP TABLE IF EXISTS kept SYNC")
    make_table(direct, "a UInt64, s String, t String, CONSTRAINT small CHECK a < 100", "kept")
    hers = stage.as_user(TESTER)
    for number, settings in ((1, MODES["forwarded"]), (2, MODES["stored"]), (1000, MODES["stored"]), (3, HELD_NOT_WAITING)):
        reply = hers.insert("INSERT INTO kept FORMAT JSONEachRow", f'{{"a":{number},"s":"{HERS}","t":"{HERS}"}}', **settings)
        assert reply.status == (200 if number < 100 else 500), reply.text
    yield direct


def ask_by_inserts(user: Endpoint, settings: dict[str, object]) -> Iterator[Reply]:
    for query in ASKING:
        yield user.insert(query, "", **settings)
        statement, _, data = query.partition(" VALUES ")
        if data:
            yield user.insert(f"{statement} FORMAT Values", data, **settings)


def answers(user: Endpoint, settings: dict[str, object]) -> Iterator[Reply]:
    yield from ask_by_inserts(user, settings)
    for query in READING:
        yield user.request(query)
    append = Append(user, "kept")
    yield append.put(0, native(a=[7]))
    yield append.ask("GET")
    yield append.abort()
    yield Append(user, "kept", "").ask("GET")


def written_by_who_asked(direct: Endpoint) -> set[str]:
    return set(direct.sql(f"SELECT DISTINCT t FROM kept WHERE s != '{HERS}'").split("\n"))


@pytest.mark.parametrize("mode", BOBS_MODES)
def test_rows_that_a_policy_hides_stay_hidden(stage: Stage, kept: Endpoint, mode: str) -> None:
    """Neither does he see them, nor how many there are."""
    for reply in answers(stage.as_user(BOB), BOBS_MODES[mode]):
        assert HERS not in reply.text, reply.text
    # ClickHouse has no queue of its own then, and says so.
    stage.as_user(TESTER).request("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert written_by_who_asked(kept) <= {"", HIS, "0", *(HIS * times for times in range(2, 20))}
    assert HIS in stage.as_user(BOB).sql("SELECT s FROM kept"), "his own he sees"


def test_without_a_policy_they_are_seen(stage: Stage, kept: Endpoint) -> None:
    """So that the test above could fail."""
    assert any(HERS in reply.text for reply in answers(stage.as_user(FREE), MODES["stored"]))
    assert HERS in written_by_who_asked(kept)


@pytest.mark.parametrize("user", [BOB, FREE], ids=lambda user: user.name)
def test_nothing_is_computed_with_more_rights_after_a_crash(stage: Stage, kept: Endpoint, user: User) -> None:
    """What the journal held is stored by Windrow's own account, which sees all rows."""
    taken = [reply for reply in ask_by_inserts(stage.as_user(user), HELD_NOT_WAITING) if reply.status == 200]
    waiting = stage.as_user(TESTER).sql("SELECT length(entries.query_id) FROM system.asynchronous_inserts WHERE format = 'Values'")
    assert 5 <= int(waiting) <= len(taken)
    stage.gateway.kill()
    stage.gateway.start()
    eventually(lambda: HIS in kept.sql("SELECT s FROM kept") and not stage.as_user(TESTER).sql("SELECT table FROM system.asynchronous_inserts"), "the journal is stored")
    assert (HERS in "".join(written_by_who_asked(kept))) == (user is FREE)
