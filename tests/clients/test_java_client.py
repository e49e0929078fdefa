"""ClickHouse's Java clients: JDBC and client-v2; and the JDBC driver that speaks the native protocol."""

from __future__ import annotations

from pathlib import Path

import pytest

from clients.expected_routes import CLIENT_V2, JDBC, JDBC_PINNING
from clients.routes import Routes, forwarded_by_reason, gathered_by_table
from clients.run_program import CLIENTS, built_once, expect_all, prepare, run_program
from harness.endpoint import Endpoint
from harness.gateway import Gateway

FOLDER = CLIENTS / "java"
COPY_JARS = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
TODAY = "0.10.0"
# The last line of versions that send async_insert=0 with every statement.
PINNING = "0.9.4"
# The driver that speaks the native protocol has jars of its own.
NATIVE_JARS = "native"


def test_jdbc(tested: Endpoint, subtests: pytest.Subtests) -> None:
    expect_all(run_program(java_command("Program"), FOLDER, tested), 20, subtests)


@pytest.mark.parametrize(("version", "expected"), [(TODAY, JDBC), (PINNING, JDBC_PINNING)])
def test_ways_to_insert_jdbc(server, tested: Endpoint, version: str, expected: dict[str, str], subtests) -> None:
    command, routes = java_command("JdbcWays", version), Routes(server, tested)
    report = run_program(command, FOLDER, tested)
    expect_all(report, len(expected), subtests)
    routes.expect(report, expected, subtests)


def test_ways_to_insert_client_v2(server, tested: Endpoint, subtests: pytest.Subtests) -> None:
    command, routes = java_command("Ways"), Routes(server, tested)
    report = run_program(command, FOLDER, tested)
    expect_all(report, len(CLIENT_V2) + 1, subtests)
    routes.expect(report, CLIENT_V2, subtests)


def test_native_jdbc(server, native: Endpoint, subtests: pytest.Subtests) -> None:
    """It announces a revision of 2018, whose packets nobody reads here: each connection is ClickHouse's as a whole."""
    command = java_command("NativeJdbc", NATIVE_JARS)
    before = forwarded_by_reason(server) if isinstance(server, Gateway) else None
    report = run_program(command, FOLDER, native)
    expect_all(report, 14, subtests)
    if before is not None:
        assert set(forwarded_by_reason(server) - before) == {"hello"}
        assert not gathered_by_table(server, native.database)


def java_command(program: str, version: str = TODAY) -> list[str]:
    """The programs are compiled against today's jars, and run with those of the version."""
    with built_once("java") as cache:
        today, jars, classes = fetched(cache, TODAY), fetched(cache, version), cache / "java-classes"
        sources, compiled = sorted(FOLDER.glob("*.java")), classes / f"{program}.class"
        if not compiled.exists() or compiled.stat().st_mtime < max(source.stat().st_mtime for source in sources):
            prepare(["javac", "-cp", f"{today}/*", "-d", str(classes), *map(str, sources)], FOLDER)
    return ["java", "-Xmx512m", "-XX:TieredStopAtLevel=1", "-cp", f"{classes}:{jars}/*", program]


def fetched(cache: Path, version: str) -> Path:
    """The jars that pom.xml names; a copy of it beside them says which they are."""
    project = FOLDER / "housepower" if version == NATIVE_JARS else FOLDER
    folder, wanted = cache / f"java-libs-{version}", (project / "pom.xml").read_text()
    noted = folder / "pom.xml"
    if not noted.exists() or noted.read_text() != wanted:
        prepare(["mvn", "-q", "-B", COPY_JARS, f"-Dclickhouse.version={version}", f"-DoutputDirectory={folder}"], project)
        noted.write_text(wanted)
    return folder
