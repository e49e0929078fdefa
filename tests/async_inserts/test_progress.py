"""A client that waits long for its insert is told that it still does, if it asks for that."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager

from harness.compare import Request
from harness.endpoint import Endpoint
from harness.gateway import Gateway
from harness.inserts import HELD, INTO_T, ids, make_table, queued_inserts, rows
from harness.raw_http import RawConnection

FLUSH = "SYSTEM FLUSH ASYNC INSERT QUEUE"
TOLD = {"send_progress_in_http_headers": 1, "http_headers_progress_interval_ms": 1}


@contextmanager
def told(tested: Endpoint, body: str) -> Iterator[RawConnection]:
    """An insert that waits, up to its first word of progress."""
    settings = {"database": tested.database, "query": INTO_T, **HELD, **TOLD}
    request = Request(parameters=tuple((name, str(value)) for name, value in settings.items()), body=body.encode())
    with RawConnection(tested) as connection:
        connection.send(request.head(tested) + (request.body or b""))
        first_line, second_line = connection.until(b"\r\n"), connection.until(b"\r\n")
        assert first_line == b"HTTP/1.1 200 OK"
        name, _, figures = second_line.decode().partition(": ")
        assert name == "X-ClickHouse-Progress"
        assert json.loads(figures).keys() == {"read_rows", "read_bytes", "elapsed_ns"}
        assert json.loads(figures)["read_rows"] == "1"
        # What has been read of the head, for the reader of the whole of it.
        connection.pending = first_line + b"\r\n" + second_line + b"\r\n" + connection.pending
        yield connection


def test_a_long_wait_is_told(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    with told(tested, rows(1)) as connection:
        tested.sql(FLUSH)
        reply = connection.read_reply()
        assert reply.status == 200 and reply.complete
        assert json.loads(reply.get("X-ClickHouse-Summary") or "")["written_rows"] == "1"
        # The connection goes on like any other.
        again = Request(parameters=(("query", "SELECT 1"),))
        assert connection.exchange(again.head(tested)).text == "1\n"
    assert ids(direct) == [1]


def test_an_error_after_it_is_one_still(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """As in ClickHouse: the status has gone, the code stands in its field."""
    make_table(direct, "a UInt64, CONSTRAINT small CHECK a < 1000")
    with told(tested, rows(5000)) as connection:
        tested.sql(FLUSH)
        reply = connection.read_reply()
        assert (reply.status, reply.code) == (200, 469)
        assert reply.get("X-ClickHouse-Exception-Code") == "469"
    assert ids(direct) == []


def test_who_leaves_meanwhile_has_inserted(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    with told(tested, rows(1)):
        pass
    assert queued_inserts(tested) == 1
    tested.sql(FLUSH)
    assert ids(direct) == [1]


def test_a_wait_that_is_shorter_than_the_interval_is_not(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """Its status is still to come: ClickHouse's queue tells nothing of the kind either."""
    make_table(direct, "a UInt64, CONSTRAINT small CHECK a < 1000")
    # Longer than any machine takes to store a row. That no interval is too short to matter is asked where intervals are made.
    seldom = {**TOLD, "http_headers_progress_interval_ms": 600_000}
    reply = tested.insert(INTO_T, rows(1), **seldom)
    assert reply.status == 200 and "x-clickhouse-progress" not in reply.headers
    reply = tested.insert(INTO_T, rows(5000), **seldom)
    assert (reply.status, reply.code) == (500, 469)
