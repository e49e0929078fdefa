"""What the Python benchmarks share: CPU time, percentiles, tables."""

from __future__ import annotations

import math
import os
import resource
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Server:
    """The ClickHouse that all clients of a benchmark talk to."""

    host: str
    port: int
    user: str
    password: str

    @staticmethod
    def from_environment() -> Server:
        host, _, port = os.environ["BENCH_CLICKHOUSE"].rpartition(":")
        return Server(host, int(port), os.environ["BENCH_USER"], os.environ["BENCH_PASSWORD"])

    def arguments(self) -> dict[str, object]:
        """For get_client and get_async_client, of either package."""
        return {"host": self.host, "port": self.port, "username": self.user, "password": self.password}


def cpu_seconds() -> float:
    """User and system time of this process, all of its threads."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def resident_bytes() -> int:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value that at least this share of the values doesn't exceed."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def deviation(values: Sequence[float]) -> float:
    return statistics.stdev(values) if len(values) > 1 else 0.0


def geometric_mean(values: Iterable[float]) -> float:
    return math.exp(statistics.fmean(math.log(value) for value in values))


def figure(value: float) -> str:
    """Three digits that count, thousands apart."""
    if value == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(value))))
    return f"{round(value, digits):,.{digits}f}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]], words: int = 1) -> str:
    """A Markdown table; the first `words` columns are text, the others figures."""
    lines = [list(head), *(list(row) for row in rows)]
    widths = [max(len(line[index]) for line in lines) for index in range(len(head))]

    def line(cells: Sequence[str]) -> str:
        padded = [c.ljust(w) if i < words else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True))]
        return "| " + " | ".join(padded) + " |"

    rule = [("-" * (w + 2)) if i < words else ("-" * (w + 1) + ":") for i, w in enumerate(widths)]
    return "\n".join([line(lines[0]), "|" + "|".join(rule) + "|", *(line(cells) for cells in lines[1:])]) + "\n"


def verdict(what: str, wanted: str, found: str, met: bool) -> tuple[str, str, str, str]:
    return what, wanted, found, "met" if met else "**missed**"


def goals(rows: Iterable[tuple[str, str, str, str]]) -> str:
    return table(["goal", "wanted", "measured", ""], rows, words=4)
