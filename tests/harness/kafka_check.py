"""`windrow kafka check`, run as a user runs it."""

from __future__ import annotations

import json
import subprocess
import urllib.parse
from dataclasses import dataclass
from pathlib import Path

from harness.endpoint import Endpoint
from harness.paths import gateway_binary
from harness.pipelines import Settings, pipelines_toml
from harness.process import inherited_environment


@dataclass(frozen=True)
class Checked:
    code: int
    out: str
    errors: str

    @property
    def report(self) -> dict:
        """The line that `--json` prints."""
        return json.loads(self.out)

    def column(self, name: str) -> dict:
        return next(column for column in self.report["columns"] if column["column"] == name)


def check(*arguments: str | Path, **variables: str) -> Checked:
    command = [str(gateway_binary()), "kafka", "check", *map(str, arguments)]
    done = subprocess.run(command, env={**inherited_environment(), **variables}, capture_output=True, timeout=600, check=False)
    return Checked(done.returncode, done.stdout.decode(), done.stderr.decode())


def backend_of(direct: Endpoint) -> str:
    user, password = (urllib.parse.quote(part, safe="") for part in (direct.user, direct.password))
    return f"http://{user}:{password}@{direct.host}:{direct.port}"


def settings_file(folder: Path, backend: str, *pipelines: Settings, more: str = "") -> Path:
    path = folder / "check.toml"
    path.write_text(f'backend = "{backend}"\ndata_dir = "{folder / "data"}"\n{more}{pipelines_toml(*pipelines)}')
    return path
