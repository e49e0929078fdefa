"""The embedded ClickHouse started without a gateway: the oracle for everything but the gathering of inserts."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import weakref
from pathlib import Path
from typing import ClassVar
from xml.sax.saxutils import escape

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.paths import engine_library, gateway_binary
from harness.ports import free_port
from harness.process import Child
from harness.users import ALL, TESTER, User

# Runs the engine's command line inside a Python process; ends with it. Schemas of formats are looked for, and kept, where it runs.
RUNNER = """
import ctypes, os, sys
os.chdir(sys.argv[2])
engine = ctypes.CDLL(sys.argv[1])
arguments = [b"clickhouse"] + [text.encode() for text in sys.argv[3:]]
engine.chdb_query_cmdline.restype = ctypes.c_void_p
engine.chdb_query_cmdline(len(arguments), (ctypes.c_char_p * len(arguments))(*arguments))
"""
LISTEN_FOR_EVER = (
    "SYSTEM START LISTEN HTTP; SYSTEM START LISTEN TCP; SELECT sleepEachRow(1) FROM system.numbers "
    "SETTINGS function_sleep_max_microseconds_per_block=0, max_block_size=1 FORMAT Null"
)
TERMINATED = b"Terminate called for uncaught exception"
START_UP_USER = User("default", "", ("GRANT SYSTEM LISTEN ON *.*", "GRANT SELECT ON system.numbers"))


class Fallen(AssertionError):
    """It was started, and terminated before it answered anybody."""


class Engine:
    #: All of this process, for who tells why a test failed.
    every: ClassVar[weakref.WeakSet[Engine]] = weakref.WeakSet()

    def __init__(
        self,
        folder: Path,
        port: int | None = None,
        config: str = "",
        users: tuple[User, ...] = (),
        environment: dict[str, str] | None = None,
        native_port: int | None = None,
    ):
        """`config`: more elements of ClickHouse's configuration, as XML. `users`: more of them than every server knows."""
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "users.xml").write_text(users_xml((START_UP_USER, *ALL, *users)))
        self.folder, self.environment = folder, environment
        self.configure(config)
        self.records_withdrawn = 0
        self.native_port = native_port or free_port()
        self.direct = Endpoint("127.0.0.1", port or free_port(), TESTER.name, TESTER.password)
        self.is_wanted = False
        self.every.add(self)
        self.start()

    def configure(self, config: str) -> None:
        """For the next start."""
        (self.folder / "config.xml").write_text(config_xml(self.folder / "users.xml", config))

    def start(self) -> None:
        """Also after its end, on the same data and port."""
        folder = self.folder
        ports = ["--http_port", str(self.direct.port), "--tcp_port", str(self.native_port)]
        options = ["--path", str(folder / "data"), "--config-file", str(folder / "config.xml"), *ports]
        log = folder / "engine.log"
        self.log_read_bytes = log.stat().st_size if log.exists() else 0
        command = self.command([*options, "--logger.level=warning"])
        self.child, self.is_wanted = Child(command, folder / "engine.log", self.environment), True
        eventually(lambda: self.direct.answers() or self._died(), "the engine answers")

    def command(self, options: list[str]) -> list[str]:
        program = [sys.executable, "-c", RUNNER, str(engine_library()), str(self.folder)]
        return [*program, *options, "--query", LISTEN_FOR_EVER]

    def _died(self) -> bool:
        is_running = self.child.running()
        # One that fell may have ended by now.
        if TERMINATED in self._said():
            raise Fallen(f"the engine fell before it answered:\n{self.child.log()[-3000:]}")
        if not is_running:
            raise AssertionError(f"the engine ended at once:\n{self.child.log()[-3000:]}")
        return False

    def _said(self) -> bytes:
        """What its log got since it was started, or asked last whether it fell."""
        with self.child.log_path.open("rb") as log:
            log.seek(self.log_read_bytes)
            return log.read()

    def fell(self) -> bool:
        """Whether it ended by itself since it was asked last, or terminated and hangs, as ClickHouse 26.7 does now and then when a
        connection breaks while it reads a body or writes an answer."""
        said = self._said()
        # What was written in two pieces is read again whole.
        self.log_read_bytes += max(len(said) - len(TERMINATED), 0)
        return TERMINATED in said or not self.child.running()

    def why_it_fell(self) -> str | None:
        """What it said of that, where nobody has ended it; asking changes nothing."""
        if not self.is_wanted or (self.child.running() and TERMINATED not in self._said()):
            return None
        said = self._said().decode("utf-8", "replace")
        fatal = re.search(r"^.*(<Fatal>|Terminate called)", said, re.MULTILINE)
        return said[fatal.start() :][:3000] if fatal else said[-3000:]

    def stands(self) -> bool:
        """Whether it answers. One that fell is started again first, as whoever runs a server has it."""
        if self.fell():
            self.kill()
            self.mend()
            self.start()
        return self.direct.answers()

    def kill(self) -> None:
        self.is_wanted = False
        self.child.signal(signal.SIGKILL)
        self.child.wait()

    def mend(self) -> None:
        """What whoever runs a ClickHouse does before one that was killed is started again."""
        command = [str(gateway_binary()), "mend-clickhouse", str(self.folder / "data")]
        self.records_withdrawn += int(subprocess.run(command, check=True, capture_output=True).stdout.split()[0])

    def stop(self) -> None:
        self.is_wanted = False
        self.child.stop()


def config_xml(users: Path, more: str = "") -> str:
    # The level of a server's log does nothing here: only the console's own keeps it from writing, and from taking the time.
    logger = "<level>warning</level><console>1</console><console_log_level>warning</console_log_level>"
    return (
        f"<clickhouse><logger>{logger}</logger><user_directories>"
        f"<users_xml><path>{escape(str(users))}</path></users_xml></user_directories>{more}</clickhouse>"
    )


def users_xml(users: tuple[User, ...]) -> str:
    entries = "".join(user_xml(user) for user in users)
    quotas = "".join(f"<of_{user.name}><interval>{user.quota}</interval></of_{user.name}>" for user in users if user.quota)
    profiles = "".join(f"<of_{user.name}>{user.profile}</of_{user.name}>" for user in users if user.profile)
    head = f"<profiles><default/>{profiles}</profiles><quotas><default/>{quotas}</quotas>"
    return f"<clickhouse>{head}<users>{entries}</users></clickhouse>"


def user_xml(user: User) -> str:
    grants = "".join(f"<query>{escape(grant)}</query>" for grant in user.grants)
    quota = f"of_{user.name}" if user.quota else "default"
    profile = f"of_{user.name}" if user.profile else "default"
    return (
        f"<{user.name}><password>{escape(user.password)}</password><networks><ip>::/0</ip></networks>"
        f"<profile>{profile}</profile><quota>{quota}</quota><grants>{grants}</grants><databases>{user.rows}</databases></{user.name}>"
    )
