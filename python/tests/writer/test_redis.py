"""The Redis buffer: shared by processes, sure of its rows when connections break, and releasing only what is done."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Callable
from typing import Any

import pytest
import windrow
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.redis import Redis
from windrow import exceptions

COLUMNS = ["n", "text"]


def rows_once(table: Endpoint, numbers: range | set[int]) -> None:
    assert table.sql("SELECT count(), uniqExact(n) FROM t").split() == [str(len(numbers))] * 2
    assert table.sql("SELECT min(n), max(n) FROM t").split() == [str(min(numbers)), str(max(numbers))]


def held_by(redis: Redis, bucket: str) -> list[str]:
    return [key for key in redis.keys() if f"{{windrow:{bucket}}}:lane:" in key and not key.endswith(":gone")]


def entries_of(redis: Redis, bucket: str) -> int:
    counts = [redis.call("HLEN", key)[0] for key in held_by(redis, bucket) if key.endswith(":rows")]
    return sum(int(count.removeprefix(":")) for count in counts)


def test_nothing_is_trimmed_before_clickhouse_has_it(client: windrow.Client, table: Endpoint, redis: Redis) -> None:
    """Entries are released when their batch is stored, and not when it was read or sent."""
    table.sql("RENAME TABLE t TO away")
    opened = {"buffer": f"{redis.address}/0?bucket=b", "batch_rows": 10, "flush_interval": 0.01}
    table.sql("RENAME TABLE away TO t")
    with client.writer("t", COLUMNS, **opened) as writer:
        table.sql("RENAME TABLE t TO away")
        for n in range(25):
            writer.write_row((n, "x"))
        eventually(lambda: writer.statistics().retries > 2, "batches were sent and refused")
        assert entries_of(redis, "b") > 0
        assert writer.statistics().bytes_held > 0
        table.sql("RENAME TABLE away TO t")
        writer.flush()
        eventually(lambda: entries_of(redis, "b") == 0, "what is stored is released")
    rows_once(table, range(25))
    assert held_by(redis, "b") == []


def test_what_was_read_is_released_whatever_the_configured_size(
    client: windrow.Client, table: Endpoint, redis: Redis
) -> None:
    """Batches of a dead writer keep their members, also when the next one is told of another size."""
    buffer = f"{redis.address}/0?bucket=b"
    table.sql("RENAME TABLE t TO away")
    table.sql("RENAME TABLE away TO t")
    first = client.writer("t", COLUMNS, buffer=buffer, batch_rows=7, flush_interval=60)
    table.sql("RENAME TABLE t TO away")
    first.write_rows([(n, "x") for n in range(100)])
    eventually(lambda: first.statistics().batches_in_flight > 0, "batches of 7 are sealed")
    first.close(timeout=0)
    assert entries_of(redis, "b") > 0
    table.sql("RENAME TABLE away TO t")
    with client.writer("t", COLUMNS, buffer=buffer, batch_rows=3) as second:
        second.write_row((100, "x"))
        eventually(lambda: table.sql("SELECT count() FROM t").strip() == "101", "both writers' rows are stored")
        eventually(lambda: second.statistics().batches_in_flight == 0, "nothing is left")
    rows_once(table, range(101))
    assert held_by(redis, "b") == []


def test_two_writers_share_a_bucket(table: Endpoint, redis: Redis, where: dict[str, Any]) -> None:
    buffer = f"{redis.address}/0?bucket=b&lease=0.3"
    options: dict[str, Any] = {"buffer": buffer, "batch_rows": 50, "flush_interval": 0.02}

    def write(start: int) -> None:
        with windrow.get_client(**where) as own, own.writer("t", COLUMNS, **options) as writer:
            for n in range(start, start + 500):
                writer.write_row((n, "x"))

    threads = [threading.Thread(target=write, args=(10_000 * number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert table.sql("SELECT count(), uniqExact(n) FROM t").split() == ["1500", "1500"]
    assert held_by(redis, "b") == []


class BreakingProxy:
    """Between a writer and Redis: passes commands on, and loses the answers of some connections, as soon as it is told to."""

    def __init__(self, redis: Redis, answers_before_break: int) -> None:
        self.target = ("127.0.0.1", redis.port)
        self.answers_before_break = answers_before_break
        self.is_breaking = False
        self.breaks = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                far = socket.create_connection(self.target)
                threading.Thread(target=self._commands, args=(near, far), daemon=True).start()
                threading.Thread(target=self._answers, args=(far, near), daemon=True).start()

    def _commands(self, near: socket.socket, far: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := near.recv(65536):
                far.sendall(data)
            far.close()

    def _answers(self, far: socket.socket, near: socket.socket) -> None:
        with contextlib.suppress(OSError):
            answers = 0
            while data := far.recv(65536):
                if self.is_breaking and answers >= self.answers_before_break:
                    self.breaks += 1
                    near.shutdown(socket.SHUT_RDWR)
                    return
                near.sendall(data)
                answers += 1

    def close(self) -> None:
        self.listener.close()


def test_a_lost_answer_doubles_nothing(client: windrow.Client, table: Endpoint, redis: Redis) -> None:
    """Redis has the entry and the writer does not know: it is sent again, and is there once."""
    proxy = BreakingProxy(redis, answers_before_break=6)
    buffer = f"redis://127.0.0.1:{proxy.port}/0?bucket=b"
    with client.writer("t", COLUMNS, buffer=buffer, batch_rows=20, flush_interval=0.02) as writer:
        proxy.is_breaking = True
        for n in range(300):
            writer.write_row((n, "x"))
    assert proxy.breaks > 10
    proxy.close()
    rows_once(table, range(300))
    assert held_by(redis, "b") == []


def test_redis_away_means_waiting_then_an_error_and_nothing_taken(
    client: windrow.Client, table: Endpoint, start_redis: Callable[..., Redis]
) -> None:
    redis = start_redis()
    buffer = f"{redis.address}/0?bucket=b&patience=8&answer_limit=3&lease=60"
    with client.writer("t", COLUMNS, buffer=buffer, flush_interval=60) as writer:
        writer.write_row((1, "kept"))
        redis.pause()
        with pytest.raises(exceptions.OperationalError, match="not taken"):
            writer.write_row((2, "not taken"))
        redis.resume()
        eventually(lambda: writer_takes(writer, (3, "kept")), "Redis is reached again")
    rows_once(table, {1, 3})


def writer_takes(writer: windrow.Writer, row: tuple[Any, ...]) -> bool:
    with contextlib.suppress(exceptions.OperationalError):
        writer.write_row(row)
        return True
    return False


def test_redis_away_for_a_while_and_back(
    client: windrow.Client, table: Endpoint, start_redis: Callable[..., Redis]
) -> None:
    redis = start_redis()
    # Time enough for what is asked while it is there; and it is away for longer than an answer may take.
    buffer = f"{redis.address}/0?bucket=b&answer_limit=1.5&patience=60"
    with client.writer("t", COLUMNS, buffer=buffer, batch_rows=10, flush_interval=0.01) as writer:
        writer.write_rows([(n, "x") for n in range(50)])
        redis.pause()
        threading.Timer(4, redis.resume).start()
        writer.write_rows([(n, "x") for n in range(50, 100)])
    rows_once(table, range(100))


def test_redis_that_has_forgotten_everything_is_told_again(
    client: windrow.Client, table: Endpoint, redis: Redis
) -> None:
    buffer = f"{redis.address}/0?bucket=b"
    table.sql("RENAME TABLE t TO away")
    table.sql("RENAME TABLE away TO t")
    first = client.writer("t", COLUMNS, buffer=buffer, batch_rows=10, flush_interval=60)
    table.sql("RENAME TABLE t TO away")
    first.write_rows([(n, "x") for n in range(25)])
    eventually(lambda: first.statistics().batches_in_flight > 0, "batches wait for their table")
    redis.call("FLUSHALL")
    first.write_row((25, "x"))
    assert entries_of(redis, "b") >= 2
    first.close(timeout=0)
    table.sql("RENAME TABLE away TO t")
    with client.writer("t", COLUMNS, buffer=buffer) as second:
        eventually(lambda: table.sql("SELECT count() FROM t").strip() == "26", "all rows are stored")
        eventually(lambda: second.statistics().batches_in_flight == 0, "nothing is left")
    rows_once(table, range(26))


def test_who_was_thought_dead_gives_its_rows_away_and_goes_on(
    client: windrow.Client, table: Endpoint, redis: Redis
) -> None:
    """A lease that ran out is another writer's gain; both go on, and each row is stored once."""
    # The first one says that it is alive each third of this, not before the second has looked, and looks each half of it after rows that
    # it was deprived of, long before its closing is given up.
    buffer = f"{redis.address}/0?bucket=b&lease=24"
    first = client.writer("t", COLUMNS, buffer=buffer, flush_interval=60)
    first.write_rows([(n, "x") for n in range(10)])
    # As Redis sees it, the first writer was silent for longer than its lease.
    lane = redis.call("ZRANGE", "{windrow:b}:lanes", 0, -1)[2]
    redis.call("ZADD", "{windrow:b}:lanes", 1, lane)
    with client.writer("t", COLUMNS, buffer=buffer, flush_interval=0.01) as second:
        eventually(lambda: second.statistics().rows_left_over == 10, "the second takes over")
        eventually(lambda: table.sql("SELECT count() FROM t").strip() == "10", "and stores")
        first.write_row((10, "x"))
        first.close()
    rows_once(table, range(11))
    assert held_by(redis, "b") == []


class Partition:
    """Between a writer and Redis; can be made to pass commands on and lose what is answered, and then to let nobody through."""

    def __init__(self, redis: Redis) -> None:
        self.target = ("127.0.0.1", redis.port)
        self.is_cut = False
        self.near: list[socket.socket] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                if self.is_cut:
                    near.close()
                    continue
                far = socket.create_connection(self.target)
                self.near.append(near)
                threading.Thread(target=self._pass, args=(near, far, False), daemon=True).start()
                threading.Thread(target=self._pass, args=(far, near, True), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, are_answers: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if not (are_answers and self.is_cut):
                    target.sendall(data)

    def break_off(self) -> None:
        for near in self.near:
            with contextlib.suppress(OSError):
                near.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.listener.close()


def test_an_append_without_an_answer_goes_with_the_lane(client: windrow.Client, table: Endpoint, redis: Redis) -> None:
    """Redis has the row, its writer doesn't know, and another one has taken it over: it is not sent again elsewhere."""
    between = Partition(redis)
    options = "bucket=b&lease=0.3&patience=60"
    first = client.writer("t", COLUMNS, buffer=f"redis://127.0.0.1:{between.port}/0?{options}", flush_interval=60)
    first.write_row((0, "x"))
    table.sql("RENAME TABLE t TO away")
    between.is_cut = True
    waiting = threading.Thread(target=first.write_row, args=((1, "x"),))
    waiting.start()
    eventually(lambda: entries_of(redis, "b") == 2, "Redis has the second row")
    between.break_off()
    table.sql("RENAME TABLE away TO t")
    with client.writer("t", COLUMNS, buffer=f"{redis.address}/0?{options}", flush_interval=60) as second:
        table.sql("RENAME TABLE t TO away")
        eventually(lambda: second.statistics().rows_left_over == 2, "the second takes over")
        between.is_cut = False
        waiting.join()
        table.sql("RENAME TABLE away TO t")
        second.flush()
        first.close()
        eventually(lambda: table.sql("SELECT count() FROM t").strip() != "0", "the rows are stored")
    between.close()
    rows_once(table, range(2))


def test_the_bucket_has_a_limit(client: windrow.Client, table: Endpoint, redis: Redis) -> None:
    buffer = f"{redis.address}/0?bucket=b&max_bytes=20000&patience=3"
    with client.writer("t", COLUMNS, buffer=buffer, flush_interval=60, batch_rows=100_000) as writer:
        table.sql("RENAME TABLE t TO away")
        with pytest.raises(exceptions.OperationalError, match="no room"):
            for n in range(100):
                writer.write_row((n, "x" * 1000))
        statistics = writer.statistics()
        taken = statistics.rows_waiting + statistics.rows_in_flight
        assert 10 < taken < 25
        table.sql("RENAME TABLE away TO t")
        writer.flush()
        writer.write_row((500, "there is room again"))
    assert table.sql("SELECT count() FROM t").strip() == str(taken + 1)


async def test_nothing_is_refused_while_clickhouse_takes_what_is_there(
    where: dict[str, Any], table: Endpoint, redis: Redis
) -> None:
    """A bucket of 2 MiB and 25 MiB at once: what is stored makes room for the rest, whatever the interval."""
    async with await windrow.get_async_client(**where) as client:
        buffer = f"{redis.address}/0?bucket=b&max_bytes={2 << 20}&patience=60"
        async with client.writer("t", COLUMNS, buffer=buffer, flush_interval=3600) as writer:
            await asyncio.gather(*(writer.write_row((10 * n, "x" * (64 << 10))) for n in range(400)))
    assert table.sql("SELECT count(), uniqExact(n) FROM t").split() == ["400", "400"]
    assert held_by(redis, "b") == []


def test_redis_that_came_back_with_an_older_state_is_told_again(
    client: windrow.Client, table: Endpoint, start_redis: Callable[..., Redis]
) -> None:
    redis = start_redis()
    buffer = f"{redis.address}/0?bucket=b&patience=60"
    first = client.writer("t", COLUMNS, buffer=buffer, batch_rows=10, flush_interval=60)
    first.write_rows([(n, "x") for n in range(7)])
    redis.call("SAVE")
    table.sql("RENAME TABLE t TO away")
    first.write_rows([(n, "x") for n in range(7, 25)])
    redis.kill()
    redis.start()
    first.write_rows([(n, "x") for n in range(25, 30)])
    first.close(timeout=0)
    table.sql("RENAME TABLE away TO t")
    with client.writer("t", COLUMNS, buffer=buffer) as second:
        eventually(lambda: table.sql("SELECT count() FROM t").strip() == "30", "all rows are stored")
        eventually(lambda: second.statistics().batches_in_flight == 0, "nothing is left")
    rows_once(table, range(30))
    assert held_by(redis, "b") == []


async def test_concurrent_rows_are_grouped(where: dict[str, Any], table: Endpoint, redis: Redis) -> None:
    """10,000 tasks that each write a row need a handful of entries."""
    async with await windrow.get_async_client(**where) as client:
        buffer = f"{redis.address}/0?bucket=b"
        async with client.writer("t", COLUMNS, buffer=buffer, flush_interval=60, batch_rows=100_000) as writer:
            await asyncio.gather(*(writer.write_row((10 * n, "x")) for n in range(10_000)))
            assert entries_of(redis, "b") < 5000
    assert table.sql("SELECT count(), uniqExact(n) FROM t").split() == ["10000", "10000"]


async def test_a_bad_row_among_good_ones(where: dict[str, Any], table: Endpoint, redis: Redis) -> None:
    errors: list[windrow.WriteError] = []
    async with await windrow.get_async_client(**where) as client:
        buffer = f"{redis.address}/0?bucket=b"
        async with client.writer("t", COLUMNS, buffer=buffer, on_error=errors.append, batch_rows=1000) as writer:
            await writer.write_rows([(n, "x") for n in range(3000)])
    assert sorted(row for error in errors for row in error.rows) == [(n, "x") for n in (999, 1999, 2999)]
    assert table.sql("SELECT count(), uniqExact(n) FROM t").split() == ["2997", "2997"]
    assert held_by(redis, "b") == []
