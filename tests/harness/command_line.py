"""`windrow append`, run as a user runs it."""

from __future__ import annotations

import http.client
import json
import subprocess
import uuid
from dataclasses import dataclass
from pathlib import Path

from harness.endpoint import Endpoint
from harness.paths import gateway_binary


@dataclass(frozen=True)
class Ended:
    code: int
    out: str
    errors: str

    @property
    def answer(self) -> dict:
        """The line that `--json` prints."""
        return json.loads(self.out)


def command(to: Endpoint | str, table: str, *arguments: str | Path) -> list[str]:
    """`to` may be a URL, for what an endpoint isn't."""
    url = to if isinstance(to, str) else f"http://{to.user}:{to.password}@{to.host}:{to.port}"
    return [str(gateway_binary()), "append", "--to", url, "--table", table, *map(str, arguments)]


def append(to: Endpoint | str, table: str, *arguments: str | Path, stdin: bytes = b"") -> Ended:
    done = subprocess.run(command(to, table, *arguments), input=stdin, capture_output=True, timeout=600, check=False)
    return Ended(done.returncode, done.stdout.decode(), done.stderr.decode())


def begin(to: Endpoint | str, table: str, *arguments: str | Path) -> subprocess.Popen[bytes]:
    """Runs it beside the test, which ends it."""
    quiet = subprocess.DEVNULL
    return subprocess.Popen(command(to, table, *arguments), stdin=quiet, stdout=quiet, stderr=subprocess.PIPE)


def new_id() -> str:
    return str(uuid.uuid4())


def status(to: Endpoint, append_id: str) -> dict:
    connection = http.client.HTTPConnection(to.host, to.port, timeout=30)
    try:
        connection.request("GET", f"/windrow/v1/appends/{append_id}", headers=to.with_auth(None))
        answer = connection.getresponse()
        return json.loads(answer.read())
    finally:
        connection.close()


def received(to: Endpoint, append_id: str) -> int:
    """How many batches the gateway holds."""
    known = status(to, append_id)
    ranges = known.get("received", known.get("progress", {}).get("received", []))
    return sum(last - first + 1 for first, last in ranges)
