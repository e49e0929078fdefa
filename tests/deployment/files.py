"""The files of deploy/, as whoever runs them reads them: tests/clients/deployment has Compose's, Docker's and Kubernetes' own types."""

from __future__ import annotations

import functools
import json
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from clients.run_program import CLIENTS, built_once, prepare
from harness.paths import ROOT, gateway_binary
from harness.process import inherited_environment

DEPLOY = ROOT / "deploy"
FILES = {"compose": "compose.yaml", "dockerfile": "Dockerfile", "kubernetes": "kubernetes.yaml"}
# What compose.yaml wants to be told.
SECRETS = {"WINDROW_PASSWORD": "s3cret", "WINDROW_ADMIN_TOKEN": "long-and-random"}
UNITS = {"KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30}


@functools.cache
def program() -> Path:
    with built_once("deployment") as cache:
        built = cache / "deployment"
        prepare(["go", "build", "-trimpath", "-o", str(built), "."], CLIENTS / "deployment")
    return built


def report(kind: str, path: Path, secrets: dict[str, str] = SECRETS) -> dict[str, Any]:
    command = [str(program()), kind, str(path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False, env={**inherited_environment(), **secrets})
    assert ended.returncode == 0, ended.stderr
    return json.loads(ended.stdout)


@functools.cache
def read(kind: str) -> Any:
    found = report(kind, DEPLOY / FILES[kind])
    assert found["faults"] == []
    return found["read"]


@dataclass(frozen=True)
class Deployed:
    """How one of the files starts a gateway."""

    settings_text: str
    environment: dict[str, str]
    # Where settings and data are in the container.
    settings_path: str
    volume: str
    ports: frozenset[int]
    # From the wish that it end until it is killed.
    grace_seconds: float


def compose() -> Deployed:
    service = read("compose")["services"]["windrow"]
    volumes = {volume["type"]: volume for volume in service["volumes"]}
    return Deployed(
        settings_text=(DEPLOY / volumes["bind"]["source"]).read_text(),
        environment={**image_environment(), **service["environment"]},
        settings_path=volumes["bind"]["target"],
        volume=volumes["volume"]["target"],
        ports=frozenset(port["target"] for port in service["ports"]),
        grace_seconds=seconds(service["stop_grace_period"]),
    )


def kubernetes(ordinal: int = 0) -> Deployed:
    """The pod of this number."""
    manifests = read("kubernetes")
    stateful = manifests["statefulSets"][0]
    pod = stateful["spec"]["template"]["spec"]
    container = pod["containers"][0]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    [(settings_name, settings_text)] = manifests["configMaps"][0]["data"].items()
    given = variables(container["env"], f"{stateful['metadata']['name']}-{ordinal}")
    return Deployed(
        settings_text=settings_text,
        environment={**image_environment(), **given},
        settings_path=f"{mounts['config']}/{settings_name}",
        volume=mounts["data"],
        ports=frozenset(port["containerPort"] for port in container["ports"]),
        grace_seconds=pod["terminationGracePeriodSeconds"] - float(container["lifecycle"]["preStop"]["exec"]["command"][1]),
    )


def variables(listed: list[dict[str, Any]], pod_name: str) -> dict[str, str]:
    """As Kubernetes gives them to the pod: `$(NAME)` stands for a variable before it."""
    secret = read("kubernetes")["secrets"][0]["stringData"]
    given: dict[str, str] = {}
    for each in listed:
        origin = each.get("valueFrom", {})
        if "secretKeyRef" in origin:
            value = secret[origin["secretKeyRef"]["key"]]
        elif "fieldRef" in origin:
            value = {"metadata.name": pod_name}[origin["fieldRef"]["fieldPath"]]
        else:
            value = each["value"]
        given[each["name"]] = re.sub(r"\$\((\w+)\)", lambda named: given[named[1]], value)
    return given


DEPLOYED = {"compose": compose, "kubernetes": kubernetes}


def image_environment() -> dict[str, str]:
    return {name: value for each in commands("ENV") for name, value in each["variables"].items()}


def commands(name: str) -> list[dict[str, Any]]:
    """Those of the image that is the result."""
    return [command for command in read("dockerfile")[-1]["commands"] if command["name"] == name]


def windrow(*arguments: str, environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    command = [str(gateway_binary()), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env={**inherited_environment(), **(environment or {})})


def settings(text: str, environment: dict[str, str], folder: Path) -> dict[str, str]:
    """Those in force, as the program shows them; it refuses what it doesn't know."""
    path = folder / "windrow.toml"
    path.write_text(text)
    shown = windrow("config", environment={**environment, "WINDROW_CONFIG": str(path)})
    assert shown.returncode == 0, shown.stderr
    columns = [re.split(r"  +", line) for line in shown.stdout.splitlines() if not line.startswith("#")]
    return {each[0]: each[1] for each in columns if len(each) == 3}


def size(text: str) -> int:
    number, unit = re.fullmatch(r"(\d+)([KMG]i?B?)?", text).groups()
    return int(number) * UNITS.get(unit, 1)


def seconds(text: str) -> float:
    """Of Go's way to write a duration."""
    minutes, rest = re.fullmatch(r"(?:(\d+)m)?(?:([\d.]+)s)?", text).groups()
    return 60 * int(minutes or 0) + float(rest or 0)
