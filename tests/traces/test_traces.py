"""OpenTelemetry traces of inserts, received as the collector receives them, and what ClickHouse makes of them."""

from __future__ import annotations

import http.client
import json
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import clickhouse_driver
import pytest

from clients.run_program import CLIENTS, built_once, prepare
from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.eventually import eventually
from harness.metrics import metrics_of
from harness.paths import gateway_binary
from harness.ports import free_port
from harness.process import Child, inherited_environment
from harness.remote import RemoteGateway, backend_url
from harness.users import TESTER

SPAN_LOG = """<opentelemetry_span_log><database>system</database><table>opentelemetry_span_log</table>
<engine>ENGINE = MergeTree ORDER BY (finish_date, finish_time_us)</engine>
<flush_interval_milliseconds>200</flush_interval_milliseconds></opentelemetry_span_log>"""
STAGES = ["accept", "admit", "parse", "place", "wait", "acknowledge"]
SECRET = "long-and-random"


class Receiver:
    def __init__(self, folder: Path):
        with built_once("otel-receiver") as cache:
            built = cache / "otel-receiver"
            prepare(["go", "build", "-trimpath", "-o", str(built), "./receiver"], CLIENTS / "otel")
        folder.mkdir(parents=True, exist_ok=True)
        self.child = Child([str(built)], folder / "received.jsonl")
        self.address = eventually(lambda: self.lines()[:1], "the receiver listens")[0]

    def lines(self) -> list[str]:
        return self.child.log().split("\n")[:-1]

    def exports(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.lines()[1:]]

    def spans(self) -> list[dict[str, Any]]:
        spans = []
        for export in self.exports():
            for resource in export["traces"]["resourceSpans"]:
                assert attributes(resource["resource"])["service.name"] == "windrow"
                spans += [span for scope in resource["scopeSpans"] for span in scope["spans"]]
        return spans

    def of(self, trace: str, *names: str) -> list[dict[str, Any]]:
        """The spans of a trace, by their beginnings, once those with these names are among them: the last ones to come."""

        def found() -> list[dict[str, Any]]:
            spans = [span for span in self.spans() if span["traceId"] == trace]
            return spans if {span["name"] for span in spans} >= set(names) else []

        spans = eventually(found, f"{names} of {trace}")
        return sorted(spans, key=lambda span: (int(span["startTimeUnixNano"]), int(span["endTimeUnixNano"])))


@dataclass(frozen=True)
class Stack:
    engine: Engine
    receiver: Receiver
    gateway: RemoteGateway

    @property
    def http(self) -> Endpoint:
        return self.gateway.http.as_user(TESTER.name, TESTER.password)


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder = tmp_path_factory.mktemp("traces")
    receiver = Receiver(folder / "receiver")
    engine = Engine(folder / "engine", config=SPAN_LOG)
    engine.direct.sql("CREATE TABLE t (n UInt64, CONSTRAINT small CHECK n < 100) ENGINE = MergeTree ORDER BY n")
    tracing = (
        f'backend_native.address = "127.0.0.1:{engine.native_port}"\n'
        f'[tracing]\notlp_endpoint = "http://{receiver.address}"\nsample_ratio = 0\nheaders = "X-Key={SECRET}"\n'
    )
    address = f"{engine.direct.host}:{engine.direct.port}"
    gateway = RemoteGateway(folder / "gateway", backend_url(TESTER, address), engine.direct, config=tracing)
    yield Stack(engine, receiver, gateway)
    gateway.stop()
    engine.stop()
    receiver.child.stop()


def attributes(of: dict[str, Any]) -> dict[str, Any]:
    return {each["key"]: next(iter(each["value"].values())) for each in of.get("attributes", [])}


def traceparent(number: int, flags: str = "01") -> dict[str, str]:
    return {"traceparent": f"00-{trace_id(number)}-{number:016x}-{flags}"}


def trace_id(number: int) -> str:
    return f"{number:032x}"


def insert(endpoint: Endpoint, number: int, flags: str = "01", **settings: object) -> None:
    settings = {"query": "INSERT INTO t FORMAT CSV", "async_insert": 1, **settings}
    reply = endpoint.request(None, b"1\n", settings, headers=traceparent(number, flags))
    assert reply.status == 200, reply.text


def test_an_insert_is_told_stage_by_stage_and_its_flush_is_linked(stack: Stack) -> None:
    for number in (0x11, 0x12):
        insert(stack.http, number)
        spans = stack.receiver.of(trace_id(number), "insert", "gather")
        root = next(span for span in spans if span["name"] == "insert")
        assert root["parentSpanId"] == f"{number:016x}" and root["kind"] == 2
        told = attributes(root)
        assert (told["db.collection.name"], told["windrow.rows"], told["windrow.ack"]) == ("t", "1", "stored")
        below = [span for span in spans if span is not root]
        assert {span["parentSpanId"] for span in below} == {root["spanId"]}
        stages = [span for span in below if span["name"] != "gather"]
        # What is needed to admit it is known from the request before.
        wanted = [stage for stage in STAGES if stage != "admit"]
        assert [span["name"] for span in stages if span["name"] != "admit" or number == 0x12] == wanted
        for one, next_one in zip(stages, stages[1:]):
            assert one["endTimeUnixNano"] == next_one["startTimeUnixNano"]
        gather = next(span for span in below if span["name"] == "gather")
        flush_trace = gather["links"][0]["traceId"]
        flush, store = stack.receiver.of(flush_trace, "flush")
        assert (flush["name"], store["name"], store["parentSpanId"]) == ("flush", "store", flush["spanId"])
        assert {link["spanId"] for link in flush["links"]} == {root["spanId"]}
        batch = attributes(store)["clickhouse.query_id"]
        assert attributes(gather)["clickhouse.query_id"] == batch
        # ClickHouse's own spans of the flush hang below ours.
        direct = stack.engine.direct
        found = f"SELECT count() FROM system.opentelemetry_span_log WHERE lower(hex(trace_id)) = '{flush_trace}'"
        below_ours = f"{found} AND lower(hex(parent_span_id)) = '{store['spanId']}'"
        eventually(lambda: direct.sql("SYSTEM FLUSH LOGS") == "" and direct.sql(below_ours) != "0", "ClickHouse's span")


def test_who_says_no_is_not_traced_whoever_says_nothing_by_the_ratio(stack: Stack) -> None:
    insert(stack.http, 0x21, "00")
    for headers in ({}, {"traceparent": "rubbish"}):
        assert stack.http.request(None, b"INSERT INTO t VALUES (1)", {"async_insert": 1}, headers=headers).status == 200
    insert(stack.http, 0x22)
    stack.receiver.of(trace_id(0x22), "insert", "gather")
    assert not [span for span in stack.receiver.spans() if span["traceId"] == trace_id(0x21)]
    roots = [span for span in stack.receiver.spans() if span["name"] in ("insert", "request", "forward")]
    assert all(int(span["traceId"], 16) < 0x1000 for span in roots)


def test_strangers_get_no_span(stack: Stack) -> None:
    stranger = stack.gateway.http.as_user(TESTER.name, "wrong")
    assert stranger.request(None, b"INSERT INTO t VALUES (1)", {"async_insert": 1}, headers=traceparent(0x31)).status != 200
    insert(stack.http, 0x32)
    # Nor on a connection that was a user's before.
    connection = http.client.HTTPConnection(stack.http.host, stack.http.port, timeout=60)
    for endpoint, number, status in ((stack.http, 0x33, 200), (stranger, 0x34, 516)):
        headers = endpoint.with_auth(traceparent(number))
        connection.request("POST", "/?async_insert=1", b"INSERT INTO t VALUES (1)", headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.headers.get("X-ClickHouse-Exception-Code", "200") == str(status)
    connection.close()
    insert(stack.http, 0x35)
    for number in (0x32, 0x33, 0x35):
        stack.receiver.of(trace_id(number), "insert", "gather")
    strange = (trace_id(0x31), trace_id(0x34))
    assert not [span for span in stack.receiver.spans() if span["traceId"] in strange]


def test_what_is_forwarded_has_its_parent_here(stack: Stack) -> None:
    assert stack.http.request(None, b"SELECT 41 + 1", headers=traceparent(0x41)).text == "42\n"
    spans = stack.receiver.of(trace_id(0x41), "forward", "decide", "accept")
    root = next(span for span in spans if span["name"] == "forward" and span["kind"] == 2)
    direct = stack.engine.direct
    parents = (
        "SELECT lower(hex(parent_span_id)) FROM system.opentelemetry_span_log "
        f"WHERE lower(hex(trace_id)) = '{trace_id(0x41)}' AND operation_name = 'HTTPHandler'"
    )
    eventually(lambda: direct.sql("SYSTEM FLUSH LOGS") == "" and direct.sql(parents) == root["spanId"], "ClickHouse's span")


def test_a_refusal_is_an_error_without_its_text(stack: Stack) -> None:
    settings = {"query": "INSERT INTO t FORMAT CSV", "async_insert": 1}
    reply = stack.http.request(None, b"1000\n", settings, headers=traceparent(0x51))
    assert "469" in reply.text
    spans = stack.receiver.of(trace_id(0x51), "insert", "gather")
    root = next(span for span in spans if span["name"] == "insert")
    assert root["status"] == {"code": 2, "message": "Code: 469"}
    gather = next(span for span in spans if span["name"] == "gather")
    assert gather["status"]["code"] == 2


def test_a_record_in_the_journal_is_a_stage(stack: Stack) -> None:
    insert(stack.http, 0x61, wait_for_async_insert=0)
    names = [span["name"] for span in stack.receiver.of(trace_id(0x61), "insert", "gather")]
    assert "record" in names and "place" not in names


def test_a_native_client_says_it_in_its_query(stack: Stack) -> None:
    client = clickhouse_driver.Client(
        "127.0.0.1", stack.gateway.native_port, user=TESTER.name, password=TESTER.password,
        settings={"opentelemetry_traceparent": traceparent(0x71)["traceparent"], "opentelemetry_tracestate": "a=b"},
    )  # fmt: skip
    client.execute("INSERT INTO t VALUES", [(1,), (2,)], settings={"async_insert": 1})
    client.disconnect()
    # That client swaps the halves of the id: ClickHouse shows it so as well.
    swapped = trace_id(0x71)[16:] + trace_id(0x71)[:16]
    spans = stack.receiver.of(swapped, "insert", "gather")
    root = next(span for span in spans if span["name"] == "insert")
    assert root["parentSpanId"] == f"{0x71:016x}" and root["traceState"] == "a=b"
    assert attributes(root)["windrow.rows"] == "2"
    assert {span["name"] for span in spans} == {"insert", "gather", "rows", *STAGES}


def test_many_inserts_have_one_flush(stack: Stack) -> None:
    threads = [0x81 + number for number in range(3)]
    # Sealed by the third insert, and by nothing else.
    hold = {"async_insert_busy_timeout_min_ms": 600_000, "async_insert_busy_timeout_max_ms": 600_000, "async_insert_max_query_number": 3}
    with ThreadPoolExecutor(3) as pool:
        list(pool.map(lambda number: insert(stack.http, number, **hold), threads))
    flushes = {
        span["links"][0]["traceId"]
        for number in threads
        for span in stack.receiver.of(trace_id(number), "insert", "gather")
        if span["name"] == "gather"
    }
    assert len(flushes) == 1
    flush = stack.receiver.of(flushes.pop(), "flush")[0]
    assert sorted(link["traceId"] for link in flush["links"]) == [trace_id(number) for number in threads]
    assert attributes(flush)["windrow.inserts"] == "3"


def test_the_secret_comes_to_the_collector_and_nowhere_else(stack: Stack) -> None:
    insert(stack.http, 0x91)
    stack.receiver.of(trace_id(0x91), "insert", "gather")
    assert {export["metadata"]["x-key"][0] for export in stack.receiver.exports()} == {SECRET}
    assert SECRET not in stack.gateway.child.log()
    assert SECRET not in windrow("config", "--config", str(stack.gateway.config_path)).stdout


def test_without_a_collector_inserts_go_on_and_spans_are_counted(stack: Stack, tmp_path: Path) -> None:
    tracing = f'[tracing]\notlp_endpoint = "http://127.0.0.1:{free_port()}"\n'
    engine = stack.engine
    url = backend_url(TESTER, f"{engine.direct.host}:{engine.direct.port}")
    gateway = RemoteGateway(tmp_path / "gateway", url, engine.direct, config=tracing)
    try:
        insert(gateway.http.as_user(TESTER.name, TESTER.password), 0xA1)
        eventually(lambda: metrics_of(gateway).sum("windrow_trace_spans_total", result="failed"), "spans that could not be sent")
        eventually(lambda: "traces can't be sent" in gateway.child.log(), "a line in the log")
    finally:
        assert gateway.stop() == 0


def windrow(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [str(gateway_binary()), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=inherited_environment())


@pytest.mark.parametrize(
    ("setting", "value"),
    [("otlp_endpoint", value) for value in ("127.0.0.1:4317", "ftp://x", "http://", "http://ann:hidden@h", "http://h/?k=hidden")]
    + [("headers", "hidden")],
)
def test_wrong_settings_are_told_before_anything_starts(setting: str, value: str, tmp_path: Path) -> None:
    file = tmp_path / "windrow.toml"
    file.write_text(f'[tracing]\n{setting} = "{value}"\n')
    known = windrow("config", "--config", str(file))
    assert known.returncode == 1 and f"tracing.{setting}" in known.stderr and "hidden" not in known.stderr
    ended = windrow("serve", "--config", str(file), "--backend", "http://127.0.0.1:1", "--http", "127.0.0.1:0",
                    "--admin", "127.0.0.1:0", "--flight", "", "--data-dir", str(tmp_path / "data"))  # fmt: skip
    assert ended.returncode == 1 and ended.stderr == known.stderr
