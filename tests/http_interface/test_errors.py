"""Errors before an answer and in the middle of it."""

from __future__ import annotations

import re
import zlib

import pytest

from harness.compare import Comparison, Request
from harness.endpoint import Endpoint

ERRORS = [
    ("SELECT * FROM nowhere", 404, 60),
    ("SELECT * FROM nowhere.t", 404, 81),
    ("SELEC 1", 400, 62),
    ("SELECT 1 FORMAT Zork", 404, 73),
    ("SELECT nothing", 404, 47),
    ("SELECT nofunction(1)", 404, 46),
    ("SELECT throwIf(1)", 500, 395),
    ("SELECT 1; SELECT 2", 400, 62),
    ("SELECT toUInt8('x')", 400, 6),
    ("KILL QUERY WHERE nothing = 1 ASYNC", 404, 47),
    ("SYSTEM ZORK", 404, 47),
]


@pytest.mark.parametrize(("query", "status", "code"), ERRORS)
def test_error_before_the_answer(both: Comparison, query: str, status: int, code: int) -> None:
    reply = both.same(Request(parameters=(("query", query),)))
    assert (reply.status, reply.code) == (status, code)
    assert reply.get("X-ClickHouse-Exception-Code") == str(code)
    assert re.search(r"Code: \d+\. DB::Exception: .* \(\w+\) \(version [\d.]+.*\)\n$", reply.text, re.S), reply.text


@pytest.mark.parametrize("insert", [
    "INSERT INTO nowhere FORMAT JSONEachRow",
    "INSERT INTO nowhere.t FORMAT JSONEachRow",
    "INSERT INTO t (zork) FORMAT JSONEachRow",
    "INSERT INTO t FORMAT Zork",
    "INSERT INTO t FORMAT Pretty",
    "INSERT INTO t (a, a) FORMAT JSONEachRow",
    "INSERT INTO system.numbers FORMAT JSONEachRow",
    "INSERT INTO t FORMAT",
    "INSERT INTO t (a FORMAT JSONEachRow",
])  # fmt: skip
def test_insert_that_cannot_be(both: Comparison, direct: Endpoint, insert: str) -> None:
    direct.sql("CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
    reply = both.same(Request(parameters=(("database", direct.database), ("query", insert)), body=b'{"a":1}'))
    assert reply.status >= 400
    assert direct.sql("SELECT count() FROM t") == "0"


BAD_ROWS = [
    ("JSONEachRow", b'{"a":1}{"a":"x"}{"a":2}'),
    ("JSONEachRow", b'{"a":1}\n{"a":2'),
    ("JSONEachRow", b'{"a":1}\n{"a":-2'),
    ("JSONEachRow", b"zork"),
    ("JSONEachRow", b'[{"a":1},'),
    ("JSONEachRow", b'{"a":1,"b":2} trailing'),
    ("JSONEachRow", b'{"a":1}{"zork":1}'),
    ("JSONEachRow", b'{"a":300}{"small":300}'),
    ("JSONEachRow", b'{"day":"yesterday"}'),
    ("JSONEachRow", b'{"colour":"blue"}'),
    ("JSONEachRow", b'{"list":[1,"x"]}'),
    ("JSONEachRow", b'{"key":"not a uuid"}'),
    ("JSONEachRow", b'{"a":null,"small":null}'),
    ("Values", b"(1,2,'2024-01-01','red',[],'00000000-0000-0000-0000-000000000000'),(x)"),
    ("Values", b"(1"),
    ("Values", b"(1,2)"),
    ("Values", b"zork"),
    ("CSV", b"1\nx\n"),
]


@pytest.mark.parametrize(("format_name", "rows"), BAD_ROWS)
def test_bad_rows(both: Comparison, direct: Endpoint, format_name: str, rows: bytes) -> None:
    """Code and status are ClickHouse's, and either all rows of a request land or none."""
    direct.sql(
        "CREATE TABLE t (a UInt64, small UInt8, day Date, colour Enum8('red' = 1), list Array(Int32), key UUID)"
        " ENGINE = MergeTree ORDER BY a"
    )
    parameters = (("database", direct.database), ("query", f"INSERT INTO t FORMAT {format_name}"))
    outcomes = []
    for endpoint in (both.oracle, both.tested):
        direct.sql("TRUNCATE TABLE t")
        reply = Request(parameters=parameters, body=rows).send_to(endpoint)
        row = re.search(r"\(at row \d+\)", reply.text)
        outcomes.append((reply.status, reply.code, row and row.group(), direct.sql("SELECT * FROM t FORMAT JSONEachRow")))
    assert outcomes[1] == outcomes[0]


def in_the_middle(**settings: str) -> Request:
    query = "SELECT throwIf(number = 300000, 'too far'), number FROM numbers(1000000)"
    ordered = {"max_threads": "1", "max_block_size": "1000", **settings}
    return Request(parameters=(("query", query), *ordered.items()))


def test_error_in_the_middle(both: Comparison) -> None:
    for endpoint in (both.oracle, both.tested):
        reply = in_the_middle().send_to(endpoint)
        tag = reply.get("X-ClickHouse-Exception-Tag")
        assert reply.status == 200 and tag
        assert reply.body.startswith(b"0\t0\n0\t1\n")
        end = re.search(rb"\r\n__exception__\r\n(\w+)\r\n(Code: 395\..*)\n(\d+) (\w+)\r\n__exception__\r\n$", reply.body, re.S)
        assert end, reply.body[-500:]
        assert end.group(1) == end.group(4) == tag.encode()


def test_error_in_the_middle_awaited(both: Comparison) -> None:
    reply = both.same(in_the_middle(wait_end_of_query="1"))
    assert (reply.status, reply.code) == (500, 395)
    both.same(in_the_middle(wait_end_of_query="1", buffer_size="1000"))


def test_error_in_the_middle_compressed(both: Comparison) -> None:
    """The framing ends as ClickHouse ends it, the error is inside the compressed stream. Random text, or it would fit into a buffer."""
    query = "SELECT throwIf(number = 300000, 'too far'), generateUUIDv4() FROM numbers(1000000)"
    parameters = (("query", query), ("max_threads", "1"), ("max_block_size", "1000"))
    complete = []
    for endpoint in (both.oracle, both.tested):
        reply = Request(parameters=parameters, headers=(("Accept-Encoding", "gzip"),)).send_to(endpoint)
        assert reply.status == 200
        assert b"__exception__" in zlib.decompressobj(wbits=31).decompress(reply.body)[-2000:]
        complete.append(reply.complete)
    assert complete[1] == complete[0]


def test_stack_trace(both: Comparison) -> None:
    request = Request(parameters=(("query", "SELECT * FROM nowhere"), ("stacktrace", "1")))
    for endpoint in (both.oracle, both.tested):
        reply = request.send_to(endpoint)
        assert reply.status == 404 and "Stack trace" in reply.text


@pytest.mark.parametrize("settings", [
    {"max_execution_time": "1", "query": "SELECT sleepEachRow(1) FROM numbers(60) SETTINGS max_block_size = 1, function_sleep_max_microseconds_per_block = 0"},
    {"max_result_rows": "10", "query": "SELECT number FROM numbers(1000)"},
    {"max_rows_to_read": "10", "query": "SELECT number FROM numbers(1000)"},
    {"readonly": "1", "query": "CREATE TABLE x (a UInt8) ENGINE = Memory"},
])  # fmt: skip
def test_limits(both: Comparison, settings: dict[str, str]) -> None:
    outcomes = []
    for endpoint in (both.oracle, both.tested):
        reply = Request(parameters=tuple(settings.items())).send_to(endpoint)
        outcomes.append((reply.status, reply.code))
    assert outcomes[1] == outcomes[0]
    assert outcomes[1][1] in (158, 159, 164, 396)
