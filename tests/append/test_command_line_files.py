"""Files as they come: `windrow append` of nested types, many row groups, no rows, odd CSV and pipes, on both backends."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet
import pytest
from harness.command_line import append, command
from harness.duckdb import DuckDbGateway
from harness.endpoint import Endpoint

SCHEMA = pa.schema(
    [
        ("n", pa.int64()),
        ("tags", pa.list_(pa.string())),
        ("place", pa.struct([("x", pa.float64()), ("label", pa.string())])),
        ("counts", pa.map_(pa.string(), pa.int64())),
    ]
)
DUCKDB = "n BIGINT, tags VARCHAR[], place STRUCT(x DOUBLE, label VARCHAR), counts MAP(VARCHAR, BIGINT)"
CLICKHOUSE = "n Int64, tags Array(String), place Tuple(x Float64, label String), counts Map(String, Int64)"


@pytest.fixture(scope="module")
def duckdb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDbGateway]:
    started = DuckDbGateway(tmp_path_factory.mktemp("duck"))
    yield started
    assert started.stop() == 0, started.child.log()[-3000:]


@pytest.fixture(params=["duckdb", "clickhouse"])
def nested(request: pytest.FixtureRequest) -> Endpoint:
    """Where there is an empty table of that name, with columns of nested types."""
    if request.param == "duckdb":
        to: Endpoint = request.getfixturevalue("duckdb").http
        to.sql(f"CREATE OR REPLACE TABLE nested ({DUCKDB})")
        return to
    request.getfixturevalue("gateway")
    to = request.getfixturevalue("tested")
    to.sql(f"CREATE TABLE nested ({CLICKHOUSE}) ENGINE = MergeTree ORDER BY n")
    return to


def table(to: Endpoint) -> str:
    return f"{to.database}.nested" if to.database != "default" else "nested"


def rows(first: int, end: int) -> list[dict[str, Any]]:
    return [
        {
            "n": n,
            "tags": [f"tag {n}"] * (n % 4),
            "place": {"x": n / 4, "label": f"größe {n % 7}"},
            "counts": [(f"key {key}", n * key) for key in range(n % 3)],
        }
        for n in range(first, end)
    ]


def stored(to: Endpoint) -> list[dict[str, Any]]:
    # Binary and string types of Arrow are ClickHouse's to choose.
    settings = {} if to.database == "default" else {"output_format_arrow_string_as_string": 1}
    reply = to.request(None, b"SELECT n, tags, place, counts FROM nested ORDER BY n FORMAT ArrowStream", settings)
    assert reply.status == 200, reply.text
    return pa.ipc.open_stream(reply.body).read_all().to_pylist()


def test_nested_types_in_many_row_groups(nested: Endpoint, tmp_path: Path) -> None:
    """Of several files, one without rows, and one with its columns in another order."""
    pa.parquet.write_table(pa.Table.from_pylist(rows(0, 700), SCHEMA), tmp_path / "a.parquet", row_group_size=50)
    pa.parquet.write_table(SCHEMA.empty_table(), tmp_path / "b.parquet")
    turned = pa.Table.from_pylist(rows(700, 1000), SCHEMA).select(["counts", "n", "place", "tags"])
    pa.parquet.write_table(turned, tmp_path / "c.parquet", row_group_size=100)
    paths = sorted(tmp_path.iterdir())
    ended = append(nested, table(nested), "--json", "--batch-bytes", "4096", *paths)
    assert ended.code == 0, ended.errors
    assert ended.answer["rows"] == 1000
    assert stored(nested) == rows(0, 1000)


def test_no_rows(nested: Endpoint, tmp_path: Path) -> None:
    pa.parquet.write_table(SCHEMA.empty_table(), tmp_path / "none.parquet")
    (tmp_path / "none.csv").write_text("n\n")
    for name in ("none.parquet", "none.csv"):
        ended = append(nested, table(nested), "--json", tmp_path / name)
        assert ended.code == 0, ended.errors
        assert (ended.answer["rows"], ended.answer["batches"]) == (0, 0)
    assert stored(nested) == []


def texts(duckdb: DuckDbGateway) -> list[tuple[Any, ...]]:
    reply = duckdb.http.request(None, b"SELECT n, text, half FROM odd ORDER BY rowid FORMAT ArrowStream")
    return [tuple(row.values()) for row in pa.ipc.open_stream(reply.body).read_all().to_pylist()]


@pytest.fixture
def odd(duckdb: DuckDbGateway) -> DuckDbGateway:
    """With an empty table of that name."""
    duckdb.http.sql("CREATE OR REPLACE TABLE odd (n BIGINT NOT NULL, text VARCHAR NOT NULL DEFAULT 'none', half DOUBLE)")
    return duckdb


@pytest.mark.parametrize(
    ("text", "arguments", "found"),
    [
        ('n,text,half\n1,"a ""b"", c\nd",\r\n2,,1.5', (), [(1, 'a "b", c\nd', None), (2, "", 1.5)]),
        ("\ufeffn,text\n7,ä\n", (), [(7, "ä", None)]),
        ("half;n\n0.5;1\n", ("--delimiter", ";"), [(1, "none", 0.5)]),
        ('text\tn\n"a\tb"\t1\n', ("--delimiter", "tab"), [(1, "a\tb", None)]),
        ('"n"\n-9223372036854775808\n', (), [(-(1 << 63), "none", None)]),
    ],
    ids=["quotes", "mark", "semicolons", "tabs", "least"],
)
def test_odd_csv(odd: DuckDbGateway, tmp_path: Path, text: str, arguments: tuple[str, ...], found: list) -> None:
    path = tmp_path / "odd.csv"
    path.write_text(text, newline="")
    ended = append(odd.http, "odd", *arguments, path)
    assert ended.code == 0, ended.errors
    assert texts(odd) == found


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("n,text\n1,a\n2\n", "line 3: "),
        ("n,text\n1,a\n2,b,c\n", "line 3: "),
        ("n,text\n1,a\n,b\n", "line 3: column 'n' can't be NULL, and its field is empty"),
        ("n,text\n9223372036854775808,a\n", "line 2: "),
        ("n;text\n1;a\n", "line 1: the table has no column 'n;text'"),
        ("", "it is empty"),
    ],
    ids=["short", "long", "empty", "too large", "delimiter", "nothing"],
)
def test_wrong_csv_is_named_by_file_and_line(odd: DuckDbGateway, tmp_path: Path, text: str, says: str) -> None:
    (tmp_path / "good.csv").write_text("n,text\n" + "5,good\n" * 1000)
    (tmp_path / "wrong.csv").write_text(text)
    ended = append(odd.http, "odd", "--batch-bytes", "1024", tmp_path / "good.csv", tmp_path / "wrong.csv")
    assert ended.code == 1, ended.errors
    assert "wrong.csv" in ended.errors and says in ended.errors, ended.errors
    assert texts(odd) == []


def test_a_pipe_with_a_name(odd: DuckDbGateway, tmp_path: Path) -> None:
    """As the shell makes them of `<(zcat ...)`. They can be read once, and from their begin."""
    path = tmp_path / "rows.csv"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_text("n,text\n1,a\n2,b\n"))
    writer.start()
    ended = append(odd.http, "odd", path)
    writer.join(60)
    assert ended.code == 0, ended.errors
    assert texts(odd) == [(1, "a", None), (2, "b", None)]


def test_a_pipe_that_another_program_writes(odd: DuckDbGateway) -> None:
    rows_of = subprocess.Popen(["seq", "1", "50000"], stdout=subprocess.PIPE)
    named = subprocess.Popen(["sed", "1i n"], stdin=rows_of.stdout, stdout=subprocess.PIPE)
    run = command(odd.http, "odd", "--format", "csv", "--batch-bytes", "16384", "-")
    ended = subprocess.run(run, stdin=named.stdout, capture_output=True, timeout=120, check=False)
    assert (ended.returncode, named.wait(), rows_of.wait()) == (0, 0, 0), ended.stderr
    assert [row[0] for row in texts(odd)] == list(range(1, 50001))
