"""Starts, ends and crashes: nothing acknowledged as stored is ever missing."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Callable

import pytest

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gateway import Gateway, engine_environment
from harness.inserts import HELD, HELD_NOT_WAITING, INTO_T, Background, ids, make_table, queued_inserts, rows
from harness.load import Load
from harness.process import is_alive, inherited_environment, wait_gone
from harness.users import TESTER

StartGateway = Callable[..., Gateway]


def as_tester(gateway: Gateway) -> Endpoint:
    return gateway.http.as_user(TESTER.name, TESTER.password)


def test_sigterm_stores_what_is_buffered(start_gateway: StartGateway) -> None:
    gateway = start_gateway()
    tested = as_tester(gateway)
    make_table(gateway.direct)
    for number in range(20):
        assert tested.insert(INTO_T, rows(number), **HELD_NOT_WAITING).status == 200
    with Background(tested) as background:
        waiting = background.insert(rows(20), **HELD)
        eventually(lambda: queued_inserts(tested) == 21, "all are queued")
        gateway.child.signal(signal.SIGTERM)
        assert waiting.reply().status == 200
    assert gateway.child.wait() == 0, gateway.child.log()[-2000:]
    gateway.start()
    assert ids(gateway.direct) == list(range(21))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_ends_with_code_0_and_takes_the_engine_along(start_gateway: StartGateway, number: signal.Signals) -> None:
    gateway = start_gateway()
    engine = gateway.engine_pid()
    gateway.child.signal(number)
    assert gateway.child.wait() == 0, gateway.child.log()[-2000:]
    wait_gone(engine)


def test_kill_of_the_gateway_ends_the_engine(start_gateway: StartGateway) -> None:
    gateway = start_gateway()
    make_table(gateway.direct)
    assert as_tester(gateway).insert(INTO_T, rows(1)).status == 200
    engine = gateway.engine_pid()
    gateway.kill()
    wait_gone(engine)
    gateway.start()
    assert ids(gateway.direct) == [1]


def test_second_gateway_on_the_same_directory_is_refused(start_gateway: StartGateway) -> None:
    gateway = start_gateway()
    second = subprocess.run(
        gateway.command(), capture_output=True, text=True, timeout=60, env={**inherited_environment(), **engine_environment()}, check=False
    )
    said = second.stdout + second.stderr
    assert second.returncode not in (0, -signal.SIGABRT), said
    assert str(gateway.data_dir) in said and str(gateway.child.pid) in said, said
    assert "panicked" not in said
    assert gateway.http.sql("SELECT 1") == "1"


def test_kill_of_the_engine_under_load_loses_nothing_acknowledged(start_gateway: StartGateway) -> None:
    gateway = start_gateway()
    make_table(gateway.direct)
    with Load(as_tester(gateway), wait_for_async_insert_timeout=5) as load:
        for _ in range(3):
            eventually(load.acknowledged_more(200), "rows are stored")
            killed = gateway.engine_pid()
            os.kill(killed, signal.SIGKILL)
            wait_gone(killed)
        eventually(load.acknowledged_more(200), "service resumes by itself")
    there = ids(gateway.direct)
    missing = set(load.written.acknowledged) - set(there)
    assert not missing, f"{len(missing)} acknowledged rows are missing: {sorted(missing)[:20]}"
    assert set(there) <= load.written.tried()
    print(f"{len(load.written.acknowledged)} acknowledged, {len(load.written.refused)} refused, {len(there)} there")


def test_inserts_while_the_engine_hangs(start_gateway: StartGateway) -> None:
    """They wait within their time-out of a second and then hear an error; a client with twenty times the patience does."""
    gateway = start_gateway()
    tested = as_tester(gateway)
    make_table(gateway.direct)
    assert tested.insert(INTO_T, rows(0)).status == 200
    engine = gateway.engine_pid()
    os.kill(engine, signal.SIGSTOP)
    try:
        reply = tested.insert(INTO_T, rows(1), wait_for_async_insert_timeout=1, patience_seconds=20)
        assert (reply.status, reply.code) in ((408, 159), (503, 210)), reply.text
    finally:
        os.kill(engine, signal.SIGCONT)
    assert tested.insert(INTO_T, rows(2)).status == 200
    assert {0, 2} <= set(ids(gateway.direct))


def test_the_engine_is_started_again(start_gateway: StartGateway) -> None:
    gateway = start_gateway()
    killed = gateway.engine_pid()
    os.kill(killed, signal.SIGKILL)
    wait_gone(killed)
    eventually(lambda: gateway.http.answers(), "queries are answered again")
    assert is_alive(gateway.child.pid)
    assert gateway.engine_pid() != killed


def test_a_rival_for_a_port_is_told(start_gateway: StartGateway) -> None:
    gateway = start_gateway()
    taken = f"127.0.0.1:{gateway.http.port}"
    other = [part if part != "127.0.0.1:0" else taken for part in gateway.command()]
    other[other.index("--data-dir") + 1] = str(gateway.folder / "other")
    refused = subprocess.run(
        other, capture_output=True, text=True, timeout=60, env={**inherited_environment(), **engine_environment()}, check=False
    )
    said = refused.stdout + refused.stderr
    assert refused.returncode not in (0, -signal.SIGABRT) and taken in said, said
    assert "panicked" not in said
