"""Appends through the real gateway, into DuckDB and into ClickHouse."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from pyarrow import parquet

import windrow
from append.backends import Backend
from append.data import dicts, rows, table, until
from windrow import exceptions

ROWS = 3000
SMALL = 4096
SEEDS = 300
AT_ONCE = 12


async def stored(client: windrow.AsyncClient, backend: Backend, name: str) -> list[tuple[Any, ...]]:
    return list((await client.query(backend.in_order(name))).result_rows)


async def test_tables_equal_their_sources_whatever_the_network_does(backend: Backend) -> None:
    """300 seeds of delays, repeats, broken connections and overtaking, with eight connections. Each table gets some of the
    seeds, one append after the other.
    """
    async with await windrow.get_async_client(**backend.where, connector_limit=100) as client:

        async def some(lot: int) -> None:
            name, source = f"lot_{lot}", []
            await client.command(backend.create_numbered(name))
            for seed in range(lot, SEEDS, AT_ONCE):
                count = 200 + seed
                faults = windrow.AppendFaults(seed=seed, delay_ms=5, drop=0.15, repeat=0.15, reorder=0.3)
                result = await client.append(name, table(count, seed), batch_bytes=1024, faults=faults)
                assert result.rows == count, f"seed {seed}"
                source += rows(count, seed)
            assert await stored(client, backend, name) == source, f"seeds {lot}, {lot + AT_ONCE} and so on"

        await asyncio.gather(*(some(lot) for lot in range(AT_ONCE)))


async def test_a_large_one(backend: Backend) -> None:
    count = 200_000
    async with await windrow.get_async_client(**backend.where) as client:
        await client.command(backend.create_numbered("t"))
        result = await client.append("t", table(count), batch_bytes=100_000)
        assert (result.rows, result.batches > 20, result.atomic) == (count, True, "all")
        assert await stored(client, backend, "t") == rows(count)


async def test_several_at_once_with_inserts_between(backend: Backend) -> None:
    """Each keeps its own order, and nothing of one stands inside another of the same table."""
    async with await windrow.get_async_client(**backend.where) as client:
        await client.command(backend.create_numbered("t"))
        appends = [client.append("t", table(ROWS, 10_000 * lot), batch_bytes=SMALL) for lot in range(1, 6)]
        inserts = [client.insert("t", rows(1, number), column_names=["n", "text"]) for number in range(50)]
        await asyncio.gather(*appends, *inserts)
        found = await stored(client, backend, "t")
    assert sorted(row for row in found if row[0] < 10_000) == rows(50)
    for lot in range(1, 6):
        assert [row for row in found if row[0] // 10_000 == lot] == rows(ROWS, 10_000 * lot)


async def test_rows_go_as_the_table_s_types(backend: Backend) -> None:
    async with await windrow.get_async_client(**backend.where) as client:
        await client.command(backend.create_numbered("t"))
        await client.append("t", dicts(ROWS), batch_bytes=SMALL)
        await client.append("t", rows(ROWS, ROWS))
        assert await stored(client, backend, "t") == rows(2 * ROWS)


async def test_what_is_left_out_takes_its_default(backend: Backend) -> None:
    columns = "n BIGINT, text VARCHAR DEFAULT 'none'" if backend.is_duckdb else "n Int64, text String DEFAULT 'none'"
    async with await windrow.get_async_client(**backend.where) as client:
        await client.command(backend.create("t", columns))
        await client.append("t", pyarrow.table({"n": pyarrow.array([1, 2], pyarrow.int64())}))
        await client.append("t", [{"n": 3}])
        await client.append("t", [(4,)], columns=["n"])
        assert await stored(client, backend, "t") == [(number, "none") for number in (1, 2, 3, 4)]


async def test_columns_go_by_name(backend: Backend) -> None:
    async with await windrow.get_async_client(**backend.where) as client:
        await client.command(backend.create_numbered("t"))
        await client.append("t", table(10).select(["text", "n"]))
        assert await stored(client, backend, "t") == rows(10)


def checked_columns(backend: Backend) -> str:
    if backend.is_duckdb:
        return "n BIGINT CHECK (n <> 2345), text VARCHAR"
    return "n Int64, text String, CONSTRAINT not_that CHECK n <> 2345"


async def test_a_violated_constraint_is_named_and_leaves_the_table_as_it_was(backend: Backend) -> None:
    async with await windrow.get_async_client(**backend.where) as client:
        await client.command(backend.create("t", checked_columns(backend)))
        await client.append("t", table(10))
        with pytest.raises(exceptions.AppendError) as caught:
            await client.append("t", table(ROWS), batch_bytes=SMALL)
        assert caught.value.code == 469
        assert caught.value.batch is not None
        assert await stored(client, backend, "t") == rows(10)
        result = await client.append("t", table(2000), batch_bytes=SMALL)
        assert result.rows == 2000


async def test_a_table_that_is_not_there(backend: Backend) -> None:
    async with await windrow.get_async_client(**backend.where) as client:
        with pytest.raises(exceptions.AppendError) as caught:
            await client.append("nowhere", table(10))
        assert (caught.value.code, caught.value.name) == (60, "UNKNOWN_TABLE")


async def test_a_column_that_is_not_there(backend: Backend) -> None:
    async with await windrow.get_async_client(**backend.where) as client:
        await client.command(backend.create_numbered("t"))
        with pytest.raises(exceptions.AppendError, match="other"):
            await client.append("t", pyarrow.table({"n": [1], "other": [2]}))
        assert await stored(client, backend, "t") == []


async def test_a_type_that_would_lose_something(backend: Backend) -> None:
    async with await windrow.get_async_client(**backend.where) as client:
        await client.command(backend.create_numbered("t"))
        with pytest.raises(exceptions.AppendError, match=r"\bn\b"):
            await client.append("t", pyarrow.table({"n": [1.5], "text": ["x"]}))
        assert await stored(client, backend, "t") == []


async def test_a_cancelled_append_leaves_nothing(backend: Backend) -> None:
    reached = asyncio.Event()
    append_id = uuid.uuid4()

    async def endless() -> Any:
        for first in range(0, 1 << 40, 1000):
            if first > 50_000:
                reached.set()
            yield table(1000, first)

    async with await windrow.get_async_client(**backend.where) as client:
        await client.command(backend.create_numbered("t"))
        task = asyncio.create_task(client.append("t", endless(), batch_bytes=SMALL, id=append_id))
        await asyncio.wait([task, asyncio.ensure_future(reached.wait())], return_when=asyncio.FIRST_COMPLETED)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await client.append("t", table(10))
        assert await stored(client, backend, "t") == rows(10)


async def test_an_append_is_taken_up_again(backend: Backend, tmp_path: Path) -> None:
    """The client vanished in the middle; what the server has is not sent again."""
    parquet.write_table(table(ROWS), tmp_path / "rows.parquet", row_group_size=500)
    append_id = str(uuid.uuid4())
    acknowledged: list[int] = []

    class Vanished(Exception):  # noqa: N818
        """The process was killed, so that it aborts nothing."""

    async with await windrow.get_async_client(**backend.where) as client:
        await client.command(backend.create_numbered("t"))

    dying = await windrow.get_async_client(**backend.where)

    def die(rows: int, size: int) -> None:
        acknowledged.append(rows)
        if rows > ROWS // 2:
            dying._closed = True
            raise Vanished

    with pytest.raises(Vanished):
        await dying.append("t", tmp_path / "rows.parquet", batch_bytes=SMALL, id=append_id, progress=die)
    await dying.close()
    async with await windrow.get_async_client(**backend.where) as client:
        result = await client.append("t", tmp_path / "rows.parquet", batch_bytes=SMALL, id=append_id)
        assert result.rows == ROWS
        assert await stored(client, backend, "t") == rows(ROWS)
        again = await client.append("t", tmp_path / "rows.parquet", batch_bytes=SMALL, id=append_id)
        assert (again.id, again.rows, again.batches) == (result.id, result.rows, result.batches)
        assert await stored(client, backend, "t") == rows(ROWS)


def test_the_synchronous_client(backend: Backend) -> None:
    faults = windrow.AppendFaults(seed=1, delay_ms=5, drop=0.15, repeat=0.15, reorder=0.3)
    with windrow.get_client(**backend.where) as client:
        client.command(backend.create_numbered("t"))
        result = client.append("t", table(ROWS), batch_bytes=SMALL, faults=faults)
        assert result.rows == ROWS
        assert list(client.query(backend.in_order("t")).result_rows) == rows(ROWS)


async def test_an_append_is_not_gone_on_with_from_other_data(backend: Backend) -> None:
    async with await windrow.get_async_client(**backend.where) as client:
        await client.command(backend.create_numbered("t"))
        append_id = str(uuid.uuid4())
        first = client.append("t", vanishing(client, table(10)), id=append_id, batch_bytes=SMALL)
        with pytest.raises(Vanished):
            await first
        async with await windrow.get_async_client(**backend.where) as other:
            for data, options in [
                (iter([table(10)]), {"batch_bytes": 2 * SMALL}),
                (table(10), {"batch_bytes": SMALL}),
                (iter([table(10)]), {"batch_bytes": SMALL, "columns": ["n", "text"]}),
            ]:
                with pytest.raises(exceptions.AppendError, match="was opened with") as caught:
                    await other.append("t", data, id=append_id, **options)
                assert caught.value.append_id == append_id
            result = await other.append("t", iter([table(10)]), id=append_id, batch_bytes=SMALL)
            assert (result.id, result.rows) == (append_id, 10)
            assert await stored(other, backend, "t") == rows(10)


class Vanished(Exception):  # noqa: N818
    """Ends a client that then tells the server nothing."""


def vanishing(client: windrow.AsyncClient, first: pyarrow.Table) -> Iterator[pyarrow.Table]:
    yield first
    client._closed = True
    raise Vanished
