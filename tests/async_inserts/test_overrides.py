"""[[tables]]: the operator decides for clients that pin async_insert."""

from __future__ import annotations

import pytest

from clients.run_program import CLIENTS, expect_all, run_program
from clients.test_java_client import PINNING, java_command
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.inserts import (
    HELD,
    HELD_NOT_WAITING,
    INTO_T,
    Background,
    make_table,
    parts_made,
    queued_inserts,
    rows,
    send_all_then_read,
)
from harness.users import TESTER

ALWAYS = '[[tables]]\ntable = "{table}"\nasync_insert = "always"\n'


def prepared(gateway: Gateway, *tables: str) -> Endpoint:
    for table in tables:
        make_table(gateway.direct, name=table)
    return gateway.http.as_user(TESTER.name, TESTER.password)


def parts_of_a_burst(gateway: Gateway, tested: Endpoint, table: str, **settings: object) -> int:
    query = f"INSERT INTO {table} FORMAT JSONEachRow"
    replies = send_all_then_read(tested, [rows(n).encode() for n in range(50)], query, **settings)
    assert {reply.status for reply in replies} == {200}
    assert gateway.direct.sql(f"SELECT count() FROM {table}") == "50"
    return parts_made(gateway.direct, table)


def test_always_and_never(start_gateway) -> None:
    config = ALWAYS.format(table="always_*") + '[[tables]]\ntable = "never"\nasync_insert = "never"\n'
    gateway: Gateway = start_gateway(config)
    tested = prepared(gateway, "always_t", "never", "client")
    assert parts_of_a_burst(gateway, tested, "always_t", async_insert=0) <= 5
    assert parts_of_a_burst(gateway, tested, "never", async_insert=1) == 50
    assert parts_of_a_burst(gateway, tested, "client", async_insert=0) == 50


@pytest.mark.parametrize("wait", [0, 1])
def test_a_tables_own_setting_goes_before_the_query(gateway: Gateway, tested: Endpoint, direct: Endpoint, wait: int) -> None:
    """As in ClickHouse: the table's setting can't be switched off by who inserts."""
    make_table(direct, name="own", settings="SETTINGS async_insert = 1")
    make_table(direct, name="none")
    held = {**HELD, "async_insert": 0, "wait_for_async_insert": wait}
    with Background(tested) as background:
        insert = background.insert(rows(1), "INSERT INTO own FORMAT JSONEachRow", **held)
        eventually(lambda: queued_inserts(tested, "own") == 1, "it is held")
        assert direct.sql("SELECT count() FROM own") == "0" and (not wait or not insert.answered())
        assert tested.insert("INSERT INTO none FORMAT JSONEachRow", rows(1), **held).status == 200
        assert direct.sql("SELECT count() FROM none") == "1"
        tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
        assert insert.reply().status == 200
    assert direct.sql("SELECT count() FROM own") == "1"


def test_a_tables_own_setting_can_change(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    for setting, held in (("0", 0), ("1", 1), ("0", 0)):
        tested.sql(f"ALTER TABLE t MODIFY SETTING async_insert = {setting}")
        assert tested.insert(INTO_T, rows(1), **HELD_NOT_WAITING | {"async_insert": 0}).status == 200
        assert queued_inserts(tested) == held
        tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert direct.sql("SELECT count() FROM t") == "3"


def test_the_operator_goes_before_a_tables_own_setting(start_gateway) -> None:
    gateway: Gateway = start_gateway('[[tables]]\ntable = "never"\nasync_insert = "never"\n')
    make_table(gateway.direct, name="never", settings="SETTINGS async_insert = 1")
    tested = gateway.http.as_user(TESTER.name, TESTER.password)
    assert tested.insert("INSERT INTO never FORMAT JSONEachRow", rows(1), **HELD_NOT_WAITING).status == 200
    assert gateway.direct.sql("SELECT count() FROM never") == "1"


def test_for_one_user(start_gateway) -> None:
    config = '[[tables]]\nuser = "tester"\nasync_insert = "always"\n'
    gateway: Gateway = start_gateway(config)
    tested = prepared(gateway, "t", "u")
    assert parts_of_a_burst(gateway, tested, "t", async_insert=0) <= 5
    assert parts_of_a_burst(gateway, tested.as_user("ann", "a"), "u", async_insert=0) == 50


def test_acknowledgement_by_the_operator(start_gateway) -> None:
    config = '[[tables]]\ntable = "t"\nack = "stored"\n'
    gateway: Gateway = start_gateway(config)
    tested = prepared(gateway, "t")
    for number in range(10):
        assert tested.insert(INTO_T, rows(number), wait_for_async_insert=0).status == 200
        assert gateway.direct.sql("SELECT count() FROM t") == str(number + 1)


@pytest.mark.parametrize("gathered", [False, True])
def test_jdbc_pins_async_insert_off(start_gateway, gathered: bool, subtests: pytest.Subtests) -> None:
    """This driver sends async_insert=0 with every statement: its rows are gathered only where the operator says so."""
    config = ALWAYS.format(table="java_*") if gathered else ""
    gateway: Gateway = start_gateway(config)
    tested = gateway.http.as_user(TESTER.name, TESTER.password)
    expect_all(run_program(java_command("Program", PINNING), CLIENTS / "java", tested), 20, subtests)
    logged = int(tested.sql("SELECT count() FROM system.asynchronous_insert_log WHERE table = 'java_one'"))
    assert logged > 20 if gathered else logged == 0
