"""ClickHouse is away: who doesn't wait for it hears so at once, by whatever door he comes; and a gateway that is started meanwhile
goes on taking what the one before it took."""

from __future__ import annotations

import stat
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from harness.dead_letters import DeadLetters
from harness.endpoint import Endpoint, Reply
from harness.engine import START_UP_USER, Engine, users_xml
from harness.eventually import eventually
from harness.gateway import flat
from harness.inserts import INTO_T, ids, make_table, rows
from harness.native import EXCEPTION, Native, numbers
from harness.otlp import OverGrpc, OverHttp, logs
from harness.relay import Relay
from harness.remote import RemoteGateway, backend_url
from harness.users import ALL, TESTER, User

NOT_WAITING = {"async_insert": 1, "wait_for_async_insert": 0}
NOTHING_STORED = "Nothing was stored"
NOBODY = ("nobody", "x")
EVE = User("eve", "e", ("GRANT INSERT ON *.*",))
OTLP = '[otlp]\ngrpc_listen = "127.0.0.1:0"\nhttp_listen = "127.0.0.1:0"\n'
AS_TESTER = {"x-clickhouse-user": TESTER.name, "x-clickhouse-key": TESTER.password}
Start = Callable[..., RemoteGateway]


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    engine = Engine(tmp_path_factory.mktemp("away") / "engine", users=(EVE,))
    yield engine
    engine.stop()


@pytest.fixture
def direct(engine: Engine) -> Endpoint:
    engine.direct.sql("DROP TABLE IF EXISTS t")
    make_table(engine.direct, settings="SETTINGS non_replicated_deduplication_window = 100")
    return engine.direct


@pytest.fixture
def relay(direct: Endpoint) -> Iterator[Relay]:
    with Relay(direct.port, seed=0) as relay:
        yield relay
        relay.behave()


@pytest.fixture
def start(tmp_path: Path, relay: Relay, direct: Endpoint) -> Iterator[Start]:
    running: list[RemoteGateway] = []

    def start(config: str = "") -> RemoteGateway:
        running.append(RemoteGateway(tmp_path / "gateway", backend_url(TESTER, relay.address), direct, config))
        return running[-1]

    yield start
    relay.behave()
    for gateway in running:
        gateway.stop()


def as_tester(gateway: RemoteGateway) -> Endpoint:
    return gateway.http.as_user(TESTER.name, TESTER.password)


def refused_for_now(reply: Reply) -> None:
    assert (reply.status, reply.code) == (503, 210) and NOTHING_STORED in reply.text, reply.text


@pytest.mark.parametrize("fault", ["hang", "go_away"])
def test_who_does_not_wait_hears_at_once_that_it_is_away(start: Start, relay: Relay, direct: Endpoint, fault: str) -> None:
    """Long before what is silent would be given up: the insert itself would wait for minutes."""
    gateway = start(OTLP)
    tested = as_tester(gateway)
    eventually(lambda: tested.insert(INTO_T, rows(0)).status == 200, "it is stored")
    getattr(relay, fault)()
    for insert in (INTO_T.replace("JSONEachRow", "CSV"), "INSERT INTO another FORMAT JSONEachRow"):
        reply = tested.insert(insert, "1", **NOT_WAITING)
        refused_for_now(reply)
        assert "the insert is not waited for" in reply.text
    stranger = gateway.http.as_user(*NOBODY)
    refused_for_now(stranger.insert(INTO_T, rows(1), **NOT_WAITING))
    natively = Endpoint(gateway.http.host, gateway.native_port, TESTER.name, TESTER.password)
    with Native(natively) as native:
        native.start()
        packets = native.insert("INSERT INTO t (a) VALUES", [numbers("a", [1])], 1, {key: str(value) for key, value in NOT_WAITING.items()})
    assert packets[-1].kind == EXCEPTION and packets[-1].code == 210 and NOTHING_STORED in packets[-1].message
    with Native(Endpoint(natively.host, natively.port, *NOBODY)) as native, pytest.raises(EOFError, match=NOTHING_STORED):
        native.start()
    for told in (OverHttp(gateway, headers=AS_TESTER).send("logs", logs(["a"])), OverGrpc(gateway, AS_TESTER).send("logs", logs(["a"]))):
        assert told.status in (503, "UNAVAILABLE") and NOTHING_STORED in told.message and told.retry_after_seconds
    relay.behave()
    assert ids(direct) == [0]


def kept(gateway: RemoteGateway) -> Path:
    return gateway.data_dir / "admissions"


def restarted_without(relay: Relay, gateway: RemoteGateway) -> None:
    """While ClickHouse is away. What the gateway knew is on disk by then."""
    relay.go_away()
    gateway.kill()
    gateway.start()


def test_a_gateway_that_starts_meanwhile_takes_what_was_taken_before(start: Start, relay: Relay, direct: Endpoint) -> None:
    gateway = start()
    assert as_tester(gateway).insert(INTO_T, rows(0), **NOT_WAITING).status == 200
    eventually(kept(gateway).exists, "it is written down")
    assert stat.S_IMODE(kept(gateway).stat().st_mode) == 0o600
    assert TESTER.password.encode() not in kept(gateway).read_bytes()
    for number in (1, 2):
        restarted_without(relay, gateway)
        assert gateway.ready().status == 200, gateway.ready()
        reply = as_tester(gateway).insert(INTO_T, rows(number), **NOT_WAITING)
        assert reply.status == 200, reply.text
    natively = Endpoint(gateway.http.host, gateway.native_port, TESTER.name, TESTER.password)
    with Native(natively) as native:
        native.start()
    # Nothing else: other inserts, such as are waited for, other users, another password.
    refused_for_now(as_tester(gateway).insert(INTO_T, rows(9), **NOT_WAITING, input_format_null_as_default=0))
    refused_for_now(as_tester(gateway).insert(INTO_T, rows(9), wait_for_async_insert_timeout=1))
    for user, password in (NOBODY, (TESTER.name, "x"), (TESTER.name, "")):
        refused_for_now(gateway.http.as_user(user, password).insert(INTO_T, rows(9), **NOT_WAITING))
    relay.behave()
    eventually(lambda: ids(direct) == [0, 1, 2], "all is stored, and once")
    eventually(lambda: as_tester(gateway).insert(INTO_T, rows(3), wait_for_async_insert_timeout=1).status == 200, "it is as before")


def test_who_was_dropped_meanwhile_is_heard_no_longer_than_clickhouse_is_away(
    start: Start, relay: Relay, engine: Engine, direct: Endpoint
) -> None:
    gateway = start()
    as_eve = lambda number: gateway.http.as_user(EVE.name, EVE.password).insert(INTO_T, rows(number), **NOT_WAITING)
    assert as_eve(0).status == 200
    eventually(kept(gateway).exists, "it is written down")
    restarted_without(relay, gateway)
    engine.stop()
    (engine.folder / "users.xml").write_text(users_xml((START_UP_USER, *ALL)))
    engine.start()
    assert as_eve(1).status == 200
    relay.behave()
    eventually(lambda: as_eve(2).code == 516, "she is nobody")
    eventually(DeadLetters(gateway, direct.database).all, "what was taken can't be stored")
    assert ids(direct) == [0]
    eventually(lambda: not kept(gateway).exists(), "it is not written down any more")
    restarted_without(relay, gateway)
    refused_for_now(as_eve(3))


def test_it_can_be_switched_off(start: Start, relay: Relay) -> None:
    gateway = start("[gather]\nadmission_kept_ttl_ms = 0\n")
    assert as_tester(gateway).insert(INTO_T, rows(0), **NOT_WAITING).status == 200
    assert gateway.stop() == 0 and not kept(gateway).exists()
    gateway.start()
    restarted_without(relay, gateway)
    assert gateway.ready().status == 503
    refused_for_now(as_tester(gateway).insert(INTO_T, rows(1), **NOT_WAITING))


def test_a_damaged_file_is_told_and_counts_as_none(start: Start, relay: Relay) -> None:
    gateway = start()
    assert as_tester(gateway).insert(INTO_T, rows(0), **NOT_WAITING).status == 200
    assert gateway.stop() == 0
    whole = kept(gateway).read_bytes()
    kept(gateway).write_bytes(whole[:-1])
    relay.go_away()
    gateway.start()
    assert gateway.ready().status == 503
    assert any("damaged" in flat(event).get("why", "") for event in gateway.log_events()), "the log says so"
    refused_for_now(as_tester(gateway).insert(INTO_T, rows(1), **NOT_WAITING))
    kept(gateway).write_bytes(whole)
    gateway.kill()
    gateway.start()
    assert as_tester(gateway).insert(INTO_T, rows(1), **NOT_WAITING).status == 200
