"""What a person sees of `windrow append`: on terminals of any width, in logs, and on wrong arguments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.command_line import append, command
from harness.duckdb import DuckDbGateway
from harness.ports import free_port
from harness.terminal import on_terminal

SLOW = ("--batch-bytes", "1024", "--connections", "1", "--faults", "seed=1,delay_ms=40")


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDbGateway]:
    started = DuckDbGateway(tmp_path_factory.mktemp("duck"))
    yield started
    assert started.stop() == 0, started.child.log()[-3000:]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "rows.csv"
    path.write_text("n\n" + "".join(f"{n}\n" for n in range(5000)))
    return path


def frames(written: str) -> list[str]:
    """What was drawn over again."""
    return [part.split("\x1b[K")[0] for part in written.split("\r") if "\x1b[K" in part]


@pytest.mark.parametrize("columns", [80, 40, 10])
def test_the_bar_stays_on_its_line(gateway: DuckDbGateway, file: Path, columns: int) -> None:
    gateway.http.sql("CREATE OR REPLACE TABLE seen (n BIGINT)")
    code, written = on_terminal(columns, command(gateway.http, "seen", *SLOW, file))
    assert code == 0, written
    drawn = frames(written)
    assert len(drawn) > 3, written
    assert all(len(frame) < columns for frame in drawn), drawn
    assert ("[#" in written) == (columns == 80)
    assert ("%" in written) == (columns >= 40)
    # The bar is taken away, and what stands at the end says what was stored.
    assert drawn[-1] == ""
    assert "5,000 rows, " in written.splitlines()[-1]


def test_a_terminal_shows_for_whom_it_waits(file: Path) -> None:
    port = free_port()
    code, written = on_terminal(40, command(f"http://127.0.0.1:{port}", "t", "--retry-for", "4", file))
    assert code == 3
    waiting = [frame for frame in frames(written) if frame.startswith("waiting for 127.0.0.1:")]
    assert waiting and all(len(frame) < 40 for frame in waiting)
    assert "connection refused; nothing was sent" in written.replace("\r\n", " ")


def test_a_log_gets_whole_lines(gateway: DuckDbGateway, file: Path) -> None:
    gateway.http.sql("CREATE OR REPLACE TABLE logged (n BIGINT)")
    ended = append(gateway.http, "logged", file)
    assert ended.code == 0
    lines = ended.errors.splitlines()
    assert len(lines) == 2 and "\x1b" not in ended.errors and "\r" not in ended.errors
    assert lines[0].startswith("append ") and lines[1].startswith("5,000 rows, ")
    assert ended.out == ""
    quiet = append(gateway.http, "logged", "--quiet", file)
    assert (quiet.code, quiet.out, quiet.errors) == (0, "", "")


def test_wrong_arguments(gateway: DuckDbGateway, file: Path, tmp_path: Path) -> None:
    gateway.http.sql("CREATE OR REPLACE TABLE t (n BIGINT)")
    for arguments, code, says in [
        (["t"], 2, "FILE"),
        (["t", "--format", "xml", file], 2, "parquet, csv and arrow"),
        (["t", "--compression", "gzip", file], 2, "none, lz4 and zstd"),
        (["t", "--delimiter", "ab", file], 2, "one character"),
        (["t", "--id", "7", file], 2, "'7' is no UUID"),
        (["t", tmp_path / "none.csv"], 1, "none.csv: No such file"),
        (["t", tmp_path], 1, "its name tells no format"),
        (["t", "--format", "csv", tmp_path], 1, "Is a directory"),
        (["t", file, tmp_path / "a.parquet"], 1, "is no csv file"),
        (["t", "-"], 1, "its name tells no format"),
    ]:
        ended = append(gateway.http, *map(str, arguments))
        assert ended.code == code, (arguments, ended)
        assert says in ended.errors, (arguments, ended)
