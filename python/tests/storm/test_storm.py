"""Two hundred tasks query and insert at once while tasks are cancelled, queries fail and connections are cut: nothing hangs,
nothing is left behind, and what was acknowledged is there once.

WINDROW_STORM_SECONDS and WINDROW_STORM_SEED make it longer, and another one.
"""

from __future__ import annotations

import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from harness.eventually import eventually
from harness.gateway import Gateway
from harness.users import TESTER
from storm import program
from storm.relay import CuttingRelay

#: Between the second and the last third. Hundreds of megabytes go through in a third: a leak of a small part shows.
FLAT_BYTES = 48 << 20


def test_nothing_hangs_or_is_left_behind_in_a_storm(tmp_path: Path) -> None:
    # A gateway with a ClickHouse of its own: its guard starts ClickHouse again should a cut connection bring it down.
    gateway = Gateway(tmp_path)
    sql = gateway.direct.sql
    sql("CREATE TABLE storm (number UInt64, row UInt8) ENGINE = MergeTree ORDER BY number")
    relay = CuttingRelay(gateway.http.host, gateway.http.port, program.SEED, one_in=6)
    user = {"username": TESTER.name, "password": TESTER.password}
    try:
        # This process has the garbage of other tests, which comes and goes.
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as own_process:
            seen = own_process.submit(program.run, relay.port, user, "storm").result()
    finally:
        relay.close()
    print(dict(seen.done), dict(seen.errors), "connections cut:", relay.cut)
    print("memory after each third, MiB:", [held >> 20 for held in seen.idle_bytes])
    assert relay.cut > 10 and seen.done["cancelled"] > 10 and len(seen.errors) >= 3
    assert seen.idle_bytes[2] - seen.idle_bytes[1] < FLAT_BYTES, seen.idle_bytes
    eventually(lambda: gateway.direct_endpoint().answers(), "ClickHouse is there, if need be again")
    rows = gateway.direct_endpoint().sql("SELECT number, count() FROM storm GROUP BY number").splitlines()
    stored = {int(number): int(count) for number, count in (row.split("\t") for row in rows)}
    assert gateway.stop() == 0
    assert not {number: rows for number, rows in stored.items() if rows != 20}, "an insert was stored in part or twice"
    assert seen.acknowledged <= stored.keys(), "an acknowledged insert is missing"
