"""What can be refused is refused at once, whether the sender waits or not."""

from __future__ import annotations

import pytest

from harness.endpoint import Endpoint
from harness.gateway import Gateway
from harness.inserts import HELD, INTO_T, ids, make_table, queued_inserts, rows
from harness.users import ANN

BODY = rows(1)


@pytest.mark.parametrize("wait", [0, 1])
@pytest.mark.parametrize(
    ("query", "status", "code"),
    [
        ("INSERT INTO nowhere FORMAT JSONEachRow", 404, 60),
        ("INSERT INTO nodb.t FORMAT JSONEachRow", 404, 81),
        ("INSERT INTO t (zork) FORMAT JSONEachRow", 500, 16),
        ("INSERT INTO t FORMAT Zork", 404, 73),
        ("INSERT INTO t FORMAT Pretty", 500, 85),
        ("INSERT INTO t FORMAT", 400, 62),
    ],
)
def test_what_does_not_exist(
    gateway: Gateway, tested: Endpoint, direct: Endpoint, wait: int, query: str, status: int, code: int
) -> None:
    """Held for an hour if it were taken, so an answer can only be a refusal at sight."""
    make_table(direct)
    expected = direct.insert(query, BODY)
    assert (expected.status, expected.code) == (status, code), "the expectation is ClickHouse's own"
    reply = tested.insert(query, BODY, **{**HELD, "wait_for_async_insert": wait})
    assert (reply.status, reply.code) == (status, code), reply.text


@pytest.mark.parametrize("wait", [0, 1])
def test_wrong_password_also_when_the_right_one_was_remembered(
    gateway: Gateway, tested: Endpoint, direct: Endpoint, wait: int
) -> None:
    make_table(direct)
    ann = tested.as_user(ANN.name, ANN.password)
    assert ann.insert(INTO_T, BODY).status == 200
    for wrong in (tested.as_user(ANN.name, "wrong"), tested.as_user("nobody", ""), tested.as_user(ANN.name, "")):
        reply = wrong.insert(INTO_T, BODY, **{**HELD, "wait_for_async_insert": wait})
        assert (reply.status, reply.code) == (403, 516), reply.text
    assert ids(direct) == [1]


def test_dropped_table_is_noticed_at_once(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    assert tested.insert(INTO_T, BODY).status == 200
    tested.sql("DROP TABLE t SYNC")
    assert tested.insert(INTO_T, BODY, wait_for_async_insert=0).code == 60


def test_table_dropped_behind_the_gateways_back(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """The cached schema is stale; the flush shows it, and the waiting sender hears of it."""
    make_table(direct)
    assert tested.insert(INTO_T, BODY).status == 200
    direct.sql("DROP TABLE t SYNC")
    assert tested.insert(INTO_T, BODY).code == 60
    assert tested.insert(INTO_T, BODY, wait_for_async_insert=0).code == 60


def test_column_added_behind_the_gateways_back(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    assert tested.insert(INTO_T, BODY).status == 200
    direct.sql("ALTER TABLE t ADD COLUMN b UInt64 DEFAULT a * 10")
    assert tested.insert(INTO_T, rows(2)).status == 200
    assert direct.sql("SELECT a, b FROM t ORDER BY a") == "1\t10\n2\t20"


def test_column_added_through_the_gateway_is_known_at_once(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    assert tested.insert(INTO_T, BODY).status == 200
    tested.sql("ALTER TABLE t ADD COLUMN b UInt64")
    assert tested.insert(INTO_T, '{"a":2,"b":7}').status == 200
    assert direct.sql("SELECT b FROM t WHERE a = 2") == "7"


def test_column_type_changed_behind_the_gateways_back(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    assert tested.insert(INTO_T, BODY).status == 200
    direct.sql("ALTER TABLE t MODIFY COLUMN a String SETTINGS mutations_sync = 2")
    assert tested.insert(INTO_T, rows(2)).status == 200
    assert direct.sql("SELECT a FROM t ORDER BY a") == "1\n2"


def test_refused_inserts_leave_nothing_queued(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    assert tested.insert(INTO_T, '{"a":"x"}', **HELD).code == 27
    assert queued_inserts(tested) == 0


@pytest.mark.parametrize("setting", [{"insert_quorum": "auto", "insert_quorum_parallel": 0}, {"implicit_transaction": 1}])
def test_what_cannot_be_gathered_is_the_backends_to_judge(
    gateway: Gateway, tested: Endpoint, direct: Endpoint, setting: dict[str, object]
) -> None:
    make_table(direct)
    expected, got = direct.insert(INTO_T, BODY, **setting), tested.insert(INTO_T, BODY, **setting)
    assert (got.status, got.code) == (expected.status, expected.code)
