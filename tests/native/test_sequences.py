"""Packets in unusual orders, and statements that change what the next one means: the answers are ClickHouse's, and so are the rows.

Each conversation is held with ClickHouse itself and through the gateway, each with a table of its own of the same name. None
of them leaves in the middle of a handshake or is refused there: a ClickHouse 26.7 that runs as a library aborts then.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from clients.routes import forwarded_by_reason, gathered_by_table
from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.gateway import Gateway
from harness.native import (
    CANCEL,
    DATA,
    END_OF_STREAM,
    EXCEPTION,
    NEWEST,
    PING,
    PONG,
    PROFILE_EVENTS,
    PROGRESS,
    SCALAR,
    SERVER_DATA,
    TABLES_STATUS,
    TABLES_STATUS_RESPONSE,
    Column,
    Native,
    numbers,
    text,
    varint,
)

INSERT = "INSERT INTO t VALUES"
OFF = {"async_insert": "0"}


@dataclass(frozen=True)
class Step:
    """What is sent, and the packets that end the answer to it; none is waited for without them."""

    sent: Callable[[Native], bytes]
    ends: tuple[int, ...] = ()
    # How many packets of counters a result comes with is a matter of time.
    is_result: bool = False


def statement(sql: str, settings: dict[str, str] | None = None, **more: object) -> Step:
    return Step(lambda it: it.query(sql, settings, **more) + it.data(), (END_OF_STREAM, EXCEPTION))


def result(sql: str) -> Step:
    return Step(statement(sql).sent, (END_OF_STREAM, EXCEPTION), is_result=True)


def begin(sql: str = INSERT, settings: dict[str, str] | None = None, **more: object) -> Step:
    return Step(lambda it: it.query(sql, settings, **more) + it.data(), (SERVER_DATA, EXCEPTION))


def block(*values: int) -> Step:
    return Step(lambda it: it.data([numbers("n", values)], len(values)))


def insert(value: int, settings: dict[str, str] | None = None, sql: str = INSERT, **more: object) -> list[Step]:
    return [begin(sql, settings, **more), block(value), END]


def with_table(name: str, value: int) -> Callable[[Native], bytes]:
    """A table that goes along with a statement."""
    return lambda it: varint(DATA) + text(name) + it.block([numbers("n", [value])], 1)


def scalar(it: Native) -> bytes:
    return varint(SCALAR) + text("_s") + it.block([numbers("n", [1])], 1)


def packed(step: Step, is_packed: bool) -> Step:
    def sent(connection: Native) -> bytes:
        connection.compressed = is_packed
        return step.sent(connection)

    return Step(sent, step.ends)


END = Step(lambda it: it.data(), (END_OF_STREAM, EXCEPTION))
IS_PINGED = Step(lambda it: varint(PING), (PONG,))
CANCELLED = Step(lambda it: varint(CANCEL), (END_OF_STREAM, EXCEPTION))
BAD_BLOCK = Step(lambda it: it.data([Column("n", "String", text("no number"))], 1))
REPLACED = "CREATE OR REPLACE TABLE t (n UInt64, m UInt64 DEFAULT n + 1) ENGINE = MergeTree ORDER BY n"
BESIDE = Step(lambda it: it.query("INSERT INTO t SELECT n FROM x") + with_table("x", 7)(it) + it.data(), END.ends)
STATUS = varint(TABLES_STATUS) + varint(2)

# What is said, and what is in `t` at last. What comes of its inserts: how many are gathered, and the reasons for the others.
CONVERSATIONS: dict[str, tuple[list[Step], list[int], int, dict[str, int]]] = {
    "pings": ([begin(), IS_PINGED, block(1), IS_PINGED, block(2), END, IS_PINGED], [1, 2], 1, {}),
    "cancelled between blocks": ([begin(), block(1), CANCELLED, *insert(2), IS_PINGED], [2], 1, {}),
    "cancelled before the first block": ([begin(), CANCELLED, *insert(2), IS_PINGED], [2], 1, {}),
    "cancelled twice": ([begin(), block(1), CANCELLED, Step(lambda it: varint(CANCEL)), IS_PINGED, *insert(2)], [2], 1, {}),
    "no rows at all": ([begin(), END, begin(), block(), END, *insert(2)], [2], 1, {}),
    "set": ([*insert(1), statement("SET max_block_size = 7"), *insert(2)], [1, 2], 2, {}),
    "set async_insert": (
        [*insert(1), statement("SET async_insert = 0, max_threads = 1"), *insert(2), statement("SET async_insert = true"), *insert(3)],
        [1, 2, 3], 2, {"async_insert=0": 1},
    ),
    "set what is no plain value": ([statement("SET max_threads = 1 + 1"), statement("SET additional_table_filters = {}"), *insert(1)],
                                   [1], 0, {"session": 1}),
    "set what is not known": ([statement("SET no_such_setting = 1"), *insert(1)], [1], 1, {}),
    "use": ([*insert(1), statement("USE system"), begin(), IS_PINGED], [1], 1, {"session": 1}),
    "a temporary table of the same name": (
        [
            *insert(1),
            statement("CREATE TEMPORARY TABLE t (n UInt64)"),
            *insert(2),
            result("SELECT n FROM t"),
            statement("DROP TEMPORARY TABLE t"),
            *insert(3),
        ],
        [1, 3], 1, {"session": 2},
    ),
    "a temporary table of other columns": (
        [*insert(1), statement("CREATE TEMPORARY TABLE t (n UInt64, other UInt64)"), begin(), END],
        [1], 1, {"session": 1},
    ),
    "a table that goes": (
        [*insert(1), statement("RENAME TABLE t TO moved"), begin(), statement("RENAME TABLE moved TO t"), *insert(2)],
        [1, 2], 2, {"unknown_table": 1},
    ),
    # A block without a column of the header has the default of its type in it, not of the column.
    "a table that is replaced": ([*insert(1), statement(REPLACED), *insert(2)], [2], 1, {"columns": 1}),
    "a table that is emptied": ([*insert(1), statement("TRUNCATE TABLE t"), *insert(2)], [2], 2, {}),
    # Behind an error among forwarded blocks all is passed on unread.
    "an error and then none": ([*insert(1), begin(settings=OFF), BAD_BLOCK, END, *insert(2)], [1, 2], 1, {"async_insert=0": 1}),
    "a setting of the statement": (
        [*insert(1, sql="INSERT INTO t SETTINGS async_insert = 0 VALUES"), *insert(2)],
        [1, 2], 1, {"async_insert=0": 1},
    ),
    "settings that come and go": ([*insert(1), *insert(2, OFF), *insert(3), *insert(4, OFF)], [1, 2, 3, 4], 2, {"async_insert=0": 2}),
    "packed by turns": (
        [packed(step, is_packed) for is_packed in (False, True, False, True) for step in insert(int(is_packed))],
        [0, 0, 1, 1], 4, {},
    ),
    "a table beside": ([BESIDE, *insert(1)], [1, 7], 1, {"insert_form": 1}),
    "a table beside blocks": (
        [Step(lambda it: it.query(INSERT) + with_table("x", 7)(it) + it.data(), (SERVER_DATA,)), block(1), END],
        [1], 0, {"external_table": 1},
    ),
    "a value beside blocks": (
        [Step(lambda it: it.query(INSERT) + scalar(it) + it.data(), (SERVER_DATA, EXCEPTION)), block(1), END],
        [1], 0, {"external_table": 1},
    ),
    "cancelled before the empty block": (
        [Step(lambda it: it.query(INSERT) + varint(CANCEL), CANCELLED.ends), IS_PINGED, *insert(2)],
        [2], 1, {},
    ),
    "rows without columns": ([begin(), Step(lambda it: it.data([], 5)), END], [0] * 5, 0, {"type": 1}),
    "by input()": (
        [begin("INSERT INTO t SELECT n + 1 FROM input('n UInt64') FORMAT Native"), block(1), END],
        [2], 0, {"insert_form": 1},
    ),
    "of a server": ([*insert(1, secondary=True), *insert(2, OFF, secondary=True)], [1, 2], 1, {"async_insert=0": 1}),
    "the same id again": ([*insert(1, query_id="one"), *insert(2, query_id="one")], [1, 2], 2, {}),
    "an unknown setting": ([*insert(1, {"no_such_setting": "1"}), *insert(2)], [1, 2], 1, {"setting": 1}),
    "statements of other kinds between": (
        [*insert(1), result("SELECT n FROM t"), *insert(2), statement("SELECT not_there"), *insert(3), result("SELECT sum(n) FROM t")],
        [1, 2, 3], 3, {},
    ),
    "which tables there are": (
        [
            Step(lambda it: STATUS + 2 * text(it.server.database) + text("x") + text("not_there"), (TABLES_STATUS_RESPONSE,)),
            *insert(1),
            Step(lambda it: STATUS + text(it.server.database) + text("t") + text("x") + text("not_there"), (TABLES_STATUS_RESPONSE,)),
            *insert(2),
        ],
        [1, 2], 2, {},
    ),
}


def converse(endpoint: Endpoint, steps: list[Step], revision: int = NEWEST) -> list[tuple]:
    said = []
    with Native(endpoint, revision).start() as connection:
        for step in steps:
            connection.send(step.sent(connection))
            passed_over = (PROGRESS, PROFILE_EVENTS) if step.is_result else (PROGRESS,)
            for packet in connection.up_to(*step.ends) if step.ends else []:
                if packet.kind not in passed_over:
                    said.append((packet.kind, packet.code, packet.message, b"" if packet.kind == PROFILE_EVENTS else packet.body))
    return said


def made_anew(direct: Endpoint) -> None:
    direct.sql("CREATE OR REPLACE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n")


def rows(direct: Endpoint) -> list[int]:
    return json.loads(direct.sql("SELECT arraySort(groupArray(n)) FROM t"))


@pytest.mark.parametrize("name", CONVERSATIONS)
def test_a_conversation(
    server: Engine | Gateway, direct: Endpoint, native: Endpoint, direct_native: Endpoint, name: str
) -> None:
    steps, expected, gathered, reasons = CONVERSATIONS[name]
    before = forwarded_by_reason(server) if isinstance(server, Gateway) else None
    made_anew(direct)
    through, stored_through = converse(native, steps), rows(direct)
    if before is not None:
        assert gathered_by_table(server, direct.database).total() == gathered
        assert forwarded_by_reason(server) - before == reasons
    direct.sql("DROP TABLE t SYNC")
    made_anew(direct)
    straight, stored_straight = converse(direct_native, steps), rows(direct)
    assert through == straight
    assert stored_through == stored_straight == expected


@pytest.mark.parametrize("settings", [{}, OFF], ids=["gathered", "forwarded"])
@pytest.mark.parametrize("wanted", ["0", "1"])
@pytest.mark.parametrize("secondary", [False, True])
def test_three_blocks_and_their_counters(
    gateway: Gateway, direct: Endpoint, native: Endpoint, direct_native: Endpoint, settings: dict, wanted: str, secondary: bool
) -> None:
    """A server takes none, and a client that wants none gets none from ClickHouse. What is gathered has them for clients all
    the same: clickhouse-driver waits for them."""
    steps = [begin(settings={"send_profile_events": wanted, **settings}, secondary=secondary), block(1), block(2), block(3), END]
    counted = []
    for endpoint in (native, direct_native):
        made_anew(direct)
        counted.append([kind for kind, *_ in converse(endpoint, steps)].count(PROFILE_EVENTS))
        assert rows(direct) == [1, 2, 3]
    straight = 0 if secondary or wanted == "0" else 4
    through = 0 if secondary else 4
    assert counted == [through if settings == {} else straight, straight]


@pytest.mark.parametrize("first", ["ping", "statement", "insert"])
def test_an_addendum_that_comes_with_the_first_packet(
    direct: Endpoint, native: Endpoint, direct_native: Endpoint, first: str
) -> None:
    said = []
    for endpoint in (native, direct_native):
        made_anew(direct)
        with Native(endpoint) as connection:
            connection.send(connection.hello())
            connection.packet(greeting=True)
            packets = {
                "ping": varint(PING),
                "statement": connection.query("SELECT toUInt64(1)") + connection.data() + varint(PING),
                "insert": connection.query(INSERT) + connection.data() + connection.data([numbers("n", [1])], 1)
                + connection.data() + varint(PING),
            }
            connection.send(connection.addendum() + packets[first])
            # Whether a ping behind an insert is answered before its end or after it is left open.
            kinds = {packet.kind for packet in connection.up_to(END_OF_STREAM if first == "insert" else PONG)}
            said.append((kinds - {PROGRESS, PROFILE_EVENTS, PONG}, rows(direct)))
    assert said[0] == said[1]
    assert said[0][1] == ([1] if first == "insert" else [])


@pytest.mark.parametrize("settings", [{}, OFF], ids=["gathered", "forwarded"])
def test_a_statement_among_the_blocks_is_101(
    direct: Endpoint, native: Endpoint, direct_native: Endpoint, settings: dict
) -> None:
    for endpoint in (native, direct_native):
        made_anew(direct)
        with Native(endpoint).start() as connection:
            connection.begin_insert(INSERT, settings)
            connection.send(connection.data([numbers("n", [1])], 1) + connection.query("SELECT 1") + connection.data())
            assert connection.up_to(EXCEPTION)[-1].code == 101
        assert rows(direct) == []


def test_rows_behind_a_refusal_end_the_connection(direct: Endpoint, native: Endpoint, direct_native: Endpoint) -> None:
    """Who waits for the columns sends none. Nobody can tell what they were of."""
    for endpoint in (native, direct_native):
        with Native(endpoint).start() as connection:
            insert_whole = connection.query("INSERT INTO nowhere VALUES") + connection.data()
            connection.send(insert_whole + connection.data([numbers("n", [1])], 1) + connection.data())
            assert connection.up_to(EXCEPTION)[-1].code == 60
            assert connection.closed()
