"""Answers that are long, slow, or no longer wanted."""

from __future__ import annotations

import json

from harness.compare import Comparison, Request
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.raw_http import RawConnection

# Answers nothing before its end: progress can only be told in headers as long as those go on.
SLOW = (
    "SELECT count() FROM numbers(20) WHERE sleepEachRow(0.05) = 0"
    " SETTINGS max_block_size = 1, max_threads = 1, function_sleep_max_microseconds_per_block = 0"
)
NEVER = "SELECT number FROM system.numbers"
BIG_ROWS, ROW_BYTES = 2_500_000, 101


def test_big_answer_read_slowly(tested: Endpoint) -> None:
    """250 MB through a small socket buffer: complete, in order, and nobody has to hold it in memory."""
    query = f"SELECT leftPad(toString(number), {ROW_BYTES - 1}, '.') FROM numbers({BIG_ROWS})"
    request = Request(parameters=(("query", query), ("max_threads", "1")))
    with RawConnection(tested, receive_buffer_bytes=64 << 10) as connection:
        connection.send(request.head(tested))
        reply = connection.read_head()
        assert reply.status == 200
        received, first, last = 0, b"", b""
        while size := int(connection.until(b"\r\n"), 16):
            piece = connection.up_to(size)
            connection.up_to(2)
            first, last = first or piece, (last + piece)[-200:]
            received += len(piece)
    assert received == BIG_ROWS * ROW_BYTES
    assert first.startswith(b"." * 99 + b"0\n")
    assert last.endswith(str(BIG_ROWS - 1).encode() + b"\n")


def test_rows_come_while_the_query_runs(tested: Endpoint, direct: Endpoint) -> None:
    """The first rows are readable before the query ends: it is still listed as running then."""
    query = f"SELECT number, sleepEachRow(0.1), repeat('x', 100000) FROM numbers(600) SETTINGS {small_blocks()}"
    request = Request(parameters=(("query", query), ("query_id", "early-rows"), ("max_threads", "1")))
    with RawConnection(tested) as connection:
        connection.send(request.head(tested))
        connection.read_head()
        connection.up_to(1000)
        assert running(direct, "early-rows") == "1"
    direct.sql("KILL QUERY WHERE query_id = 'early-rows' SYNC")


def small_blocks() -> str:
    return "max_block_size = 1, function_sleep_max_microseconds_per_block = 0"


def running(direct: Endpoint, query_id: str) -> str:
    return direct.sql(f"SELECT count() FROM system.processes WHERE query_id = '{query_id}'")


def test_disconnect_cancels_a_streaming_query(tested: Endpoint, direct: Endpoint) -> None:
    request = Request(parameters=(("query", NEVER), ("query_id", "goes-away")))
    with RawConnection(tested) as connection:
        connection.send(request.head(tested))
        assert connection.read_head().status == 200
        eventually(lambda: running(direct, "goes-away") == "1", "the query runs")
    eventually(lambda: running(direct, "goes-away") == "0", "the query is cancelled")


def test_disconnect_cancels_a_silent_query(tested: Endpoint, direct: Endpoint) -> None:
    """A query that has not answered anything yet is cancelled too where a reader asks for it."""
    query = SLOW.replace("numbers(20)", "numbers(1200)")
    settings = (("cancel_http_readonly_queries_on_client_close", "1"),)
    request = Request("GET", parameters=(("query", query), ("query_id", "silent"), *settings), body=None)
    with RawConnection(tested) as connection:
        connection.send(request.head(tested))
        eventually(lambda: running(direct, "silent") == "1", "the query runs")
    eventually(lambda: running(direct, "silent") == "0", "the query is cancelled")


def test_progress_headers(both: Comparison) -> None:
    for endpoint in (both.oracle, both.tested):
        settings = (("send_progress_in_http_headers", "1"), ("http_headers_progress_interval_ms", "100"))
        reply = Request(parameters=(("query", SLOW), *settings)).send_to(endpoint)
        progress = [json.loads(value) for value in reply.all("X-ClickHouse-Progress")]
        assert reply.status == 200
        assert len(progress) > 2, "a query of a second reports every 100 ms"
        read = [int(step["read_rows"]) for step in progress]
        assert read == sorted(read)


def test_progress_arrives_before_the_end(tested: Endpoint, direct: Endpoint) -> None:
    query = SLOW.replace("numbers(20)", "numbers(1200)")
    settings = (("send_progress_in_http_headers", "1"), ("http_headers_progress_interval_ms", "50"))
    request = Request(parameters=(("query", query), ("query_id", "progress"), *settings))
    with RawConnection(tested) as connection:
        connection.send(request.head(tested))
        connection.until(b"X-ClickHouse-Progress")
        connection.until(b"X-ClickHouse-Progress")
    direct.sql("KILL QUERY WHERE query_id = 'progress' SYNC")


def test_waiting_for_the_end(both: Comparison) -> None:
    query = "SELECT number FROM numbers(100000)"
    both.same(Request(parameters=(("query", query), ("wait_end_of_query", "1"))))
    both.same(Request(parameters=(("query", query), ("wait_end_of_query", "1"), ("buffer_size", "1000"))))


def test_formats_come_through_byte_by_byte(both: Comparison) -> None:
    query = "SELECT number, toString(number) AS s, [number] AS list, now() > 0 AS yes FROM numbers(5000)"
    for name in ("Native", "RowBinary", "JSON", "CSVWithNames", "Parquet", "ArrowStream", "Avro", "Pretty", "TSVRaw", "Null"):
        parameters = (("query", f"{query} FORMAT {name}"), ("max_threads", "1"))
        ignoring = ("x-clickhouse-summary",)
        if name == "Avro":
            expected, got = (Request(parameters=parameters).send_to(e) for e in (both.oracle, both.tested))
            assert (got.status, len(got.body)) == (expected.status, len(expected.body))
            continue
        both.same(Request(parameters=parameters), ignoring)
    for version in ("54405", "54460"):
        both.same(Request(parameters=(("query", f"{query} FORMAT Native"), ("client_protocol_version", version))))
