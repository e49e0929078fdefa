"""Bodies in every encoding, both ways."""

from __future__ import annotations

import gzip
import lzma
import zlib
from backports import zstd

import brotli
import lz4.frame
import pytest

from harness.compare import Comparison, Request
from harness.endpoint import Endpoint
from harness.raw_http import RawReply

COMPRESS = {
    "gzip": gzip.compress,
    "deflate": zlib.compress,
    "br": brotli.compress,
    "xz": lzma.compress,
    "zstd": zstd.compress,
    "lz4": lz4.frame.compress,
}
DECOMPRESS = {
    "gzip": gzip.decompress,
    "deflate": zlib.decompress,
    "br": brotli.decompress,
    "xz": lzma.decompress,
    "zstd": zstd.decompress,
    "lz4": lz4.frame.decompress,
}
ROWS = b"".join(b'{"a":%d,"s":"row %d"}\n' % (n, n) for n in range(1000))


@pytest.fixture
def table(direct: Endpoint) -> str:
    direct.sql("CREATE TABLE t (a UInt64, s String) ENGINE = MergeTree ORDER BY a")
    return direct.database


def insert(table: str, body: bytes, encoding: str | None, query: str | None = "INSERT INTO t FORMAT JSONEachRow", **more: str) -> Request:
    headers = () if encoding is None else (("Content-Encoding", encoding),)
    parameters = (("database", table), *((("query", query),) if query else ()), *more.items())
    return Request(parameters=parameters, headers=headers, body=body)


def stored_rows(direct: Endpoint) -> str:
    return direct.sql("SELECT count(), sum(a), max(s) FROM t")


@pytest.mark.parametrize("encoding", COMPRESS)
def test_compressed_rows(both: Comparison, direct: Endpoint, table: str, encoding: str) -> None:
    reply = both.same(insert(table, COMPRESS[encoding](ROWS), encoding), before=(f"TRUNCATE TABLE {table}.t",))
    assert reply.status == 200, reply.text
    assert stored_rows(direct) == "1000\t499500\trow 999"


@pytest.mark.parametrize("encoding", COMPRESS)
def test_compressed_query_with_rows(both: Comparison, direct: Endpoint, table: str, encoding: str) -> None:
    body = COMPRESS[encoding](b"INSERT INTO t FORMAT JSONEachRow\n" + ROWS)
    assert both.same(insert(table, body, encoding, None), before=(f"TRUNCATE TABLE {table}.t",)).status == 200
    assert stored_rows(direct) == "1000\t499500\trow 999"


@pytest.mark.parametrize("encoding", COMPRESS)
def test_compressed_select(both: Comparison, encoding: str) -> None:
    assert both.same(Request(headers=(("Content-Encoding", encoding),), body=COMPRESS[encoding](b"SELECT 1"))).text == "1\n"


@pytest.mark.parametrize("encoding", ["gzip", "zstd", "lz4"])
def test_several_members(both: Comparison, direct: Endpoint, table: str, encoding: str) -> None:
    half = ROWS.index(b"\n", len(ROWS) // 2) + 1
    body = COMPRESS[encoding](ROWS[:half]) + COMPRESS[encoding](ROWS[half:])
    assert both.same(insert(table, body, encoding), before=(f"TRUNCATE TABLE {table}.t",)).status == 200
    assert stored_rows(direct) == "1000\t499500\trow 999"


def test_snappy_rows(both: Comparison, direct: Endpoint, table: str) -> None:
    """The engine itself packs what is then sent."""
    rows = "SELECT number AS a, 'row ' || toString(number) AS s FROM numbers(1000) FORMAT JSONEachRow"
    packed = direct.request(None, rows.encode(), headers={"Accept-Encoding": "snappy"}).body
    assert packed.startswith(b"\xff\x06\x00\x00sNaPpY")
    truncate = (f"TRUNCATE TABLE {table}.t",)
    assert both.same(insert(table, packed, "snappy"), before=truncate).status == 200
    assert stored_rows(direct) == "1000\t499500\trow 999"
    assert both.same(insert(table, packed * 2, "snappy"), before=truncate).status == 200
    assert stored_rows(direct) == "2000\t999000\trow 999"
    for cut in (1, 9, 10, 12, len(packed) // 2, len(packed) - 1):
        assert same_outcome(both, direct, insert(table, packed[:cut], "snappy")) in ("0\t0\t", "1000\t499500\trow 999")


@pytest.mark.parametrize("check", [lzma.CHECK_NONE, lzma.CHECK_CRC32, lzma.CHECK_SHA256])
@pytest.mark.parametrize("preset", [0, 6, 9])
def test_xz_of_every_make(both: Comparison, direct: Endpoint, table: str, check: int, preset: int) -> None:
    packed = lzma.compress(ROWS, check=check, preset=preset)
    assert both.same(insert(table, packed + b"\0" * 4 + packed, "xz"), before=(f"TRUNCATE TABLE {table}.t",)).status == 200
    assert stored_rows(direct) == "2000\t999000\trow 999"


def same_outcome(both: Comparison, direct: Endpoint, request: Request) -> str:
    """Status, code and rows are the same, if not the text; returns what landed."""
    outcomes = []
    for endpoint in (both.oracle, both.tested):
        direct.sql("TRUNCATE TABLE t")
        reply = request.send_to(endpoint)
        outcomes.append((reply.status, reply.code, stored_rows(direct)))
    assert outcomes[0] == outcomes[1]
    return outcomes[1][2]


@pytest.mark.parametrize("encoding", COMPRESS)
def test_truncated_compression(both: Comparison, direct: Endpoint, table: str, encoding: str) -> None:
    """Also where ClickHouse is content without the end mark of an lz4 frame: all rows or none."""
    body = COMPRESS[encoding](ROWS)
    for cut in (0, 1, 5, len(body) // 2, len(body) - 1):
        assert same_outcome(both, direct, insert(table, body[:cut], encoding)) in ("0\t0\t", "1000\t499500\trow 999")


@pytest.mark.parametrize("encoding", COMPRESS)
def test_garbage_is_an_error(tested: Endpoint, direct: Endpoint, table: str, encoding: str) -> None:
    reply = insert(table, b"this is not compressed at all, as anybody can see", encoding).send_to(tested)
    assert reply.status >= 400 and reply.code, reply.text
    assert stored_rows(direct) == "0\t0\t"


@pytest.mark.parametrize("encoding", ["identity", "zork", "bz2", "gzip, gzip", ""])
def test_encodings_that_are_refused(both: Comparison, table: str, encoding: str) -> None:
    both.same(insert(table, ROWS, encoding), before=(f"TRUNCATE TABLE {table}.t",))
    both.same(Request(headers=(("Content-Encoding", encoding),), body=b"SELECT 1"))


def decoded(reply: RawReply) -> bytes:
    encoding = reply.get("Content-Encoding")
    return DECOMPRESS[encoding](reply.body) if encoding else reply.body


@pytest.mark.parametrize("accepted", [*COMPRESS, "gzip, deflate, br", "*", "identity", "zstd;q=0.5, gzip;q=1.0", "zork"])
@pytest.mark.parametrize("enabled", [None, "0", "1"])
def test_compressed_answers(both: Comparison, accepted: str, enabled: str | None) -> None:
    parameters = () if enabled is None else (("enable_http_compression", enabled),)
    select = b"SELECT number, repeat('x', 100) FROM numbers(2000)"
    request = Request(parameters=parameters, headers=(("Accept-Encoding", accepted),), body=select)
    expected, got = request.send_to(both.oracle), request.send_to(both.tested)
    assert got.get("Content-Encoding") == expected.get("Content-Encoding")
    if (got.get("Content-Encoding") or "gzip") in DECOMPRESS:
        assert decoded(got) == decoded(expected)


def test_compressed_error(both: Comparison) -> None:
    request = Request(headers=(("Accept-Encoding", "gzip"),), body=b"SELECT * FROM nowhere")
    assert both.same(request).status == 404


@pytest.mark.parametrize("method", ["LZ4", "ZSTD", "NONE"])
def test_blocks_of_clickhouse(both: Comparison, method: str) -> None:
    """compress=1 asks for ClickHouse's own block format: byte for byte the same through the gateway."""
    parameters = (("compress", "1"), ("network_compression_method", method))
    both.same(Request(parameters=parameters, body=b"SELECT number FROM numbers(1000)"))
    both.same(Request(parameters=parameters, body=b"SELECT * FROM nowhere"))


@pytest.mark.parametrize("method", ["LZ4", "ZSTD", "NONE"])
def test_blocks_of_clickhouse_in_a_request(both: Comparison, direct: Endpoint, table: str, method: str) -> None:
    """The engine makes the compressed blocks that are then sent as an insert."""
    rows = "SELECT concat('{\"a\":', toString(number), ',\"s\":\"row ', toString(number), '\"}') FROM numbers(1000) FORMAT TSVRaw"
    packed = direct.request(None, rows.encode(), {"compress": 1, "network_compression_method": method}).body
    truncate = (f"TRUNCATE TABLE {table}.t",)
    assert both.same(insert(table, packed, None, decompress="1"), before=truncate).status == 200
    assert stored_rows(direct) == "1000\t499500\trow 999"
    damaged = packed[:40] + bytes([packed[40] ^ 1]) + packed[41:]
    for broken in (damaged, *(packed[:cut] for cut in (1, 16, 25, len(packed) // 2, len(packed) - 1))):
        assert same_outcome(both, direct, insert(table, broken, None, decompress="1")) == "0\t0\t"


def test_compressed_insert_error_in_blocks(both: Comparison, table: str) -> None:
    both.same(insert(table, b"", None, "INSERT INTO nowhere FORMAT JSONEachRow", compress="1"))
