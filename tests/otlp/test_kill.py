"""kill -9 of the gateway and of ClickHouse, while all who send telemetry do: what they were told is kept is stored once.

Retries are known by their bytes: none of the senders names its requests.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.endpoint import ClickHouseError, Endpoint
from harness.engine import Engine
from harness.eventually import eventually
from harness.kept_engine import KeptEngine
from harness.ports import free_port
from harness.remote import RemoteGateway, backend_url
from harness.telemetry import (
    TELEMETRYGEN,
    Collector,
    GoSdk,
    Names,
    PythonSdk,
    built,
    otlp_exporter,
    otlphttp_exporter,
    telemetrygen,
)
from harness.users import TESTER

ROUNDS = max(2, int(os.environ.get("WINDROW_CHAOS_ROUNDS", "6")) // 3)
SEED = int(os.environ.get("WINDROW_CHAOS_SEED", "1"))
# What a round adds to each collector's load, of each signal.
GENERATED = 500
# By the kind of the name that a sender knows: the table, and the name in it.
NAMED = {
    "logs": ("otel_logs", "Body"),
    "spans": ("otel_traces", "SpanName"),
    "points": ("otel_metrics_gauge", "concat(MetricName, ' ', toString(toInt64(Value)))"),
}
# Of each kind, to say something of it.
ENOUGH = 100
# What telemetrygen sends has no names; a trace of its is two spans.
GENERATED_ROWS = {"otel_logs": 1, "otel_traces": 2, "otel_metrics_gauge": 1}
GENERATOR = "telemetrygen"
TOKEN = "a-token-of-senders"


class Receiver(RemoteGateway):
    """Its ports stay, so that senders find it again."""

    def __init__(self, folder: Path, direct: Endpoint):
        self.grpc, self.over_http = (f"127.0.0.1:{free_port()}" for _ in range(2))
        config = (
            f'[otlp]\ndeduplicate_by_bytes = true\n[[otlp.tokens]]\ntoken = "{TOKEN}"\n'
            f'user = "{TESTER.name}"\npassword = "{TESTER.password}"\n'
        )
        super().__init__(folder, backend_url(TESTER, f"127.0.0.1:{direct.port}"), direct, config)

    def command(self) -> list[str]:
        return [*super().command(), "--otlp-grpc", self.grpc, "--otlp-http", self.over_http]


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[KeptEngine]:
    started = KeptEngine(Engine(tmp_path / "engine"))
    yield started
    started.stop()


@pytest.fixture
def receiver(tmp_path: Path, engine: KeptEngine) -> Iterator[Receiver]:
    started = Receiver(tmp_path / "gateway", engine.direct)
    yield started
    started.stop()


def test_what_senders_were_told_is_kept_is_stored_once(tmp_path: Path, engine: KeptEngine, receiver: Receiver) -> None:
    rng = random.Random(SEED)
    print(f"seed {SEED}, {ROUNDS} rounds")
    senders, generator = built(tmp_path, "senders", "."), built(tmp_path, "telemetrygen", TELEMETRYGEN)
    collectors = [
        Collector(senders, tmp_path / name, f"127.0.0.1:{free_port()}", exporter)
        for name, exporter in (("grpc", otlp_exporter(receiver.grpc, TOKEN)), ("http", otlphttp_exporter(receiver.over_http, TOKEN)))
    ]
    where = (receiver.grpc, receiver.over_http, TOKEN)
    go, python = GoSdk(senders, *where), PythonSdk(*where)
    try:
        for number in range(ROUNDS):
            before = rows(engine.direct)
            for collector in collectors:
                collector.is_ready()
                for signal in ("logs", "traces", "metrics"):
                    telemetrygen(generator, signal, GENERATED, collector.address)
            kill(rng, engine, receiver)
            eventually(lambda before=before: rows(engine.direct) > before, f"round {number}: rows come again")
        eventually(lambda: all(named(engine.direct, kind) > ENOUGH for kind in NAMED), "the SDKs have sent enough")
        told = [go.stop(), python.stop()]
        # A collector that is told to end drops what it would have to send again.
        for table, each in GENERATED_ROWS.items():
            everything = ROUNDS * len(collectors) * GENERATED * each
            eventually(lambda table=table, of=everything: generated(engine.direct, table) >= of, f"all is in {table}")
        for collector in collectors:
            collector.stop()
    finally:
        for each in (go, python, *collectors):
            each.kill()
    # It stores what it has before it ends.
    assert receiver.stop() == 0
    for kind in NAMED:
        check(engine.direct, kind, told)
    for table, each in GENERATED_ROWS.items():
        assert generated(engine.direct, table) == ROUNDS * len(collectors) * GENERATED * each, table


def generated(direct: Endpoint, table: str) -> int:
    return int(direct.sql(f"SELECT count() FROM {table} WHERE ServiceName = '{GENERATOR}'"))


def named(direct: Endpoint, kind: str) -> int:
    """0 while there is nobody to ask."""
    try:
        return int(direct.sql(f"SELECT count() FROM {NAMED[kind][0]} WHERE ServiceName != '{GENERATOR}'"))
    except (OSError, ClickHouseError):
        return 0


def kill(rng: random.Random, engine: KeptEngine, receiver: Receiver) -> None:
    if rng.random() < 0.5:
        engine.kill()
    else:
        receiver.kill()
        receiver.start()


def rows(direct: Endpoint) -> int:
    """0 while there are no tables, or nobody to ask."""
    try:
        return sum(int(direct.sql(f"SELECT count() FROM {table}")) for table, _ in NAMED.values())
    except (OSError, ClickHouseError):
        return 0


def check(direct: Endpoint, kind: str, told: list[Names]) -> None:
    """A request that its sender gave up may be stored or not, but not twice."""
    table, name = NAMED[kind]
    stored = Counter(direct.sql(f"SELECT {name} FROM {table} WHERE ServiceName != '{GENERATOR}'").splitlines())
    acknowledged = [one for each in told for one in each[kind]]
    lost, doubled = [one for one in acknowledged if one not in stored], [one for one, times in stored.items() if times > 1]
    print(f"{kind}: {len(acknowledged)} acknowledged, {stored.total()} stored")
    assert len(acknowledged) > ENOUGH
    assert not (lost or doubled), f"{kind}: lost {lost[:9]}, doubled {doubled[:9]} of {len(acknowledged)}"
