"""What ClickHouse or DuckDB refuses changes nothing here: no repeat is forgotten, nothing learnt is doubted, no session is marked."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from harness.duckdb import READER, DuckDbGateway
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.inserts import INTO_T, ids, make_table, rows
from harness.raw_http import RawConnection, head
from harness.users import ANN, TESTER

NAMED = {"async_insert": 1, "insert_deduplication_token": "once"}
TAKES_ALL_AWAY = (
    "DROP DATABASE nonexistent",
    "TRUNCATE TABLE t",
    "DROP TABLE t",
    "ALTER TABLE t DELETE WHERE 1",
    "DELETE FROM t WHERE 1",
    "ALTER TABLE t DROP PARTITION tuple()",
    "TRUNCATE DATABASE {database}",
    "EXCHANGE TABLES t AND u",
    "RENAME TABLE t TO gone",
)
# What is not there may be dropped by everybody. What these name is there for nobody.
HARMLESS = ("DROP DATABASE IF EXISTS nonexistent", "DROP TEMPORARY TABLE IF EXISTS t", "DROP FUNCTION IF EXISTS nonexistent")
# ClickHouse says yes to these without a look at who asks, or at the statement.
ANYBODY = (("OPTIONS", "/"), ("GET", "/play"), ("GET", "/dashboard"), ("GET", "/ping"))
# Whether the statement stands in the body, in the URL, or is sent as if it were read only.
SENT = {
    "in the body": lambda to, text: to.request(None, text.encode()),
    "in the URL": lambda to, text: to.request(text),
    "by GET": lambda to, text: to.request(text, method="GET"),
}
NO_RENEWAL = "[gather]\nschema_ttl_ms = 3_600_000\nadmission_ttl_ms = 3_600_000\n"
MANY = 100


def strangers(tested: Endpoint) -> dict[str, Endpoint]:
    return {
        "nobody": tested.as_user("nobody", "x"),
        "a wrong password": tested.as_user(TESTER.name, "wrong"),
        "no right": tested.as_user(ANN.name, ANN.password),
    }


def insert_once(tested: Endpoint) -> None:
    reply = tested.insert(INTO_T, rows(1), **NAMED)
    assert reply.status == 200, reply.text


@pytest.mark.parametrize("statement", TAKES_ALL_AWAY)
def test_a_refused_statement_makes_nothing_forgotten(tested: Endpoint, direct: Endpoint, statement: str) -> None:
    make_table(direct)
    make_table(direct, name="u")
    insert_once(tested)
    for who, stranger in strangers(tested).items():
        for how, send in SENT.items():
            refused = send(stranger, statement.format(database=direct.database))
            assert refused.status >= 400, (who, how, refused.text)
            insert_once(tested)
    assert SENT["by GET"](tested, statement.format(database=direct.database)).status >= 400, "by GET nobody may"
    assert tested.request(statement.format(database=direct.database), settings={"readonly": 1}).status >= 400
    insert_once(tested)
    assert ids(direct) == [1], "it was a repeat each time"


@pytest.mark.parametrize("statement", ["TRUNCATE TABLE t", "ALTER TABLE t DROP PARTITION tuple()"])
def test_one_that_is_done_makes_its_rows_new(tested: Endpoint, direct: Endpoint, statement: str) -> None:
    make_table(direct)
    insert_once(tested)
    assert tested.request(statement).status == 200
    assert ids(direct) == []
    insert_once(tested)
    assert ids(direct) == [1]


def test_one_whose_sender_left_makes_its_rows_new(tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    insert_once(tested)
    fields = (("Host", tested.host), ("Authorization", tested.basic_auth()), ("Content-Length", "0"))
    settings = {"cancel_http_readonly_queries_on_client_close": 1}
    with RawConnection(tested) as connection:
        connection.send(head("POST", tested.target("TRUNCATE TABLE t", settings), fields))
        connection.end_sending()
    eventually(lambda: ids(direct) == [], "it is done all the same")

    def is_new() -> bool:
        insert_once(tested)
        return ids(direct) == [1]

    eventually(is_new, "the insert is no repeat any more")


@pytest.mark.parametrize("statement", HARMLESS)
def test_what_takes_nothing_away_makes_nothing_forgotten(tested: Endpoint, direct: Endpoint, statement: str) -> None:
    make_table(direct)
    insert_once(tested)
    for sender in (tested, *strangers(tested).values()):
        for send in SENT.values():
            send(sender, statement)
            insert_once(tested)
    assert ids(direct) == [1]


@pytest.mark.parametrize(("method", "path"), ANYBODY)
@pytest.mark.parametrize("statement", ["TRUNCATE TABLE {database}.t", "DROP DATABASE {database}"])
def test_a_yes_to_anybody_is_no_yes_to_a_statement(tested: Endpoint, direct: Endpoint, method: str, path: str, statement: str) -> None:
    make_table(direct)
    insert_once(tested)
    target = path + tested.target(statement.format(database=direct.database))[1:]
    for authorization in ("Bearer x", tested.basic_auth(), tested.as_user("nobody", "x").basic_auth()):
        with RawConnection(tested) as connection:
            connection.send(head(method, target, (("Host", "x"), ("Connection", "close"), ("Authorization", authorization))))
            connection.rest()
        insert_once(tested)
    assert ids(direct) == [1]


def test_a_truncated_database_makes_its_rows_new_and_no_others(tested: Endpoint, direct: Endpoint) -> None:
    other = f"{direct.database}_other"
    direct.sql(f"CREATE DATABASE {other}")
    for database in (direct, direct.using(other)):
        make_table(database)
        insert_once(tested.using(database.database))
    assert tested.request(f"TRUNCATE ALL TABLES FROM {other}").status == 200
    for database in (direct, direct.using(other)):
        insert_once(tested.using(database.database))
        assert ids(database) == [1], database.database
    direct.sql(f"DROP DATABASE {other}")


def test_a_stranger_that_leaves_early_makes_nothing_forgotten(tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    insert_once(tested)
    for stranger in strangers(tested).values():
        fields = (("Host", tested.host), ("Authorization", stranger.basic_auth()))
        for length, body in ((0, b""), (100, b"and more")):
            with RawConnection(tested) as connection:
                connection.send(head("POST", stranger.target("TRUNCATE TABLE t"), (*fields, ("Content-Length", str(length)))) + body)
                connection.socket.shutdown(socket.SHUT_RDWR)
        assert stranger.request("TRUNCATE TABLE t").status >= 400
        insert_once(tested)
    assert ids(direct) == [1]


def test_refused_statements_make_nothing_asked_again(start_gateway) -> None:
    gateway: Gateway = start_gateway(NO_RENEWAL)
    tested = gateway.http.as_user(TESTER.name, TESTER.password)
    make_table(gateway.direct)
    kept = {"async_insert": 1, "wait_for_async_insert": 0}
    assert tested.insert(INTO_T, rows(0), **kept).status == 200
    selects = "SELECT sum(value) FROM system.events WHERE event = 'SelectQuery'"
    # Who may do nothing is known then, too.
    for stranger in strangers(tested).values():
        assert stranger.request("TRUNCATE TABLE t").status >= 400
    before = int(gateway.direct.sql(selects))
    for number in range(MANY):
        for stranger in (tested.as_user("nobody", "x"), tested.as_user(ANN.name, ANN.password)):
            assert stranger.request("CREATE TABLE t (a UInt64) ENGINE = Null").status >= 400
            assert tested.insert(INTO_T, rows(number), **kept).status == 200
    assert int(gateway.direct.sql(selects)) - before < MANY, "the inserts' own account and table are as they were"


def test_a_stranger_marks_nobodys_session(tested: Endpoint, direct: Endpoint) -> None:
    """An insert in a session is gathered until a statement of its user's changes the session."""
    make_table(direct)
    session = {"async_insert": 1, "session_id": f"of {direct.database}"}
    stranger = tested.as_user(TESTER.name, "wrong")
    for _ in range(3):
        assert stranger.request("SET max_threads = 1", settings=session).status >= 400
        reply = tested.insert(INTO_T, rows(1), **session)
        assert reply.status == 200 and is_gathered(tested, reply.headers["x-clickhouse-query-id"]), "it was forwarded"


def is_gathered(tested: Endpoint, query_id: str) -> bool:
    return tested.sql(f"SELECT count() FROM system.asynchronous_insert_log WHERE query_id = '{query_id}'") == "1"


@pytest.fixture(scope="module")
def duck(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Endpoint]:
    gateway = DuckDbGateway(tmp_path_factory.mktemp("duck"))
    yield gateway.http
    gateway.stop()


@pytest.mark.parametrize("statement", ["TRUNCATE t", "DROP TABLE t", "DROP SCHEMA nonexistent", "TRUNCATE nonexistent"])
def test_on_duckdb(duck: Endpoint, statement: str) -> None:
    duck.sql("CREATE OR REPLACE TABLE t (a UBIGINT)")
    named = {"insert_deduplication_token": statement}
    assert duck.insert(INTO_T, rows(1), **named).status == 200
    for stranger in (duck.as_user("nobody", "x"), duck.as_user(*READER)):
        assert stranger.request(statement).status >= 400
        assert duck.insert(INTO_T, rows(1), **named).status == 200
    assert duck.sql("SELECT count(*) FROM t") == "1", "it was a repeat each time"
    if duck.request(statement).status >= 400:
        assert duck.insert(INTO_T, rows(1), **named).status == 200
        assert duck.sql("SELECT count(*) FROM t") == "1", "it was not done"
        return
    if statement.startswith("DROP"):
        duck.sql("CREATE TABLE t (a UBIGINT)")
    assert duck.insert(INTO_T, rows(1), **named).status == 200
    assert duck.sql("SELECT count(*) FROM t") == "1", "its rows were gone"
