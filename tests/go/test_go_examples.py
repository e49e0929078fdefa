"""The quick start of go/README.md on a machine with Go alone, and the examples that insert over gRPC."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from clients.run_program import built_once, prepare
from harness.gateway import Gateway
from harness.paths import ROOT
from harness.users import TESTER

EXAMPLES = ROOT / "examples" / "go"
SECONDS = 300


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    ports = ("--otlp-grpc", "127.0.0.1:0", "--otlp-http", "127.0.0.1:0")
    started = Gateway(tmp_path_factory.mktemp("gateway"), '[otlp]\nack = "stored"\n', ports)
    yield started
    assert started.stop() == 0, started.child.log()[-3000:]


def run(command: list[str], folder: Path, environment: dict[str, str] | None = None) -> str:
    ended = subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert ended.returncode == 0, f"{command}:\n{ended.stdout[-4000:]}\n{ended.stderr[-4000:]}"
    return ended.stdout


def example(name: str, *arguments: str) -> str:
    with built_once("go-examples") as cache:
        built = cache / "go-examples"
        built.mkdir(exist_ok=True)
        prepare(["nice", "go", "build", "-trimpath", "-o", f"{built}/", "./..."], EXAMPLES)
    return run([str(built / name), *arguments], EXAMPLES)


def block(text: str, language: str, beginning: str) -> str:
    found = re.search(rf"^```{language}\n({beginning}.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert found, f"no {language} that begins with {beginning}"
    return found[1]


def test_the_quick_start_with_go_alone(gateway: Gateway, tmp_path: Path) -> None:
    """Its own folder of modules is empty, and nothing may be fetched. Only what was compiled before is shared."""
    readme = (ROOT / "go" / "README.md").read_text()
    folder = tmp_path / "quickstart"
    folder.mkdir()
    (tmp_path / "windrow").symlink_to(ROOT)
    (folder / "main.go").write_text(block(readme, "go", "package main"))
    environment = {
        "PATH": os.environ["PATH"], "HOME": str(tmp_path), "GOPATH": str(tmp_path / "gopath"), "GOPROXY": "off",
        "GOCACHE": run(["go", "env", "GOCACHE"], folder).strip(), "GOTOOLCHAIN": "local",
    }  # fmt: skip
    address = f"http://{quote(TESTER.name, safe='')}:{quote(TESTER.password, safe='')}@127.0.0.1:{gateway.http.port}"
    commands = block(readme, "sh", "go mod init")
    assert commands.count("http://default@localhost:8123") == 1
    script = commands.replace("http://default@localhost:8123", f"'{address}'")
    assert run(["sh", "-euc", script], folder, environment) == "1000\t999\n"


def test_the_examples_are_formatted_and_sound() -> None:
    assert run(["gofmt", "-l", "."], EXAMPLES) == ""
    run(["go", "vet", "-trimpath", "./..."], EXAMPLES)


def test_flight_sql(gateway: Gateway) -> None:
    said = example("flight_sql", gateway.flight, TESTER.name, TESTER.password)
    assert said == "3 rows ingested, 2 inserted\n"
    assert gateway.direct.sql("SELECT id, what FROM flight_events ORDER BY id") == (
        "1\tstarted\n2\tseen\n3\tended\n4\tstarted again\n5\tended again"
    )


def test_logs_by_opentelemetry(gateway: Gateway) -> None:
    example("otlp_logs", f"http://127.0.0.1:{gateway.otlp_ports[0]}", TESTER.name, TESTER.password)
    found = gateway.direct.sql("SELECT Body, SeverityText, ServiceName, ScopeName, LogAttributes FROM otel_logs ORDER BY SeverityNumber")
    assert found == "paid\tINFO\tshop\torders\t{'amount':'12','country':'pl'}\nlate\tWARN\tshop\torders\t{'days':'3'}"
