"""A PostgreSQL of the tests' own: a cluster in a folder, on a port of loopback."""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import uuid
from pathlib import Path

from adbc_driver_postgresql import dbapi

from harness.eventually import eventually
from harness.paths import ROOT
from harness.ports import free_port
from harness.process import Child, children_of, is_alive

# Its server refuses to run as root.
ACCOUNTS = ["postgres", "nobody"]


def programs() -> Path:
    """Debian's package keeps them out of the search path; the newest version is taken."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: int(path.parent.name))
    on_path = shutil.which("initdb")
    if not found and on_path:
        return Path(on_path).parent
    assert found, f"PostgreSQL's server is missing: run {ROOT}/scripts/setup test"
    return found[-1]


def account() -> str | None:
    """Whose processes they are to be. `None`: our own."""
    if os.getuid() != 0:
        return None
    known = {entry.pw_name for entry in pwd.getpwall()}
    return next(name for name in ACCOUNTS if name in known)


class Postgres:
    """Started when constructed, without a password for anybody."""

    user = "windrow"

    def __init__(self, folder: Path, config: str = ""):
        self.folder, self.data, self.port = folder, folder / "data", free_port()
        folder.mkdir(parents=True, exist_ok=True)
        self.account = account()
        if self.account:
            # Folders of pytest are their owner's alone.
            for outer in [folder, *folder.parents]:
                if outer.stat().st_uid == os.getuid() and outer.stat().st_mode & 0o001 == 0:
                    outer.chmod(outer.stat().st_mode | 0o011)
            shutil.chown(folder, self.account)
        self._run("initdb", "-D", str(self.data), "-A", "trust", "-U", self.user, "--no-sync", "-E", "UTF8", "--locale=C")
        more = f"listen_addresses = '127.0.0.1'\nport = {self.port}\nunix_socket_directories = ''\n{config}\n"
        configuration = self.data / "postgresql.conf"
        configuration.write_text(configuration.read_text() + more)
        self.start()

    @property
    def url(self) -> str:
        return f"postgresql://{self.user}@127.0.0.1:{self.port}/postgres"

    def new_database(self) -> str:
        """The address of a database that nobody else uses."""
        name = f"d_{uuid.uuid4().hex[:12]}"
        self.sql(f"CREATE DATABASE {name}")
        return self.url.removesuffix("postgres") + name

    def _as_account(self, program: str, *arguments: str) -> list[str]:
        command = [str(programs() / program), *arguments]
        if not self.account:
            return command
        return ["setpriv", f"--reuid={self.account}", f"--regid={self.account}", "--clear-groups", *command]

    def _run(self, program: str, *arguments: str) -> None:
        done = subprocess.run(self._as_account(program, *arguments), capture_output=True, text=True, cwd="/")
        assert done.returncode == 0, f"{program} failed:\n{done.stderr}"

    def start(self) -> None:
        self.child = Child(self._as_account("postgres", "-D", str(self.data)), self.folder.parent / f"{self.folder.name}.log")
        eventually(self._answers, "PostgreSQL answers")

    def _answers(self) -> bool:
        assert self.child.running(), f"PostgreSQL ended at once:\n{self.child.log()[-3000:]}"
        try:
            self.sql("SELECT 1")
        except dbapi.Error:
            return False
        return True

    def connect(self, url: str = "") -> dbapi.Connection:
        return dbapi.connect(url or self.url, autocommit=True)

    def sql(self, statement: str, url: str = "") -> list[tuple]:
        with self.connect(url) as connection, connection.cursor() as cursor:
            cursor.execute(statement)
            return cursor.fetchall()

    def kill(self) -> None:
        """Its postmaster and all processes of connections, at once."""
        processes = [self.child.pid, *children_of(self.child.pid)]
        for pid in processes:
            # One of a connection that was just closed may end by itself.
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        self.child.wait()
        eventually(lambda: not any(map(is_alive, processes)), "all processes of PostgreSQL are gone")

    def stop(self) -> None:
        # "Fast": it waits for no client.
        self.child.signal(signal.SIGINT)
        self.child.wait()
