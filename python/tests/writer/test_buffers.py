"""Buffers that survive, and buffers of one's own."""

from __future__ import annotations

import asyncio
import warnings
from collections import deque
from pathlib import Path
from typing import Any

import pytest
import windrow
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.redis import Redis
from windrow import exceptions

COLUMNS = ["n", "text"]


@pytest.fixture(params=["disk", "redis"])
def surviving(request: pytest.FixtureRequest, tmp_path: Path, redis: Redis) -> str:
    return f"disk:{tmp_path / 'buffer'}" if request.param == "disk" else f"{redis.address}/0?bucket=b"


def count(table: Endpoint) -> int:
    return int(table.sql("SELECT count() FROM t"))


def all_settled(writer: windrow.Writer) -> bool:
    statistics = writer.statistics()
    return statistics.rows_waiting == 0 and statistics.batches_in_flight == 0


def test_what_one_writer_leaves_the_next_one_stores(client: windrow.Client, table: Endpoint, surviving: str) -> None:
    first = client.writer("t", COLUMNS, buffer=surviving, batch_rows=10, flush_interval=60)
    table.sql("RENAME TABLE t TO away")
    first.write_rows([(n, "x") for n in range(25)])
    first.close(timeout=0)
    assert first.take_error() is None, "rows that survive are no errors"
    table.sql("RENAME TABLE away TO t")
    with client.writer("t", COLUMNS, buffer=surviving) as second:
        eventually(lambda: count(table) == 25 and all_settled(second), "left-overs are stored")
        assert second.statistics().rows_left_over == 25
    assert table.sql("SELECT uniqExact(n) FROM t").strip() == "25"


def test_a_bad_row_that_was_left_is_an_error(client: windrow.Client, table: Endpoint, surviving: str) -> None:
    first = client.writer("t", COLUMNS, buffer=surviving, flush_interval=60)
    table.sql("RENAME TABLE t TO away")
    first.write_rows([(n, "x") for n in range(990, 1010)])
    first.close(timeout=0)
    table.sql("RENAME TABLE away TO t")
    with client.writer("t", COLUMNS, buffer=surviving) as second:
        eventually(lambda: count(table) == 19 and all_settled(second), "good rows are stored")
        error = second.take_error()
    assert error is not None and error.rows == [(999, "x")]


def test_other_tables_rows_are_left_alone(client: windrow.Client, table: Endpoint, redis: Redis) -> None:
    buffer = f"{redis.address}/0?bucket=b"
    table.sql("CREATE TABLE u AS t")
    first = client.writer("t", COLUMNS, buffer=buffer, flush_interval=60)
    table.sql("RENAME TABLE t TO away")
    first.write_row((1, "x"))
    first.close(timeout=0)
    with client.writer("u", COLUMNS, buffer=buffer) as other:
        other.write_row((2, "x"))
        assert other.statistics().rows_left_over == 0
    table.sql("RENAME TABLE away TO t")
    with client.writer("t", COLUMNS, buffer=buffer):
        eventually(lambda: count(table) == 1, "its own table's writer stores it")


def test_whoever_may_store_twice_is_told_so(client: windrow.Client, table: Endpoint, tmp_path: Path) -> None:
    table.sql("CREATE TABLE plain (n UInt64) ENGINE = MergeTree ORDER BY n")
    with pytest.warns(RuntimeWarning, match="non_replicated_deduplication_window"):
        client.writer("plain", buffer=f"disk:{tmp_path / 'a'}").close()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        client.writer("t", COLUMNS, buffer=f"disk:{tmp_path / 'b'}").close()
        client.writer("plain", buffer="memory").close()


def test_an_opening_that_fails_leaves_nothing_behind(
    client: windrow.Client, table: Endpoint, tmp_path: Path, threads_unchanged: None
) -> None:
    table.sql("CREATE TABLE plain (n UInt64) ENGINE = MergeTree ORDER BY n")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(RuntimeWarning):
            client.writer("plain", buffer=f"disk:{tmp_path / 'a'}")
    assert list((tmp_path / "a").iterdir()) == []


async def test_an_async_opening_that_fails_leaves_nothing_behind(
    where: dict[str, Any], table: Endpoint, tmp_path: Path, threads_unchanged: None
) -> None:
    table.sql("CREATE TABLE plain (n UInt64) ENGINE = MergeTree ORDER BY n")
    before = asyncio.all_tasks()
    async with await windrow.get_async_client(**where) as client:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            with pytest.raises(RuntimeWarning):
                await client.writer("plain", buffer=f"disk:{tmp_path / 'a'}")
    assert list((tmp_path / "a").iterdir()) == []
    assert asyncio.all_tasks() == before


def test_buffers_that_cannot_be_opened(client: windrow.Client, table: Endpoint, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for buffer, error in (
        ("redis://127.0.0.1:1/0", exceptions.OperationalError),
        (f"disk:{tmp_path / 'file' / 'below'}", exceptions.OperationalError),
        ("redis://h?nonsense=1", ValueError),
        ("redis://a,b", ValueError),
        ("tape", ValueError),
    ):
        with pytest.raises(error):
            client.writer("t", COLUMNS, buffer=buffer)


class ListBuffer:
    """As small as a buffer can be; what it keeps outlives its writers as long as the test holds it."""

    survives = True

    def __init__(self, max_appends: int = 1000) -> None:
        self.max_appends = max_appends
        self.waiting: deque[tuple[bytes, list[int]]] = deque()
        self.batches: dict[str, tuple[bytes, list[int]]] = {}
        self.failing = False

    def append(self, rows: bytes, lengths: list[int]) -> bool:
        if self.failing:
            raise OSError("no space left on tape")
        if len(self.waiting) + len(self.batches) >= self.max_appends:
            return False
        self.waiting.append((rows, lengths))
        return True

    def seal(self, batch_id: str, appends: int) -> None:
        taken = [self.waiting.popleft() for _ in range(appends)]
        self.batches[batch_id] = (b"".join(rows for rows, _ in taken), [n for _, lengths in taken for n in lengths])

    def load(self, batch_id: str) -> tuple[bytes, list[int]]:
        return self.batches[batch_id]

    def split(self, batch_id: str, pieces: list[tuple[str, int]]) -> None:
        rows, lengths = self.batches.pop(batch_id)
        for name, count in pieces:
            size = sum(lengths[:count])
            self.batches[name] = (rows[:size], lengths[:count])
            rows, lengths = rows[size:], lengths[count:]

    def done(self, batch_id: str) -> None:
        del self.batches[batch_id]

    def left_overs(self) -> list[tuple[str, int]]:
        found, self.fresh = ([] if hasattr(self, "fresh") else [(n, len(b[1])) for n, b in self.batches.items()]), False
        return found

    def close(self) -> None:
        if hasattr(self, "fresh"):
            del self.fresh


async def test_a_buffer_of_ones_own(where: dict[str, Any], table: Endpoint) -> None:
    buffer = ListBuffer()
    assert isinstance(buffer, windrow.Buffer)
    async with await windrow.get_async_client(**where) as client:
        async with client.writer("t", COLUMNS, buffer=buffer, batch_rows=100, flush_interval=0.01) as writer:
            for n in range(995):
                await writer.write_row((n, "x"))
            await writer.write_rows([(n, "x") for n in range(995, 1005)])
            await writer.flush()
            error = writer.take_error()
            assert error is not None and error.rows == [(999, "x")]
            buffer.failing = True
            with pytest.raises(exceptions.OperationalError, match="no space left on tape"):
                await writer.write_row((1, "x"))
    assert table.sql("SELECT count(), uniqExact(n) FROM t").split() == ["1004", "1004"]
    assert not buffer.waiting and not buffer.batches


def test_what_ones_own_buffer_brings_back(client: windrow.Client, table: Endpoint) -> None:
    buffer = ListBuffer()
    with client.writer("t", COLUMNS, buffer="memory"):
        pass
    first = client.writer("t", COLUMNS, buffer=buffer, flush_interval=0.01)
    table.sql("RENAME TABLE t TO away")
    first.write_rows([(n, "x") for n in range(10)])
    eventually(lambda: first.statistics().retries > 0, "it was tried in vain")
    first.close(timeout=0)
    table.sql("RENAME TABLE away TO t")
    with client.writer("t", COLUMNS, buffer=buffer) as second:
        eventually(lambda: count(table) == 10 and all_settled(second), "its batches are stored")
    assert not buffer.batches


def test_a_full_buffer_of_ones_own_is_waited_for(client: windrow.Client, table: Endpoint) -> None:
    buffer = ListBuffer(max_appends=3)
    with client.writer("t", COLUMNS, buffer=buffer, batch_rows=2, flush_interval=0.01) as writer:
        for n in range(50):
            writer.write_row((n, "x"))
    assert table.sql("SELECT count(), uniqExact(n) FROM t").split() == ["50", "50"]
