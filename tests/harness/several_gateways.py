"""Several gateways in front of one ClickHouse, which know each other."""

from __future__ import annotations

import http.client
import itertools
import json
import random
import subprocess
import threading
import urllib.request
from collections.abc import Callable
from pathlib import Path

from harness.endpoint import Endpoint
from harness.inserts import INTO_T, rows
from harness.load import WRITERS, Writers
from harness.metrics import metrics_of
from harness.paths import gateway_binary
from harness.ports import free_port
from harness.process import inherited_environment
from harness.remote import RemoteGateway, backend_url
from harness.users import TESTER

SECRET = "a secret of gateways".replace(" ", "-")


class MemberGateway(RemoteGateway):
    """Its data port is known before it starts, so that the others can name it."""

    def __init__(self, folder: Path, name: str, backend: str, direct: Endpoint, config: str):
        self.name = name
        super().__init__(folder, backend, direct, config)

    def start(self) -> None:
        super().start()
        self.http = self.http.as_user(TESTER.name, TESTER.password).using(self.direct.database)

    def command(self) -> list[str]:
        command = super().command()
        command[command.index("--http") + 1] = self.name.split("://")[1]
        return command

    def counted(self, metric: str) -> float:
        """Over all gateways that it has figures of."""
        return metrics_of(self).sum(metric)

    def shown(self) -> dict:
        with urllib.request.urlopen(f"{self.admin.url}api/v1/cluster", timeout=60) as answer:
            return json.load(answer)


def names(count: int, scheme: str = "http") -> list[str]:
    return [f"{scheme}://127.0.0.1:{free_port()}" for _ in range(count)]


def section(gateways: list[str], own: str, secret: str = SECRET, more: str = "") -> str:
    return f"[cluster]\ngateways = {json.dumps(gateways)}\nself = {json.dumps(own)}\nsecret = {json.dumps(secret)}\n{more}"


def member(folder: Path, gateways: list[str], own: str, direct: Endpoint, backend: str | None = None, **more: str) -> MemberGateway:
    """`backend`: how it reaches it, if not directly; `config`: more settings; the rest is of the section."""
    config = more.pop("config", "")
    url = backend_url(TESTER, backend or f"127.0.0.1:{direct.port}")
    return MemberGateway(folder, own, url, direct, config + section(gateways, own, **more))


def adopt(directory: Path, direct: Endpoint) -> subprocess.CompletedProcess[str]:
    command = [str(gateway_binary()), "journal", "adopt", str(directory), "--backend", backend_url(TESTER, f"127.0.0.1:{direct.port}")]
    return subprocess.run(command, capture_output=True, text=True, timeout=170, env=inherited_environment(), check=False)


class TokenLoad(Writers):
    """Rows, each with a token of its own, at one gateway after another until one of them has acknowledged it."""

    def __init__(self, gateways: list[MemberGateway], **settings: object):
        super().__init__()
        self.endpoints, self.settings = [gateway.http for gateway in gateways], settings
        self.acknowledged: list[int] = []
        self.threads = [threading.Thread(target=self.write, args=(writer,)) for writer in range(WRITERS)]

    def write(self, writer: int) -> None:
        rng = random.Random(writer)
        for number in itertools.count(writer, WRITERS):
            while not self.send(rng.choice(self.endpoints), number):
                if self.hopeless.is_set():
                    return
            self.acknowledged.append(number)
            if rng.random() < 0.3:
                # Its sender has not heard of it, and asks somebody else.
                self.send(rng.choice(self.endpoints), number)
            if self.stopping.is_set():
                return

    def send(self, endpoint: Endpoint, number: int) -> bool:
        try:
            settings = {**self.settings, "insert_deduplication_token": f"token {number}"}
            return endpoint.insert(INTO_T, rows(number), **settings).status == 200
        except (OSError, http.client.HTTPException):
            return False

    def acknowledged_more(self, by: int) -> Callable[[], bool]:
        goal = len(self.acknowledged) + by
        return lambda: len(self.acknowledged) >= goal
