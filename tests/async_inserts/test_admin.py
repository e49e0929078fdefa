"""Health, readiness and metrics on the port of their own."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess

from harness.endpoint import Endpoint, Reply
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.inserts import INTO_T, make_table, rows
from harness.raw_http import RawConnection, RawReply, head
from harness.users import TESTER


# A quotation mark, a backslash and a line break.
ODD = '`a"b\\\\c\\nd`'


def ask(gateway: Gateway, path: str, *headers: tuple[str, str], method: str = "GET") -> RawReply:
    with RawConnection(gateway.admin) as connection:
        return connection.exchange(head(method, path, (("Host", "x"), *headers)), method)


def metric(gateway: Gateway, pattern: str) -> float:
    """The sum of all samples whose line begins with the pattern."""
    lines = ask(gateway, "/metrics").text.splitlines()
    return sum(float(line.rsplit(" ", 1)[1]) for line in lines if re.match(pattern, line))


def test_health_and_readiness(gateway: Gateway) -> None:
    assert [ask(gateway, path).status for path in ("/healthz", "/readyz")] == [200, 200]


def test_unknown_paths_and_methods(gateway: Gateway) -> None:
    assert ask(gateway, "/zork").status == 404
    assert ask(gateway, "/metrics", method="DELETE").status in (404, 405, 501)


def test_not_ready_without_the_engine(start_gateway) -> None:
    gateway: Gateway = start_gateway()
    engine = gateway.engine_pid()
    os.kill(engine, signal.SIGKILL)
    eventually(lambda: ask(gateway, "/readyz").status == 503 or gateway.engine_pid() != engine, "it is noticed")
    assert ask(gateway, "/healthz").status == 200
    eventually(lambda: ask(gateway, "/readyz").status == 200, "it is ready again")


def test_metrics_pass_promtool(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """Checked after inserts of every outcome, so that all families have samples."""
    make_table(direct, "a UInt64, CONSTRAINT small CHECK a < 10")
    for body in (rows(1), rows(100), '{"a":"x"}'):
        tested.insert(INTO_T, body)
    direct.sql(f"CREATE TABLE {ODD} (a UInt64) ENGINE = MergeTree ORDER BY a")
    tested.sql(f"INSERT INTO {ODD} VALUES (1)", async_insert=1)
    tested.sql("SELECT 1")
    promtool = shutil.which("promtool")
    assert promtool, "promtool is missing: it comes with Debian's package prometheus"
    text = ask(gateway, "/metrics").body
    for name in ("windrow_build_info{version=", "process_cpu_seconds_total ", "process_open_fds ", "windrow_insert_duration_seconds_count "):
        assert f"\n{name}".encode() in text, name
    checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, check=False)
    assert checked.returncode == 0, checked.stdout.decode() + checked.stderr.decode()


def test_metrics_count(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    ours = rf'windrow_\w*{{.*{direct.database}.*'
    assert metric(gateway, ours) == 0
    assert tested.insert(INTO_T, rows(1, 2, 3)).status == 200
    of_rows = rf'windrow_\w*rows\w*_total{{.*database="{direct.database}".*'
    eventually(lambda: metric(gateway, of_rows) > 0, "the table's metrics appear")
    assert metric(gateway, of_rows) == 3


def test_metrics_of_each_kind_exist(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """Those of tables appear with the first insert into one."""
    make_table(direct)
    assert tested.insert(INTO_T, rows(1)).status == 200
    helps = [line.split(" ")[2] for line in ask(gateway, "/metrics").text.splitlines() if line.startswith("# HELP windrow_")]
    for wanted in ("inserts", "rows", "bytes", "wait", "flush", "batch", "buffer", "parts", "forwarded", "errors", "backend_up"):
        assert any(wanted in name for name in helps), (wanted, helps)


def test_token_is_needed_where_one_is_set(start_gateway) -> None:
    gateway: Gateway = start_gateway("[admin]\ntoken = 's3cret'\n")
    assert ask(gateway, "/healthz").status == 200
    assert ask(gateway, "/metrics").status == 401
    assert ask(gateway, "/metrics", ("Authorization", "Bearer wrong")).status == 401
    assert ask(gateway, "/metrics", ("Authorization", "Bearer s3cret")).status == 200


def test_secrets_are_not_logged(start_gateway) -> None:
    gateway: Gateway = start_gateway("[log]\nlevel = 'debug'\n")
    tested = gateway.http.as_user(TESTER.name, TESTER.password)
    make_table(gateway.direct)
    assert tested.insert(INTO_T, rows(1)).status == 200
    by_url = gateway.http.request("SELECT 1", b"", {"user": TESTER.name, "password": TESTER.password})
    assert isinstance(by_url, Reply) and by_url.status == 200
    engine_password = (gateway.data_dir / "embedded" / "endpoint.json").read_text().split('"password"')[1].split('"')[1]
    log = gateway.child.log()
    assert TESTER.password not in log and engine_password not in log


def test_files_are_the_owners(gateway: Gateway) -> None:
    """Directories and files of the gateway itself; the engine's data lies behind its 0700 directory."""
    for folder, _, names in os.walk(gateway.data_dir):
        assert os.stat(folder).st_mode & 0o077 == 0, folder
        for name in names:
            path = os.path.join(folder, name)
            try:
                mode = os.lstat(path).st_mode
            except FileNotFoundError:
                # A file of the journal that isn't needed any more goes at any time.
                continue
            assert mode & 0o077 == 0 or "/embedded/data/" in path, path
        if folder.endswith("/embedded/data"):
            break
