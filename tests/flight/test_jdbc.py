"""The Arrow project's JDBC driver for Flight SQL."""

from __future__ import annotations

import subprocess
from pathlib import Path

from clients.run_program import built_once, prepare
from harness.flight import Service

FOLDER = Path(__file__).parent / "java"
COPY_JARS = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"
# The driver reads memory that the JVM has closed since 16.
OPENED = "--add-opens=java.base/java.nio=ALL-UNNAMED"


def java_command(*arguments: str) -> list[str]:
    with built_once("flight-java") as cache:
        jars, classes = cache / "flight-java-libs", cache / "flight-java-classes"
        noted, wanted = jars / "pom.xml", (FOLDER / "pom.xml").read_text()
        if not noted.exists() or noted.read_text() != wanted:
            prepare(["mvn", "-q", "-B", COPY_JARS, f"-DoutputDirectory={jars}"], FOLDER)
            noted.write_text(wanted)
        prepare(["javac", "-d", str(classes), str(FOLDER / "FlightJdbc.java")], FOLDER)
    limits = ["-Xmx512m", "-XX:TieredStopAtLevel=1"]
    return ["java", *limits, OPENED, "-cp", f"{classes}:{jars}/*", "FlightJdbc", *arguments]


def arguments(service: Service) -> list[str]:
    address = service.uri.removeprefix("grpc://")
    kind = "duckdb" if service.is_duckdb else "clickhouse"
    return [address, service.user, service.password, service.database, kind]


def expected(service: Service) -> list[str]:
    return [
        "inserted 2",
        "row 1 x",
        "row 2 it's",
        "batch 3",
        "counted 4",
        "product Windrow",
        f"table {service.database}.j",
        "columns [a INTEGER, s VARCHAR]",
        f"keys {'[a]' if service.is_duckdb else '[]'}",
        "sum 499999500000",
        "error true",
    ]


def test_jdbc(over_duckdb: Service, over_clickhouse: Service) -> None:
    """In one program for both: a JVM takes longer to start than to do this."""
    command = java_command(*arguments(over_duckdb), *arguments(over_clickhouse))
    ended = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    said = f"{ended.stdout[-3000:]}\n{ended.stderr[-3000:]}"
    assert ended.returncode == 0, said
    assert ended.stdout.splitlines() == expected(over_duckdb) + expected(over_clickhouse), said
