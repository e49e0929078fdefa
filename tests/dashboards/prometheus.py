"""A real Prometheus (Debian's package, which brings promtool as well) that reads one gateway's /metrics all the time."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from harness.eventually import eventually
from harness.gateway import Gateway
from harness.ports import free_port
from harness.process import Child

JOB = "windrow"
# Of an answer in its "data".
Series = dict[str, dict]


class Refused(Exception):
    """With Prometheus's own words."""


class Prometheus:
    """Started when constructed. It is asked for what is so now."""

    def __init__(self, folder: Path, gateway: Gateway):
        folder.mkdir(parents=True, exist_ok=True)
        self.port = free_port()
        target = f"{gateway.admin.host}:{gateway.admin.port}"
        config = {
            "global": {"scrape_interval": "200ms", "scrape_timeout": "200ms"},
            "scrape_configs": [{"job_name": JOB, "static_configs": [{"targets": [target]}]}],
        }
        # JSON is YAML as well.
        (folder / "prometheus.yml").write_text(json.dumps(config))
        where = [f"--config.file={folder / 'prometheus.yml'}", f"--storage.tsdb.path={folder / 'data'}"]
        command = ["prometheus", *where, f"--web.listen-address=127.0.0.1:{self.port}", "--log.level=warn"]
        self.child = Child(command, folder / "prometheus.log")
        eventually(self._ready, "Prometheus is ready", 60)

    def _ready(self) -> bool:
        assert self.child.running(), f"Prometheus ended at once; it comes with Debian's package prometheus:\n{self.child.log()[-3000:]}"
        try:
            return bool(self.label_values("up", "job"))
        except (OSError, Refused):
            return False

    def stop(self) -> int:
        return self.child.stop()

    def ask(self, path: str, **parameters: str) -> object:
        url = f"http://127.0.0.1:{self.port}/api/v1/{path}?{urllib.parse.urlencode(parameters)}"
        try:
            with urllib.request.urlopen(url, timeout=60) as answer:
                return json.loads(answer.read())["data"]
        except urllib.error.HTTPError as error:
            said = error.read().decode("utf-8", "replace")
            raise Refused(json.loads(said)["error"] if said.startswith("{") else said) from error

    def query(self, expression: str) -> list[Series]:
        return self.ask("query", query=expression)["result"]

    def label_values(self, selector: str, label: str) -> list[str]:
        return self.ask(f"label/{label}/values", **{"match[]": selector})
