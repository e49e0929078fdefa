"""How much hundreds of tables ask of ClickHouse beside their inserts: next to nothing, by ClickHouse's own count."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.inserts import INTO_T, rows
from harness.middle import Middle
from harness.raw_http import RawConnection, head
from harness.remote import RemoteGateway, backend_url
from harness.spread import DISK, NUMBERS, Kind, Spread, create_many, names
from harness.users import TESTER

FIRST_INSERTS, TABLES = 1000, 300
MOST_QUESTIONS, LEAST_SECONDS = 60, 5
# Also those that are not SELECTs.
MOST_SELECTS_PER_SECOND, MOST_QUESTIONS_PER_SECOND = 10, 20
# Nothing grows old meanwhile, however slow the machine is: what is counted is what it takes to learn of the tables.
NO_RENEWAL = "[gather]\nschema_ttl_ms = 3_600_000\nadmission_ttl_ms = 3_600_000\n"
STEADY = (Kind(DISK, "a"), Kind(DISK, "a, b"))


@dataclass(frozen=True)
class Counts:
    """Since its start ClickHouse was asked so many things, of which so many SELECTs and INSERTs; and its tables got so many parts."""

    queries: int
    selects: int
    inserts: int
    parts: int

    def __sub__(self, before: Counts) -> Counts:
        return Counts(*(getattr(self, name) - getattr(before, name) for name in self.__dict__))

    def questions(self) -> int:
        """All that is not an insert of rows. Each of those makes a part."""
        return self.queries - self.parts


def counted(direct: Endpoint) -> Counts:
    """This is a question, too, and a SELECT."""
    events = "(SELECT sum(value) FROM system.events WHERE event = '{}')"
    # Inserts number their blocks from 1, and merges keep the highest number.
    parts = f"SELECT max(max_block_number) AS made FROM system.parts WHERE database = '{direct.database}' GROUP BY table"
    columns = ", ".join(events.format(event) for event in ("Query", "SelectQuery", "InsertQuery"))
    return Counts(*map(int, direct.sql(f"SELECT {columns}, (SELECT sum(made) FROM ({parts}))").split("\t")))


@pytest.fixture
def made(start_gateway, request: pytest.FixtureRequest) -> Iterator[tuple[Gateway, Endpoint, Endpoint]]:
    number, config = request.param
    gateway: Gateway = start_gateway(config)
    gateway.direct.sql("CREATE DATABASE many")
    direct = gateway.direct.using("many")
    create_many(direct, names(number))
    yield gateway, gateway.http.as_user(TESTER.name, TESTER.password).using("many"), direct


@pytest.mark.parametrize("made", [(FIRST_INSERTS, NO_RENEWAL)], indirect=True, ids=["1000 tables"])
def test_first_inserts_ask_together(made: tuple[Gateway, Endpoint, Endpoint]) -> None:
    """A thousand clients whose first inserts go into a thousand tables at the same moment are all acknowledged."""
    _, tested, direct = made
    common = (("Host", tested.host), ("Authorization", tested.basic_auth()))
    target = lambda table: tested.target(f"INSERT INTO {table} FORMAT JSONEachRow", DISK)
    body = [b'{"a":%d}' % next(NUMBERS) for _ in range(FIRST_INSERTS)]
    requests = [
        head("POST", target(table), (*common, ("Content-Length", str(len(row))))) + row
        for table, row in zip(names(FIRST_INSERTS), body)
    ]
    before = counted(direct)
    connections = [RawConnection(tested, timeout_seconds=180) for _ in requests]
    try:
        for connection, request in zip(connections, requests):
            connection.send(request)
        replies = [connection.read_reply() for connection in connections]
    finally:
        for connection in connections:
            connection.close()
    # All have been answered. What the gateway asks now and then has nothing to do with them, however long storing takes.
    answered = counted(direct) - before
    assert {(reply.status, reply.text) for reply in replies} == {(200, "")}
    eventually(lambda: counted(direct).parts - before.parts == FIRST_INSERTS, "every row is stored")
    stored = counted(direct) - before
    without_rows = stored.inserts - stored.parts
    # One was our own.
    asked = answered.queries - answered.inserts - 1 + without_rows
    print(f"{asked} questions for {FIRST_INSERTS} first inserts")
    assert direct.sql("SELECT count(), uniqExact(a), uniqExact(_table) FROM merge('many', '^t[0-9]')").split() == [str(FIRST_INSERTS)] * 3
    assert asked < MOST_QUESTIONS


@pytest.mark.parametrize("made", [(TABLES, "")], indirect=True, ids=["300 tables"])
def test_a_steady_load_asks_little(made: tuple[Gateway, Endpoint, Endpoint]) -> None:
    """With the settings that everybody has."""
    _, tested, direct = made
    load = Spread(tested, names(TABLES), STEADY, per_kind=4)
    with load:
        load.serves(names(TABLES), ())
        before, begin, told_before = counted(direct), time.monotonic(), len(load.told)
        load.serves(names(TABLES), ())
        eventually(lambda: time.monotonic() > begin + LEAST_SECONDS, "the time of the measurement is over")
        grown, seconds, inserts = counted(direct) - before, time.monotonic() - begin, len(load.told) - told_before
    print(f"{grown.selects / seconds:.1f} SELECTs, {grown.questions() / seconds:.1f} questions and {inserts / seconds:.0f} inserts per second")
    assert all(it.acknowledged for it in load.told)
    assert grown.selects / seconds <= MOST_SELECTS_PER_SECOND
    assert grown.questions() / seconds <= MOST_QUESTIONS_PER_SECOND


# What a gateway asks before it takes an insert; an INSERT of no rows has an empty token. How many parts there are, it asks for
# other reasons.
QUESTION = re.compile(rb"system\.(tables|settings|\w*merge_tree_settings)|SHOW(\+|%20| )GRANTS|DESCRIBE|insert_deduplication_token=(&| )")
NOT_BEFORE = b"system.parts"
MERGE_TREE = "(a UInt64) ENGINE = MergeTree ORDER BY a"


@dataclass
class Asked:
    """What goes from a gateway to its ClickHouse."""

    middle: Middle
    gateway: RemoteGateway

    @property
    def tested(self) -> Endpoint:
        return self.gateway.http.as_user(TESTER.name, TESTER.password).using("many")

    def before(self, insert: str) -> int:
        """So many questions an insert takes."""
        self.middle.seen = []
        assert self.tested.insert(insert, rows(1)).status == 200
        return sum(1 for request in self.middle.seen if QUESTION.search(request) and NOT_BEFORE not in request)


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Asked]:
    folder = tmp_path_factory.mktemp("asked")
    engine = Engine(folder / "engine")
    engine.direct.sql("CREATE DATABASE many")
    with Middle(engine.direct.port) as middle:
        gateway = RemoteGateway(folder / "gateway", backend_url(TESTER, middle.address), engine.direct, NO_RENEWAL)
        for statement in (
            f"CREATE TABLE t {MERGE_TREE}",
            f"CREATE TABLE behind {MERGE_TREE}",
            "CREATE MATERIALIZED VIEW v TO behind AS SELECT a FROM t",
            f"CREATE TABLE usual {MERGE_TREE}",
            f"CREATE TABLE other {MERGE_TREE}",
            f"CREATE TABLE another {MERGE_TREE}",
        ):
            engine.direct.using("many").sql(statement)
        yield Asked(middle, gateway)
        gateway.stop()
    engine.stop()


ABOUT_OTHERS = (
    f"CREATE TABLE new {MERGE_TREE}",
    f"CREATE TABLE IF NOT EXISTS other {MERGE_TREE}",
    f"CREATE OR REPLACE TABLE other {MERGE_TREE}",
    "CREATE VIEW plain AS SELECT a FROM t",
    "ALTER TABLE other ADD COLUMN b UInt64",
    "TRUNCATE TABLE other",
    "DROP TABLE another",
)
ABOUT_ANYTHING = (
    "CREATE MATERIALIZED VIEW w TO behind AS SELECT a FROM t",
    "ALTER TABLE behind MODIFY SETTING non_replicated_deduplication_window = 50",
    "DROP TABLE w",
    "ALTER TABLE t ADD COLUMN b UInt64",
    "RENAME TABLE other TO renamed",
    "EXCHANGE TABLES renamed AND new",
    "CREATE DATABASE d",
    "DROP DATABASE d",
    "DETACH TABLE new",
    "ATTACH TABLE new",
)


def test_what_is_done_to_one_table_has_only_that_one_asked_about(asked: Asked) -> None:
    assert asked.before(INTO_T) > 0
    assert asked.before(INTO_T) == 0
    for statement in ABOUT_OTHERS:
        asked.tested.sql(statement)
        assert asked.before(INTO_T) == 0, statement
    for statement in ABOUT_ANYTHING:
        asked.tested.sql(statement)
        assert asked.before(INTO_T) > 0, statement
        assert asked.before(INTO_T) == 0, statement


def test_the_first_insert_into_a_table_that_was_made_here_takes_one_question(asked: Asked) -> None:
    # What an account may set is asked once, into whatever table.
    asked.before("INSERT INTO usual FORMAT JSONEachRow")
    for name in ("made", "made_again"):
        asked.tested.sql(f"CREATE TABLE {name} {MERGE_TREE}")
        insert = f"INSERT INTO {name} FORMAT JSONEachRow"
        assert asked.before(insert) <= 1
        assert asked.before(insert) == 0
    asked.tested.sql("DROP TABLE made")
    asked.tested.sql(f"CREATE TABLE made {MERGE_TREE}")
    assert asked.before("INSERT INTO made FORMAT JSONEachRow") <= 1
    asked.tested.sql("ALTER TABLE made_again ADD COLUMN b UInt64")
    assert asked.before("INSERT INTO made_again FORMAT JSONEachRow") <= 1
