"""ClickHouse was killed while it moved an append's parts, the gateway was away, and merges have covered all traces."""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from harness.engine import Engine
from harness.eventually import eventually
from harness.ordered import LOST, Append, native
from harness.remote import RemoteGateway
from harness.users import TESTER

ROWS = 50


class CutAtMove:
    """Passes connections on to ClickHouse until it sees a MOVE: from then on nothing comes through any more."""

    def __init__(self, port: int) -> None:
        self.backend_port, self.is_cut = port, threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                if self.is_cut.is_set():
                    client.close()
                    continue
                backend = socket.create_connection(("127.0.0.1", self.backend_port))
                for source, sink in ((client, backend), (backend, client)):
                    threading.Thread(target=self.pass_on, args=(source, sink), daemon=True).start()

    def pass_on(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if b"MOVE" in data:
                    self.is_cut.set()
                if self.is_cut.is_set():
                    break
                sink.sendall(data)
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.listener.close()


@pytest.fixture(scope="module")
def backend(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = Engine(tmp_path_factory.mktemp("backend"))
    yield engine
    engine.stop()


def url(port: int) -> str:
    return f"http://{quote(TESTER.name)}:{quote(TESTER.password)}@127.0.0.1:{port}"


def decided_and_killed(gateway: RemoteGateway, cut: CutAtMove, table: str) -> str:
    """An append that is decided and has not moved; its gateway is gone."""
    append = Append(gateway.http.as_user(TESTER.name, TESTER.password), table)
    for number in range(2):
        assert append.put(number, native(n=range(number * ROWS, (number + 1) * ROWS))).status == 200

    def commit() -> None:
        with contextlib.suppress(*LOST):
            append.commit(2)

    committing = threading.Thread(target=commit)
    committing.start()
    assert cut.is_cut.wait(60), "no MOVE came"
    gateway.kill()
    committing.join()
    return append.id


@pytest.mark.parametrize("came", [True, False])
def test_rows_are_not_repeated(tmp_path: Path, backend: Engine, came: bool) -> None:
    direct, table = backend.direct, f"half_{came}".lower()
    direct.sql(
        f"CREATE TABLE {table} (n Int64) ENGINE = MergeTree ORDER BY n "
        # It is not trusted to show merged parts for any time.
        "SETTINGS old_parts_lifetime = 0"
    )
    cut = CutAtMove(direct.port)
    gateway = RemoteGateway(tmp_path / "gateway", url(cut.port), direct)
    try:
        append_id = decided_and_killed(gateway, cut, table)
        if came:
            # What a server leaves that is killed between the two halves of a MOVE, when merges have covered the parts
            # that came: the rows are in both tables, in the target in parts of other UUIDs.
            staging = f"__windrow_append_{append_id.replace('-', '')}"
            direct.sql(f"INSERT INTO {table} SELECT n FROM {staging}")
        direct.sql(f"INSERT INTO {table} VALUES (1000)")
        gateway.backend_url = url(direct.port)
        gateway.start()
        append = Append(gateway.http.as_user(TESTER.name, TESTER.password), table, append_id)
        reply = eventually(lambda: (r := append.commit(2)).status != 503 and r, "it is no longer being committed")
        if came:
            assert reply.code == 319, reply.text
        else:
            assert reply.status == 200, reply.text
        assert direct.sql(f"SELECT count(), uniq(n) FROM {table}") == f"{2 * ROWS + 1}\t{2 * ROWS + 1}"
    finally:
        cut.close()
        gateway.stop()
