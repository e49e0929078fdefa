"""Who may ask, by each way of saying who one is."""

from __future__ import annotations

from base64 import b64encode

import pytest

from harness.compare import Comparison, Request
from harness.endpoint import Endpoint
from harness.users import ANN, JOE, TESTER

GOOD = (TESTER.name, TESTER.password)
WRONG = (TESTER.name, "wrong")
STRANGER = ("nobody", "x")


def basic(user: str, password: str) -> tuple[str, str]:
    return ("Authorization", "Basic " + b64encode(f"{user}:{password}".encode()).decode())


def by_header(user: str, password: str) -> tuple[tuple[str, str], ...]:
    return (("X-ClickHouse-User", user), ("X-ClickHouse-Key", password))


def by_parameter(user: str, password: str) -> tuple[tuple[str, str], ...]:
    return (("user", user), ("password", password))


def ask(headers: tuple = (), parameters: tuple = (), body: bytes = b"SELECT currentUser()") -> Request:
    return Request(headers=headers, parameters=parameters, body=body, authorised=False)


@pytest.mark.parametrize("who", [GOOD, WRONG, STRANGER, (JOE.name, JOE.password)])
def test_each_way(both: Comparison, who: tuple[str, str]) -> None:
    both.same(ask((basic(*who),)))
    both.same(ask(by_header(*who)))
    both.same(ask(parameters=by_parameter(*who)))


def test_statuses_of_wrong_passwords(tested: Endpoint) -> None:
    answers = [request.send_to(tested) for request in (
        ask((basic(*WRONG),)), ask(by_header(*WRONG)), ask(parameters=by_parameter(*WRONG)))]  # fmt: skip
    assert [answer.status for answer in answers] == [403, 403, 403]
    assert [answer.code for answer in answers] == [516, 516, 516]


def test_no_password_given(both: Comparison) -> None:
    both.same(ask(parameters=(("user", TESTER.name),)))
    both.same(ask((("X-ClickHouse-User", TESTER.name),)))
    both.same(ask((basic(TESTER.name, ""),)))


@pytest.mark.parametrize(
    "headers",
    [
        (basic(*GOOD), ("X-ClickHouse-User", TESTER.name)),
        (basic(*GOOD), *by_header(*GOOD)),
        (basic(*GOOD), ("X-ClickHouse-Key", TESTER.password)),
        (("Authorization", "Bearer abc"),),
        (("Authorization", "Basic !!!"),),
        (("Authorization", "Basic"),),
        (("Authorization", "Basic " + b64encode(b"no-colon").decode()),),
        (("Authorization", "Digest x"),),
        (("Authorization", ""),),
        (("X-ClickHouse-SSL-Certificate-Auth", "on"), ("X-ClickHouse-User", TESTER.name)),
        (("authorization", basic(*GOOD)[1]),),
        (("Authorization", basic(*GOOD)[1].replace("Basic", "basic")),),
    ],
)
def test_headers_that_conflict_or_are_broken(both: Comparison, headers: tuple) -> None:
    both.same(ask(headers))


def test_basic_with_parameters(both: Comparison) -> None:
    both.same(ask((basic(*GOOD),), (("user", TESTER.name),)))
    both.same(ask((basic(*GOOD),), by_parameter(*GOOD)))
    both.same(ask((basic(*GOOD),), by_parameter(*STRANGER)))
    both.same(ask(by_header(*GOOD), by_parameter(*GOOD)))
    both.same(ask(by_header(*GOOD), by_parameter(*STRANGER)))


@pytest.mark.parametrize("wait", ["0", "1"])
def test_an_insert_is_refused_like_a_query(both: Comparison, direct: Endpoint, wait: str) -> None:
    direct.sql("CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
    into = (("database", direct.database), ("query", "INSERT INTO t FORMAT JSONEachRow"), ("wait_for_async_insert", wait))
    both.same(ask((basic(*WRONG),), into, b'{"a":1}'))
    both.same(ask(by_header(*STRANGER), into, b'{"a":1}'))
    both.same(ask((), (*into, *by_parameter(*WRONG)), b'{"a":1}'))
    assert direct.sql("SELECT count() FROM t") == "0"


@pytest.mark.parametrize("wait", ["0", "1"])
def test_privileges_of_an_insert(both: Comparison, server, wait: str) -> None:
    server.direct.sql("CREATE DATABASE IF NOT EXISTS narrow")
    server.direct.sql("CREATE TABLE IF NOT EXISTS narrow.t (a UInt64, b UInt64) ENGINE = MergeTree ORDER BY a")
    who = (basic(JOE.name, JOE.password),)
    for columns, allowed in (("(a)", True), ("(a, b)", False), ("", False), ("(b)", False)):
        into = (("query", f"INSERT INTO narrow.t {columns} FORMAT JSONEachRow"), ("wait_for_async_insert", wait))
        reply = both.same(ask(who, into, b'{"a":1}'), ignoring=("x-clickhouse-summary",))
        assert (reply.status, reply.code) == ((200, None) if allowed else (500, 497))


def test_grants_are_the_users_own(both: Comparison) -> None:
    both.same(ask((basic(ANN.name, ANN.password),), body=b"DROP TABLE system.numbers"))
    both.same(ask((basic(ANN.name, ANN.password),), body=b"SHOW GRANTS"))
    both.same(ask((basic(JOE.name, JOE.password),), body=b"SELECT * FROM system.users"))
