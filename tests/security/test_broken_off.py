"""A request that breaks off after any of its bytes stores nothing; one that is whole stores all, once; and the server goes on."""

from __future__ import annotations

import gzip

import pytest

from harness.endpoint import Endpoint
from harness.gateway import Gateway
from harness.inserts import INTO_T, ids, make_table, rows
from harness.raw_http import RawConnection, chunked, head

BOUNDARY = "b"
PART = "--b\r\nContent-Disposition: form-data; name=\"x\"; filename=\"x\"\r\n\r\n{}\n\r\n--b--\r\n"


def framed(endpoint: Endpoint, form: str, number: int) -> bytes:
    """An insert of one row."""
    fields = [("Host", "x"), ("Authorization", endpoint.basic_auth())]
    query, body, more = INTO_T, rows(number).encode(), {"async_insert": 1}
    if form == "multipart":
        query, body, more = "INSERT INTO t SELECT a FROM x", PART.format(number).encode(), {"x_structure": "a UInt64"}
        fields.append(("Content-Type", f"multipart/form-data; boundary={BOUNDARY}"))
    if form == "gzip":
        body = gzip.compress(body, mtime=0)
        fields.append(("Content-Encoding", "gzip"))
    if form == "statement in the body":
        query, body = None, f"{INTO_T}\n{rows(number)}".encode()
    if form == "forwarded":
        more = {"async_insert": 0}
    if form == "chunked":
        return head("POST", endpoint.target(query, more), [*fields, ("Transfer-Encoding", "chunked")]) + chunked(body, [5])
    return head("POST", endpoint.target(query, more), [*fields, ("Content-Length", str(len(body)))]) + body


@pytest.mark.parametrize("form", ["sized", "chunked", "gzip", "statement in the body", "multipart", "forwarded"])
def test_each_prefix_stores_nothing(gateway: Gateway, tested: Endpoint, direct: Endpoint, form: str) -> None:
    make_table(direct)
    whole = framed(tested, form, 1_000)
    said_yes = []
    for cut in range(len(whole)):
        with RawConnection(tested) as connection:
            connection.send(framed(tested, form, 1_000 + cut)[:cut])
            # Half of them wait for an answer, the others leave.
            if cut % 2:
                connection.end_sending()
                said = connection.rest()
                said_yes += [cut] if said.startswith(b"HTTP/1.1 200") else []
    with RawConnection(tested) as connection:
        assert connection.exchange(whole).status == 200
    assert (said_yes, ids(direct)) == ([], [1_000])
    assert tested.insert(INTO_T, rows(2_000)).status == 200


@pytest.mark.parametrize("form", ["sized", "chunked", "gzip"])
def test_who_leaves_behind_a_whole_insert(gateway: Gateway, tested: Endpoint, direct: Endpoint, form: str) -> None:
    """It is stored once, whether or not somebody hears of it."""
    make_table(direct)
    for number in range(1_000, 1_030):
        with RawConnection(tested) as connection:
            connection.send(framed(tested, form, number))
            connection.end_sending()
            assert connection.rest().startswith(b"HTTP/1.1 200")
    assert ids(direct) == list(range(1_000, 1_030))
