"""What is sent when: round trips, connections, what is taken up again."""

from __future__ import annotations

import asyncio
import io
import sys
import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import windrow
from append.data import dicts, read_back, rows, table, until
from harness.appends import AppendServer, Asked
from harness.scripted import PATIENCE_SECONDS
from windrow import exceptions
from windrow._shared import append_data

ROWS = 3000
SMALL = 4096


async def test_a_small_append_waits_for_one_answer(append_server: Any) -> None:
    """Its only batch is answered after the commit has come, and the commit after the batch: neither waits for the other."""
    both = threading.Barrier(2)

    def meet(asked: Asked) -> bytes | None:
        if asked.kind in ("batch", "commit"):
            both.wait(PATIENCE_SECONDS)
        return None

    server: AppendServer = append_server(meet)
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        result = await client.append("t", table(10))
    assert read_back(server.appends[result.id]) == rows(10)
    assert sorted(kind for kind in server.kinds() if kind != "query") == ["batch", "commit"]


async def test_as_many_at_once_as_connections(append_server: Any) -> None:
    """Eight batches meet at the server; nine never do."""
    under_way = most = 0
    lock = threading.Lock()
    all_there = threading.Barrier(8)
    met = threading.Event()

    def count(asked: Asked) -> bytes | None:
        nonlocal under_way, most
        if asked.kind != "batch":
            return None
        with lock:
            under_way += 1
            most = max(most, under_way)
        if not met.is_set():
            all_there.wait(PATIENCE_SECONDS)
            met.set()
        with lock:
            under_way -= 1
        return None

    server: AppendServer = append_server(count)
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        await client.append("t", table(ROWS), batch_bytes=SMALL)
    assert most == 8


async def test_few_connections_are_enough(append_server: Any) -> None:
    """Commits that wait for batches leave connections for them, however many appends there are."""
    server: AppendServer = append_server()
    for limit in (1, 2, 3):
        where = {"host": server.host, "port": server.port, "connector_limit": limit}
        async with await windrow.get_async_client(**where) as client:
            made = [client.append("t", table(300, start), batch_bytes=1024) for start in range(8)]
            results = await asyncio.gather(*made)
        for start, result in enumerate(results):
            assert read_back(server.appends[result.id]) == rows(300, start)


async def test_a_window_bounds_what_is_on_its_way(append_server: Any) -> None:
    server: AppendServer = append_server()
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        await client.append("t", table(ROWS), batch_bytes=SMALL, window_bytes=SMALL)
    sent = [asked.number for asked in server.asked if asked.kind == "batch"]
    assert sent == sorted(sent), "one at a time"


async def test_what_the_server_has_is_not_sent_again(append_server: Any) -> None:
    def of_the_first(asked: Asked) -> bool:
        return b"X-Client: first" in asked.headers

    def break_off(asked: Asked) -> bytes | None:
        if of_the_first(asked) and asked.kind == "batch" and asked.number == 9:
            asked.exchange.reset()
            raise ConnectionError
        return None

    server: AppendServer = append_server(break_off)
    append_id = str(uuid.uuid4())
    where = {"host": server.host, "port": server.port}
    async with await windrow.get_async_client(**where, headers={"X-Client": "first"}) as client:
        task = asyncio.create_task(client.append("t", table(ROWS), batch_bytes=SMALL, id=append_id, connections=1))
        await until(lambda: [asked.number for asked in server.asked].count(9) > 1, "the connection was cut twice")
        # A client that vanishes aborts nothing.
        client._closed = True
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    async with await windrow.get_async_client(**where) as client:
        result = await client.append("t", table(ROWS), batch_bytes=SMALL, id=append_id)
        assert read_back(server.appends[append_id]) == rows(ROWS)
        sent = [asked.number for asked in server.asked if asked.kind == "batch" and not of_the_first(asked)]
        assert sent and min(sent) == 9
        again = await client.append("t", table(ROWS), batch_bytes=SMALL, id=append_id)
    assert (again.id, again.batches, again.bytes) == (result.id, result.batches, result.bytes)
    assert sum(asked.kind == "commit" for asked in server.asked) == 1


async def test_what_is_said_to_the_server(append_server: Any) -> None:
    server: AppendServer = append_server()
    where = {"host": server.host, "port": server.port, "database": "d", "username": "u", "password": "p"}
    async with await windrow.get_async_client(**where) as client:
        await client.append("t", dicts(10), columns=["n", "text"], ordered=False)
    opening = next(asked for asked in server.asked if asked.kind == "open")
    assert opening.parameters["table"] == "`d`.`t`"
    assert opening.parameters["columns"] == "`n`,`text`"
    assert opening.parameters["ordered"] == "0"
    assert b"Authorization: Basic" in opening.headers
    batch = next(asked for asked in server.asked if asked.kind == "batch")
    assert batch.parameters == {"format": "Native"}


async def test_compression_is_the_client_s(append_server: Any) -> None:
    server: AppendServer = append_server()
    async with await windrow.get_async_client(host=server.host, port=server.port, compress="zstd") as client:
        await client.append("t", table(10))
    batch = next(asked for asked in server.asked if asked.kind == "batch")
    assert b"Content-Encoding: zstd" in batch.headers
    assert batch.body.startswith(b"\x28\xb5\x2f\xfd")


async def test_progress_is_told(append_server: Any) -> None:
    told: list[tuple[int, int]] = []
    server: AppendServer = append_server()
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        result = await client.append(
            "t", table(ROWS), batch_bytes=SMALL, progress=lambda rows, size: told.append((rows, size))
        )
    assert told == sorted(told)
    assert told[-1] == (ROWS, result.bytes)


def answer_after_commit(server: Callable[[], AppendServer]) -> Callable[[Asked], bytes | None]:
    """Every third batch is kept, and answered when the append is committed: the commit's answer may come first."""

    def on_request(asked: Asked) -> bytes | None:
        if asked.kind != "batch" or asked.number % 3:
            return None
        kept = server()._answer(asked)
        append = server().appends[asked.append_id]
        with server().changed:
            server().changed.wait_for(lambda: append.state == "committed", PATIENCE_SECONDS)
        if asked.number % 2:
            asked.exchange.until_closed()
            raise ConnectionError
        return kept

    return on_request


async def test_progress_ends_with_all_rows_whichever_answer_comes_first(append_server: Any) -> None:
    told: list[tuple[int, int]] = []
    server: AppendServer = append_server(answer_after_commit(lambda: server))
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        result = await client.append(
            "t", table(800), batch_bytes=SMALL, progress=lambda rows, size: told.append((rows, size))
        )
    assert result.batches > 3
    assert told == sorted(set(told))
    assert told[-1] == (800, result.bytes)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


async def test_a_line_on_a_terminal_only(append_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    server: AppendServer = append_server()
    for stream, shows in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stderr", stream)
        async with await windrow.get_async_client(host=server.host, port=server.port) as client:
            await client.append("t", table(ROWS), batch_bytes=SMALL, progress=True)
        assert ("stored in" in stream.getvalue()) == shows


class TooMuch(Exception):  # noqa: N818
    """What a callback raises."""


async def test_a_callback_that_raises_ends_the_append(append_server: Any) -> None:
    def refuse(rows: int, size: int) -> None:
        raise TooMuch

    server: AppendServer = append_server()
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        with pytest.raises(TooMuch):
            await client.append("t", table(ROWS), batch_bytes=SMALL, progress=refuse, connections=1)
    assert [append.state for append in server.appends.values()] == ["aborted"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"connections": 0}, "connections=0"),
        ({"connections": "8"}, "connections='8'"),
        ({"batch_bytes": 10}, "batch_bytes=10"),
        ({"window_bytes": -1}, "window_bytes=-1"),
        ({"columns": "n"}, "columns is a list"),
        ({"columns": []}, "columns is a list"),
        ({"id": "7"}, "id='7' is no UUID"),
    ],
)
async def test_arguments_that_cannot_be(append_server: Any, arguments: dict[str, Any], says: str) -> None:
    server: AppendServer = append_server()
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        with pytest.raises(exceptions.ProgrammingError, match=says):
            await client.append("t", table(10), **arguments)
    assert not server.appends


async def test_columns_that_rows_do_not_have(append_server: Any) -> None:
    server: AppendServer = append_server()
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        with pytest.raises(exceptions.ProgrammingError, match="no column 'other'"):
            await client.append("t", [{"n": 1, "other": 2}])


async def test_paths_of_nothing(append_server: Any, tmp_path: Path) -> None:
    server: AppendServer = append_server()
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        with pytest.raises(exceptions.DataError, match=r"none\.parquet"):
            await client.append("t", tmp_path / "none.parquet")


async def test_rows_are_cut_the_same_whenever_they_come(append_server: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or an append that is gone on with would hold some rows twice and others not at all."""

    def source() -> Iterator[Any]:
        given = rows(ROWS)
        yield from given[:700]
        yield given[700:2000]
        yield from given[2000:2500]
        yield given[2500:]

    server: AppendServer = append_server()
    bodies = []
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        for moment_s in (0.0, 20.0):
            monkeypatch.setattr(append_data, "MOMENT_S", moment_s)
            result = await client.append("t", source(), batch_bytes=SMALL)
            bodies.append(server.appends[result.id].committed)
    assert read_back(server.appends[result.id]) == rows(ROWS)
    assert bodies[0] == bodies[1]


SOURCES: dict[str, tuple[Callable[[Path], Any], str]] = {
    "table": (lambda _: table(10), "arrow length=10 batch_bytes=4096"),
    "generator of tables": (lambda _: iter([table(10)]), "arrow batch_bytes=4096"),
    "rows": (lambda _: rows(10), "rows length=10 batch_bytes=4096"),
    "generator of rows": (lambda _: iter(rows(10)), "rows batch_bytes=4096"),
    "file": (lambda folder: csv_file(folder), "csv files=1 bytes=31 digest="),
}


def csv_file(folder: Path) -> Path:
    path = folder / "rows.csv"
    path.write_text("n,text\n1,row 1\n2,row 2\n3,row 3\n")
    return path


@pytest.mark.parametrize("name", SOURCES)
async def test_the_server_is_told_what_the_source_is(append_server: Any, tmp_path: Path, name: str) -> None:
    make, says = SOURCES[name]
    server: AppendServer = append_server()
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        await client.append("t", make(tmp_path), batch_bytes=SMALL)
    told = [asked.parameters.get("source", "") for asked in server.asked if "table" in asked.parameters]
    assert told and all(source.startswith(says) for source in told), told
