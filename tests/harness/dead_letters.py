"""Dead letters of a gateway, over its admin API and by its command line."""

from __future__ import annotations

import http.client
import json
import subprocess
import urllib.parse
from dataclasses import dataclass

from harness.eventually import eventually
from harness.gateway import Gateway
from harness.paths import gateway_binary
from harness.process import inherited_environment

PATH = "/api/v1/dead-letters"


@dataclass(frozen=True)
class AdminAnswer:
    status: int
    body: bytes

    def json(self) -> dict:
        return json.loads(self.body)


@dataclass(frozen=True)
class Printed:
    code: int
    raw: bytes
    errors: str

    @property
    def out(self) -> str:
        return self.raw.decode()

    def json(self) -> dict:
        return json.loads(self.out)


class DeadLetters:
    """Those of one database, so that tests can share a gateway."""

    def __init__(self, gateway: Gateway, database: str, token: str | None = None):
        self.gateway, self.database, self.token = gateway, database, token

    def ask(self, path: str = "", method: str = "GET", body: object = None, kind: str = "application/json") -> AdminAnswer:
        connection = http.client.HTTPConnection(self.gateway.admin.host, self.gateway.admin.port, timeout=120)
        headers = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        content = b"" if body is None else json.dumps(body).encode()
        connection.request(method, PATH + path, content, {**headers, "Content-Type": kind})
        answer = connection.getresponse()
        try:
            return AdminAnswer(answer.status, answer.read())
        finally:
            connection.close()

    def listing(self, **conditions: object) -> dict:
        said = self.ask("?" + urllib.parse.urlencode({"database": self.database, **conditions}))
        assert said.status == 200, said
        return said.json()

    def page(self, offset: int) -> list[dict]:
        return self.listing(limit=10_000, offset=offset)["letters"]

    def all(self, **conditions: object) -> list[dict]:
        """The oldest first."""
        return self.listing(limit=10_000, **conditions)["letters"][::-1]

    def come(self, number: int = 1, **conditions: object) -> list[dict]:
        """Waits for so many."""
        return eventually(lambda: found if len(found := self.all(**conditions)) == number else [], f"{number} letters")

    def show(self, letter: dict) -> dict:
        return self.ask(f"/{letter['id']}").json()

    def rows(self, letter: dict, **parameters: object) -> list[dict]:
        said = self.ask(f"/{letter['id']}/rows?" + urllib.parse.urlencode(parameters))
        assert said.status == 200, said
        return said.json()["data"]

    def payload(self, letter: dict) -> bytes:
        said = self.ask(f"/{letter['id']}/payload")
        assert said.status == 200, said
        return said.body

    def retry(self, **selection: object) -> dict:
        return self.change("/retry", **selection)

    def discard(self, **selection: object) -> dict:
        return self.change("/discard", **selection)

    def change(self, path: str, **selection: object) -> dict:
        chosen = selection if "ids" in selection else {"database": self.database, **selection}
        said = self.ask(path, "POST", chosen)
        assert said.status == 200, said
        return said.json()

    def command(self, *arguments: str) -> Printed:
        """`windrow dead-letters`, against this gateway."""
        where = ["--config", str(self.gateway.config_path), "--data-dir", str(self.gateway.data_dir)]
        where += ["--backend", "embedded", "--admin", f"{self.gateway.admin.host}:{self.gateway.admin.port}"]
        command = [str(gateway_binary()), "dead-letters", arguments[0], *where, *arguments[1:]]
        done = subprocess.run(command, capture_output=True, timeout=60, env=inherited_environment(), check=False)
        return Printed(done.returncode, done.stdout, done.stderr.decode())
