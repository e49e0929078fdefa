"""On what a figure was measured: hardware, kernel, versions, and how busy the machine was before."""

import os
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from harness.endpoint import Endpoint

# Figures from a busy machine are not published. The part before leaves some load, which goes away by itself.
MAX_LOAD = 2.0
PATIENCE_SECONDS = 300.0


def describe(clickhouse: Endpoint, windrow: Path | None) -> str:
    """One paragraph for the page."""
    version, day = clickhouse.sql("SELECT version(), today() FORMAT TSV").split("\t")
    commit = output_of(["git", "rev-parse", "--short", "HEAD"])
    gateway = output_of([str(windrow), "--version"]) if windrow else "no gateway"
    models = [line.partition(":")[2].strip() for line in Path("/proc/cpuinfo").open() if line.startswith("model name")]
    gib = -(-int(Path("/proc/meminfo").read_text().split()[1]) // (1 << 20))
    return (
        f"Measured on {day}: {models[0] if models else 'unknown processor'}, {os.cpu_count()} CPUs, {gib} GiB, "
        f"Linux {os.uname().release}; {gateway}{commit and f' at {commit}'}, ClickHouse {version}; "
        f"load average before: {os.getloadavg()[0]:.2f}."
    )


def output_of(command: list[str]) -> str:
    """The first line that a program prints; empty when it has nothing to say."""
    printed = subprocess.run(command, capture_output=True, text=True)
    return printed.stdout.partition("\n")[0].strip() if printed.returncode == 0 else ""


def await_quiet(
    load: Callable[[], float] = lambda: os.getloadavg()[0], pause: Callable[[float], None] = time.sleep
) -> None:
    """Returns when the machine is quiet enough for figures that are published; ends the program if it stays busy."""
    waited = 0.0
    while (found := load()) > MAX_LOAD:
        if waited > PATIENCE_SECONDS:
            raise SystemExit(f"nothing is published from a machine with a load of {found}: at most {MAX_LOAD}")
        pause(5)
        waited += 5
