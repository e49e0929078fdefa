"""`windrow status`: what the admin port tells, as text and as JSON."""

from __future__ import annotations

import json
import subprocess

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.paths import gateway_binary
from harness.ports import free_port
from harness.process import inherited_environment


def status(port: int, *more: str) -> subprocess.CompletedProcess[str]:
    command = [str(gateway_binary()), "status", "--admin", f"127.0.0.1:{port}", *more]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=inherited_environment())


def test_what_arrives_is_told(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    name = "odd\\nname"
    direct.sql(f"CREATE TABLE `{name}` (n UInt64) ENGINE = MergeTree ORDER BY n")
    tested.sql(f"INSERT INTO `{name}` VALUES (1), (2)", async_insert=1)
    said = status(gateway.admin.port)
    assert said.returncode == 0, said.stderr
    lines = said.stdout.splitlines()
    assert lines[0].startswith("Windrow ") and lines[0].endswith(": ready")
    assert [line.split()[0] for line in lines[2:6]] == ["arriving", "safe", "stored", "waits"]
    known = json.loads(status(gateway.admin.port, "--json").stdout)
    assert known["status"]["ready"] is True and known["tables"]["total"] >= 1
    eventually(lambda: f"{direct.database}.odd name" in status(gateway.admin.port).stdout, "the table is listed, on one line")


def test_nobody_there_is_told(gateway: Gateway) -> None:
    said = status(free_port())
    assert said.returncode == 1 and "no gateway answers" in said.stderr


def test_who_watches_no_more_ends_it(gateway: Gateway) -> None:
    command = [str(gateway_binary()), "top", "--admin", f"127.0.0.1:{gateway.admin.port}"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=inherited_environment()) as watching:
        assert watching.stdout is not None
        first = watching.stdout.readline()
        watching.stdout.close()
        assert first.startswith(b"Windrow ") and watching.wait() == 0


def test_the_token_is_needed(start_gateway) -> None:
    gateway = start_gateway("[admin]\ntoken = 'of the test'\n")
    assert "token" in status(gateway.admin.port).stderr
    assert status(gateway.admin.port, "--config", str(gateway.config_path)).returncode == 0
