"""clickhouse-driver's own tests, as far as its source package holds them: the files `tests/test_*.py` and their base class.

The folders `tests/columns` and `tests/numpy` are only in its repository. (Those of 0.2.5, which Debian has, were run by hand: of
251 that pass straight, all pass through the gateway. `python/driver_types.py` has the types as well.) What the files need of
`tests/util.py` and its like, which are missing too, stands in `python_driver_plugin.py`; so does what replaces
`clickhouse-client`, by which they make their tables.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tarfile
import xml.etree.ElementTree as ElementTree
from importlib.metadata import version
from pathlib import Path

from clients.own_suites.outcome import Outcome
from clients.run_program import CLIENTS, PROGRAM_SECONDS, built_once, prepare
from harness.endpoint import Endpoint

PACKAGE = "clickhouse-driver"
PLUGIN = CLIENTS / "own_suites" / "python_driver_plugin.py"
# What is not asked, by a test's name, with the reason.
LEFT_OUT = {
    "test_connect.py::ConnectTestCase::test_client_with_no_cert_validation": "TLS only",
    "test_dbapi.py::DBAPITestCase::test_connect_default_params": "wants port 9000",
}
# Send a wrong user, or leave before they have read the Hello: an embedded ClickHouse 26.7 aborts when it refuses a Hello. They are
# asked through the gateway alone, and have to pass.
REFUSED_HELLO = (
    "test_connect.py::ConnectTestCase::test_exception_on_hello_packet",
    "test_connect.py::ConnectTestCase::test_unknown_packet_on_connect",
    "test_dbapi.py::DBAPITestCase::test_exception_execute",
    "test_dbapi.py::DBAPITestCase::test_exception_executemany",
)
SETUP = """[db]
host = {host}
port = {port}
secure_port = 1
database = {database}
user = {user}
password = {password}
compression = lz4,lz4hc,zstd
client = none

[log]
level = ERROR
"""


def fetched() -> Path:
    """The unpacked tests of the version that is installed."""
    with built_once("python-driver-suite") as cache:
        release = version(PACKAGE)
        folder = cache / f"python-driver-suite-{release}"
        ready = folder / "ready"
        if not ready.exists():
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            wanted = [f"{PACKAGE}=={release}", "--no-deps", "--no-binary", PACKAGE]
            prepare([sys.executable, "-m", "pip", "download", "--quiet", *wanted, "--dest", "."], folder)
            with tarfile.open(next(folder.glob("*.tar.gz"))) as package:
                package.extractall(folder, filter="data")
            shutil.copytree(next(folder.glob("clickhouse_driver-*/tests")), folder / "tests")
            ready.touch()
    return folder / "tests"


def run(server: Endpoint, http_port: int, is_straight: bool, folder: Path) -> Outcome:
    """In a folder of its own, which has its settings."""
    shutil.copytree(fetched(), folder / "tests")
    (folder / "tests" / "__init__.py").touch()
    shutil.copy(PLUGIN, folder)
    where = {"host": server.host, "port": server.port, "user": server.user, "password": server.password}
    (folder / "setup.cfg").write_text(SETUP.format(**where, database=server.database))
    (folder / "pytest.ini").write_text("[pytest]\n")
    names = [*LEFT_OUT, *(REFUSED_HELLO if is_straight else ())]
    report, left_out = folder / "report.xml", [f"--deselect=tests/{name}" for name in names]
    plain = ["-q", "--tb=short", "-p", "no:cacheprovider", "-p", "no:xdist", "-c", "pytest.ini", "-p", PLUGIN.stem]
    ours = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", *plain, *left_out, f"--junitxml={report}", "tests"],
        cwd=folder,
        env={**ours, "PYTHONPATH": str(folder), "SUITE_HTTP_PORT": str(http_port)},
        capture_output=True,
        text=True,
        timeout=PROGRAM_SECONDS,
        check=False,
    )
    said = f"{ended.stdout}\n{ended.stderr}"
    assert report.exists(), said
    passed = {}
    for case in ElementTree.parse(report).iter("testcase"):
        ends = {child.tag for child in case}
        if "skipped" not in ends:
            passed[f"{case.get('classname')}.{case.get('name')}"] = not ends & {"failure", "error"}
    return Outcome(passed, said)
