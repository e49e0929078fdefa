"""No request hides in another one: where two readers of RFC 9112 could see different ends, nothing is taken and the connection closes."""

from __future__ import annotations

import re

import pytest

from harness.endpoint import Endpoint
from harness.gateway import Gateway
from harness.inserts import INTO_T, ids, make_table, rows
from harness.raw_http import RawConnection, head

ROW = rows(1).encode()
SIZED, CHUNKED = f"Content-Length: {len(ROW)}", "Transfer-Encoding: chunked"
# Lines between the request line and the blank line, each ended with CR LF.
AMBIGUOUS_HEADS = {
    "length and chunks": [SIZED, CHUNKED],
    "chunks and length": [CHUNKED, SIZED],
    "two lengths": ["Content-Length: 8", "Content-Length: 0"],
    "two lengths in one": ["Content-Length: 8, 8"],
    "length with a sign": ["Content-Length: +8"],
    "negative length": ["Content-Length: -8"],
    "length with underscores": ["Content-Length: 0_8"],
    "hexadecimal length": ["Content-Length: 0x8"],
    "length with a fraction": ["Content-Length: 8.0"],
    "length with a blank": ["Content-Length: 0 8"],
    "length of 2^64": ["Content-Length: 18446744073709551624"],
    "no length": ["Content-Length:"],
    "chunked twice": [CHUNKED, CHUNKED],
    "chunked twice in one": ["Transfer-Encoding: chunked, chunked"],
    "chunked, then identity": ["Transfer-Encoding: chunked, identity"],
    "identity": ["Transfer-Encoding: identity", SIZED],
    "chunked with a parameter": ["Transfer-Encoding: chunked;q=1"],
    "chunked in quotes": ['Transfer-Encoding: "chunked"'],
    "xchunked": ["Transfer-Encoding: xchunked", SIZED],
    "chunked with a letter of another alphabet": ["Transfer-Encoding: \xe7hunked", SIZED],
    "vertical tab before chunked": ["Transfer-Encoding: \x0bchunked", SIZED],
    "no encoding": ["Transfer-Encoding:", SIZED],
    "blank before the colon": ["Transfer-Encoding : chunked", SIZED],
    "tab before the colon": ["Content-Length\t: 8"],
    "blank before the name": [" Transfer-Encoding: chunked", SIZED],
    "continued line": ["Transfer-Encoding:", " chunked", SIZED],
    "continued other line": ["X-Other: a", "\tb", SIZED],
    "no colon": ["Transfer-Encoding chunked", SIZED],
    "no name": [": chunked", SIZED],
    "NUL in a name": ["Transfer-Encoding\0: chunked", SIZED],
    "NUL in a value": ["X-Other: a\0b", SIZED],
    "CR in a value": ["X-Other: a\rTransfer-Encoding: chunked", SIZED],
    "LF in a value": ["X-Other: a\nTransfer-Encoding: chunked", SIZED],
    "CR before the name": ["\rTransfer-Encoding: chunked", SIZED],
}
REQUEST_LINES = (
    "POST {target} HTTP/1.1 HTTP/1.0", "POST\t{target}\tHTTP/1.1", "POST  {target} HTTP/1.1", "POST {target}  HTTP/1.1", "POST {target} HTTP/1.1\r",
    "POST {target}", "POST {target} HTTP/2.0", "POST {target} HTTP/1.10", "POST {target} http/1.1", "POST {target}\0 HTTP/1.1", "POST {target}\r HTTP/1.1",
    "PO ST {target} HTTP/1.1", "{target} POST HTTP/1.1",
)  # fmt: skip
SIZES = (
    b"+8", b"-8", b"0x8", b" 8", b"8_", b"8,", b"\t8", b"", b"\r", b"ffffffffffffffff", b"10000000000000008", b"0" * 16 + b"8", b"8\n", b"8;x\n", b"8\r", b"8;\rX",
    b"8\0", b"\xff8", b"8" + b";x" * 3000,
)  # fmt: skip
# Behind the row, where CR LF and the last chunk belong.
AFTER_DATA = (b"0\r\n\r\n", b"\n0\r\n\r\n", b"\r0\r\n\r\n", b"XX0\r\n\r\n", b"\r\n\r\n0\r\n\r\n", b"\r\n0\r\nX\n\r\n", b"\r\n00000000000000000\r\n\r\n")

STATUS_LINE = re.compile(rb"(?:^|\r|\n)HTTP/1.. (\d\d\d)")


def lines(endpoint: Endpoint, *more: str, query: str = INTO_T) -> list[str]:
    return [f"POST {endpoint.target(query, {'async_insert': 1})} HTTP/1.1", "Host: x", f"Authorization: {endpoint.basic_auth()}", *more]


def message(*them: str) -> bytes:
    return "\r\n".join([*them, "", ""]).encode("latin-1")


def behind(endpoint: Endpoint) -> bytes:
    """What is smuggled: a request of the same right, so that it would be done if it were read."""
    return message(*lines(endpoint, "Content-Length: 0", query="INSERT INTO t VALUES (2)"))


def check_refused(tested: Endpoint, direct: Endpoint, sent: bytes) -> None:
    """At most one answer, which is a refusal, then the end; and neither request is done."""
    with RawConnection(tested) as connection:
        connection.send(sent + behind(tested))
        said = connection.rest()
    statuses = STATUS_LINE.findall(said)
    assert len(statuses) <= 1 and not {b"200"} & {*statuses}, said[:500]
    assert ids(direct) == [], said[:500]


@pytest.mark.parametrize("named", AMBIGUOUS_HEADS)
@pytest.mark.parametrize("body", [b"8\r\n" + ROW + b"\r\n0\r\n\r\n", ROW, b"0\r\n\r\n"], ids=["chunks", "row", "last chunk"])
def test_heads_that_can_be_read_in_two_ways(gateway: Gateway, tested: Endpoint, direct: Endpoint, named: str, body: bytes) -> None:
    make_table(direct)
    check_refused(tested, direct, message(*lines(tested, *AMBIGUOUS_HEADS[named])) + body)


@pytest.mark.parametrize("line", REQUEST_LINES, ids=repr)
def test_request_lines(gateway: Gateway, tested: Endpoint, direct: Endpoint, line: str) -> None:
    make_table(direct)
    request_line = line.format(target=tested.target(INTO_T, {"async_insert": 1}))
    check_refused(tested, direct, message(request_line, *lines(tested, SIZED)[1:]) + ROW)


@pytest.mark.parametrize("size", SIZES, ids=lambda size: repr(size[:20]))
def test_sizes_of_chunks(gateway: Gateway, tested: Endpoint, direct: Endpoint, size: bytes) -> None:
    make_table(direct)
    check_refused(tested, direct, message(*lines(tested, CHUNKED)) + size + b"\r\n" + ROW + b"\r\n0\r\n\r\n")


@pytest.mark.parametrize("after", AFTER_DATA, ids=repr)
def test_ends_of_chunks(gateway: Gateway, tested: Endpoint, direct: Endpoint, after: bytes) -> None:
    make_table(direct)
    check_refused(tested, direct, message(*lines(tested, CHUNKED)) + b"8\r\n" + ROW + after)


@pytest.mark.parametrize("keep", ["Connection: keep-alive", "Connection: close", "X-Other: a"])
def test_chunks_of_http_1_0(gateway: Gateway, tested: Endpoint, direct: Endpoint, keep: str) -> None:
    """A proxy of that version does not know the field, and sees no body."""
    make_table(direct)
    request = message(*lines(tested, CHUNKED, keep)).replace(b" HTTP/1.1\r\n", b" HTTP/1.0\r\n", 1)
    check_refused(tested, direct, request + b"8\r\n" + ROW + b"\r\n0\r\n\r\n")


def test_equal_lengths_are_one(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    with RawConnection(tested) as connection:
        connection.send(message(*lines(tested, SIZED, SIZED)) + ROW + behind(tested))
        assert [connection.read_reply().status for _ in range(2)] == [200, 200]
    assert ids(direct) == [1, 2]


@pytest.mark.parametrize("refused", [INTO_T, "INSERT INTO nowhere FORMAT JSONEachRow", "SELECT nothing", "DROP TABLE nowhere"])
@pytest.mark.parametrize("framing", ["sized", "chunked"])
def test_what_is_sent_behind_a_refusal(gateway: Gateway, tested: Endpoint, direct: Endpoint, refused: str, framing: str) -> None:
    """A refused request's body is never taken for the next request."""
    make_table(direct)
    inside = behind(tested)
    stranger = tested.as_user(tested.user, "wrong")
    sent = message(*lines(stranger, CHUNKED if framing == "chunked" else f"Content-Length: {len(inside)}", query=refused))
    body = b"%x\r\n%s\r\n0\r\n\r\n" % (len(inside), inside) if framing == "chunked" else inside
    with RawConnection(tested) as connection:
        connection.send(sent + body + message(*lines(tested, "Content-Length: 0", "Connection: close", query="SELECT 'the next one'")))
        said = connection.rest()
    statuses = STATUS_LINE.findall(said)
    assert len(statuses) <= 2 and statuses[0] != b"200" and ids(direct) == [], said[:500]


@pytest.mark.parametrize("form", ["http://elsewhere{target}", "{target}#fragment", "//elsewhere{target}", "*", "elsewhere:80", "/../{target}", "/%2e{target}", "/;x{target}"])
@pytest.mark.parametrize("method", ["POST", "OPTIONS", "CONNECT", "TRACE", "post", "GET"])
def test_other_forms_of_a_target_are_clickhouses(tested: Endpoint, direct: Endpoint, form: str, method: str) -> None:
    """Not gathered by a reading of our own. What ClickHouse makes of them, it makes of them here."""
    make_table(direct)
    target = form.format(target=tested.target(INTO_T, {"async_insert": 1}))
    outcomes = []
    for endpoint in (direct, tested):
        with RawConnection(endpoint) as connection:
            fields = (("Host", "x"), ("Authorization", endpoint.basic_auth()), ("Content-Length", str(len(ROW))), ("Connection", "close"))
            connection.send(head(method, target, fields) + ROW)
            said = connection.rest()
        outcomes.append((said.split(b"\r\n")[0], ids(direct)))
        direct.sql("TRUNCATE TABLE t")
    assert outcomes[0] == outcomes[1]


CONNECTION_NAMES = ("Authorization", "Content-Length", "X-ClickHouse-User", "Host", "close, Authorization")


@pytest.mark.parametrize("named", CONNECTION_NAMES)
def test_fields_that_connection_names_are_kept(gateway: Gateway, tested: Endpoint, direct: Endpoint, named: str) -> None:
    """Who asks can't be taken out of a request on its way by naming the field in `Connection`."""
    with RawConnection(tested) as connection:
        reply = connection.exchange(message(*lines(tested, "Content-Length: 0", f"Connection: {named}", query="SELECT currentUser()")))
    assert (reply.status, reply.text) == (200, f"{tested.user}\n")


SPLITTING = "x\r\nX-Smuggled: yes\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
ECHOED = (
    {"query_id": SPLITTING}, {"session_timezone": SPLITTING}, {"session_id": SPLITTING, "query_id": SPLITTING}, {"default_format": SPLITTING},
    {"database": SPLITTING}, {"user": SPLITTING, "password": "x"}, {"role": SPLITTING}, {"windrow_ack": SPLITTING}, {"insert_deduplication_token": SPLITTING},
)  # fmt: skip


@pytest.mark.parametrize("settings", ECHOED, ids=lambda settings: "+".join(settings))
@pytest.mark.parametrize("query", [INTO_T, "INSERT INTO nowhere FORMAT JSONEachRow", "SELECT 1"])
def test_no_answer_is_split(gateway: Gateway, tested: Endpoint, direct: Endpoint, settings: dict[str, str], query: str) -> None:
    """What a URL says comes back in the head of an answer, as one field."""
    make_table(direct)
    body = b"" if query == "SELECT 1" else ROW
    fields = [("Host", "x"), ("Content-Length", str(len(body))), ("Connection", "close")]
    if "user" not in settings:
        fields.append(("Authorization", tested.basic_auth()))
    with RawConnection(tested) as connection:
        connection.send(head("POST", tested.target(query, {"async_insert": 1, **settings}), fields) + body)
        answer_head = connection.rest().split(b"\r\n\r\n")[0]
    assert len(STATUS_LINE.findall(answer_head)) == 1, answer_head
    assert b"X-Smuggled" not in {line.split(b":")[0].strip() for line in re.split(rb"[\r\n]+", answer_head)}, answer_head
