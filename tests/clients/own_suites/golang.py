"""clickhouse-go's own tests, from its module: compiled once, and run against a native port.

They ask for a ClickHouse in Docker unless the environment names one. Most of them set `async_insert=0`, with which nothing is
gathered; that is taken out of the copy that is compiled here, so that inserts take the way on which most can go wrong. (With it,
when all is forwarded, all of them passed as well.) Their other settings stay.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

from clients.own_suites.outcome import Outcome
from clients.run_program import CLIENTS, PROGRAM_SECONDS, built_once, prepare
from harness.endpoint import Endpoint

MODULE = "github.com/ClickHouse/clickhouse-go/v2"
PACKAGES = {"native": "tests", "std": "tests/std", "issues": "tests/issues"}
WITHOUT_DOCKER = "Docker is not running"
# As ends of tests are printed.
ENDED = re.compile(r"^\s*--- (PASS|FAIL|SKIP): (.+) \([0-9.]+s\)$", re.MULTILINE)
NOT_GATHERED = "async_insert"

# What is not asked, by a regular expression of tests, with the reason.
LEFT_OUT = {
    "TestClientInfo|Test2067": "reads system.query_log, where gathered inserts are not under their own ids",
    "TestContextCancellationOfHeavy": "costs minutes of ClickHouse's time",
    "TestBatchAppendRows|Test798Concurrent|TestIssue648": "costs seconds, and does what others do, but often",
    "TestConnectionExpiresIdleConnection|TestMaxExecutionTime|TestBatchCloseConnectionHold": "only waits",
    "Test1421|TestHTTPProxy": "starts containers",
    "TestFormat|TestCustomHTTP|TestHttp|TestHTTP|TestStdHTTP|TestIssue1877_StructuredHTTP": "HTTP only",
    "TestIssue1300": "TLS only",
}
# Break connections off, or leave before they have read the Hello: of some of these an embedded ClickHouse 26.7 aborts, in every
# third run or so. They are asked through the gateway alone, and have to pass.
BREAK_OFF = (
    "Test(Std)?(Read|Query|Ping)Deadline",
    "TestJWTError",
    "TestBatch(ContextCancellation|.*Release.*)",
    "TestContextCancellation",
    "TestStdContextStdTimeout",
    "TestConnCustomDialStrategy|TestCustomDialContext",
    "TestRowsHasData",
    "TestAbort|TestBadConn|Test1229|Test1503|Test1831|TestIssue(548|1503)|TestEmptyQuery|Test1868|Test1271",
)
# Subtests, at whatever depth.
OVER_HTTP = "(?i)^http"


def programs() -> dict[str, Path]:
    """By package; compiled once for each version of the module."""
    with built_once("go-suites") as cache:
        version = version_in_use()
        folder = cache / f"go-suites-{version}-without-{NOT_GATHERED}"
        ready = folder / "ready"
        if not ready.exists():
            shutil.rmtree(folder, ignore_errors=True)
            source = copied_source(folder, version)
            for name, package in PACKAGES.items():
                prepare(["go", "test", "-vet=off", "-c", "-o", str(folder / f"{name}.test"), f"./{package}"], source)
            ready.touch()
    return {name: folder / f"{name}.test" for name in PACKAGES}


def version_in_use() -> str:
    """The one with which the other Go programs are tested."""
    return re.search(rf"{re.escape(MODULE)} (v\S+)", (CLIENTS / "go" / "go.mod").read_text()).group(1)


def copied_source(folder: Path, version: str) -> Path:
    command = ["go", "mod", "download", "-json", f"{MODULE}@{version}"]
    said = subprocess.run(command, cwd=CLIENTS / "go", capture_output=True, text=True, timeout=1800, check=True).stdout
    source = folder / "source"
    # What is in Go's cache is read-only.
    shutil.copytree(json.loads(said)["Dir"], source, copy_function=shutil.copyfile)
    for made in [source, *(path for path in source.rglob("*") if path.is_dir())]:
        made.chmod(0o755)
    for helpers in (source / "tests" / "utils.go", source / "tests" / "std" / "utils.go"):
        helpers.write_text(gathering(helpers.read_text()))
    return source


def gathering(helpers: str) -> str:
    """The suite's helpers without what keeps inserts from being gathered."""
    for pattern, instead in (
        (rf'^.*ettings\["{NOT_GATHERED}"\] = \w+$', ""),
        (rf'^.*\b(?:query|q)\.Set\("{NOT_GATHERED}", "\w+"\)$', ""),
        (r"&async_insert=0", ""),
    ):
        helpers = re.sub(pattern, instead, helpers, flags=re.MULTILINE)
    return helpers


def run(server: Endpoint, http_port: int, is_straight: bool) -> Outcome:
    passed, said = {}, []
    for name, program in programs().items():
        folder = program.parent / "source" / PACKAGES[name]
        ended = subprocess.run(
            [str(program), "-test.v", "-test.skip", skipped(is_straight), f"-test.timeout={PROGRAM_SECONDS}s"],
            cwd=folder,
            env={**os.environ, **environment(server, http_port)},
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PROGRAM_SECONDS,
            check=False,
        )
        output = f"{ended.stdout}\n{ended.stderr}"
        # It ends as if all were well then.
        assert WITHOUT_DOCKER not in output, output[-2000:]
        said.append(output)
        passed |= {f"{name}.{test}": result == "PASS" for result, test in ENDED.findall(output) if result != "SKIP"}
    return Outcome(passed, "\n".join(said))


def skipped(is_straight: bool) -> str:
    """As `go test -skip` reads it: alternatives, each a path of patterns."""
    names = [*LEFT_OUT, *(BREAK_OFF if is_straight else ())]
    return "|".join([f"^({'|'.join(names)})", *("/".join([*[".*"] * depth, OVER_HTTP]) for depth in (1, 2, 3))])


def environment(server: Endpoint, http_port: int) -> dict[str, str]:
    return {
        "CLICKHOUSE_USE_DOCKER": "false",
        "CLICKHOUSE_HOST": server.host,
        "CLICKHOUSE_PORT": str(server.port),
        "CLICKHOUSE_HTTP_PORT": str(http_port),
        "CLICKHOUSE_USERNAME": server.user,
        "CLICKHOUSE_PASSWORD": server.password,
    }
