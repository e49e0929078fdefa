"""Runs the collector's own exporter for ClickHouse on requests."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from clients.run_program import built_once, environment_of, prepare
from harness.endpoint import Endpoint
from harness.paths import TESTS

FOLDER = TESTS / "otlp" / "exporter"
SECONDS = 300


@dataclass(frozen=True)
class Outcome:
    """What went wrong; nothing, if both are empty."""

    decode: str
    export: str


def program() -> Path:
    with built_once("otlp-exporter") as cache:
        built = cache / "otlp-exporter"
        prepare(["go", "build", "-trimpath", "-o", str(built), "."], FOLDER)
    return built


def export(signal: str, files: list[Path], endpoint: Endpoint, options: dict[str, object]) -> list[Outcome]:
    """Makes the tables, unless they are there, and exports the requests one after the other."""
    environment = {**environment_of(endpoint, "http"), "EXPORTER_OPTIONS": json.dumps(options)}
    command = [str(program()), signal, *map(str, files)]
    ended = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    assert ended.returncode == 0, f"the exporter exited with {ended.returncode}\n{ended.stderr[-4000:]}"
    outcomes = json.loads(ended.stdout)
    return [Outcome(**outcomes[str(file)]) for file in files]
