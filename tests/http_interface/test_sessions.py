"""Sessions: their settings, temporary tables, ends and locks."""

from __future__ import annotations

import uuid

import pytest

from harness.compare import Comparison, Request
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.raw_http import RawConnection


def within(session: str, query: str, body: bytes = b"", **more: str) -> Request:
    parameters = (("session_id", session), ("query", query), *more.items())
    return Request(parameters=parameters, body=body)


@pytest.fixture
def session() -> str:
    return uuid.uuid4().hex


def text(tested: Endpoint, request: Request) -> str:
    reply = request.send_to(tested)
    assert reply.status == 200, reply.text
    return reply.text


def test_settings_stay(tested: Endpoint, session: str) -> None:
    text(tested, within(session, "SET max_block_size = 4321"))
    assert text(tested, within(session, "SELECT getSetting('max_block_size')")) == "4321\n"
    assert text(tested, within(session + "x", "SELECT getSetting('max_block_size')")) != "4321\n"


def test_current_database_stays(tested: Endpoint, session: str) -> None:
    text(tested, within(session, "USE system"))
    assert text(tested, within(session, "SELECT currentDatabase()")) == "system\n"


@pytest.mark.parametrize("wait", ["0", "1"])
def test_insert_goes_to_the_sessions_database(tested: Endpoint, direct: Endpoint, session: str, wait: str) -> None:
    direct.sql("CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
    text(tested, within(session, f"USE {direct.database}"))
    text(tested, within(session, "INSERT INTO t FORMAT JSONEachRow", b'{"a":1}', wait_for_async_insert=wait))
    eventually(lambda: direct.sql("SELECT count() FROM t") == "1", "the row arrives")


def test_insert_obeys_the_sessions_settings(tested: Endpoint, direct: Endpoint, session: str) -> None:
    direct.sql("CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
    into = {"query": "INSERT INTO t FORMAT JSONEachRow", "database": direct.database}
    text(tested, within(session, "SET input_format_skip_unknown_fields = 0"))
    reply = within(session, body=b'{"a":1,"b":2}', **into).send_to(tested)
    assert (reply.status, reply.code) == (400, 117)
    text(tested, within(session, "SET input_format_skip_unknown_fields = 1"))
    text(tested, within(session, body=b'{"a":1,"b":2}', **into))
    assert direct.sql("SELECT * FROM t") == "1"


@pytest.mark.parametrize(("format_name", "rows"), [("JSONEachRow", b'{"n":1}{"n":2}'), ("Values", b"(1),(2)"), ("CSV", b"1\n2\n")])
def test_temporary_table(tested: Endpoint, session: str, format_name: str, rows: bytes) -> None:
    text(tested, within(session, "CREATE TEMPORARY TABLE scratch (n UInt8)"))
    text(tested, within(session, f"INSERT INTO scratch FORMAT {format_name}", rows))
    assert text(tested, within(session, "SELECT sum(n) FROM scratch")) == "3\n"
    assert within(session + "x", "SELECT * FROM scratch").send_to(tested).code == 60


def test_temporary_table_hides_a_permanent_one(tested: Endpoint, direct: Endpoint, session: str) -> None:
    direct.sql("CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
    database = {"database": direct.database}
    text(tested, within(session, "CREATE TEMPORARY TABLE t (a UInt64)", **database))
    text(tested, within(session, "INSERT INTO t FORMAT JSONEachRow", b'{"a":1}', **database))
    assert text(tested, within(session, "SELECT count() FROM t", **database)) == "1\n"
    assert direct.sql("SELECT count() FROM t") == "0"


def test_session_check(both: Comparison, session: str) -> None:
    reply = both.same(within(session, "SELECT 1", session_check="1"))
    assert (reply.status, reply.code) == (404, 372) or reply.code == 372
    both.same(within(session, "SELECT 1", session_timeout="100000"))
    both.same(within(session, "SELECT 1", session_timeout="x"))


def test_session_of_another_user(tested: Endpoint, session: str) -> None:
    text(tested, within(session, "SET max_block_size = 4321"))
    other = tested.as_user("ann", "a")
    assert within(session, "SELECT getSetting('max_block_size')").send_to(other).text != "4321\n"


def test_busy_session_is_refused(both: Comparison, tested: Endpoint, direct: Endpoint) -> None:
    slow = "SELECT sleepEachRow(1) FROM numbers(60) SETTINGS function_sleep_max_microseconds_per_block = 0, max_block_size = 1"
    for endpoint in (direct, tested):
        session = uuid.uuid4().hex
        with RawConnection(endpoint) as busy:
            request = within(session, slow, query_id=f"busy-{session}")
            busy.send(request.head(endpoint))
            running = f"SELECT count() FROM system.processes WHERE query_id = 'busy-{session}'"
            eventually(lambda sql=running: direct.sql(sql) == "1", "the slow query runs")
            reply = within(session, "SELECT 1").send_to(endpoint)
            assert (reply.status, reply.code) == (500, 373), reply.text
            direct.sql(f"KILL QUERY WHERE query_id = 'busy-{session}' ASYNC")


def test_close_session(both: Comparison, session: str) -> None:
    both.same(within(session, "SELECT 1", close_session="1"))
