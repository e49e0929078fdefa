"""Native clients of a backend that has no native port to be reached: a ClickHouse over HTTP alone, and DuckDB."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from clickhouse_driver import Client
from clickhouse_driver.errors import ServerException

from harness.clusters import cluster_xml, remote_servers
from harness.duckdb import READER, DuckDbGateway
from harness.engine import Engine
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.metrics import metrics_of
from harness.native import CANCEL, END_OF_STREAM, EXCEPTION, PING, PONG, Native, varint
from harness.remote import RemoteGateway, backend_url
from harness.users import TESTER


@pytest.fixture(scope="module")
def http_only(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteGateway]:
    folder = tmp_path_factory.mktemp("http-only")
    engine = Engine(folder / "engine")
    address = f"127.0.0.1:{engine.direct.port}"
    # Nobody listens on port 1.
    nowhere = '[backend_native]\naddress = "127.0.0.1:1"\n'
    gateway = RemoteGateway(folder / "gateway", backend_url(TESTER, address), engine.direct, nowhere)
    yield gateway
    assert gateway.stop() == 0
    engine.stop()


@pytest.fixture(scope="module")
def duckdb(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDbGateway]:
    gateway = DuckDbGateway(tmp_path_factory.mktemp("duckdb"))
    yield gateway
    assert gateway.stop() == 0


def client(gateway: Gateway, user: str = TESTER.name, password: str = TESTER.password, **options: object) -> Client:
    return Client("127.0.0.1", port=gateway.native_port, user=user, password=password, **options)


def of_duckdb(gateway: Gateway, **options: object) -> Client:
    return client(gateway, "default", "", **options)


@pytest.mark.parametrize("compression", [False, "lz4"])
def test_everything_but_a_native_port(http_only: RemoteGateway, compression: str | bool) -> None:
    native = client(http_only, compression=compression)
    assert native.execute("SELECT version()") == [(http_only.direct.sql("SELECT version()"),)]
    native.execute("DROP TABLE IF EXISTS t")
    native.execute("CREATE TABLE t (n UInt64, s LowCardinality(String), at DateTime, a Array(Nullable(Int8))) ENGINE = MergeTree ORDER BY n")
    rows = [(n, f"word {n % 3}", datetime.datetime(2024, 2, 29, 1, 2, n), [None, n]) for n in range(10)]
    assert native.execute("INSERT INTO t VALUES", rows) == 10
    # Not gathered: it asks not to be.
    more = [(n + 100, *row[1:]) for n, row in enumerate(rows)]
    assert native.execute("INSERT INTO t (n, s, at, a) VALUES", more, settings={"async_insert": 0}) == 10
    native.execute("INSERT INTO t (n, s) VALUES (200, 'text')", settings={"async_insert": 0})
    native.execute("INSERT INTO t (n, s) VALUES (201, upper('text'))")
    assert native.execute("SELECT * FROM t WHERE n < 200 ORDER BY n") == rows + more
    assert native.execute("SELECT n, s FROM t WHERE n >= 200 ORDER BY n") == [(200, "text"), (201, "TEXT")]
    count = native.execute("SELECT number, toString(number) FROM numbers(300000)")
    assert (len(count), sum(number for number, _ in count)) == (300_000, 299_999 * 150_000)
    with pytest.raises(ServerException, match="not_there") as error:
        native.execute("SELECT * FROM not_there")
    assert error.value.code == 60
    with pytest.raises(ServerException) as error:
        native.execute("SELECT throwIf(number = 900000, 'too far'), number FROM numbers(1000000)", settings={"max_block_size": 1000})
    assert error.value.code == 395


def http_requests(gateway: Gateway) -> float:
    return metrics_of(gateway).sum("windrow_request_duration_seconds_count")


@pytest.mark.parametrize("which", ["http_only", "duckdb"])
def test_the_gateway_sends_itself_no_requests(request: pytest.FixtureRequest, which: str) -> None:
    gateway = request.getfixturevalue(which)
    before = http_requests(gateway)
    native = client(gateway) if which == "http_only" else of_duckdb(gateway)
    engine = "ENGINE = MergeTree ORDER BY n" if which == "http_only" else ""
    native.execute(f"CREATE TABLE alone (n BIGINT) {engine}")
    assert native.execute("INSERT INTO alone VALUES", [(1,)]) == 1
    native.execute("INSERT INTO alone VALUES (1 + 1)")
    assert native.execute("SELECT n FROM alone ORDER BY n") == [(1,), (2,)]
    for table in ("windrow_dead_letters", "asynchronous_inserts"):
        assert native.execute(f"SELECT count(*) FROM system.{table}") == [(0,)]
    with pytest.raises(ServerException):
        native.execute("SELECT * FROM system.not_there")
    assert http_requests(gateway) == before


def test_a_connection_is_a_session(http_only: RemoteGateway) -> None:
    native = client(http_only)
    native.execute("CREATE TEMPORARY TABLE scratch (n UInt64)")
    native.execute("INSERT INTO scratch VALUES", [(1,), (2,)])
    assert native.execute("SELECT sum(n) FROM scratch") == [(3,)]
    native.execute("SET max_block_size = 4321")
    assert native.execute("SELECT getSetting('max_block_size')") == [(4321,)]


def test_servers_can_insert_and_not_read(http_only: RemoteGateway, tmp_path: Path) -> None:
    """What servers ask each other before they read has no HTTP."""
    config = remote_servers([cluster_xml("through", http_only.native_port)])
    sender = Engine(tmp_path / "sender", config=config)
    http_only.direct.sql("CREATE TABLE sent (n UInt64) ENGINE = MergeTree ORDER BY n")
    sender.direct.sql("CREATE DATABASE d")
    sender.direct.sql("CREATE TABLE d.sent (n UInt64) ENGINE = Distributed(through, default, sent)")
    for settings in ({}, {"async_insert": 0}):
        sender.direct.sql("INSERT INTO d.sent SELECT number FROM numbers(1000)", distributed_foreground_insert=1, **settings)
    assert http_only.direct.sql("SELECT count(), sum(n) FROM sent") == "2000\t999000"
    where = f"'127.0.0.1:{http_only.native_port}', numbers(3), '{TESTER.name}', '{TESTER.password}'"
    for reads in ("SELECT count() FROM d.sent", f"SELECT * FROM remote({where})"):
        assert "backend_native.address" in sender.direct.request(reads).text
    sender.stop()


def test_what_can_not_be_read_is_said(http_only: RemoteGateway) -> None:
    with pytest.raises(ServerException, match="backend_native.address"):
        client(http_only).execute("SELECT uniqCombinedState(number) FROM numbers(3)")


def test_duckdb_answers(duckdb: DuckDbGateway) -> None:
    native = of_duckdb(duckdb)
    assert native.execute("SELECT version()") == [("26.7.1.1",)]
    native.execute("CREATE TABLE d (n UBIGINT, s VARCHAR, f DOUBLE)")
    assert native.execute("INSERT INTO d VALUES", [(1, "a", 0.5), (2, None, None)]) == 2
    native.execute("INSERT INTO d VALUES (3, 'c', 1.5)")
    native.execute("INSERT INTO d VALUES (4, upper('d'), 2)")
    assert native.execute("SELECT * FROM d ORDER BY n") == [(1, "a", 0.5), (2, None, None), (3, "c", 1.5), (4, "D", 2.0)]
    native.execute("INSERT INTO d (n) VALUES", [(5,)], settings={"async_insert": 1, "wait_for_async_insert": 0})
    eventually(lambda: native.execute("SELECT count(*) FROM d") == [(5,)], "it is stored")
    with pytest.raises(ServerException) as error:
        native.execute("SELECT * FROM not_there")
    assert error.value.code == 60
    with pytest.raises(ServerException):
        native.execute("INSERT INTO not_there VALUES", [(1,)])
    assert native.execute("SELECT count(*) FROM d") == [(5,)]


def test_pings_and_cancel_are_heard_while_duckdb_answers(duckdb: DuckDbGateway) -> None:
    slow = "SELECT count(*) FROM range(1000000000) a, range(1000) b WHERE a.range + b.range = 7"
    with Native(replace(duckdb.http, port=duckdb.native_port)) as connection:
        connection.start()
        connection.send(connection.query(slow) + connection.data() + varint(PING))
        assert connection.packet().kind == PONG
        connection.send(varint(CANCEL))
        assert connection.up_to(END_OF_STREAM)[-1].kind == END_OF_STREAM
        # The session goes on.
        connection.send(varint(PING))
        assert connection.packet().kind == PONG


def test_a_reader_of_duckdb_only_reads(duckdb: DuckDbGateway) -> None:
    of_duckdb(duckdb).execute("CREATE TABLE IF NOT EXISTS kept (n INTEGER)")
    reader = client(duckdb, *READER)
    assert reader.execute("SELECT count(*) FROM kept") == [(0,)]
    with pytest.raises(ServerException) as error:
        reader.execute("INSERT INTO kept VALUES", [(1,)])
    assert error.value.code == 164
    with Native(replace(duckdb.http, port=duckdb.native_port), password="wrong") as connection:
        connection.send(connection.hello())
        packet = connection.packet(greeting=True)
        assert (packet.kind, packet.code) == (EXCEPTION, 516)


def test_duckdb_keeps_what_it_acknowledged(tmp_path: Path) -> None:
    gateway = DuckDbGateway(tmp_path, f"duckdb://{tmp_path}/kept.duckdb")
    of_duckdb(gateway).execute("CREATE TABLE t (n UBIGINT)")
    native = of_duckdb(gateway, settings={"async_insert": 1, "wait_for_async_insert": 0})
    for n in range(50):
        native.execute("INSERT INTO t VALUES", [(n,)])
    gateway.kill()
    gateway.start()
    eventually(lambda: of_duckdb(gateway).execute("SELECT count(*), sum(n) FROM t") == [(50, 1225)], "all of them are there")
    assert gateway.stop() == 0


def test_the_native_port_tells_where_http_is(tmp_path: Path) -> None:
    engine = Engine(tmp_path / "engine")
    url = f"tcp://{TESTER.name}:{TESTER.password}@127.0.0.1:{engine.native_port}"
    gateway = RemoteGateway(tmp_path / "gateway", url, engine.direct)
    engine.direct.sql("CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n")
    http = replace(gateway.http, user=TESTER.name, password=TESTER.password)
    assert http.insert("INSERT INTO t FORMAT JSONEachRow", '{"n": 1}', async_insert=1).status == 200
    assert client(gateway).execute("INSERT INTO t VALUES", [(2,)]) == 1
    # What is not gathered goes the native way.
    assert client(gateway).execute("SELECT n FROM t ORDER BY n") == [(1,), (2,)]
    assert client(gateway).execute("SELECT '{\"a\": 1}'::JSON")
    assert gateway.stop() == 0
    engine.stop()
