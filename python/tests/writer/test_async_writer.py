"""The asynchronous writer: what its calls take, wait for, and raise."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import windrow
from harness.endpoint import Endpoint
from harness.eventually import eventually
from windrow import exceptions

COLUMNS = ["n", "text"]


@asynccontextmanager
async def opened(where: dict[str, Any], **options: Any) -> AsyncIterator[windrow.AsyncWriter]:
    columns = options.pop("columns", COLUMNS)
    async with await windrow.get_async_client(**where) as client, client.writer("t", columns, **options) as writer:
        yield writer


def stored(table: Endpoint) -> list[str]:
    return table.sql("SELECT n, text FROM t ORDER BY n, text").splitlines()


async def test_rows_of_all_forms_are_stored(where: dict[str, Any], table: Endpoint) -> None:
    async with opened(where) as writer:
        await writer.write_row((1, "tuple"))
        await writer.write_row([2, "list"])
        await writer.write_row({"text": "dict", "n": 3})
        await writer.write_rows([(4, "a"), (5, "b")])
        await writer.write_rows((row for row in [(6, "generator")]))
        assert writer.try_write_row((7, "tried")) is True
        assert writer.column_names == COLUMNS
        assert writer.table.endswith(".`t`")
    assert [line.split("\t")[0] for line in stored(table)] == ["1", "2", "3", "4", "5", "6", "7"]
    assert table.sql("SELECT DISTINCT more FROM t").strip() == "7", "only named columns are sent"


async def test_a_row_that_does_not_fit_names_its_column_and_stays_out(where: dict[str, Any], table: Endpoint) -> None:
    async with opened(where) as writer:
        with pytest.raises(exceptions.DataError, match="column `n` .UInt64.") as raised:
            writer.write_row(("no number", "x"))
        assert raised.value.column == "n"
        with pytest.raises(exceptions.DataError, match="row 2") as raised:
            writer.write_rows([(1, "x"), (2, "x"), (3, None)])
        assert (raised.value.column, raised.value.row) == ("text", 2)
        assert writer.statistics().rows_written == 0
    assert stored(table) == []


async def test_wait_returns_when_the_row_is_stored_and_raises_its_error(where: dict[str, Any], table: Endpoint) -> None:
    async with opened(where, wait=True, flush_interval=0.05) as writer:
        await asyncio.gather(*(writer.write_row((n, "x")) for n in range(20)))
        assert len(stored(table)) == 20
        assert writer.statistics().batches_stored < 10, "rows of several callers share batches"
        good, bad = writer.write_row((100, "good")), writer.write_row((999, "bad"))
        await good
        with pytest.raises(windrow.WriteError) as raised:
            await bad
        assert raised.value.code == 469
        assert raised.value.rows == [(999, "bad")]
        assert raised.value.reason == "values"
        assert isinstance(raised.value, exceptions.DatabaseError)
        await writer.write_row((101, "not waited for"), wait=False)
    assert len(stored(table)) == 22


async def test_a_future_on_demand(where: dict[str, Any], table: Endpoint) -> None:
    async with opened(where, flush_interval=60) as writer:
        future = writer.write_row((1, "x"), future=True)
        assert not future.done()
        await writer.flush()
        await future
    assert stored(table) == ["1\tx"]


async def test_the_only_error_is_the_guilty_row(where: dict[str, Any], table: Endpoint) -> None:
    errors: list[windrow.WriteError] = []
    async with opened(where, on_error=errors.append, batch_rows=700) as writer:
        await writer.write_rows([(n, str(n)) for n in range(5000)])
    assert sorted(row for error in errors for row in error.rows) == [(n, str(n)) for n in range(999, 5000, 1000)]
    assert {error.code for error in errors} == {469}
    assert all(error.batch_id and error.row_count == 1 for error in errors)
    assert len(stored(table)) == 4995


async def test_errors_are_an_iterator_that_ends_with_the_writer(where: dict[str, Any], table: Endpoint) -> None:
    async with opened(where, flush_interval=0.01) as writer:

        async def collect() -> list[Any]:
            return [row async for error in writer.errors() for row in error.rows]

        task = asyncio.create_task(collect())
        await writer.write_rows([(999, "a"), (1, "b")])
        await writer.flush()
        await writer.write_row((1999, "c"))
        await writer.close()
        assert await task == [(999, "a"), (1999, "c")]


async def test_unread_errors_are_dropped_and_counted_and_hold_up_nobody(where: dict[str, Any], table: Endpoint) -> None:
    async with opened(where, max_errors=3, batch_rows=1, flush_interval=0.01) as writer:
        for n in range(10):
            await writer.write_row((1000 * n + 999, "bad"))
            await writer.write_row((n, "good"))
        await writer.flush()
        assert writer.statistics().errors_dropped == 7
        assert writer.statistics().rows_failed == 10
    assert len(stored(table)) == 10


async def test_an_on_error_that_raises_stops_nothing(where: dict[str, Any], table: Endpoint) -> None:
    def on_error(error: windrow.WriteError) -> None:
        raise RuntimeError("the callback's own mistake")

    async with opened(where, on_error=on_error, flush_interval=0.01) as writer:
        await writer.write_rows([(999, "bad"), (1, "good")])
        await writer.flush()
        await writer.write_row((2, "good"))
    assert len(stored(table)) == 2


async def test_batches_go_by_size_and_the_rest_by_time(where: dict[str, Any], table: Endpoint) -> None:
    now = [1000.0]
    async with opened(where, batch_rows=10, flush_interval=5.0) as writer:
        writer._clock = lambda: now[0]
        await writer.write_rows([(n, "x") for n in range(25)])
        await eventually_async(lambda: writer.statistics().batches_stored == 2)
        assert writer.statistics().rows_waiting == 5
        now[0] += 4.9
        writer._woken.set()
        await eventually_async(lambda: not writer._woken.is_set())
        assert writer.statistics().rows_waiting == 5, "the interval is not over"
        now[0] += 0.2
        writer._woken.set()
        await eventually_async(lambda: writer.statistics().rows_waiting == 0)
        await eventually_async(lambda: writer.statistics().batches_stored == 3)
    assert len(stored(table)) == 25


async def test_full_means_waiting_and_try_says_so(where: dict[str, Any], table: Endpoint) -> None:
    async with opened(where, max_bytes=20_000, flush_interval=60) as writer:
        taken = 0
        while writer.try_write_row((taken, "x" * 1000)):
            taken += 1
        assert 10 < taken < 20
        assert writer.statistics().bytes_held <= 20_000
        waiting = [writer.write_row((taken + number, "x" * 1000)) for number in range(5)]
        assert not any(row.done() for row in waiting)
        assert writer.try_write_row((0, "")) is False, "nobody overtakes who waits"
        await writer.flush()
        await asyncio.gather(*waiting)
        with pytest.raises(exceptions.DataError, match="limit is 20000"):
            await writer.write_row((1, "x" * 30_000))
    assert len(stored(table)) == taken + 5


async def test_more_rows_than_there_is_room_for_are_taken_in_pieces(where: dict[str, Any], table: Endpoint) -> None:
    async with opened(where, max_bytes=20_000, batch_rows=10, flush_interval=0.01) as writer:
        await writer.write_rows([(n, "x" * 990) for n in range(200)], wait=True)
        assert len(stored(table)) == 200
        assert writer.statistics().rows_stored == 200


async def test_ordered_batches_come_one_after_the_other(where: dict[str, Any], direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (n UInt64, text String, at UInt64 DEFAULT rowNumberInAllBlocks()) ENGINE = Log")
    async with opened(where, ordered=True, batch_rows=7, flush_interval=0.01) as writer:
        for n in range(300):
            await writer.write_row((n, "x"))
    numbers = [int(line) for line in direct.sql("SELECT n FROM t SETTINGS max_threads = 1").split()]
    assert numbers == list(range(300))


async def test_many_rows_are_encoded_beside_the_loop(where: dict[str, Any], table: Endpoint) -> None:
    async with opened(where) as writer:
        turns = 0
        writing = writer.write_rows([(n % 900, "x") for n in range(200_000)])
        while not writing.done():
            await asyncio.wait({writing}, timeout=0)
            turns += 1
        assert turns > 5, "other tasks ran meanwhile"
        await writing
        with pytest.raises(exceptions.DataError, match="row 6000"):
            await writer.write_rows([(1, "x")] * 6000 + [("no number", "x")])
    assert len(stored(table)) == 200_000


async def test_on_error_may_be_a_coroutine_function(where: dict[str, Any], table: Endpoint) -> None:
    told: list[Any] = []

    async def on_error(error: windrow.WriteError) -> None:
        await asyncio.wait({asyncio.get_running_loop().create_future()}, timeout=0.001)
        told.extend(error.rows)

    async with opened(where, on_error=on_error) as writer:
        await writer.write_row((999, "bad"))
    assert told == [(999, "bad")]


async def test_a_closed_writer_takes_nothing(where: dict[str, Any], table: Endpoint) -> None:
    async with opened(where) as writer:
        await writer.write_row((1, "x"))
        await writer.close()
        await writer.close()
        assert writer.closed
        for write in (writer.write_row, writer.try_write_row):
            with pytest.raises(exceptions.InterfaceError, match="closed"):
                write((2, "x"))
    assert stored(table) == ["1\tx"]


async def test_columns_and_tables_that_are_not_there(where: dict[str, Any], table: Endpoint) -> None:
    table.sql("ALTER TABLE t ADD COLUMN made String MATERIALIZED text, ADD COLUMN two String ALIAS text")
    async with await windrow.get_async_client(**where) as client:
        with pytest.raises(exceptions.ProgrammingError, match="no column nope; it has n, text"):
            await client.writer("t", ["n", "nope"])
        with pytest.raises(exceptions.ProgrammingError, match="MATERIALIZED"):
            await client.writer("t", ["made"])
        with pytest.raises(exceptions.DatabaseError):
            await client.writer("absent", ["n"])
        for options in ({"batch_rows": 0}, {"flush_interval": -1}, {"sync": "sometimes", "buffer":
        "disk:/nonexistent/x"}):
            with pytest.raises((ValueError, exceptions.OperationalError)):
                await client.writer("t", **options)
        with pytest.raises(TypeError):
            client.writer("t", buffer=3)
        writer = await client.writer("t")
        assert writer.column_names == ["n", "text", "more"]
        await writer.write_row((1, "x", None))
        await writer.close()
    assert table.sql("SELECT n, text, more, made FROM t").strip() == "1\tx\t\\N\tx"


@pytest.mark.parametrize("columns", [1, 9, 10, 13, 32])
async def test_any_number_of_columns(where: dict[str, Any], direct: Endpoint, columns: int) -> None:
    """A batch begins with their number, which may look like a line's end."""
    names = [f"c{number}" for number in range(columns)]
    direct.sql(f"CREATE TABLE t ({', '.join(f'{name} Int32' for name in names)}) ENGINE = Memory")
    async with opened(where, columns=names) as writer:
        await writer.write_rows([tuple(range(columns)), (1,) * columns])
    assert direct.sql("SELECT count(), sum(c0) FROM t").split() == ["2", "1"]


async def test_types_are_sent_and_come_back(where: dict[str, Any], direct: Endpoint) -> None:
    direct.sql(
        "CREATE TABLE t (a Array(Nullable(Int8)), m Map(String, UInt8), l LowCardinality(String), d Date, "
        "e Enum('x' = 1), t Tuple(i Int32, s String), bad Bool, CONSTRAINT never CHECK NOT bad) ENGINE = MergeTree ORDER BY ()"
    )
    columns = ["a", "m", "l", "d", "e", "t", "bad"]
    row = ([1, None], {"k": 1}, "low", "2026-11-22", "x", (1, "s"))
    errors: list[windrow.WriteError] = []
    async with opened(where, columns=columns, on_error=errors.append) as writer:
        await writer.write_rows([(*row, False), (*row, True)])
    assert direct.sql("SELECT a, m, l, d, e, t FROM t").strip() == "[1,NULL]\t{'k':1}\tlow\t2026-11-22\tx\t(1,'s')"
    returned = errors[0].rows[0]
    assert returned[:3] == ([1, None], {"k": 1}, "low")
    assert str(returned[3]) == "2026-11-22" and returned[4] == "x"


async def test_through_windrow(gateway_where: dict[str, Any], table: Endpoint) -> None:
    async with opened(gateway_where, batch_rows=100) as writer:
        await writer.write_rows([(n, "x") for n in range(998)], wait=True)
    assert len(stored(table)) == 998


async def test_nothing_is_left_behind(where: dict[str, Any], table: Endpoint, threads_unchanged: None) -> None:
    async with await windrow.get_async_client(**where) as client:
        before = len(asyncio.all_tasks())
        writers: list[weakref.ref[windrow.AsyncWriter]] = []
        for _ in range(3):
            async with client.writer("t", COLUMNS) as writer:
                writers.append(weakref.ref(writer))
                await writer.write_row((1, "x"))
        assert len(asyncio.all_tasks()) == before
        del writer
        gc.collect()
        assert [found() for found in writers] == [None] * 3


async def eventually_async(probe: Any) -> None:
    """As `eventually`, for what happens on this loop: it looks from another thread."""
    await asyncio.to_thread(eventually, probe, "the writer did it")


async def test_however_many_wait_for_it_one_writer_is_opened(where: dict[str, Any], table: Endpoint) -> None:
    async with await windrow.get_async_client(**where) as client:
        opening = client.writer("t", COLUMNS)

        async def wait_for_it() -> windrow.AsyncWriter:
            return await opening

        first, second = await asyncio.gather(wait_for_it(), wait_for_it())
        assert first is second
        await first.close()
