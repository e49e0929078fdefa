"""A fresh Debian without systemd, into which packages are installed, and the service that they bring, started as systemd would."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import threading
import uuid
import zlib
from pathlib import Path

from clients.run_program import built_once, prepare
from harness.duckdb import duckdb_library
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.paths import ROOT, gateway_binary
from harness.process import inherited_environment

UNIT = "usr/lib/systemd/system/windrow.service"
# What every Debian has, what the scripts of packages call, what DuckDB's library is linked to, and what the image is made of.
BROUGHT = ("passwd", "libgcc-s1", "libstdc++6", "ca-certificates", "busybox-static")
MADE = ["mmdebstrap", "--quiet", "--mode=root", "--variant=essential", f"--include={','.join(BROUGHT)}"]
LIGHT = ["--dpkgopt=path-exclude=/usr/share/locale/*", "--dpkgopt=path-exclude=/usr/share/man/*"]
WATCHDOG_SECONDS = 0.2


class CleanRoot:
    """Unpacked when constructed; `remove` takes it away again."""

    def __init__(self, path: Path):
        assert os.geteuid() == 0, "packages are installed into a root of their own: run the tests as root"
        self.path = path
        path.mkdir()
        with built_once("bookworm") as cache:
            archive = cache / f"bookworm-{zlib.crc32(repr((MADE, LIGHT)).encode()):08x}.tar"
            if not archive.exists():
                unfinished = archive.with_suffix(".new.tar")
                prepare([*MADE, *LIGHT, "bookworm", str(unfinished)], cache)
                unfinished.rename(archive)
        subprocess.run(["tar", "-xf", archive, "-C", path, "--numeric-owner"], check=True)

    def remove(self) -> None:
        shutil.rmtree(self.path)

    def run(self, *command: str, stdin: str = "", environment: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
        known = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "DEBIAN_FRONTEND": "noninteractive", **(environment or {})}
        return subprocess.run(
            ["chroot", str(self.path), *command], input=stdin, env=known, capture_output=True, text=True, check=False
        )

    def succeed(self, *command: str, stdin: str = "", environment: dict[str, str] | None = None) -> str:
        ended = self.run(*command, stdin=stdin, environment=environment)
        assert ended.returncode == 0, f"{command}: {ended.stdout}\n{ended.stderr}"
        return ended.stdout

    def take(self, file: Path) -> str:
        """Copies a file into the root; where it is then."""
        shutil.copy2(file, self.path / "tmp")
        return f"/tmp/{file.name}"

    def bring_duckdb(self) -> None:
        shutil.copy(duckdb_library(), self.path / "usr/lib/libduckdb.so")

    def bring_systemctl(self) -> None:
        """One that refuses all that it is asked for, of a systemd that runs."""
        (self.path / "run/systemd/system").mkdir(parents=True)
        program = self.path / "usr/bin/systemctl"
        assert not program.exists(), "the root has no systemd"
        program.write_text('#!/bin/sh\necho "$*" >>/tmp/asked-of-systemctl\nexit 1\n')
        program.chmod(0o755)

    def asked_of_systemctl(self) -> list[str]:
        """Since the last time."""
        asked = self.path / "tmp/asked-of-systemctl"
        lines = asked.read_text().splitlines()
        asked.unlink()
        return lines

    def is_secret(self, path: str) -> bool:
        """Whether another user than the service's is kept from reading it."""
        as_nobody = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups")
        read = self.run(*as_nobody, "cat", path)
        return read.returncode != 0 and "Permission denied" in read.stderr

    def owner_and_mode(self, path: str) -> str:
        return self.succeed("stat", "--format=%U:%G %a", path).strip()


class Manager:
    """What systemd is to a service: it reads what it is told, all the time."""

    def __init__(self) -> None:
        self.name = f"@windrow-test-{uuid.uuid4()}"
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + self.name[1:])
        self.states: list[str] = []
        self.signs_of_life = 0
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        while True:
            said = self.socket.recv(4096).decode()
            if said == "WATCHDOG=1":
                self.signs_of_life += 1
            else:
                self.states.append(said)

    def is_told(self, *states: str) -> None:
        """These next, and no others."""
        eventually(lambda: len(self.states) >= len(states), f"the manager is told {states}")
        assert self.states == list(states)
        self.states.clear()

    def sees_life(self) -> None:
        before = self.signs_of_life
        eventually(lambda: self.signs_of_life > before + 1, "the watchdog is fed")


class Service(Gateway):
    """What the unit file of a root says is run, over DuckDB; `http` speaks to its data port."""

    def __init__(self, root: CleanRoot, log_folder: Path):
        self.root, self.unit = root, unit_of((root.path / UNIT).read_text())
        [self.user], [self.group], [self.state] = self.unit["User"], self.unit["Group"], self.unit["StateDirectory"]
        [mode] = self.unit["StateDirectoryMode"]
        state = ["install", "-d", "-o", self.user, "-g", self.group, "-m", mode, f"/var/lib/{self.state}"]
        root.succeed(*state)
        [optional] = self.unit["EnvironmentFile"]
        self.variables = root.path / optional.removeprefix("-/")
        if not self.variables.exists():
            # The settings of the package hold but for these.
            ports = [f"WINDROW_{port}_LISTEN=127.0.0.1:0\n" for port in ("HTTP", "NATIVE", "ADMIN")]
            database = f"WINDROW_BACKEND=duckdb:///var/lib/{self.state}/data.duckdb\n"
            self.variables.write_text("".join([database, "WINDROW_LOG_FORMAT=json\n", *ports]))
        self.manager = Manager()
        super().__init__(log_folder)

    def start(self) -> None:
        variables = dict(line.split("=", 1) for line in self.variables.read_text().splitlines())
        microseconds = str(int(WATCHDOG_SECONDS * 1_000_000))
        self.environment = {**variables, "NOTIFY_SOCKET": self.manager.name, "WATCHDOG_USEC": microseconds}
        super().start()
        self.http = self.http.as_user("default", "")

    def command(self) -> list[str]:
        [command] = self.unit["ExecStart"]
        # It takes the user on last, and is told when we end after that.
        as_user = ["setpriv", f"--reuid={self.user}", f"--regid={self.group}", "--init-groups", "--no-new-privs", "--pdeathsig=TERM"]
        return ["chroot", str(self.root.path), *as_user, *command.split()]

    def direct_endpoint(self) -> Endpoint:
        """There is no other way in."""
        return self.http

    def reload(self) -> None:
        [command] = self.unit["ExecReload"]
        program, option, script = re.fullmatch(r"(\S+) (-c) '(.*)'", command.replace("${MAINPID}", str(self.child.pid))).groups()
        self.root.succeed(program, option, script)

    def rows(self) -> list[str]:
        return self.http.sql("SELECT id FROM t ORDER BY id").split()


OLDER, PRESENT = "0.0.9", ""
# What goes along in each package, made before it.
NOTICES = "THIRD-PARTY-NOTICES.txt"
ENDS = {"deb": ".deb", "rpm": ".rpm", "tar": ".tar.gz"}


def packages(kind: str, folder: Path, versions: tuple[str, ...] = (OLDER, PRESENT)) -> list[Path]:
    """Of the program that is tested, whatever version they name; packed quickly rather than tightly."""
    made = []
    for version in versions:
        before = set(folder.glob(f"windrow*{ENDS[kind]}"))
        own = {"DIST": str(folder), "WINDROW_BINARY": str(gateway_binary()), "LEVEL": "0", **({"VERSION": version} if version else {})}
        ended = subprocess.run(
            [ROOT / "scripts/package", kind], env={**inherited_environment(), **own}, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
        made += set(folder.glob(f"windrow*{ENDS[kind]}")) - before
    return made


def unit_of(text: str) -> dict[str, list[str]]:
    """All settings of a unit file; those that stand in it several times have several values."""
    known: dict[str, list[str]] = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", text, re.M):
        known.setdefault(name, []).append(value)
    return known


def use(service: Service) -> None:
    """One life of a service: it says that it is ready, takes an insert, is read from, reads its settings anew, lives on, and ends."""
    service.manager.is_told("READY=1")
    service.manager.sees_life()
    service.http.sql("CREATE TABLE IF NOT EXISTS t (id INTEGER)")
    before = service.rows()
    service.http.sql(f"INSERT INTO t VALUES ({len(before) + 1})")
    assert service.rows() == [*before, str(len(before) + 1)]
    service.reload()
    service.manager.is_told("RELOADING=1", "READY=1")
    eventually(lambda: any("read anew" in str(event) for event in service.log_events()), "the log says so")
    service.manager.sees_life()
    assert service.stop() == 0
    service.manager.is_told("STOPPING=1")
