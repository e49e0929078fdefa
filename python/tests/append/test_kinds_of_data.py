"""Everything that can be appended arrives row for row, in order, from both clients."""

from __future__ import annotations

import importlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

import windrow
from append.data import dicts, read_back, rows, schema, table
from harness.appends import AppendServer
from windrow import exceptions

ROWS = 5000
PART = 700
STARTS = range(0, ROWS, PART)


def size(start: int) -> int:
    return min(PART, ROWS - start)


def pandas_frame(count: int, first: int = 0) -> Any:
    return table(count, first).to_pandas()


def polars_frame(count: int, first: int = 0) -> Any:
    polars = importlib.import_module("polars")
    return polars.from_arrow(table(count, first))


def relation() -> Any:
    duckdb = importlib.import_module("duckdb")
    return duckdb.connect().sql(f"SELECT range AS n, 'row ' || range AS text FROM range({ROWS})")


def reader() -> Any:
    return pyarrow.RecordBatchReader.from_batches(schema(), table(ROWS).to_batches(PART))


class OnlyTheInterface:
    """What any other library may hand out."""

    def __init__(self, given: Any) -> None:
        self.given = given

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self.given.__arrow_c_stream__(requested_schema)


KINDS: dict[str, Callable[[], Any]] = {
    "table": lambda: table(ROWS),
    "table in chunks": lambda: pyarrow.concat_tables([table(size(start), start) for start in STARTS]),
    "record batch": lambda: table(ROWS).combine_chunks().to_batches()[0],
    "slice": lambda: table(ROWS + 300).slice(0, ROWS),
    "reader": reader,
    "interface": lambda: OnlyTheInterface(table(ROWS)),
    "pandas": lambda: pandas_frame(ROWS),
    "pandas with an index": lambda: pandas_frame(ROWS).set_index("n", drop=False),
    "polars": lambda: polars_frame(ROWS),
    "relation": relation,
    "dicts": lambda: dicts(ROWS),
    "tuples": lambda: rows(ROWS),
    "lists": lambda: [list(row) for row in rows(ROWS)],
    "list of tables": lambda: [table(size(start), start) for start in STARTS],
    "generator of batches": lambda: (batch for batch in table(ROWS).to_batches(PART)),
    "generator of frames": lambda: (polars_frame(size(start), start) for start in STARTS),
    "generator of lists of dicts": lambda: (dicts(size(start), start) for start in STARTS),
    "generator of dicts": lambda: iter(dicts(ROWS)),
    "generator of tuples": lambda: iter(rows(ROWS)),
    "tables, some of them empty": lambda: [table(0), table(ROWS), table(0)],
}


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> Callable[[], Any]:
    return KINDS[request.param]


@pytest.mark.parametrize("batch_bytes", [4096, 1 << 20])
async def test_every_kind_arrives(append_server: Any, kind: Callable[[], Any], batch_bytes: int) -> None:
    server: AppendServer = append_server()
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        result = await client.append("t", kind(), batch_bytes=batch_bytes)
    assert read_back(server.appends[result.id]) == rows(ROWS)
    assert result.batches == len(server.appends[result.id].committed)
    assert result.batches > 10 if batch_bytes == 4096 else result.batches == 1


def test_every_kind_arrives_from_the_synchronous_client(append_server: Any, kind: Callable[[], Any]) -> None:
    server: AppendServer = append_server()
    with windrow.get_client(host=server.host, port=server.port) as client:
        result = client.append("t", kind(), batch_bytes=4096)
    assert read_back(server.appends[result.id]) == rows(ROWS)


async def parts() -> AsyncIterator[Any]:
    for start in STARTS:
        yield table(size(start), start)


async def row_by_row() -> AsyncIterator[Any]:
    for row in rows(ROWS):
        yield row


@pytest.mark.parametrize("make", [parts, row_by_row])
async def test_asynchronous_iterators(append_server: Any, make: Callable[[], Any]) -> None:
    server: AppendServer = append_server()
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        result = await client.append("t", make(), batch_bytes=4096)
    assert read_back(server.appends[result.id]) == rows(ROWS)


def written(folder: Path, ending: str) -> list[Path]:
    """Two files with all rows."""
    paths = [folder / f"1.{ending}", folder / f"2.{ending}"]
    halves = [table(ROWS // 2), table(ROWS - ROWS // 2, ROWS // 2)]
    for path, half in zip(paths, halves, strict=True):
        if ending == "parquet":
            parquet.write_table(half, path, row_group_size=PART)
        else:
            lines = [",".join(map(str, row)) for row in half.to_pydict() and zip(*half.to_pydict().values(), strict=True)]
            path.write_text("\n".join(["n,text", *lines, ""]))
    return paths


@pytest.mark.parametrize("ending", ["parquet", "csv"])
async def test_files(append_server: Any, tmp_path: Path, ending: str) -> None:
    server: AppendServer = append_server()
    paths = written(tmp_path, ending)
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        both = await client.append("t", paths, batch_bytes=4096)
        one = await client.append("t", str(paths[0]), batch_bytes=4096)
    assert read_back(server.appends[both.id]) == rows(ROWS)
    assert read_back(server.appends[one.id]) == rows(ROWS // 2)


async def each(paths: list[Path]) -> AsyncIterator[Path]:
    for path in paths:
        yield path


PATHS: dict[str, Callable[[Path, list[Path]], Any]] = {
    "pattern": lambda folder, _: str(folder / "*.csv"),
    "pattern that is a path": lambda folder, _: folder / "[12].csv",
    "patterns": lambda folder, _: [folder / "1*", folder / "2*"],
    "generator": lambda _, paths: iter(paths),
    "asynchronous generator": lambda _, paths: each(paths),
}


@pytest.mark.parametrize("name", PATHS)
async def test_files_by_patterns_and_iterators(append_server: Any, tmp_path: Path, name: str) -> None:
    server: AppendServer = append_server()
    data = PATHS[name](tmp_path, written(tmp_path, "csv"))
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        result = await client.append("t", data, batch_bytes=4096)
    assert read_back(server.appends[result.id]) == rows(ROWS)


async def test_a_pattern_that_no_file_has(append_server: Any, tmp_path: Path) -> None:
    server: AppendServer = append_server()
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        with pytest.raises(exceptions.DataError, match=r"No file matches .*none\*\.parquet"):
            await client.append("t", tmp_path / "none*.parquet")
    assert not server.appends


def test_a_file_whose_name_looks_like_a_pattern(append_server: Any, tmp_path: Path) -> None:
    server: AppendServer = append_server()
    path = written(tmp_path, "csv")[0].rename(tmp_path / "[a].csv")
    with windrow.get_client(host=server.host, port=server.port) as client:
        result = client.append("t", path)
    assert read_back(server.appends[result.id]) == rows(ROWS // 2)


@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_files_from_the_synchronous_client(append_server: Any, tmp_path: Path, ending: str) -> None:
    server: AppendServer = append_server()
    with windrow.get_client(host=server.host, port=server.port) as client:
        result = client.append("t", written(tmp_path, ending), batch_bytes=4096)
    assert read_back(server.appends[result.id]) == rows(ROWS)


@pytest.mark.parametrize("data", [[], table(0), iter([])], ids=["list", "table", "iterator"])
async def test_nothing(append_server: Any, data: Any) -> None:
    server: AppendServer = append_server()
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        result = await client.append("t", data)
    assert (result.batches, result.rows) == (0, 0)
    assert server.appends[result.id].state == "committed"


class Stranger:
    """Nothing that can be appended."""


@pytest.mark.parametrize(
    ("data", "says"),
    [
        (Stranger(), "A Stranger can't be appended"),
        ([Stranger()], "A Stranger can't be appended"),
        ({"n": [1]}, "A dict can't be appended; pyarrow.table"),
        (b"rows", "A bytes can't be appended"),
        (7, "A int can't be appended"),
        ([table(1), Stranger()], "A Stranger can't be appended"),
        ([dicts(1), Stranger()], "A Stranger can't be appended"),
    ],
)
async def test_what_cannot_be_appended(append_server: Any, data: Any, says: str) -> None:
    server: AppendServer = append_server()
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        with pytest.raises(exceptions.ProgrammingError, match=says):
            await client.append("t", data)
    assert not [append for append in server.appends.values() if append.state != "aborted"]


def test_an_asynchronous_iterator_needs_a_loop(append_server: Any) -> None:
    server: AppendServer = append_server()
    with windrow.get_client(host=server.host, port=server.port) as client:
        with pytest.raises(exceptions.ProgrammingError, match="need the asynchronous client"):
            client.append("t", parts())


def other_names() -> Iterator[Any]:
    yield table(10)
    yield table(10).rename_columns(["n", "other"])


def other_types() -> Iterator[Any]:
    yield table(10)
    yield table(10).set_column(0, "n", pyarrow.array(range(10), pyarrow.float64()))


@pytest.mark.parametrize(("make", "says"), [(other_names, "'text'.*'other'"), (other_types, "Int64.*Float64")])
async def test_what_differs_is_not_appended_together(append_server: Any, make: Callable[[], Any], says: str) -> None:
    server: AppendServer = append_server()
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        with pytest.raises(exceptions.DataError, match=says):
            await client.append("t", make())
    assert [append.state for append in server.appends.values()] in ([], ["aborted"])
