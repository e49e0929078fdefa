"""The load generator against a server that misbehaves on purpose: what it says was acknowledged has to be what the server acknowledged,
id by id."""

from __future__ import annotations

import json
import os
import socket
import threading

import pytest
from harness.paths import ROOT

from bench.base.scenario import MODES, Scenario, generate, row_of_format, stride_over

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
OK_IN_CHUNKS = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n"
OK_AND_CLOSE = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
BUSY = b"HTTP/1.1 503 Busy\r\nContent-Length: 4\r\n\r\nbusy"
CUT_SHORT = b"HTTP/1.1 200 OK\r\nContent-Le"
ANSWERS = (OK, OK_IN_CHUNKS, BUSY, OK, CUT_SHORT, OK_AND_CLOSE, OK)
CONNECTIONS, INSERTS = 5, 70


class Misbehaving:
    """Answers by sequence number, and remembers what it acknowledged."""

    def __init__(self) -> None:
        self.acknowledged: list[tuple[int, int]] = []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            threading.Thread(target=self._serve, args=self.listener.accept()[:1], daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as requests:
            while line := requests.readline():
                while (field := requests.readline()) != b"\r\n":
                    line = field
                row = json.loads(requests.read(int(line.rpartition(b" ")[2])))
                answer = ANSWERS[row["seq"] % len(ANSWERS)]
                if answer not in (BUSY, CUT_SHORT):
                    self.acknowledged.append((row["conn"], row["seq"]))
                connection.sendall(answer)
                if answer in (CUT_SHORT, OK_AND_CLOSE):
                    return


@pytest.fixture(autouse=True)
def built(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BENCH_BIN", os.environ.get("BENCH_BIN", str(ROOT / "target" / "release")))


@pytest.mark.parametrize("in_step", [False, True])
def test_what_it_calls_acknowledged_is_what_the_server_acknowledged(in_step: bool):
    server, load = Misbehaving(), {"inserts_per_connection": INSERTS, "in_step": in_step}
    heads = ["POST / HTTP/1.1\r\nHost: x\r\nContent-Length: "]
    found = generate(server.address, heads, Scenario("stored", CONNECTIONS, 600, 0, load=load), {})
    acknowledged = [
        (conn, seq) for conn, ids in enumerate(found["ids"]) for seq in range(ids.sent) if seq not in ids.unacknowledged
    ]
    assert sorted(server.acknowledged) == sorted(acknowledged)
    assert {ids.sent for ids in found["ids"]} == {INSERTS} and found["in_window"] == len(acknowledged) == 250
    assert (found["statuses"], found["broken"]) == ({"200": 250, "503": 50}, 50)
    assert len(found["steps_ms"]) == (INSERTS if in_step else 0)


def test_a_server_that_is_not_there_is_an_error():
    with pytest.raises(SystemExit):
        generate("127.0.0.1:1", ["POST / HTTP/1.1\r\nContent-Length: "], Scenario("stored", 3, 600, load={}), {})


def test_rows_are_what_the_formats_say():
    texts = [bytes(piece).decode() if isinstance(piece, list) else "7" for piece in row_of_format("JSONEachRow")]
    row = json.loads("".join(texts))
    assert row == {"conn": 7, "seq": 7, "time": 1_700_000_000, "site": "example.com", "city": "Oslo", "latency_us": 7}
    sizes = {"conn": 4, "seq": 8, "value": 4}
    lengths = {
        name: sum(sizes[piece] if isinstance(piece, str) else len(piece) for piece in row_of_format(name))
        for name in ("RowBinary", "Native")
    }
    assert lengths == {"RowBinary": 37, "Native": 118}


def test_even_spreading_reaches_every_target_equally_often():
    for count in (1, 2, 10, 100, 618, 1000):
        stride = stride_over(count)
        assert sorted((7 + seq * stride) % count for seq in range(count)) == list(range(count)), f"{count} targets"


def test_handlers_and_ways_are_told_apart():
    assert {name for name, mode in MODES.items() if mode.is_handler} == {"empty", "axum", "sync-each"}
