"""Backends and gateways that go away while OTLP is sent: what was answered is stored, and what has a name is stored once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from harness.engine import Engine
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.otlp import METRIC_TABLES, OverGrpc, OverHttp, Told, all_metrics, logs
from harness.remote import RemoteGateway
from harness.several_gateways import member, names
from harness.users import TESTER

PORTS = '[otlp]\ngrpc_listen = "127.0.0.1:0"\nhttp_listen = "127.0.0.1:0"\n'
SMALL_JOURNAL = '[journal]\nsegment_bytes = "64KiB"\nmax_bytes = "1MiB"\n[gather]\noverload_wait_ms = 100\n'
CREDENTIALS = {"X-ClickHouse-User": TESTER.name, "X-ClickHouse-Key": TESTER.password}
StartRemote = Callable[..., RemoteGateway]


@pytest.fixture
def backend(tmp_path: Path) -> Iterator[Engine]:
    engine = Engine(tmp_path / "engine")
    yield engine
    engine.stop()


@pytest.fixture
def start_remote(tmp_path: Path, backend: Engine) -> Iterator[StartRemote]:
    running: list[RemoteGateway] = []

    def start(config: str = "") -> RemoteGateway:
        url = f"http://{quote(TESTER.name)}:{quote(TESTER.password)}@127.0.0.1:{backend.direct.port}"
        running.append(RemoteGateway(tmp_path / f"gateway-{len(running)}", url, backend.direct, PORTS + config))
        return running[-1]

    yield start
    for gateway in running:
        gateway.stop()


def both(gateway: Gateway) -> tuple[OverHttp, OverGrpc]:
    return OverHttp(gateway, headers=CREDENTIALS), OverGrpc(gateway, CREDENTIALS)


def bodies(backend: Engine) -> list[str]:
    return sorted(backend.direct.sql("SELECT Body FROM otel_logs").split())


def test_nobody_notices_that_the_backend_is_away(backend: Engine, start_remote: StartRemote) -> None:
    gateway = start_remote()
    assert all(over.send("logs", logs(["first"])).is_taken for over in both(gateway))
    backend.stop()
    for n in range(20):
        assert all(over.send("logs", logs([f"{n}"])).is_taken for over in both(gateway)), n
    backend.start()
    eventually(lambda: len(bodies(backend)) == 42, "everything is stored")
    assert bodies(backend) == sorted(["first", *map(str, range(20))] * 2)


def test_a_table_is_made_when_the_backend_comes_back(backend: Engine, start_remote: StartRemote) -> None:
    gateway = start_remote()
    backend.stop()
    http, grpc = (over.send("logs", logs(["a"])) for over in both(gateway))
    assert (http.status, http.headers.get("retry-after"), grpc.status) == (503, "1", "UNAVAILABLE")
    assert http.retry_after_seconds == grpc.retry_after_seconds == 1
    backend.start()
    eventually(lambda: both(gateway)[0].send("logs", logs(["a"])).is_taken, "the sender's retry is taken")
    eventually(lambda: bodies(backend) == ["a"], "and stored")


def test_a_full_journal_has_senders_try_again(backend: Engine, start_remote: StartRemote) -> None:
    gateway = start_remote(SMALL_JOURNAL)
    assert all(over.send("logs", logs(["first"])).is_taken for over in both(gateway))
    backend.stop()
    taken = ["first"] * 2

    def is_full(over: OverHttp | OverGrpc) -> Told | None:
        """A different row each time."""
        told = over.send("logs", logs([f"{len(taken)}-{'x' * 20_000}"]))
        if told.is_taken:
            taken.append(f"{len(taken)}-{'x' * 20_000}")
        return None if told.is_taken else told

    http, grpc = (eventually(lambda over=over: is_full(over), "there is no more room") for over in both(gateway))
    assert (http.status, http.headers.get("retry-after"), grpc.status) == (503, "1", "UNAVAILABLE")
    assert http.retry_after_seconds == grpc.retry_after_seconds == 1
    backend.start()
    eventually(lambda: len(bodies(backend)) == len(taken), "what was taken is stored")
    assert bodies(backend) == sorted(taken)


def test_a_retry_at_another_gateway_is_stored_once(backend: Engine, tmp_path: Path) -> None:
    """Of two gateways one owns the request, and it hops there by the data port."""
    at = names(2)
    gateways = [member(tmp_path / f"{n}", at, own, backend.direct, config=PORTS) for n, own in enumerate(at)]
    try:
        for name in map(str, range(12)):
            for gateway in gateways:
                for over in both(gateway):
                    told = over.send("logs", logs([name]), {"x-windrow-request-id": name})
                    assert told.is_taken, told
        eventually(lambda: len(bodies(backend)) >= 12, "all are stored")
        assert bodies(backend) == sorted(map(str, range(12)))
        assert sum(gateway.counted("windrow_cluster_hops_total") for gateway in gateways) > 0
    finally:
        assert [gateway.stop() for gateway in gateways] == [0, 0]


class Sender(threading.Thread):
    """Sends numbered requests, each again and again under its name until it is answered, as senders do."""

    def __init__(self, over: Callable[[], OverHttp | OverGrpc], name: str, until: threading.Event):
        super().__init__()
        self.over, self.prefix, self.until = over, name, until
        self.taken: list[str] = []
        self.given_up: list[object] = []

    def run(self) -> None:
        while not self.until.is_set():
            name = f"{self.prefix}-{len(self.taken)}"
            if not self.is_taken(name):
                return
            self.taken.append(name)

    def is_taken(self, name: str) -> bool:
        while True:
            try:
                told = self.over().send("logs", logs([name]), {"x-windrow-request-id": name})
                told_too = self.over().send("metrics", all_metrics(name), {"x-windrow-request-id": name})
            except OSError:
                # The gateway is away.
                continue
            except Exception as error:  # noqa: BLE001 a broken answer of one that dies
                self.given_up.append(error)
                continue
            if told.is_taken and told_too.is_taken:
                return True
            if not {told.status, told_too.status} <= {200, 503, "OK", "UNAVAILABLE", "CANCELLED"}:
                self.given_up.append((told, told_too))
                return False


@pytest.mark.parametrize("victim", ["backend", "gateway"])
def test_what_has_a_name_is_stored_once_whoever_is_killed(victim: str, backend: Engine, start_remote: StartRemote) -> None:
    gateway = start_remote()
    assert OverHttp(gateway, headers=CREDENTIALS).send("metrics", all_metrics("zero")).is_taken
    until = threading.Event()
    make = {"http": lambda: OverHttp(gateway, headers=CREDENTIALS), "grpc": lambda: OverGrpc(gateway, CREDENTIALS)}
    senders = [Sender(over, f"{name}{n}", until) for name, over in make.items() for n in range(2)]
    for sender in senders:
        sender.start()
    try:
        for _ in range(3):
            before = [len(sender.taken) for sender in senders]
            if victim == "backend":
                backend.kill()
                backend.start()
            else:
                gateway.kill()
                gateway.start()
            eventually(
                lambda before=before: all(len(s.taken) > n + 1 or s.given_up for s, n in zip(senders, before, strict=True)),
                "everybody goes on",
            )
    finally:
        until.set()
        for sender in senders:
            sender.join()
    assert [sender.given_up for sender in senders if sender.given_up and victim == "backend"] == []
    names = sorted(name for sender in senders for name in sender.taken)
    eventually(lambda: backend.direct.answers() and set(names) <= set(bodies(backend)), "all that was answered is stored")
    assert bodies(backend) == names
    for table in METRIC_TABLES:
        stored = lambda table=table: sorted(backend.direct.sql(f"SELECT MetricName FROM {table}").split())  # noqa: E731
        eventually(lambda stored=stored: len(stored()) >= len(names) + 1, f"{table} has everything")
        assert stored() == sorted([*names, "zero"]), table
