"""Who is not known gets little of everything, and his slowness holds nobody."""

from __future__ import annotations

import gzip
from base64 import b64encode
from contextlib import ExitStack
from pathlib import Path

import pyarrow
import pytest
from pyarrow import flight

from harness.disguise import Disguise
from harness.duckdb import DuckDbGateway
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.inserts import INTO_T, ids, make_table, rows
from harness.process import resident_bytes
from harness.raw_http import RawConnection, RawReply, head
from harness.remote import RemoteGateway, backend_url
from harness.users import ANN, TESTER

FEW_CONNECTIONS = "[http]\nmax_connections = 12\n"
MIB = 1 << 20
# A request that is not ended: its head grows for as long as one likes.
ENDLESS_HEAD = b"GET /?query=" + b"x" * (MIB - 200)


def basic(user: str, password: str) -> tuple[str, str]:
    return ("Authorization", "Basic " + b64encode(f"{user}:{password}".encode()).decode())


def insert_head(endpoint: Endpoint, user: tuple[str, str], *fields: tuple[str, str]) -> bytes:
    return head("POST", endpoint.target(INTO_T), (("Host", "x"), user, *fields))


@pytest.fixture(params=["ClickHouse", "DuckDB"])
def few(request: pytest.FixtureRequest, start_gateway, tmp_path: Path):
    """A gateway with room for twelve connections, and an endpoint of a user."""
    if request.param == "ClickHouse":
        gateway = start_gateway(FEW_CONNECTIONS)
        yield gateway.http.as_user(TESTER.name, TESTER.password)
    else:
        duck = DuckDbGateway(tmp_path, config=FEW_CONNECTIONS)
        yield duck.http
        assert duck.stop() == 0


def test_silent_strangers_make_room_for_whoever_comes(few: Endpoint) -> None:
    few.sql("CREATE TABLE t (a Int64) ENGINE = MergeTree ORDER BY a" if few.user == TESTER.name else "CREATE TABLE t (a BIGINT)")
    credentials = basic(few.user, few.password)
    with ExitStack() as stack:
        user = stack.enter_context(RawConnection(few))
        body = rows(1).encode()
        assert user.exchange(insert_head(few, credentials, ("Content-Length", str(len(body)))) + body).status == 200
        strangers = [stack.enter_context(RawConnection(few)) for _ in range(30)]
        # Half a head; a head whose body does not come.
        strangers[-1].send(b"GET / HT")
        strangers[-2].send(insert_head(few, basic("nobody", "x"), ("Content-Length", "9")))
        assert few.insert(INTO_T, rows(2)).status == 200
        assert strangers[0].closed_by_peer(), "who came first and said nothing leaves first"
        assert user.exchange(insert_head(few, credentials, ("Content-Length", str(len(body)))) + body).status == 200, "a user stays"
    assert few.sql("SELECT count() FROM t" if few.user == TESTER.name else "SELECT count(*) FROM t") == "3"


def refused(reply: RawReply) -> bool:
    return (reply.status, reply.code) == (403, 516)


@pytest.mark.parametrize("framing", ["length", "chunked", "gzip", "form", "another path"])
def test_a_stranger_is_refused_before_his_body_is_read(tested: Endpoint, direct: Endpoint, framing: str) -> None:
    """He hears so at once; who is known may take his time."""
    make_table(direct)
    data = rows(*range(20_000)).encode()
    fields = [("Content-Length", str(len(data)))]
    if framing == "chunked":
        data = b"%x\r\n%s\r\n0\r\n\r\n" % (len(data), data)
        fields = [("Transfer-Encoding", "chunked")]
    elif framing == "gzip":
        data = gzip.compress(data)
        fields = [("Content-Length", str(len(data))), ("Content-Encoding", "gzip")]
    elif framing == "form":
        fields.append(("Content-Type", "multipart/form-data; boundary=x"))
    target = tested.target(INTO_T)
    if framing == "another path":
        target = target.replace("/?", "/nowhere?", 1)
    for name, password in (("nobody", "x"), (TESTER.name, "wrong"), (f"{TESTER.name} ", TESTER.password)):
        with RawConnection(tested) as connection:
            connection.send(head("POST", target, (("Host", "x"), basic(name, password), *fields)) + data[:100])
            reply = connection.read_reply()
            assert refused(reply), reply
    if framing in ("form", "another path"):
        return
    with RawConnection(tested) as connection:
        connection.send(head("POST", target, (("Host", "x"), basic(TESTER.name, TESTER.password), *fields)) + data[:100])
        connection.send(data[100:])
        assert connection.read_reply().status == 200
    assert len(ids(direct)) == 20_000


def test_a_bomb_of_a_stranger_is_not_unpacked(start_gateway) -> None:
    gateway: Gateway = start_gateway()
    make_table(gateway.direct)
    bomb = gzip.compress(b" " * (48 * MIB))
    before = resident_bytes(gateway.child.pid)
    endpoint = gateway.http
    headers = dict([("Content-Encoding", "gzip"), basic("nobody", "x")])
    for _ in range(20):
        reply = endpoint.request(INTO_T, bomb, headers=headers)
        assert (reply.status, reply.code) == (403, 516), reply.text
    assert resident_bytes(gateway.child.pid) - before < 40 * MIB


def test_long_heads_take_no_more_than_their_share(start_gateway) -> None:
    """One address gets half of what there is for heads of which nobody knows who sends them."""
    gateway: Gateway = start_gateway()
    endpoint = gateway.http.as_user(TESTER.name, TESTER.password)
    with ExitStack() as stack:
        before = resident_bytes(gateway.child.pid)
        connections = [stack.enter_context(RawConnection(endpoint, source="127.0.0.2")) for _ in range(200)]
        for connection in connections:
            send_what_is_taken(connection, ENDLESS_HEAD)
        refusals = [connection for connection in connections if is_refused(connection)]
        assert len(refusals) >= 160
        assert resident_bytes(gateway.child.pid) - before < 160 * MIB
        # Others have the other half.
        assert long_head_is_taken(endpoint, "127.0.0.3")
    # And the first when they have gone.
    eventually(lambda: long_head_is_taken(endpoint, "127.0.0.2"), "there is room again")


def send_what_is_taken(connection: RawConnection, data: bytes) -> None:
    try:
        connection.send(data)
    except (BrokenPipeError, ConnectionResetError):
        pass


def is_refused(connection: RawConnection) -> bool:
    """Or waits for the rest."""
    connection.socket.settimeout(0.05)
    try:
        reply = connection.read_reply("GET")
    except TimeoutError:
        return False
    except (ConnectionError, EOFError):
        return True
    assert reply.status == 503 and "long requests' heads" in reply.text, reply
    return True


def long_head_is_taken(endpoint: Endpoint, source: str) -> bool:
    padding = [(f"X-Padding-{number}", "x" * 4000) for number in range(20)]
    fields = (("Host", "x"), ("Authorization", endpoint.basic_auth()), *padding)
    with RawConnection(endpoint, source=source) as connection:
        return connection.exchange(head("GET", endpoint.target("SELECT 1"), fields), "GET").text == "1\n"


def test_strangers_whom_clickhouse_is_asked_about_hold_up_themselves(gateway: Gateway, direct: Endpoint, tmp_path: Path) -> None:
    """ClickHouse is slow to say that a hundred of one address are nobody. Who comes from another one for the first time is let in."""
    make_table(direct)
    with Disguise(direct.port) as relay:
        own = RemoteGateway(tmp_path, backend_url(TESTER, relay.address), direct)
        endpoint = own.http.using(direct.database)
        relay.hold("stranger")
        with ExitStack() as stack:
            body = rows(1).encode()
            length = ("Content-Length", str(len(body)))
            for number in range(100):
                connection = stack.enter_context(RawConnection(endpoint, source="127.0.0.2"))
                connection.send(insert_head(endpoint, basic(f"stranger{number}", "x"), length) + body)
            for name, password in ((ANN.name, ANN.password), (TESTER.name, TESTER.password)):
                with RawConnection(endpoint, source="127.0.0.3") as connection:
                    reply = connection.exchange(insert_head(endpoint, basic(name, password), length) + body)
                    assert reply.status == 200, reply
            assert 0 < relay.holding <= 12, "three questions about each of four"
        relay.hold()
        relay.behave()
        assert own.stop() == 0
    assert ids(direct) == [1, 1]


def test_silent_strangers_do_not_hold_flights_port(start_gateway) -> None:
    gateway: Gateway = start_gateway()
    host, port = gateway.flight.removeprefix("grpc://").split(":")
    with ExitStack() as stack:
        for number in range(1_050):
            stranger = stack.enter_context(RawConnection(Endpoint(host, int(port), "", "")))
            if number % 2:
                # The preface of HTTP/2, and no more.
                stranger.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
        with flight.connect(gateway.flight) as client:
            token = client.authenticate_basic_token(TESTER.name, TESTER.password)
            assert list(client.list_actions(flight.FlightCallOptions(headers=[token], timeout=30)))


def test_flight_reads_nothing_of_a_stranger(gateway: Gateway) -> None:
    """Not even to say that it is too long."""
    descriptor = flight.FlightDescriptor.for_command(b"x" * (17 * MIB))
    with flight.connect(gateway.flight) as client:
        for user in (("nobody", "x"), (TESTER.name, "wrong")):
            field = tuple(part.encode() for part in basic(*user))
            options = flight.FlightCallOptions(headers=[(field[0].lower(), field[1])], timeout=30)
            with pytest.raises(flight.FlightUnauthenticatedError, match="516|Authentication failed"):
                client.get_flight_info(descriptor, options)
        field = tuple(part.encode() for part in basic(TESTER.name, TESTER.password))
        options = flight.FlightCallOptions(headers=[(field[0].lower(), field[1])], timeout=30)
        with pytest.raises(pyarrow.ArrowException, match="(?i)too large"):
            client.get_flight_info(descriptor, options)
