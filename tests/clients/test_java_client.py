"""ClickHouse's JDBC driver."""

from __future__ import annotations

from pathlib import Path

import pytest

from clients.run_program import CLIENTS, built_once, expect_all, prepare, run_program
from harness.endpoint import Endpoint

FOLDER = CLIENTS / "java"
COPY_JARS = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"


def test_jdbc(tested: Endpoint, subtests: pytest.Subtests) -> None:
    expect_all(run_program(java_command(), FOLDER, tested), 20, subtests)


def java_command() -> list[str]:
    return ["java", "-Xmx512m", "-cp", f"{jars()}/*", "Program.java"]


def jars() -> Path:
    """The jars that pom.xml names; a copy of it beside them says which they are."""
    with built_once("java") as cache:
        folder, wanted = cache / "java-libs", (FOLDER / "pom.xml").read_text()
        noted = folder / "pom.xml"
        if not noted.exists() or noted.read_text() != wanted:
            prepare(["mvn", "-q", "-B", COPY_JARS, f"-DoutputDirectory={folder}"], FOLDER)
            noted.write_text(wanted)
        return folder
