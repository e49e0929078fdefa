"""Where a request ends is never a matter of opinion: what two readers could take differently closes the connection."""

from __future__ import annotations

import pytest

from harness.endpoint import Endpoint
from harness.inserts import INTO_T, ids, make_table
from harness.raw_http import RawConnection, head

ENDS_OTHERWISE = (b"0\r\n\n", b"0\r\na: b\n\n", b"0\r\na: b\n\r\n", b"0\r\na: b\r\n\n", b"0\r\na: b\r\r\n\r\n", b"0\n\r\n", b"0\r\n\rX")


def smuggled(endpoint: Endpoint) -> bytes:
    target = endpoint.target("INSERT INTO t VALUES (2)")
    return head("POST", target, (("Host", "x"), ("Authorization", endpoint.basic_auth()), ("Content-Length", "0")))


def chunked_insert(endpoint: Endpoint) -> bytes:
    fields = (("Host", "x"), ("Authorization", endpoint.basic_auth()), ("Transfer-Encoding", "chunked"))
    return head("POST", endpoint.target(INTO_T, {"async_insert": 1}), fields) + b'7\r\n{"a":1}\r\n'


@pytest.mark.parametrize("end", ENDS_OTHERWISE, ids=repr)
def test_a_chunked_body_that_ends_otherwise(tested: Endpoint, direct: Endpoint, end: bytes) -> None:
    make_table(direct)
    with RawConnection(tested) as connection:
        connection.send(chunked_insert(tested) + end + smuggled(tested))
        assert connection.closed_by_peer()
    assert ids(direct) == [], "neither was taken"


def test_one_with_a_trailer(tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    with RawConnection(tested) as connection:
        connection.send(chunked_insert(tested) + b"0\r\nChecksum: x\r\n\r\n" + smuggled(tested))
        assert [connection.read_reply().status for _ in range(2)] == [200, 200]
    assert ids(direct) == [1, 2]
