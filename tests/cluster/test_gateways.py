"""Several gateways in front of one ClickHouse: a repeat is known whichever of them it comes to, and what one of them has acknowledged
is stored once, whatever becomes of it."""

from __future__ import annotations

import asyncio
import http.client
import itertools
import json
import random
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from clickhouse_driver import Client

from harness.certificate import made_in
from harness.endpoint import Endpoint, Reply
from harness.engine import Engine
from harness.eventually import eventually
from harness.gateway import flat
from harness.inserts import INTO_T, ids, make_table, rows
from harness.middle import Fate, Middle
from harness.otlp import JSON, OverHttp
from harness.ports import port_of_nobody
from harness.relay import PIECE_BYTES, Relay
from harness.several_gateways import SECRET, MemberGateway, TokenLoad, adopt, member, names
from harness.users import TESTER

ASYNC = {"async_insert": 1}
ON_DISK = {**ASYNC, "wait_for_async_insert": 0}
#: So that a batch that is sent again is stored once.
WINDOW = "SETTINGS non_replicated_deduplication_window = 1000"
HOP = "X-Windrow-Hop"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    started = Engine(tmp_path_factory.mktemp("several-gateways"))
    yield started
    started.stop()


@pytest.fixture
def backend(engine: Engine, request: pytest.FixtureRequest) -> Iterator[Endpoint]:
    """The engine, with a database of the test's own."""
    name = re.sub(r"\W+", "_", f"g_{request.node.name}").lower()[:120]
    engine.direct.sql(f"CREATE DATABASE {name}")
    yield engine.direct.using(name)
    engine.direct.sql(f"DROP DATABASE {name} SYNC")


Start = Callable[..., MemberGateway]


@pytest.fixture
def start(tmp_path: Path, backend: Endpoint) -> Iterator[Start]:
    running: list[MemberGateway] = []

    def begin(gateways: list[str], own: str, **more: str) -> MemberGateway:
        running.append(member(tmp_path / f"gateway-{len(running)}", gateways, own, backend, **more))
        return running[-1]

    yield begin
    for gateway in running:
        gateway.stop()


@pytest.fixture
def two(start: Start) -> tuple[MemberGateway, MemberGateway]:
    first, second = start_all(start, names(2))
    return first, second


def start_all(start: Start, gateways: list[str], **more: str) -> list[MemberGateway]:
    started = [start(gateways, own, **more) for own in gateways]
    for gateway in started:
        eventually(lambda gateway=gateway: all(other["up"] for other in gateway.shown()["gateways"]), "each sees the others")
    return started


def insert(gateway: MemberGateway, number: int, token: str | None = None, **settings: object) -> Reply:
    """A row of this number, by its token."""
    token = f"token {number}" if token is None else token
    return gateway.http.insert(INTO_T, rows(number), insert_deduplication_token=token, **{**ASYNC, **settings})


def numbers_owned_by(owner: MemberGateway, at: MemberGateway, begin: int = 1_000_000) -> Iterator[int]:
    """Rows that are inserted at another gateway than their owner, and come to it."""
    for number in itertools.count(begin):
        before = owner.counted("windrow_cluster_hops_taken_total")
        assert insert(at, number).status == 200
        if owner.counted("windrow_cluster_hops_taken_total") > before:
            yield number


@pytest.mark.parametrize("settings", [ASYNC, ON_DISK, {"async_insert": 0}], ids=["waiting", "on disk", "not gathered"])
def test_a_repeat_at_another_gateway_is_stored_once(two: tuple[MemberGateway, MemberGateway], backend: Endpoint, settings: dict) -> None:
    make_table(backend)
    first, second = two
    for number in range(30):
        assert [insert(gateway, number, **settings).status for gateway in (first, second, first)] == [200] * 3
    with ThreadPoolExecutor(16) as pool:
        at_once = [pool.submit(insert, gateway, number, **settings) for number in range(30, 90) for gateway in (first, second)]
        assert {each.result().status for each in at_once} == {200}
    eventually(lambda: len(ids(backend)) >= 90, "all are stored")
    assert ids(backend) == list(range(90))
    for gateway, other in ((first, second), (second, first)):
        hops = gateway.counted("windrow_cluster_hops_total")
        assert hops == other.counted("windrow_cluster_hops_taken_total")
        assert 0 < hops < 180, "each owns a share"


def test_rows_that_are_known_without_a_token_have_an_owner_too(two: tuple[MemberGateway, MemberGateway], backend: Endpoint) -> None:
    make_table(backend, settings="SETTINGS non_replicated_deduplication_window = 100")
    known = {**ASYNC, "async_insert_deduplicate": 1, "insert_deduplicate": 1}
    for number in range(20):
        for gateway in two:
            assert gateway.http.insert(INTO_T, rows(number), **known).status == 200
        # The same rows in another format are the same insert.
        csv = two[number % 2].http.insert("INSERT INTO t FORMAT CSV", f"{number}\n", **known)
        assert csv.status == 200, csv.text
    assert ids(backend) == list(range(20))
    assert all(gateway.counted("windrow_cluster_hops_total") > 0 for gateway in two)


def test_rows_of_otlp_have_an_owner_too(start: Start, backend: Endpoint) -> None:
    """A request without an id is known by its rows, and one with an id by that; sent again, it may come to another gateway."""
    backend.sql(f"CREATE TABLE logs (message String) ENGINE = MergeTree ORDER BY message {WINDOW}")
    config = (
        f'[otlp]\ngrpc_listen = "127.0.0.1:0"\nhttp_listen = "127.0.0.1:0"\ndatabase = "{backend.database}"\nlogs_table = "logs"\nack = "stored"\n'
        'request_id_header = "x-id"\n[[otlp.mappings]]\nkind = "logs"\ncolumns = { message = "Body" }\n'
    )
    gateways = start_all(start, names(2), config=config)
    as_tester = {"X-ClickHouse-User": TESTER.name, "X-ClickHouse-Key": TESTER.password}
    both = [OverHttp(gateway, JSON, as_tester) for gateway in gateways]
    for number in range(20):
        for names_itself in (False, True):
            message = f"{number} {names_itself}"
            record = {"body": {"stringValue": message}}
            payload = json.dumps({"resourceLogs": [{"scopeLogs": [{"logRecords": [record]}]}]}).encode()
            for over in (*both, both[0]):
                assert over.send("logs", payload, {"x-id": message} if names_itself else {}).is_taken, message
    assert backend.sql("SELECT count(), uniqExact(message) FROM logs") == "40\t40"
    for gateway in gateways:
        assert gateway.counted("windrow_cluster_hops_total") > 0
        assert gateway.counted("windrow_forwarded_requests_total") == 0, "the owner gathers it"


def test_rows_may_be_left_where_they_come(start: Start, backend: Endpoint) -> None:
    make_table(backend, settings="SETTINGS non_replicated_deduplication_window = 100")
    gateways = start_all(start, names(2), more="hops = 'tokens'\n")
    known = {**ASYNC, "async_insert_deduplicate": 1, "insert_deduplicate": 1}
    for number in range(20):
        for gateway in gateways:
            assert gateway.http.insert(INTO_T, rows(number), **known).status == 200
            assert insert(gateway, 100 + number).status == 200
    assert ids(backend) == sorted([*range(20), *range(20), *range(100, 120)])


def test_inserts_that_are_the_backends_have_an_owner_too(two: tuple[MemberGateway, MemberGateway], backend: Endpoint) -> None:
    make_table(backend)
    for number in range(20):
        for gateway in two:
            reply = gateway.http.request(None, f"INSERT INTO t SELECT {number}".encode(), {"insert_deduplication_token": f"s{number}"})
            assert reply.status == 200, reply.text
    assert ids(backend) == list(range(20))


def test_inserts_without_a_key_stay_where_they_come(two: tuple[MemberGateway, MemberGateway], backend: Endpoint) -> None:
    make_table(backend)
    for _ in range(10):
        assert [gateway.http.insert(INTO_T, rows(1), **ASYNC).status for gateway in two] == [200, 200]
    assert len(ids(backend)) == 20
    assert not any(gateway.counted("windrow_cluster_hops_total") for gateway in two)


def test_rows_that_are_removed_through_one_gateway_are_no_repeats_at_another(
    two: tuple[MemberGateway, MemberGateway], backend: Endpoint
) -> None:
    make_table(backend)
    first, second = two
    wanted = list(range(30))
    make_anew = ("DROP TABLE t SYNC", "CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY tuple()")
    for through, statements in ((first, ()), (first, ("TRUNCATE TABLE t",)), (second, ("TRUNCATE TABLE t",)), (first, make_anew)):
        for statement in statements:
            through.http.sql(statement)
        assert [insert(first, number).status for number in wanted] == [200] * 30
        assert ids(backend) == wanted


def test_a_column_that_is_moved_through_one_gateway_is_where_it_is_for_all(
    two: tuple[MemberGateway, MemberGateway], backend: Endpoint
) -> None:
    make_table(backend, "a UInt64, b UInt64")
    first, _ = two
    tsv = "INSERT INTO t FORMAT TSV"
    for number in range(30):
        assert first.http.insert(tsv, f"{number}\t100\n", insert_deduplication_token=f"before {number}", **ASYNC).status == 200
    first.http.sql("ALTER TABLE t MODIFY COLUMN a UInt64 AFTER b")
    for number in range(30):
        assert first.http.insert(tsv, f"100\t{number}\n", insert_deduplication_token=f"after {number}", **ASYNC).status == 200
    assert backend.sql("SELECT count(), min(b), max(b), sum(a) FROM t") == f"60\t100\t100\t{2 * sum(range(30))}"


def test_native_inserts_have_the_same_owner(two: tuple[MemberGateway, MemberGateway], backend: Endpoint) -> None:
    make_table(backend)

    def native(gateway: MemberGateway) -> Client:
        return Client("127.0.0.1", port=gateway.native_port, user=TESTER.name, password=TESTER.password, database=backend.database)

    clients = [native(gateway) for gateway in two]
    for number in range(20):
        settings = {**ASYNC, "insert_deduplication_token": f"token {number}"}
        for client in clients:
            client.execute("INSERT INTO t VALUES", [[number]], settings=settings)
            client.execute(f"INSERT INTO t SELECT {number}", settings={"insert_deduplication_token": f"select {number}"})
        assert insert(two[number % 2], number).status == 200, "and over HTTP"
    assert ids(backend) == sorted([*range(20), *range(20)])
    assert all(gateway.counted("windrow_cluster_hops_total") > 0 for gateway in two)


def test_the_owner_asks_who_it_is_and_answers_as_it_would(two: tuple[MemberGateway, MemberGateway], backend: Endpoint) -> None:
    make_table(backend)
    for number in range(8):
        answers = [gateway.http.insert(INTO_T, '{"a":"x"}', insert_deduplication_token=f"bad {number}", **ASYNC) for gateway in two]
        assert answers[0].code and answers[0].code == answers[1].code, [answer.text for answer in answers]
        strangers = [gateway.http.as_user("nobody", "x") for gateway in two]
        answers = [stranger.insert(INTO_T, rows(1), insert_deduplication_token=f"n {number}", **ASYNC) for stranger in strangers]
        assert [answer.code for answer in answers] == [516, 516]
    assert ids(backend) == []


def hop_fields(value: str) -> dict[str, str]:
    return {HOP: value}


def test_a_hop_shows_the_secret_and_names_whom_it_is_for(two: tuple[MemberGateway, MemberGateway], backend: Endpoint) -> None:
    make_table(backend)
    first, second = two
    right = f"{first.name} {SECRET}"
    wrong = ["", SECRET, f"{first.name} {SECRET}x", f"{first.name} {SECRET[:-1]}", f"{second.name} {SECRET}", f"{first.name} "]
    for value in wrong:
        reply = first.http.request(INTO_T, rows(1).encode(), ASYNC, headers=hop_fields(value))
        assert (reply.status, reply.code) == (403, 516), reply.text
        assert SECRET not in reply.text
        assert first.http.request("SELECT 1", headers=hop_fields(value)).status == 403
    assert first.counted("windrow_cluster_hops_refused_total") == 2 * len(wrong)
    assert ids(backend) == []
    # Whoever has the secret is a gateway, and its requests are a client's all the same.
    assert first.http.request(INTO_T, rows(1).encode(), ASYNC, headers=hop_fields(right)).status == 200
    assert first.http.as_user("nobody", "x").request(INTO_T, rows(2).encode(), ASYNC, headers=hop_fields(right)).code == 516
    assert ids(backend) == [1]
    with_two = http.client.HTTPConnection(first.http.host, first.http.port, timeout=60)
    with_two.putrequest("GET", "/windrow/v1/cluster/ping")
    with_two.putheader(HOP, right)
    with_two.putheader(HOP, right)
    with_two.endheaders()
    assert with_two.getresponse().status == 403
    with_two.close()


def test_a_hop_that_is_made_again_waits_for_the_first_of_its_query_id(start: Start, backend: Endpoint) -> None:
    """A client's own request of an id that is in use is refused at once: the refusal comes while the hop waits."""
    make_table(backend, settings=WINDOW)
    with Middle(backend.port) as middle, ThreadPoolExecutor(2) as clients:
        gateways = names(1)
        owner = start(gateways, gateways[0], backend=middle.address)
        assert insert(owner, 0).status == 200
        settings = {**ASYNC, "query_id": "the same", "insert_deduplication_token": "one"}
        hop = lambda: owner.http.request(INTO_T, rows(1).encode(), settings, headers=hop_fields(f"{owner.name} {SECRET}"))
        middle.arm("t", Fate.SILENT_AFTER)
        first = clients.submit(hop)
        eventually(middle.reached.is_set, "the first is stored, and the owner does not know")
        again = clients.submit(hop)
        eventually(lambda: owner.counted("windrow_cluster_hops_taken_total") == 2, "the owner has it twice")
        reply = owner.http.request(INTO_T, rows(1).encode(), settings)
        assert (reply.status, reply.code) == (500, 216), reply.text
        assert not first.done() and not again.done()
        middle.release()
        assert [first.result(timeout=60).status, again.result(timeout=60).status] == [200, 200]
    assert ids(backend) == [0, 1]


def test_gateways_of_two_secrets_take_nothing_from_each_other(start: Start, backend: Endpoint) -> None:
    make_table(backend)
    gateways = names(2)
    first, second = (start(gateways, own, secret=secret) for own, secret in zip(gateways, (SECRET, SECRET[::-1])))
    reason = eventually(lambda: [other["reason"] for other in first.shown()["gateways"] if "403" in (other["reason"] or "")], "it is said")
    assert "cluster.secret" in reason[0]
    codes = {number: insert(first, number).code for number in range(20)}
    assert set(codes.values()) == {None, 516}
    assert ids(backend) == [number for number, code in codes.items() if code is None]
    assert not (SECRET in first.child.log() or SECRET in second.child.log())


def test_lists_that_differ_make_no_loop(start: Start, backend: Endpoint) -> None:
    make_table(backend)
    (one, other), (third,) = names(2), names(1)
    # To the second, the first owns what to the first the second does, or a gateway that is not there.
    first, second = start([one, other], one), start([other, third, one], other)
    eventually(lambda: first.shown()["gateways"][1]["up"], "it is seen")
    assert [gateway["same_list"] for gateway in first.shown()["gateways"]] == [True, False]
    assert first.counted("windrow_cluster_lists_differ") == 1
    owned = itertools.islice(numbers_owned_by(second, at=first), 20)
    taken = list(owned)
    assert set(taken) <= set(ids(backend))
    assert not second.counted("windrow_cluster_hops_total")
    assert any("other cluster.gateways" in flat(event).get("message", "") for event in first.log_events())


class Recorder(Relay):
    """Keeps what goes to the engine."""

    def __init__(self, port: int):
        self.seen = bytearray()
        super().__init__(port, seed=0)

    async def _pieces(self, source: asyncio.StreamReader, faults: tuple) -> AsyncIterator[bytes]:
        while piece := await source.read(PIECE_BYTES):
            self.seen += piece
            yield piece


def test_the_backend_never_hears_of_hops(start: Start, backend: Endpoint) -> None:
    make_table(backend)
    with Recorder(backend.port) as recorder:
        first, second = start_all(start, names(2), backend=recorder.address)
        for number in range(10):
            for gateway in (first, second):
                assert insert(gateway, number).status == 200
                not_gathered = f"INSERT INTO t SELECT {100 + number}".encode()
                reply = gateway.http.request(None, not_gathered, {"insert_deduplication_token": f"s {number}"})
                assert reply.status == 200, reply.text
        # By its own hand, too, and what is no insert.
        fields = hop_fields(f"{first.name} {SECRET}")
        assert first.http.request("SELECT 1", headers=fields).text == "1\n"
        seen = bytes(recorder.seen).lower()
    assert ids(backend) == [*range(10), *range(100, 110)]
    assert b"select 1" in seen.replace(b"+", b" ").replace(b"%20", b" ")
    assert HOP.lower().encode() not in seen and SECRET.encode() not in seen


@pytest.mark.parametrize("settings", [ASYNC, ON_DISK], ids=["waiting", "on disk"])
def test_a_gateway_is_killed_and_started_again(start: Start, backend: Endpoint, settings: dict) -> None:
    make_table(backend, settings=WINDOW)
    gateways = start_all(start, names(3))
    killed = gateways[1]
    with TokenLoad(gateways, **settings) as load:
        eventually(load.acknowledged_more(100), "inserts go on")
        killed.kill()
        # The load may be waiting for it as a whole by now. What others own goes on without it.
        briefly = {**settings, "wait_for_async_insert_timeout": 0.2}
        first = 10_000_000
        tried = ((number, insert(gateways[0], number, **briefly).status) for number in itertools.count(first))
        of_others = list(itertools.islice((number for number, status in tried if status == 200), 5))
        killed.start()
        eventually(load.acknowledged_more(100), "all go on with it")
    wanted = {*load.acknowledged, *of_others}
    eventually(lambda: wanted <= {*ids(backend)}, "all are stored")
    stored = ids(backend)
    assert len(stored) == len({*stored})
    # Who waited so briefly does not know what became of the insert.
    assert all(first <= number <= of_others[-1] for number in {*stored} - wanted)


def test_a_gateway_is_stopped_and_started_again_and_nobody_hears_of_it(start: Start, backend: Endpoint) -> None:
    make_table(backend, settings=WINDOW)
    gateways = start_all(start, names(3))
    staying = [gateways[0], gateways[2]]
    with TokenLoad(staying, **ASYNC) as load:
        eventually(load.acknowledged_more(50), "inserts go on")
        refused = [gateway.counted("windrow_cluster_hops_failed_total") for gateway in staying]
        assert gateways[1].stop() == 0
        gateways[1].start()
        eventually(load.acknowledged_more(100), "inserts go on")
    assert [gateway.counted("windrow_cluster_hops_failed_total") for gateway in staying] == refused == [0, 0]
    assert not any(gateway.http.sql("SELECT 1") != "1" for gateway in gateways)
    eventually(lambda: len(ids(backend)) >= len(load.acknowledged), "all are stored")
    assert ids(backend) == sorted(load.acknowledged)


def test_an_owner_that_is_away_is_waited_for_and_named(start: Start, backend: Endpoint) -> None:
    make_table(backend, settings=WINDOW)
    first, second = start_all(start, names(2))
    number = next(numbers_owned_by(second, at=first))
    second.kill()
    reply = insert(first, number, wait_for_async_insert_timeout=0.2)
    assert (reply.status, reply.code) == (503, 210), reply.text
    assert second.name in reply.text and "Nothing was stored" in reply.text and "wait_for_async_insert_timeout" in reply.text
    assert reply.headers["retry-after"] == "1"
    assert first.counted("windrow_cluster_hops_failed_total") == 1
    eventually(lambda: not first.shown()["gateways"][1]["up"], "it is seen")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(insert, first, number)
        second.start()
        assert waiting.result().status == 200
    assert ids(backend).count(number) == 1


def test_a_native_insert_whose_owner_is_away_hears_of_it(start: Start, backend: Endpoint) -> None:
    make_table(backend, settings=WINDOW)
    first, second = start_all(start, names(2))
    number = next(numbers_owned_by(second, at=first))
    second.kill()
    client = Client("127.0.0.1", port=first.native_port, user=TESTER.name, password=TESTER.password, database=backend.database)
    settings = {**ASYNC, "insert_deduplication_token": f"token {number}", "wait_for_async_insert_timeout": "0.2"}
    with pytest.raises(Exception, match="Nothing was stored") as refused:
        client.execute("INSERT INTO t VALUES", [[number]], settings=settings)
    assert second.name in str(refused.value)
    second.start()
    settings.pop("wait_for_async_insert_timeout")
    client.execute("INSERT INTO t VALUES", [[number]], settings=settings)
    assert ids(backend).count(number) == 1


def test_gateways_that_are_up_share_the_hold(start: Start, backend: Endpoint) -> None:
    first, second = start_all(start, names(2))
    assert first.shown()["hold_factor"] == first.counted("windrow_cluster_hold_factor") == 1.5
    second.kill()
    eventually(lambda: first.shown()["hold_factor"] == 1.0, "it holds as if it were alone")
    assert first.counted("windrow_cluster_gateways_up") == 1
    unstretched = start_all(start, names(2), more="stretch_holds = false\n")
    assert [gateway.shown()["hold_factor"] for gateway in unstretched] == [1.0, 1.0]


def left_behind(start: Start, backend: Endpoint, relay: Relay) -> tuple[MemberGateway, list[int]]:
    """A gateway that was killed when its journal held inserts."""
    gateways = names(1)
    gone = start(gateways, gateways[0], backend=relay.address)
    acknowledged = [0]
    assert gone.http.insert(INTO_T, rows(0), **ON_DISK).status == 200, "it is known who may insert"
    eventually(lambda: ids(backend) == [0], "it is stored")
    relay.go_away()
    for number in range(1, 40):
        assert gone.http.insert(INTO_T, rows(number), **ON_DISK).status == 200
        acknowledged.append(number)
    return gone, acknowledged


def test_the_journal_of_a_gateway_that_is_gone_is_adopted_once(start: Start, backend: Endpoint) -> None:
    make_table(backend, settings=WINDOW)
    with Relay(backend.port, seed=0) as relay:
        gone, acknowledged = left_behind(start, backend, relay)
        in_use = adopt(gone.data_dir, backend)
        assert in_use.returncode == 1 and "in use" in in_use.stderr or str(gone.child.pid) in in_use.stderr, in_use.stderr
        gone.kill()
        adopted = adopt(gone.data_dir, backend)
        assert adopted.returncode == 0, adopted.stdout + adopted.stderr
        assert "39 inserts stored, 0 became dead letters, 0 left" in adopted.stdout
        assert ids(backend) == acknowledged
        again = adopt(gone.data_dir, backend)
        assert again.returncode == 0 and "0 inserts stored" in again.stdout
        relay.behave()
        gone.start()
        assert gone.http.insert(INTO_T, rows(100), **ASYNC).status == 200
        assert ids(backend) == [*acknowledged, 100]


def test_a_batch_whose_answer_was_lost_is_adopted_under_its_id(start: Start, backend: Endpoint) -> None:
    make_table(backend, settings=WINDOW)
    with Middle(backend.port) as middle:
        gateways = names(1)
        gone = start(gateways, gateways[0], backend=middle.address)
        assert gone.http.insert(INTO_T, rows(0), **ASYNC).status == 200
        middle.arm("t", Fate.SILENT_AFTER)
        assert gone.http.insert(INTO_T, rows(1), **ON_DISK).status == 200
        eventually(middle.reached.is_set, "it is stored, and the gateway does not know")
        gone.kill()
        middle.release()
    adopted = adopt(gone.data_dir, backend)
    assert adopted.returncode == 0, adopted.stdout + adopted.stderr
    assert "1 inserts stored" in adopted.stdout
    assert ids(backend) == [0, 1]


def test_what_can_not_be_adopted_is_said(tmp_path: Path, backend: Endpoint, start: Start) -> None:
    nothing = adopt(tmp_path, backend)
    assert nothing.returncode == 1 and "no folder `journal`" in nothing.stderr
    assert not list(tmp_path.glob("lock")), "looking at it has changed nothing"


def test_gateways_speak_tls_to_each_other(start: Start, backend: Endpoint, tmp_path: Path) -> None:
    make_table(backend)
    cert, key = made_in(tmp_path)
    (one,), (other,) = names(1), names(1, "https")
    first = start([one, other], one, more=f"ca_file = '{cert}'\n")
    second = start([one, other], other, more=f"ca_file = '{cert}'\n", config=f"[http]\ntls_certificate = '{cert}'\ntls_key = '{key}'\n")
    eventually(lambda: first.shown()["gateways"][1]["up"], "it is trusted")
    for number in range(20):
        assert insert(first, number).status == 200
    assert ids(backend) == list(range(20))
    assert second.counted("windrow_cluster_hops_taken_total") > 0


def until_both(gateway: MemberGateway) -> dict[int, int | None]:
    """Rows until one was taken and one was refused because its owner is away; the codes of all."""
    codes: dict[int, int | None] = {}
    for number in itertools.count():
        codes[number] = insert(gateway, number, wait_for_async_insert=0, wait_for_async_insert_timeout=2).code
        if set(codes.values()) == {None, 210}:
            return codes
        assert set(codes.values()) <= {None, 210}
    raise AssertionError("numbers end")


def test_a_gateway_that_is_not_trusted_gets_nothing(start: Start, backend: Endpoint, tmp_path: Path) -> None:
    make_table(backend)
    (tmp_path / "trusted").mkdir()
    trusted, (cert, key) = made_in(tmp_path / "trusted"), made_in(tmp_path)
    (one,), (other,) = names(1), names(1, "https")
    first = start([one, other], one, more=f"ca_file = '{trusted.cert}'\n")
    start([one, other], other, config=f"[http]\ntls_certificate = '{cert}'\ntls_key = '{key}'\n")
    reason = eventually(lambda: first.shown()["gateways"][1]["reason"], "it is said")
    eventually(lambda: "certificate" in (first.shown()["gateways"][1]["reason"] or ""), f"the certificate is named, not: {reason}")
    assert 210 in set(until_both(first).values())


def test_a_port_of_nobody_is_a_gateway_that_is_away(start: Start, backend: Endpoint) -> None:
    make_table(backend)
    with port_of_nobody() as port:
        (one,) = names(1)
        first = start([one, f"http://127.0.0.1:{port}"], one)
        codes = until_both(first)
        taken = [number for number, code in codes.items() if code is None]
        eventually(lambda: ids(backend) == taken, "what was taken is stored, and nothing else")
