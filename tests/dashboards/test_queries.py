"""What dashboards/windrow.json asks for: a real Prometheus reads a real gateway and answers every query of it with data."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer

from dashboards.grafana import QUERIES, VARIABLES, filled
from dashboards.prometheus import JOB, Prometheus, Refused
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.inserts import INTO_T, make_table, rows
from harness.kafka import Broker
from harness.kafka_topics import Topics
from harness.ordered import Append, native
from harness.otlp import METRIC_TABLES, OverHttp, all_metrics, logs, spans
from harness.pipelines import pipeline, pipelines_toml
from harness.users import TESTER

OTLP = ("--otlp-grpc", "127.0.0.1:0", "--otlp-http", "127.0.0.1:0")
VIOLATED_CONSTRAINT = 469
TOPIC = "events"
# Where a query says which labels are shown.
FORMATS = ("legendFormat", "titleFormat", "textFormat")
# The room is the gateway's, and not a table's.
OF_ALL_TABLES = {"Dead letters B"}


class Traffic:
    """Some of everything that the dashboard shows."""

    def __init__(self, gateway: Gateway, broker: Broker):
        self.direct = gateway.direct
        self.tested = gateway.http.as_user(TESTER.name, TESTER.password)
        self.producer = Producer({"bootstrap.servers": broker.address})
        self.telemetry = OverHttp(gateway, headers={"X-ClickHouse-User": TESTER.name, "X-ClickHouse-Key": TESTER.password})
        self.numbers = itertools.count()
        make_table(self.direct, "a UInt64, CONSTRAINT small CHECK a < 1000")
        make_table(self.direct, "a Int64", "appended")

    def more(self) -> None:
        number = next(self.numbers)
        assert self.tested.insert(INTO_T, rows(number % 1000), async_insert=1).status == 200
        # Refused, and its sender is told; a dead letter; passed on.
        assert self.tested.insert(INTO_T, rows(1000), async_insert=1).code == VIOLATED_CONSTRAINT
        assert self.tested.insert(INTO_T, rows(1000), async_insert=1, wait_for_async_insert=0).status == 200
        self.tested.sql("SELECT 1")
        self.producer.produce(TOPIC, f'{{"a":{number}}}'.encode())
        self.producer.produce(TOPIC, b"rubbish")
        self.producer.flush()
        for signal, payload in (("logs", logs(["a"])), ("traces", spans(["a"])), ("metrics", all_metrics())):
            assert self.telemetry.send(signal, payload).is_taken
            assert not self.telemetry.send(signal, b"rubbish").is_taken
        append = Append(self.tested, "appended")
        assert append.put(0, native(a=[number])).status == 200
        assert append.commit(1).status == 200


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Traffic, Prometheus]]:
    folder = tmp_path_factory.mktemp("dashboards")
    broker = Broker(folder / "broker")
    Topics(broker).create(TOPIC, 1)
    gateway = Gateway(folder / "gateway", pipelines_toml(pipeline(broker, f"default.{TOPIC}", TOPIC)), OTLP)
    make_table(gateway.direct, "a UInt64", TOPIC)
    prometheus = Prometheus(folder / "prometheus", gateway)
    yield Traffic(gateway, broker), prometheus
    prometheus.stop()
    assert gateway.stop() == 0
    broker.stop()


def values_of(prometheus: Prometheus) -> dict[str, list[str]]:
    """What there is to choose from. A variable may ask for what was chosen before it."""
    found: dict[str, list[str]] = {}
    for name, variable in VARIABLES.items():
        if variable["type"] == "query":
            asked = re.fullmatch(r"label_values\((.*), (\w+)\)", variable["query"]["query"])
            assert asked, variable
            found[name] = prometheus.label_values(filled(asked[1], found), asked[2])
    return found


def missing(prometheus: Prometheus, values: dict[str, list[str]]) -> dict[str, str]:
    """The queries that are answered with nothing, or with less than their legend names."""
    wrong = {}
    for name, query in QUERIES.items():
        try:
            series = prometheus.query(filled(query["expr"], values))
        except Refused as refused:
            raise AssertionError(f"{name}: {refused}\n{query['expr']}") from refused
        shown = [each["metric"] for each in series if not math.isnan(float(each["value"][1]))]
        named = {label for form in FORMATS for label in re.findall(r"\{\{(\w+)\}\}", query.get(form, ""))}
        lacking = sorted(label for label in named if any(label not in metric for metric in shown))
        if lacking or not shown:
            wrong[name] = f"no label {lacking}" if lacking else "no data"
    return wrong


def test_every_query_is_answered(stage: tuple[Traffic, Prometheus]) -> None:
    traffic, prometheus = stage
    tables = sorted([TOPIC, "t", "otel_logs", "otel_traces", *METRIC_TABLES])
    known = {"job": [JOB], "database": ["default"], "table": tables}

    def chosen() -> bool:
        traffic.more()
        return known.items() <= values_of(prometheus).items()

    eventually(chosen, "the variables have their values", 60)
    last: dict[str, str] = {}

    def answered() -> bool:
        traffic.more()
        last.clear()
        last.update(missing(prometheus, values_of(prometheus)))
        return not last

    try:
        eventually(answered, "every query is answered with data", 60)
    except AssertionError as error:
        raise AssertionError(f"{error}; without: {last}") from error


def test_every_filter_filters(stage: tuple[Traffic, Prometheus]) -> None:
    """It names a label that the metric has; and what has tables is filtered by them."""
    traffic, prometheus = stage
    traffic.more()

    def seen() -> set[str]:
        names = set(prometheus.label_values('{__name__=~"windrow_.*", table!=""}', "__name__"))
        return names if {"windrow_flushes_total", "windrow_dead_letters_kept"} <= names else set()

    of_tables = eventually(seen, "tables are seen, and dead letters", 60)
    values = values_of(prometheus)
    for title, query in QUERIES.items():
        for name in ("job", "instance", "database", "table"):
            if f"${name}" in query["expr"] and "vector(0)" not in query["expr"]:
                nobodys = filled(query["expr"], {**values, name: ["nobody"]})
                assert prometheus.query(nobodys) == [], (title, name)
        for metric, filters in re.findall(r"\b(windrow_\w+)\{(.*?)\}", query["expr"]):
            filtered = 'database=~"$database", table=~"$table"' in filters
            assert filtered == (metric in of_tables and title not in OF_ALL_TABLES), (title, metric)
