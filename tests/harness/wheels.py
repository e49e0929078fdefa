"""Wheels as a user installs them: into an empty virtual environment, and with nothing but Python on the PATH."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import zipfile
from base64 import urlsafe_b64encode
from hashlib import sha256
from pathlib import Path

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gateway import READY, endpoint_of
from harness.paths import ROOT, gateway_binary
from harness.process import Child, inherited_environment


def package(kind: str, dist: Path, version: str = "") -> None:
    """Made of what is built already."""
    own = {"DIST": str(dist), "WINDROW_BINARY": str(gateway_binary()), "LEVEL": "0", "VERSION": version}
    command = [str(ROOT / "scripts" / "package"), kind]
    ran = subprocess.run(command, env={**inherited_environment(), **own}, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


def client_wheel() -> Path:
    found = sorted((ROOT / "target" / "wheels").glob("windrow-*.whl"))
    if not found:
        raise FileNotFoundError("the client's wheel is missing: run scripts/python-package")
    return found[0]


def in_version(wheel: Path, version: str, dist: Path) -> Path:
    """The same wheel under another version."""
    name, own, tag = wheel.name.split("-", 2)
    target = dist / f"{name}-{version}-{tag}"
    with zipfile.ZipFile(wheel) as source, zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as written:
        records = []
        for entry in source.infolist():
            content = source.read(entry)
            if entry.filename.endswith(".dist-info/RECORD"):
                continue
            if entry.filename.endswith(".dist-info/METADATA"):
                content = content.replace(f"\nVersion: {own}\n".encode(), f"\nVersion: {version}\n".encode(), 1)
            place = entry.filename.replace(f"{name}-{own}.dist-info", f"{name}-{version}.dist-info")
            written.writestr(place, content)
            records.append(f"{place},sha256={urlsafe_b64encode(sha256(content).digest()).rstrip(b'=').decode()},{len(content)}\n")
        record = f"{name}-{version}.dist-info/RECORD"
        written.writestr(record, "".join([*records, f"{record},,\n"]))
    return target


class Installation:
    """An environment with no package in it yet, not even pip: that of the tests does the installing."""

    def __init__(self, folder: Path, dist: Path):
        self.folder, self.dist = folder, dist
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)

    def install(self, *arguments: str) -> None:
        # Not from a registry: a wheel of that name there is somebody else's until this one is published.
        self.pip("install", "--no-index", "--find-links", str(self.dist), "--no-cache-dir", *arguments)

    def uninstall(self, *packages: str) -> None:
        self.pip("uninstall", "--yes", *packages)

    def pip(self, *arguments: str) -> None:
        # As any user's pip writes it; what this one is told elsewhere is about other packages.
        pip = [sys.executable, "-m", "pip", "--python", str(self.python), "--isolated", "--disable-pip-version-check"]
        # Without the tests' own path: the package on it would count as installed here.
        environment = {name: value for name, value in inherited_environment().items() if name != "PYTHONPATH"}
        ran = subprocess.run([*pip, *arguments], env=environment, capture_output=True, text=True, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    def environment(self) -> dict[str, str]:
        """No cargo, node or npm, no settings, no screen; Python is the only program."""
        return {"PATH": str(self.folder / "bin"), "HOME": str(self.folder), "LANG": "C.UTF-8"}

    def files(self) -> set[str]:
        # What Python compiles while it runs is made anew at each run.
        found = (path for path in self.folder.rglob("*") if "__pycache__" not in path.parts)
        return {str(path.relative_to(self.folder)) for path in found}

    def run(self, command: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(self.folder / "bin" / command), *arguments],
            env=self.environment(), cwd=folder, capture_output=True, text=True, check=False, timeout=300,
        )  # fmt: skip


class Serving:
    """`windrow-server serve` of an installation, on free ports."""

    def __init__(self, installation: Installation, data_dir: Path, *arguments: str):
        ports = ("--http", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--flight", "")
        command = [str(installation.folder / "bin" / "windrow-server"), "serve", "--data-dir", str(data_dir), *ports, *arguments]
        # `env` clears what Child would hand down. In another folder, as what scripts/setup fetched is found from the checkout's.
        variables = [f"{name}={value}" for name, value in installation.environment().items()]
        self.child = Child(["/usr/bin/env", "-i", "-C", str(data_dir.parent), *variables, *command], new_log(data_dir))
        self.http: Endpoint = eventually(self.ready, f"{command} says that it is ready")

    def ready(self) -> Endpoint | None:
        log = self.child.log()
        if READY not in log:
            assert self.child.running(), f"the gateway ended at once:\n{log[-3000:]}"
            return None
        found = re.search(r"\bhttp=\"?(127\.0\.0\.1:\d+)", re.sub(r"\x1b\[[0-9;]*m", "", log))
        return endpoint_of(found[1]) if found else None

    def stop(self) -> int:
        return self.child.stop()


def new_log(data_dir: Path) -> Path:
    """Each run has its own: the last one's says that it is ready, too."""
    return data_dir.with_name(f"{data_dir.name}-{len(list(data_dir.parent.glob(f'{data_dir.name}-*.log')))}.log")


def documented_glibc() -> tuple[int, int]:
    """The oldest that packages are promised to run with: everywhere the same, and what they are built for."""
    places = ("docs/deployment.md", "deploy/python/windrow-server.md", "CONTRIBUTING.md", "Makefile", "scripts/packages/build-env.sh")
    said = {place: set(re.findall(r"glibc[\s=]+(\d+)\.(\d+)", (ROOT / place).read_text())) for place in places}
    [promised] = set().union(*said.values())
    assert all(said.values()), said
    return int(promised[0]), int(promised[1])


def is_portable(program: Path) -> bool:
    """Built by scripts/portable, as all that is released."""
    return any(part.endswith("-unknown-linux-gnu") for part in program.resolve().parts)


def promised_glibc(program: Path) -> tuple[int, int]:
    """What the documents say holds for what is released; any other program is for machines like this one."""
    if is_portable(program):
        return documented_glibc()
    found = re.fullmatch(r"glibc (\d+)\.(\d+)", os.confstr("CS_GNU_LIBC_VERSION") or "")
    assert found
    return int(found[1]), int(found[2])


def program_of(pid: int) -> Path:
    return Path(os.readlink(f"/proc/{pid}/exe"))


def is_ignored(pid: int, number: int) -> bool:
    found = re.search(r"^SigIgn:\s+([0-9a-f]+)$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    assert found
    return bool(int(found[1], 16) >> (number - 1) & 1)
