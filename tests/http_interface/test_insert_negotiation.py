"""Whatever a client says about the answer it wants, a gathered insert is answered as ClickHouse answers it."""

from __future__ import annotations

import gzip
import lzma
import zlib
from backports import zstd

import brotli
import lz4.block
import lz4.frame
import pytest

from harness.compare import Comparison, Request, differences, normalised
from harness.endpoint import Endpoint
from harness.raw_http import RawReply
from harness.users import ANN

UNPACK = {
    "gzip": gzip.decompress,
    "deflate": zlib.decompress,
    "br": brotli.decompress,
    "zstd": zstd.decompress,
    "lz4": lz4.frame.decompress,
    "xz": lzma.decompress,
}
INSERT = "INSERT INTO t FORMAT JSONEachRow"
# Of an insert that fails ClickHouse tells how far it came; in its queue it came nowhere.
SUMMARY = ("x-clickhouse-summary",)
GOOD, REFUSED = b'{"a":1}', b'{"a":5000}'
# A value of this length stands in the error's text.
LARGE = b'{"a":5000,"s":"%s"}' % (b"0123456789" * 20_000)


@pytest.fixture(autouse=True)
def table(direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (a UInt64, s String, CONSTRAINT small CHECK a < 1000) ENGINE = MergeTree ORDER BY tuple()")


def insert(direct: Endpoint, body: bytes | None, headers: dict[str, str] | None = None, method: str = "POST", **more: str) -> Request:
    parameters = {"database": direct.database, "query": INSERT, **more}
    return Request(method, parameters=tuple(parameters.items()), headers=tuple((headers or {}).items()), body=body)


def ignoring(request: Request) -> tuple[str, ...]:
    return () if request.body == GOOD else SUMMARY


def unpacked(reply: RawReply) -> RawReply:
    """Two compressors need not agree on a byte; what they compressed has to be the same."""
    encoding = reply.get("Content-Encoding")
    if encoding and reply.body:
        reply.body = UNPACK[encoding](reply.body)
    return reply


def same_unpacked(both: Comparison, request: Request) -> RawReply:
    expected, got = (unpacked(request.send_to(endpoint)) for endpoint in (both.oracle, both.tested))
    found = differences(normalised(expected, ignoring(request)), normalised(got, ignoring(request)))
    assert not found, f"{request}:\n  " + "\n  ".join(found)
    return got


ACCEPTED = [*UNPACK, "gzip, deflate", "gzip, deflate, br", "gzip, deflate, br, zstd", "GZIP", "*", "identity", "gzip;q=0", "zork"]


@pytest.mark.parametrize("body", [GOOD, REFUSED, LARGE], ids=["good", "refused", "large"])
@pytest.mark.parametrize("accepted", ACCEPTED)
def test_encodings_of_the_answer(both: Comparison, direct: Endpoint, accepted: str, body: bytes) -> None:
    reply = same_unpacked(both, insert(direct, body, {"Accept-Encoding": accepted}))
    assert reply.status == (200 if body == GOOD else 500), reply.text[:300]
    off = same_unpacked(both, insert(direct, body, {"Accept-Encoding": accepted}, enable_http_compression="0"))
    assert off.get("Content-Encoding") is None


@pytest.mark.parametrize("body", [GOOD, REFUSED, LARGE], ids=["good", "refused", "large"])
@pytest.mark.parametrize("method", [None, "LZ4", "ZSTD", "NONE"])
def test_blocks_of_clickhouse(both: Comparison, direct: Endpoint, body: bytes, method: str | None) -> None:
    """Always LZ4, whatever method is named."""
    more = {"network_compression_method": method} if method else {}
    texts = []
    for endpoint in (both.oracle, both.tested):
        request = insert(direct, body, compress="1", **more)
        reply = request.send_to(endpoint)
        packed = reply.body
        assert (packed == b"") == (body == GOOD)
        if packed:
            assert packed[16] == 0x82
            reply.body = blocks_of_lz4(packed)
        texts.append(normalised(reply, ignoring(request)))
    found = differences(*texts)
    assert not found, "\n".join(found)


def blocks_of_lz4(packed: bytes) -> bytes:
    """The content of ClickHouse's blocks: a checksum of 16 bytes, the method, both sizes, the data."""
    content = b""
    while packed:
        size, raw_size = (int.from_bytes(packed[at : at + 4], "little") for at in (17, 21))
        content += lz4.block.decompress(packed[25 : 16 + size], uncompressed_size=raw_size)
        packed = packed[16 + size :]
    return content


@pytest.mark.parametrize("settings", [
    {"wait_end_of_query": "1"}, {"wait_end_of_query": "0"}, {"wait_end_of_query": "yes"},
    {"buffer_size": "1000", "wait_end_of_query": "1"}, {"buffer_size": "zork"},
    {"http_wait_end_of_query": "1"}, {"http_response_buffer_size": "10"}, {"http_response_buffer_size": "zork"},
    {"default_format": "JSON"}, {"default_format": "Zork"}, {"default_format": ""},
    {"output_format_json_quote_64bit_integers": "1"},
    {"quota_key": "mine"}, {"quota_key": ""},
    {"session_id": "one", "session_timeout": "60"}, {"session_id": "two", "session_timeout": "zork"},
    {"session_id": "three", "session_timeout": "3601"}, {"session_timeout": "zork"}, {"session_id": ""},
    {"session_id": "four", "session_check": "1"}, {"session_id": "five", "session_check": "0"}, {"close_session": "0"},
    {"compress": "0"}, {"compress": "zork"}, {"compress": ""}, {"decompress": "zork"}, {"decompress": "0"},
    {"client_protocol_version": "54460"}, {"client_protocol_version": "zork"}, {"client_protocol_version": "-1"},
    {"send_progress_in_http_headers": "zork"}, {"http_headers_progress_interval_ms": "zork"},
    {"http_response_headers": "{'X-Own':'value'}"}, {"http_write_exception_in_output_format": "1", "default_format": "JSON"},
    {"stacktrace": "0"}, {"role": "zork"}, {"user": "zork"}, {"database": "zork"}, {"database": ""},
    {"quota_key": "p", "query_id": "of-my-own"}, {"query_id": ""}, {"query_id": "with \"quotes\" and ü"},
    {"output_format": "CSV"}, {"zork": "1"}, {"max_execution_time": "zork"}, {"log_comment": "ü"},
    {"readonly": "1"}, {"readonly": "2"}, {"cancel_http_readonly_queries_on_client_close": "1"},
    {"add_http_cors_header": "1"}, {"add_http_cors_header": "zork"},
    {"replace_running_query": "1"}, {"replace_running_query": "zork"},
])  # fmt: skip
@pytest.mark.parametrize("body", [GOOD, REFUSED], ids=["good", "refused"])
def test_parameters(both: Comparison, direct: Endpoint, settings: dict[str, str], body: bytes) -> None:
    request = insert(direct, body, **settings)
    both.same(request, ignoring(request))


@pytest.mark.parametrize("headers", [
    {"X-ClickHouse-Format": "JSON"}, {"X-ClickHouse-Format": "CSV"}, {"X-ClickHouse-Format": "Zork"},
    {"X-ClickHouse-Database": "zork"}, {"X-ClickHouse-Quota": "mine"}, {"X-ClickHouse-Query-Id": "of-my-own-too"},
    {"Origin": "https://example.com"}, {"Connection": "close"}, {"Connection": "keep-alive"},
    {"Content-Type": "application/json"}, {"Content-Type": "text/plain; charset=UTF-8"},
    {"User-Agent": "a program/1.0"}, {"Referer": "https://example.com/"}, {"X-Forwarded-For": "10.0.0.1"},
    {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}, {"traceparent": "zork"},
])  # fmt: skip
@pytest.mark.parametrize("body", [GOOD, REFUSED], ids=["good", "refused"])
def test_header_fields(both: Comparison, direct: Endpoint, headers: dict[str, str], body: bytes) -> None:
    request = insert(direct, body, headers)
    both.same(request, ignoring(request))
    no_database = (("query", f"INSERT INTO {direct.database}.t FORMAT JSONEachRow"),)
    both.same(Request(parameters=no_database, headers=tuple(headers.items()), body=body), ignoring(request))


@pytest.mark.parametrize("body", [GOOD, REFUSED], ids=["good", "refused"])
def test_scripts_of_other_origins(both: Comparison, direct: Endpoint, body: bytes) -> None:
    """A browser shows the answer to its script only if the field is there."""
    request = insert(direct, body, {"Origin": "https://example.com"}, add_http_cors_header="1")
    reply = both.same(request, ignoring(request))
    assert reply.get("Access-Control-Allow-Origin") == "*"
    both.same(insert(direct, body, {"Origin": ""}, add_http_cors_header="1"), ignoring(request))
    both.same(Request("OPTIONS", headers=(("Origin", "https://example.com"),), body=None))


@pytest.mark.parametrize("method", ["GET", "HEAD", "PUT", "DELETE", "PATCH"])
def test_methods_that_insert_nothing(both: Comparison, direct: Endpoint, method: str) -> None:
    with_rows = f"{INSERT}\n{GOOD.decode()}"
    both.same(insert(direct, None, method=method, query=with_rows))
    assert direct.sql("SELECT count() FROM t") == "0"


@pytest.mark.parametrize("code", [6, 8, 42, 44, 53, 117, 194, 223, 229, 321, 336, 439, 469, 497, 779, 1002])
def test_status_of_every_kind_of_error(both: Comparison, direct: Endpoint, code: int) -> None:
    """The flush fails with a code that the test chooses; the answer is what ClickHouse's own would be."""
    direct.sql(f"CREATE TABLE f (a UInt64, b UInt8 DEFAULT throwIf(a = 7, 'of a code', {code}::Int32)) ENGINE = Null", allow_custom_error_code_in_throwif=1)
    custom = {"allow_custom_error_code_in_throwif": "1", "query": "INSERT INTO f FORMAT JSONEachRow"}
    request = insert(direct, b'{"a":7}', **custom)
    replies = [request.send_to(endpoint) for endpoint in (both.oracle, both.tested)]
    expected, got = ((reply.status, reply.reason, reply.code, reply.get("X-ClickHouse-Exception-Code")) for reply in replies)
    assert got == expected
    assert got[2] == code


def test_parameter_and_field_together(both: Comparison, direct: Endpoint) -> None:
    """The database of the field wins, even an empty one; the query id of the parameter; two quota keys are refused."""
    for database in (direct.database, "zork", ""):
        both.same(insert(direct, GOOD, {"X-ClickHouse-Database": database}, database="system"), SUMMARY)
        both.same(insert(direct, GOOD, {"X-ClickHouse-Database": database}), SUMMARY)
    for query_id in ("one", ""):
        both.same(insert(direct, GOOD, {"X-ClickHouse-Query-Id": "two"}, query_id=query_id))
    for quota_key in ("one", ""):
        both.same(insert(direct, GOOD, {"X-ClickHouse-Quota": "two"}, quota_key=quota_key))


def test_who_may_not_insert(both: Comparison, direct: Endpoint) -> None:
    for user, password in ((ANN.name, "wrong"), ("nobody", "")):
        for accepted in ("gzip", "identity"):
            parameters = (("user", user), ("password", password), ("query", INSERT), ("compress", "1"), ("query_id", "x"))
            both.same(Request(parameters=parameters, headers=(("Accept-Encoding", accepted),), body=GOOD, authorised=False))


def test_summary_has_the_keys_of_clickhouse_in_its_order(both: Comparison, direct: Endpoint) -> None:
    summaries = [insert(direct, GOOD * 3).send_to(endpoint).get("X-ClickHouse-Summary") for endpoint in (both.oracle, both.tested)]
    keys = [[part.split(":")[0] for part in (summary or "").strip("{}").split(",")] for summary in summaries]
    assert keys[0] == keys[1]
