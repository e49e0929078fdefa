"""Who asks is who the request says, byte for byte."""

from __future__ import annotations

from urllib.parse import quote_from_bytes

import pytest

from harness.endpoint import Endpoint
from harness.inserts import INTO_T, ids, make_table, rows
from harness.raw_http import RawConnection, head
from harness.users import ANN, TESTER

BESIDE = (b" %s", b"%s ", b"%s\n", b"\n%s", b"%s\r\n", b"\t%s", b"%s\0", b"%s\x0b", b"%s\xff", b"%s\xc2\xa0")


def post(endpoint: Endpoint, parameters: str, fields: tuple[tuple[str, str], ...] = ()) -> tuple[int, str]:
    body = rows(1).encode()
    query = quote_from_bytes(INTO_T.encode())
    target = f"/?database={endpoint.database}&query={query}&async_insert=1{parameters}"
    with RawConnection(endpoint) as connection:
        sized = (*fields, ("Host", endpoint.host), ("Content-Length", str(len(body))))
        reply = connection.exchange(head("POST", target, sized) + body)
    return reply.status, reply.text


def in_url(user: bytes, password: bytes) -> str:
    return f"&user={quote_from_bytes(user, safe='')}&password={quote_from_bytes(password, safe='')}"


@pytest.mark.parametrize("user", [ANN, TESTER], ids=lambda user: user.name)
@pytest.mark.parametrize("beside", BESIDE, ids=repr)
def test_what_is_almost_the_password_is_not_the_password(tested: Endpoint, direct: Endpoint, user, beside: bytes) -> None:
    make_table(direct)
    name, password = user.name.encode(), user.password.encode()
    assert post(tested, in_url(name, password))[0] == 200
    for almost in (in_url(name, beside % password), in_url(beside % name, password)):
        status, text = post(tested, almost)
        assert status in (401, 403), text
    # Also where the right one is known.
    assert post(tested, in_url(name, password))[0] == 200
    assert ids(direct) == [1, 1]


@pytest.mark.parametrize("parameters", ["&user=ann&password=%ff", "&user=%ff&password=a", "&user=ann&user=tester&password=a", "&user=ann&password=x&password=a"])
def test_what_can_be_taken_in_two_ways_is_clickhouses_to_judge(tested: Endpoint, direct: Endpoint, parameters: str) -> None:
    make_table(direct)
    status, text = post(tested, parameters)
    said_directly = post(direct, parameters)
    assert (status, text.splitlines()[:1]) == (said_directly[0], said_directly[1].splitlines()[:1])
