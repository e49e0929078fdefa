"""The benchmarks of the writer in Go: that they are there under their names, and what is read of what they print."""

from __future__ import annotations

import pytest

from bench.parts.writer import GO_BENCHMARKS, WANTED, GoBenchmark, go, go_figures, redis_server

PRINTED = """goos: linux
pkg: windrow.dev/go
BenchmarkMemory/Struct         \t 6951952\t       213.3 ns/op\t         0.001637 allocs/row\t   4.688e+06 rows/s
PASS
ok  \twindrow.dev/go\t2.588s
"""


def test_figures_are_read_by_their_units():
    assert go_figures(PRINTED) == {"ns/op": 213.3, "allocs/row": 0.001637, "rows/s": 4_688_000}
    line = PRINTED.splitlines()[2]
    for wrong in ("", PRINTED.replace(line, ""), PRINTED.replace(line, f"{line}\n{line}")):
        with pytest.raises(SystemExit):
            go_figures(wrong)


def test_each_goal_about_go_is_measured():
    measured = {(benchmark.buffer, benchmark.call) for benchmark in GO_BENCHMARKS}
    assert measured == {(buffer, call) for language, buffer, call, _ in WANTED if language == "Go"}


@pytest.mark.parametrize("benchmark", GO_BENCHMARKS, ids=lambda benchmark: benchmark.name)
def test_it_runs_and_every_row_is_stored(benchmark: GoBenchmark):
    """A benchmark of Go's fails by itself where a row was not stored."""
    with redis_server() as port:
        figures = go(benchmark, port, "-benchtime", "1000x")
    assert figures["rows/s"] > 0 and figures["allocs/row"] >= 0
