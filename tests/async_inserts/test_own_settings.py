"""Windrow's own settings, wherever they stand, and what ClickHouse gets to see of them: nothing."""

from __future__ import annotations

import gzip

import pytest

from harness.endpoint import Endpoint
from harness.gateway import Gateway
from harness.inserts import ids, make_table

OWN = "SETTINGS windrow_ack = 'stored', async_insert = 0, windrow_flush_policy='fixed'"
STATEMENT = f"INSERT INTO t {OWN} FORMAT JSONEachRow"
ROWS = b'{"a":1}\n{"a":2}\n'


@pytest.fixture
def table(direct: Endpoint) -> None:
    make_table(direct)


@pytest.mark.parametrize(("query", "body"), [
    (STATEMENT, ROWS),
    (None, STATEMENT.encode() + b"\n" + ROWS),
    ("INSERT INTO t SETTINGS windrow_ack='stored',", b"async_insert=0 FORMAT JSONEachRow\n" + ROWS),
    ("INSERT INTO t SETTINGS async_insert=0", b", windrow_ack='stored' FORMAT JSONEachRow\n" + ROWS),
    (f"INSERT INTO t {OWN} VALUES (1),", b"(2)"),
    ("INSERT INTO t SETTINGS windrow_ack='stored' VALUES", b"(1), (length('windrow_ack') - 9)"),
    ("INSERT INTO t SETTINGS windrow_ack='stored'", b"SELECT number + 1 FROM numbers(2)"),
])  # fmt: skip
@pytest.mark.parametrize("packed", [False, True])
def test_forwarded_without_them(
    gateway: Gateway, tested: Endpoint, direct: Endpoint, table: None, query: str | None, body: bytes, packed: bool
) -> None:
    headers = {"Content-Encoding": "gzip"} if packed else {}
    reply = tested.request(query, gzip.compress(body) if packed else body, headers=headers)
    assert reply.status == 200, reply.text
    assert ids(direct) == [1, 2]


def test_in_blocks_of_clickhouse(gateway: Gateway, tested: Endpoint, direct: Endpoint, table: None) -> None:
    text = STATEMENT.replace("'", "\\'") + '\\n{"a":1}{"a":2}'
    packed = direct.request(None, f"SELECT '{text}' FORMAT TSVRaw".encode(), {"compress": 1}).body
    assert tested.request(None, packed, {"decompress": 1}).status == 200
    assert ids(direct) == [1, 2]


def test_too_large_to_be_gathered(gateway: Gateway, tested: Endpoint, direct: Endpoint, table: None) -> None:
    """The statement stands in a body that streams through."""
    statement = "INSERT INTO t SETTINGS windrow_ack='stored' FORMAT JSONEachRow\n"
    body = statement.encode() + b'{"a":7}\n' * 3_000_000
    assert tested.request(None, body).status == 200
    assert direct.sql("SELECT count(), sum(a) FROM t") == "3000000\t21000000"


def test_rows_that_only_clickhouse_can_read(gateway: Gateway, tested: Endpoint, direct: Endpoint, table: None) -> None:
    statement = "INSERT INTO t SETTINGS windrow_ack='stored' FORMAT JSONEachRow"
    reply = tested.request(statement, b'{"a":"x"}')
    assert (reply.status, reply.code) == (400, 27), reply.text


def test_gathered_with_them(gateway: Gateway, tested: Endpoint, direct: Endpoint, table: None) -> None:
    reply = tested.request("INSERT INTO t SETTINGS windrow_ack='stored' FORMAT JSONEachRow", ROWS)
    assert reply.status == 200 and reply.summary["written_rows"] == "2"
    assert ids(direct) == [1, 2]


@pytest.mark.parametrize("clause", ["windrow_ack='sotred'", "windrow_akc='stored'", "async_insert=0, windrow_ack='disc'"])
def test_misspelt_ones_are_refused(gateway: Gateway, tested: Endpoint, direct: Endpoint, table: None, clause: str) -> None:
    """Somebody relies on what such a setting promises."""
    reply = tested.request(f"INSERT INTO t SETTINGS {clause} FORMAT JSONEachRow", ROWS)
    assert (reply.status, reply.code) == (400, 36), reply.text
    assert ids(direct) == []
