"""A table with too many parts: who waits hears ClickHouse's own refusal soon, and what nobody waits for is kept."""

from __future__ import annotations

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.inserts import INTO_T, ids, make_table, rows
from harness.users import TESTER

BRIEFLY = "[gather]\ntoo_many_parts_wait_ms = 300\n"
FULL = "SETTINGS parts_to_throw_insert = 1, parts_to_delay_insert = 1, max_delay_to_insert = 0"


def fill(tested: Endpoint, direct: Endpoint) -> None:
    """Makes a table whose only part is one too many for the next insert."""
    make_table(direct, settings=FULL)
    direct.sql("SYSTEM STOP MERGES t")
    assert tested.insert(INTO_T, rows(1)).status == 200


def test_the_refusal_is_the_one_that_clickhouse_gives(start_gateway) -> None:
    """As ClickHouse's tests 01709, 02280 and 02458 expect of an insert that is gathered like any other."""
    gateway: Gateway = start_gateway(BRIEFLY)
    tested = gateway.http.as_user(TESTER.name, TESTER.password)
    fill(tested, gateway.direct)
    straight = gateway.direct.insert(INTO_T, rows(2))
    assert straight.code == 252, straight.text
    asked: list[dict[str, object]] = [
        {},
        {"async_insert": 1},
        {"async_insert": 0},
        {"insert_deduplication_token": "x"},
    ]
    for settings in asked:
        reply = tested.insert(INTO_T, rows(2), **settings)
        assert (reply.status, reply.text) == (straight.status, straight.text), settings
    logged = tested.sql("SELECT status, exception FROM system.asynchronous_insert_log WHERE status != 'Ok' FORMAT TSVRaw")
    # Not the one with async_insert=0, which is forwarded.
    assert logged.splitlines() == [f"FlushError\t{straight.text.strip()}"] * 3
    gateway.direct.sql("TRUNCATE TABLE t")
    assert tested.insert(INTO_T, rows(3), insert_deduplication_token="x").status == 200
    assert ids(gateway.direct) == [3], "nothing of what was refused comes later, and its token is free again"


def test_what_nobody_waits_for_is_kept(start_gateway) -> None:
    gateway: Gateway = start_gateway(BRIEFLY)
    tested = gateway.http.as_user(TESTER.name, TESTER.password)
    fill(tested, gateway.direct)
    assert tested.insert(INTO_T, rows(2), async_insert=1, wait_for_async_insert=0).status == 200
    # Behind it in the same lane: what is kept holds nobody up for longer.
    assert tested.insert(INTO_T, rows(3)).code == 252
    gateway.kill()
    gateway.start()
    tested = gateway.http.as_user(TESTER.name, TESTER.password)
    # What an earlier run left goes first too.
    assert tested.insert(INTO_T, rows(4)).code == 252
    gateway.direct.sql("TRUNCATE TABLE t")
    eventually(lambda: ids(gateway.direct) == [2], "the insert that was kept is stored")
