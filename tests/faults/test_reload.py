"""Settings that change while the gateway runs: by SIGHUP, and by the admin port; and what a closed terminal does."""

from __future__ import annotations

import json
import os
import pty
import shutil
import signal
import socket
import ssl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.certificate import made_in
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gateway import Gateway, flat
from harness.inserts import HELD_IN_MEMORY, INTO_T, ids, make_table, rows
from harness.otlp import OverGrpc, OverHttp, logs
from harness.raw_http import RawConnection, RawReply, head
from harness.users import TESTER

READ_ANEW = "the settings were read anew"
TOKEN = 'token = "t0ken"\n'
ANY_NAME = "IP:127.0.0.1,DNS:localhost"
INSERTS = 40


def as_tester(gateway: Gateway) -> Endpoint:
    return gateway.http.as_user(TESTER.name, TESTER.password)


def write(gateway: Gateway, config: str) -> None:
    gateway.config_path.write_text(config + gateway.users())


def events(gateway: Gateway, beginning: str) -> list[dict]:
    return [event for event in map(flat, gateway.log_events()) if event["message"].startswith(beginning)]


def hang_up(gateway: Gateway) -> dict:
    """What the log says of the reload."""
    before = len(events(gateway, READ_ANEW))
    gateway.child.signal(signal.SIGHUP)
    eventually(lambda: len(events(gateway, READ_ANEW)) > before, "the settings are read anew")
    return events(gateway, READ_ANEW)[-1]


def ask(gateway: Gateway, method: str = "POST", token: str | None = None) -> RawReply:
    fields = [("Host", "localhost"), ("Content-Length", "0"), *([("Authorization", f"Bearer {token}")] if token else [])]
    with RawConnection(gateway.admin) as connection:
        return connection.exchange(head(method, "/api/v1/reload", fields), method)


def log_of(tested: Endpoint) -> int:
    return int(tested.sql("SELECT count() FROM system.asynchronous_insert_log"))


def test_a_hangup_loses_nothing(start_gateway: Callable[..., Gateway]) -> None:
    gateway = start_gateway()
    make_table(gateway.direct)
    for number in range(INSERTS):
        assert as_tester(gateway).insert(INTO_T, rows(number), **HELD_IN_MEMORY).status == 200
    assert hang_up(gateway)["changed"] == ""
    assert ids(gateway.direct) == [], "they are held as before"
    as_tester(gateway).sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert ids(gateway.direct) == list(range(INSERTS))
    assert gateway.stop() == 0


def test_rules_of_tables_limits_and_the_log_change(start_gateway: Callable[..., Gateway]) -> None:
    gateway = start_gateway()
    tested, direct = as_tester(gateway), gateway.direct
    make_table(direct)
    insert = lambda: tested.insert(INTO_T, rows(1)).status
    assert insert() == 200 and log_of(tested) == 1, "it is gathered"
    write(gateway, '[log]\nlevel = "error"\n[http]\nmax_connections = 77\n[[tables]]\ntable = "t"\nasync_insert = "never"\n')
    rules = [f"tables[1].{key}" for key in ("async_insert", "database", "table", "user")]
    assert json.loads(ask(gateway).text) == {"changed": ["log.level", *rules], "at_next_start": ["http.max_connections"]}
    assert events(gateway, READ_ANEW) == [], "it is no error"
    assert insert() == 200 and log_of(tested) == 1, "it is forwarded"
    write(gateway, "[gather]\nasync_insert = false\n")
    hang_up(gateway)
    assert insert() == 200 and log_of(tested) == 1, "it does not ask for being gathered"
    write(gateway, "")
    assert "gather.async_insert" in hang_up(gateway)["changed"]
    assert insert() == 200 and log_of(tested) == 2
    assert len(ids(direct)) == 4


@pytest.mark.parametrize("wrong", ["[http]\nmax_conections = 1\n", "[gather", '[[tables]]\nack = "soon"\n', '[log]\nlevel = "loud"\n'])
def test_wrong_settings_change_nothing(start_gateway: Callable[..., Gateway], wrong: str) -> None:
    gateway = start_gateway('[[tables]]\ntable = "t"\nasync_insert = "never"\n')
    tested = as_tester(gateway)
    make_table(gateway.direct)
    write(gateway, wrong)
    reply = ask(gateway)
    assert reply.status == 400 and "windrow.toml" in reply.text, reply.text
    assert events(gateway, "the settings stay as they were")
    assert tested.insert(INTO_T, rows(1), async_insert=1).status == 200 and log_of(tested) == 0
    assert gateway.ready().status == 200


def test_the_admin_port(start_gateway: Callable[..., Gateway]) -> None:
    gateway = start_gateway("[admin]\n" + TOKEN)
    write(gateway, "[admin]\n" + TOKEN + "[gather]\nwait_for_async_insert = false\nschema_ttl_ms = 1000\n")
    assert [ask(gateway).status, ask(gateway, token="other").status] == [401, 401]
    assert ask(gateway, "GET", "t0ken").status == 405
    expected = {"changed": ["gather.wait_for_async_insert"], "at_next_start": ["gather.schema_ttl_ms"]}
    assert json.loads(ask(gateway, token="t0ken").text) == expected
    still = {"changed": [], "at_next_start": ["gather.schema_ttl_ms"]}
    assert json.loads(ask(gateway, token="t0ken").text) == still, "it is as it was at the start"
    write(gateway, '[admin]\ntoken = "another"\n')
    assert "admin.token" in json.loads(ask(gateway, token="t0ken").text)["at_next_start"]
    assert "another" not in gateway.child.log()


def test_a_certificate_is_exchanged_and_no_connection_lost(start_gateway: Callable[..., Gateway], tmp_path: Path) -> None:
    (tmp_path / "first").mkdir()
    (tmp_path / "second").mkdir()
    first, second = made_in(tmp_path / "first", ANY_NAME), made_in(tmp_path / "second", ANY_NAME)
    settings = "[http]\ntls_certificate = '{}'\ntls_key = '{}'\n"
    gateway = start_gateway(settings.format(*first), ("--otlp-grpc", "127.0.0.1:0", "--otlp-http", "127.0.0.1:0"))
    request = head("GET", "/ping", (("Host", "x"),))
    with connected(gateway, first[0]) as before:
        before.sendall(request)
        assert before.recv(12) == b"HTTP/1.1 200"
        write(gateway, settings.format(*second))
        shutil.rmtree(tmp_path / "first")
        assert hang_up(gateway).get("at_start") is None
        with connected(gateway, second[0]) as after:
            after.sendall(request)
            assert after.recv(12) == b"HTTP/1.1 200"
        authority = second[0].read_bytes()
        for sender in (OverHttp(gateway, authority=authority), OverGrpc(gateway, authority=authority)):
            assert sender.send("logs", logs(["by the port's new certificate"])).is_taken
        before.sendall(request)
        eventually(lambda: b"HTTP/1.1 200" in before.recv(1000), "the first connection goes on")
    kept = tmp_path / "kept.pem"
    shutil.copy(second[0], kept)
    second[0].write_text("no certificate")
    assert ask(gateway).status == 400
    connected(gateway, kept).close()


def connected(gateway: Gateway, trusted: Path) -> ssl.SSLSocket:
    trusting = ssl.create_default_context(cafile=str(trusted))
    return trusting.wrap_socket(socket.create_connection(("127.0.0.1", gateway.http.port), 60), server_hostname="127.0.0.1")


def test_a_plain_port_stays_plain_until_the_next_start(start_gateway: Callable[..., Gateway], tmp_path: Path) -> None:
    gateway = start_gateway()
    write(gateway, "[http]\ntls_certificate = '{}'\ntls_key = '{}'\n".format(*made_in(tmp_path)))
    for _ in range(2):
        assert json.loads(ask(gateway).text) == {"changed": [], "at_next_start": ["http.tls_certificate", "http.tls_key"]}
    assert as_tester(gateway).sql("SELECT 1") == "1"


class OnTerminal(Gateway):
    """Started from a terminal of its own."""

    def __init__(self, folder: Path, handling: str = "SIG_DFL"):
        # Of SIGHUP; who runs the tests may have it ignored.
        self.handling = handling
        self.terminal, self.stdin = pty.openpty()
        super().__init__(folder)

    def command(self) -> list[str]:
        if self.terminal is None:
            return super().command()
        handles = f"signal.signal(signal.SIGHUP, signal.{self.handling})"
        take_it = f"import fcntl, os, signal, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); {handles}; os.execv(sys.argv[1], sys.argv[1:])"
        return [sys.executable, "-c", take_it, *super().command()]

    def close_terminal(self) -> None:
        """It has none at its next start."""
        os.close(self.terminal)
        os.close(self.stdin)
        self.terminal, self.stdin = None, subprocess.DEVNULL


def test_a_terminal_that_is_closed_ends_it_in_order(tmp_path: Path) -> None:
    gateway = OnTerminal(tmp_path)
    make_table(gateway.direct)
    for number in range(INSERTS):
        assert as_tester(gateway).insert(INTO_T, rows(number), **HELD_IN_MEMORY).status == 200
    assert hang_up(gateway)["changed"] == "", "its terminal is there"
    gateway.close_terminal()
    assert gateway.child.wait() == 0
    gateway.start()
    assert ids(gateway.direct) == list(range(INSERTS))
    assert gateway.stop() == 0


def test_one_that_is_to_outlive_its_terminal_does(tmp_path: Path) -> None:
    gateway = OnTerminal(tmp_path, "SIG_IGN")
    gateway.close_terminal()
    eventually(lambda: events(gateway, READ_ANEW), "it takes the signal for a reload")
    assert as_tester(gateway).sql("SELECT 1") == "1"
    assert gateway.stop() == 0
