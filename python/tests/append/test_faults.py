"""What may go wrong on the way, and what is left of an append then."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

import windrow
from append.data import dicts, read_back, rows, table, until
from harness.appends import AppendServer, Asked, error
from harness.ports import port_of_nobody
from harness.scripted import answer
from windrow import exceptions
from windrow._shared import append_state

ROWS = 3000
SMALL = 4096  # bytes of a batch: the rows above become some twenty


class Loud(Exception):  # noqa: N818 - it stands for anybody's
    """What a source of data raises."""


def states(server: AppendServer) -> list[str]:
    return [append.state for append in server.appends.values()]


class First:
    """Does something to the first requests of each batch, and lets the others through."""

    def __init__(self, kind: str, times: int, do: Callable[[Asked], bytes | None]) -> None:
        self.kind, self.times, self.do = kind, times, do
        self.seen: dict[int, int] = {}

    def __call__(self, asked: Asked) -> bytes | None:
        if asked.kind != self.kind:
            return None
        self.seen[asked.number] = self.seen.get(asked.number, 0) + 1
        return self.do(asked) if self.seen[asked.number] <= self.times else None


def lose(asked: Asked) -> bytes | None:
    """The request is there, and its answer is lost."""
    asked.exchange.reset()
    raise ConnectionError


def busy(asked: Asked) -> bytes | None:
    return error(503, 241, "no room")


def a_proxy_is_late(asked: Asked) -> bytes | None:
    return answer(b"<html>gateway timeout</html>", "504 Gateway Timeout")


@pytest.mark.parametrize("kind", ["batch", "commit", "open"])
@pytest.mark.parametrize("do", [lose, busy, a_proxy_is_late])
async def test_what_passes_is_tried_again(append_server: Any, kind: str, do: Callable[[Asked], bytes | None]) -> None:
    server: AppendServer = append_server(First(kind, 2, do))
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        result = await client.append("t", dicts(ROWS), batch_bytes=SMALL)
    assert read_back(server.appends[result.id]) == rows(ROWS)


def test_what_passes_is_tried_again_by_the_synchronous_client(append_server: Any) -> None:
    server: AppendServer = append_server(First("batch", 2, lose))
    with windrow.get_client(host=server.host, port=server.port) as client:
        result = client.append("t", table(ROWS), batch_bytes=SMALL)
    assert read_back(server.appends[result.id]) == rows(ROWS)


def refuse_batch_7(asked: Asked) -> bytes | None:
    if asked.kind == "batch" and asked.number == 7:
        return error(400, 469, "Constraint `positive` is violated", batch="7", row="3")
    return None


def check_refused(server: AppendServer, refused: Any) -> None:
    assert (refused.code, refused.batch, refused.row) == (469, 7, 3)
    assert refused.append_id in server.appends
    assert not refused.outcome_unknown
    assert "Constraint `positive` is violated" in str(refused)
    assert isinstance(refused, exceptions.DatabaseError)
    assert states(server) == ["aborted"]


async def test_a_refused_batch_ends_the_append(append_server: Any) -> None:
    server: AppendServer = append_server(refuse_batch_7)
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        with pytest.raises(exceptions.AppendError) as caught:
            await client.append("t", table(ROWS), batch_bytes=SMALL)
    check_refused(server, caught.value)


def test_a_refused_batch_ends_the_append_of_the_synchronous_client(append_server: Any) -> None:
    """Also while its commit waits at the server for batches that will never come."""
    server: AppendServer = append_server(refuse_batch_7)
    with windrow.get_client(host=server.host, port=server.port) as client:
        with pytest.raises(exceptions.AppendError) as caught:
            client.append("t", table(ROWS), batch_bytes=SMALL, connections=19)
    check_refused(server, caught.value)


async def test_a_refused_commit_ends_the_append(append_server: Any) -> None:
    def refuse(asked: Asked) -> bytes | None:
        return error(400, 469, "violated", batch="2", row="1") if asked.kind == "commit" else None

    server: AppendServer = append_server(refuse)
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        with pytest.raises(exceptions.AppendError, match="violated") as caught:
            await client.append("t", table(ROWS), batch_bytes=SMALL)
    assert (caught.value.batch, caught.value.row) == (2, 1)
    assert states(server) == ["aborted"]


async def test_nobody_is_there() -> None:
    """A server that was there when the client was made, and then went."""
    server = AppendServer()
    client = await windrow.get_async_client(host=server.host, port=server.port)
    await client.close_connections()
    server.close()
    says = f"Cannot connect to http://{server.host}:{server.port}, so that nothing was sent: Network Error"
    with port_of_nobody(server.port), pytest.raises(exceptions.AppendError, match=says) as caught:
        await client.append("t", table(10))
    assert isinstance(caught.value.__cause__, exceptions.OperationalError)
    assert not caught.value.outcome_unknown
    await client.close()


async def test_a_clickhouse_without_a_gateway(where: dict[str, Any]) -> None:
    async with await windrow.get_async_client(**where) as client:
        with pytest.raises(exceptions.AppendError, match="needs a Windrow gateway"):
            await client.append("t", table(10))


def breaking(after: int) -> Iterator[Any]:
    for start in range(0, after, 100):
        yield table(100, start)
    raise Loud("no more")


async def breaking_async(after: int) -> AsyncIterator[Any]:
    for item in breaking(after):
        yield item


def breaking_reader(after: int) -> Any:
    import pyarrow

    batches = (batch for part in breaking(after) for batch in part.to_batches())
    return pyarrow.RecordBatchReader.from_batches(table(0).schema, batches)


@pytest.mark.parametrize("make", [breaking, breaking_async, breaking_reader])
@pytest.mark.parametrize("after", [0, 100, ROWS])
async def test_what_the_source_raises_is_raised(append_server: Any, make: Callable[[int], Any], after: int) -> None:
    server: AppendServer = append_server()
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        with pytest.raises(Loud):
            await client.append("t", make(after), batch_bytes=SMALL)
    assert states(server) in ([], ["aborted"])


@pytest.mark.parametrize("make", [breaking, breaking_reader])
def test_what_the_source_raises_is_raised_by_the_synchronous_client(append_server: Any, make: Any) -> None:
    server: AppendServer = append_server()
    with windrow.get_client(host=server.host, port=server.port) as client:
        with pytest.raises(Loud):
            client.append("t", make(ROWS), batch_bytes=SMALL)
    assert states(server) == ["aborted"]


async def test_a_value_that_does_not_fit_names_its_place(append_server: Any) -> None:
    server: AppendServer = append_server()
    data = dicts(ROWS)
    data[ROWS // 2]["n"] = "no number"
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        with pytest.raises(exceptions.DataError) as caught:
            await client.append("t", data, batch_bytes=SMALL)
    assert (caught.value.column, caught.value.row) == ("n", ROWS // 2)
    assert states(server) == ["aborted"]


async def endless() -> AsyncIterator[Any]:
    start = 0
    while True:
        yield table(1000, start)
        start += 1000


async def test_a_cancelled_append_leaves_nothing(append_server: Any) -> None:
    server: AppendServer = append_server()
    before = asyncio.all_tasks()
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        task = asyncio.create_task(client.append("t", endless(), batch_bytes=SMALL))
        await until(lambda: server.kinds().count("batch") > 30, "batches have come")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await until(lambda: states(server) == ["aborted"], "the append is dropped")
    assert asyncio.all_tasks() == before


async def test_an_append_that_is_cancelled_in_its_commit_leaves_nothing(append_server: Any) -> None:
    waits = asyncio.Event()
    loop = asyncio.get_running_loop()

    def hold(asked: Asked) -> bytes | None:
        if asked.kind == "commit":
            loop.call_soon_threadsafe(waits.set)
            asked.exchange.until_closed()
            raise ConnectionError
        return None

    server: AppendServer = append_server(hold)
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        task = asyncio.create_task(client.append("t", table(ROWS), batch_bytes=SMALL))
        await waits.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert states(server) == ["aborted"]


@pytest.fixture
def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sixteen attempts in a moment."""
    monkeypatch.setattr(append_state, "LONGEST_PAUSE_S", 0.001)


@pytest.mark.usefixtures("without_pauses")
async def test_a_commit_whose_answers_are_lost_was_done_all_the_same(append_server: Any) -> None:
    """The server has committed; it is only that nobody heard of it."""

    def lose_after(asked: Asked) -> bytes | None:
        if asked.kind == "commit" and server.appends[asked.append_id].state == "committed":
            return lose(asked)
        if asked.kind == "commit":
            server._answer(asked)
            return lose(asked)
        return None

    server: AppendServer = append_server(lose_after)
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        result = await client.append("t", table(ROWS), batch_bytes=SMALL)
    assert read_back(server.appends[result.id]) == rows(ROWS)


@pytest.mark.usefixtures("without_pauses")
async def test_an_outcome_that_cannot_be_known_is_said_so(append_server: Any) -> None:
    def lose_all(asked: Asked) -> bytes | None:
        return lose(asked) if asked.kind in ("commit", "abort", "status") else None

    server: AppendServer = append_server(lose_all)
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        with pytest.raises(exceptions.AppendError, match="isn't known") as caught:
            await client.append("t", table(ROWS), batch_bytes=SMALL)
    assert caught.value.outcome_unknown
    assert caught.value.append_id in str(caught.value)


async def test_a_restarted_server_is_not_given_the_rest(append_server: Any) -> None:
    """It would open an append anew that lacks what was acknowledged before."""

    def forget(asked: Asked) -> bytes | None:
        if asked.kind == "batch" and asked.number == 12:
            server.appends.clear()
        return None

    server: AppendServer = append_server(forget)
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        with pytest.raises(exceptions.AppendError, match="gone"):
            await client.append("t", table(ROWS), batch_bytes=SMALL, connections=1)
    assert states(server) == []


async def test_faults_on_purpose(append_server: Any) -> None:
    server: AppendServer = append_server()
    late = repeated = 0
    async with await windrow.get_async_client(host=server.host, port=server.port) as client:
        for seed in range(10):
            faults = windrow.AppendFaults(seed=seed, delay_ms=2, drop=0.2, repeat=0.2, reorder=0.3)
            result = await client.append("t", table(ROWS), batch_bytes=SMALL, faults=faults)
            assert read_back(server.appends[result.id]) == rows(ROWS)
            sent = [asked.number for asked in server.asked if (asked.kind, asked.append_id) == ("batch", result.id)]
            repeated += len(sent) - result.batches
            late += sent != sorted(sent)
    assert repeated > 10
    assert late > 5


def test_faults_on_purpose_by_the_synchronous_client(append_server: Any) -> None:
    server: AppendServer = append_server()
    faults = windrow.AppendFaults(seed=3, delay_ms=2, drop=0.2, repeat=0.2, reorder=0.3)
    with windrow.get_client(host=server.host, port=server.port) as client:
        result = client.append("t", table(ROWS), batch_bytes=SMALL, faults=faults)
    assert read_back(server.appends[result.id]) == rows(ROWS)
