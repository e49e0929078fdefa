"""A ClickHouse that insists on chunked packets (`proto_caps`): clients of Windrow need not know of it."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest

from harness.clusters import CHUNKED
from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.native import END_OF_STREAM, EXCEPTION, PING, PONG, SERVER_DATA, Native, numbers, varint
from harness.remote import RemoteGateway, backend_url
from harness.users import TESTER

CREATE = "CREATE TABLE t (n UInt64) ENGINE = MergeTree ORDER BY n"


@pytest.fixture(scope="module")
def through(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RemoteGateway]:
    folder = tmp_path_factory.mktemp("chunked")
    engine = Engine(folder / "engine", config=CHUNKED)
    engine.direct.sql(CREATE)
    native = f'backend_native.address = "127.0.0.1:{engine.native_port}"\n'
    address = f"{engine.direct.host}:{engine.direct.port}"
    gateway = RemoteGateway(folder / "gateway", backend_url(TESTER, address), engine.direct, config=native)
    yield gateway
    gateway.stop()
    engine.stop()


@pytest.mark.parametrize("framing", [("notchunked", "notchunked"), ("chunked", "chunked")])
def test_everything_works(through: RemoteGateway, framing: tuple[str, str]) -> None:
    direct = through.direct
    direct.sql("TRUNCATE TABLE t")
    endpoint = Endpoint("127.0.0.1", through.native_port, TESTER.name, TESTER.password, database="default")
    with Native(endpoint, framing=framing).start() as connection:

        def run(sql: str) -> list:
            connection.send(connection.query(sql) + connection.data())
            return connection.up_to(END_OF_STREAM, EXCEPTION)

        assert connection.insert("INSERT INTO t VALUES", [numbers("n", [1])], 1)[-1].kind == END_OF_STREAM
        assert direct.sql("SELECT n FROM t") == "1"
        blocks = [packet.body for packet in run("SELECT n + 1 AS m FROM t") if packet.kind == SERVER_DATA]
        assert any(block.endswith(struct.pack("<Q", 2)) for block in blocks)
        # Only its native port says how far it is.
        assert len(run("SELECT count() FROM numbers(1000000)")) > 3
        assert run("SELECT throwIf(1)")[-1].code == 395
        # An insert that is passed on whole, one that is larger than its batch may be, and a temporary table.
        forwarded = {"async_insert": "0"}
        assert connection.insert("INSERT INTO t VALUES", [numbers("n", [2])], 1, forwarded)[-1].kind == END_OF_STREAM
        large = range(1_500_000)
        assert connection.insert("INSERT INTO t VALUES", [numbers("n", large)], len(large))[-1].kind == END_OF_STREAM
        assert run("CREATE TEMPORARY TABLE few (n UInt64)")[-1].kind == END_OF_STREAM
        assert connection.insert("INSERT INTO few VALUES", [numbers("n", [3])], 1)[-1].kind == END_OF_STREAM
        assert run("INSERT INTO t SELECT n FROM few")[-1].kind == END_OF_STREAM
        connection.send(varint(PING))
        assert connection.packet().kind == PONG
    assert direct.sql("SELECT count() FROM t") == "1500003"
