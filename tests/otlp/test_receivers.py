"""Requests of OTLP to a gateway: what comes into the tables, and what senders are told."""

from __future__ import annotations

import http.client
import json
import re
import signal
import socket
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import grpc
import pytest
from google.protobuf.json_format import MessageToDict
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

from harness.certificate import made_in
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.metrics import metrics_of
from harness.otlp import JSON, METRIC_TABLES, SERVICES, NOON_NS, OverGrpc, OverHttp, Told, all_metrics, logs, resource, spans
from harness.raw_http import RawConnection, head
from harness.users import ANN, JOE, TESTER

PORTS = ("--otlp-grpc", "127.0.0.1:0", "--otlp-http", "127.0.0.1:0")
# Tests share a gateway, and have a database each: their tenant's.
CONFIG = f"""
[otlp]
database = "{{tenant}}"
tenant_header = "x-tenant"
ack = "stored"
max_grpc_message_bytes = "64KiB"
max_http_body_bytes = "128KiB"

[[otlp.tokens]]
token = "token of the tester"
user = "{TESTER.name}"
password = "{TESTER.password}"
"""
Send = Callable[..., Told]


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    started = Gateway(tmp_path_factory.mktemp("receiver"), CONFIG, PORTS)
    yield started
    assert started.stop() == 0, started.child.log()[-3000:]


@pytest.fixture
def tenant(request: pytest.FixtureRequest) -> str:
    return re.sub(r"\W+", "_", request.node.name).lower()[-100:]


@pytest.fixture
def stored(receiver: Gateway, tenant: str) -> Endpoint:
    """The engine behind the gateway, where the test's tables are."""
    receiver.direct.sql(f"DROP DATABASE IF EXISTS {tenant}")
    return receiver.direct.using(tenant)


@pytest.fixture(params=["http", "grpc"])
def over(request: pytest.FixtureRequest, receiver: Gateway, tenant: str) -> OverHttp | OverGrpc:
    headers = {"x-tenant": tenant, "Authorization": receiver.http.as_user(TESTER.name, TESTER.password).basic_auth()}
    return OverHttp(receiver, headers=headers) if request.param == "http" else OverGrpc(receiver, headers)


@pytest.fixture
def over_http(receiver: Gateway, tenant: str) -> OverHttp:
    return OverHttp(
        receiver,
        headers={"x-tenant": tenant, "Authorization": receiver.http.as_user(TESTER.name, TESTER.password).basic_auth()},
    )


def not_made(stored: Endpoint, tenant: str) -> bool:
    return stored.using("default").sql(f"EXISTS DATABASE {tenant}") == "0"


def test_logs_come_into_a_table_that_is_made_for_them(over: OverHttp | OverGrpc, stored: Endpoint) -> None:
    told = over.send("logs", logs(["one", "two"], resource(pod="p-1")))
    assert (told.is_taken, told.body) == (True, b""), told
    rows = stored.sql(
        "SELECT Body, ServiceName, SeverityText, SeverityNumber, ResourceAttributes['pod'], toUnixTimestamp64Nano(Timestamp) "
        "FROM otel_logs ORDER BY Timestamp FORMAT JSONCompactEachRow"
    )
    assert [json.loads(row) for row in rows.splitlines()] == [
        ["one", "shop", "INFO", 9, "p-1", NOON_NS],
        ["two", "shop", "INFO", 9, "p-1", NOON_NS + 1],
    ]


def test_spans_and_every_kind_of_metric(over: OverHttp | OverGrpc, stored: Endpoint) -> None:
    assert over.send("traces", spans(["GET /", "GET /a"])).is_taken
    assert over.send("metrics", all_metrics("size")).is_taken
    assert stored.sql("SELECT SpanName, SpanKind, Duration, Events.Name FROM otel_traces ORDER BY 1").splitlines() == [
        "GET /\tServer\t1000\t['event']",
        "GET /a\tServer\t2000\t['event']",
    ]
    assert stored.sql("SELECT count() FROM otel_traces_trace_id_ts") == "2"
    for table in METRIC_TABLES:
        assert stored.sql(f"SELECT MetricName, ServiceName FROM {table}").split() == ["size", "shop"], table


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_bodies_may_be_packed(over_http: OverHttp, stored: Endpoint, packing: str) -> None:
    assert over_http.send("logs", logs(["packed"] * 50), packing=packing).is_taken
    assert stored.sql("SELECT count() FROM otel_logs WHERE Body = 'packed'") == "50"


@pytest.mark.parametrize("packing", ["gzip", "deflate"])
def test_messages_may_be_packed(receiver: Gateway, stored: Endpoint, tenant: str, packing: str) -> None:
    over = OverGrpc(receiver, {"x-tenant": tenant, "authorization": "Bearer token of the tester"})
    assert over.send("logs", logs(["packed"] * 50), packing=packing).is_taken
    assert stored.sql("SELECT count() FROM otel_logs WHERE Body = 'packed'") == "50"


def as_json(payload: bytes) -> bytes:
    return json.dumps(MessageToDict(ExportLogsServiceRequest.FromString(payload))).encode()


def test_json_is_the_same_rows(over_http: OverHttp, stored: Endpoint) -> None:
    payload = logs(["in JSON"])
    over_http.kind = JSON
    told = over_http.send("logs", as_json(payload))
    assert (told.status, told.headers["content-type"], json.loads(told.body)) == (200, JSON, {})
    over_http.kind = "application/x-protobuf"
    assert over_http.send("logs", payload).is_taken
    assert stored.sql("SELECT count(), uniqExact(tuple(*)) FROM otel_logs").split() == ["2", "1"]


def test_nothing_in_a_request_is_a_success(over: OverHttp | OverGrpc, stored: Endpoint) -> None:
    for signal in ("logs", "traces", "metrics"):
        assert over.send(signal, b"").is_taken
    assert over.send("logs", logs([])).is_taken


def test_a_request_without_a_length_is_refused(over_http: OverHttp, stored: Endpoint, tenant: str) -> None:
    """Else it would be one of no rows, and what comes behind its head lost."""
    port = over_http.gateway.otlp_ports[1]
    fields = (("Host", "x"), ("Content-Type", over_http.kind), *over_http.headers.items())
    with RawConnection(Endpoint("127.0.0.1", port, "", "")) as connection:
        connection.send(head("POST", "/v1/logs", fields) + logs(["lost"]))
        connection.end_sending()
        assert connection.read_reply().status == 400
    assert not_made(stored, tenant)


def test_who_is_nobody_is_refused(receiver: Gateway, stored: Endpoint, tenant: str) -> None:
    payload = logs(["a"])
    for headers in (
        {"Authorization": receiver.http.as_user("tester", "wrong").basic_auth()},
        {"Authorization": "Bearer nobody's"},
        {"Authorization": "Bearer token of the tester", "X-ClickHouse-User": "tester"},
        {"X-ClickHouse-User": "tester", "X-ClickHouse-Key": "wrong"},
    ):
        told = OverHttp(receiver).send("logs", payload, {**headers, "x-tenant": tenant})
        assert (told.status, told.refusal.code) == (401, 16), (headers, told)
        told = OverGrpc(receiver).send("logs", payload, {**headers, "x-tenant": tenant})
        assert (told.status, told.retry_after_seconds) == ("UNAUTHENTICATED", None), (headers, told)
    assert not_made(stored, tenant)


def test_users_are_named_as_on_the_data_port_and_by_tokens(receiver: Gateway, stored: Endpoint, tenant: str) -> None:
    ways = [
        {"Authorization": "Bearer token of the tester"},
        {"X-ClickHouse-User": TESTER.name, "X-ClickHouse-Key": TESTER.password},
        {},
    ]
    for headers in ways:
        for over in (OverHttp(receiver), OverGrpc(receiver)):
            assert over.send("logs", logs(["a"]), {**headers, "x-tenant": tenant}).is_taken, headers
    assert stored.sql("SELECT count() FROM otel_logs") == "6"


def test_who_may_not_make_the_table_is_told_so_for_good(receiver: Gateway, stored: Endpoint, tenant: str) -> None:
    of_joe = {"X-ClickHouse-User": JOE.name, "X-ClickHouse-Key": JOE.password, "x-tenant": tenant}
    told = OverHttp(receiver).send("logs", logs(["a"]), of_joe)
    assert (told.status, told.refusal.code) == (403, 7), told
    told = OverGrpc(receiver).send("logs", logs(["a"]), of_joe)
    assert told.status == "PERMISSION_DENIED", told
    assert not_made(stored, tenant)


def test_who_may_insert_needs_no_right_to_make_what_is_there(receiver: Gateway, stored: Endpoint, tenant: str) -> None:
    assert OverHttp(receiver).send("logs", logs(["a"]), {"x-tenant": tenant}).is_taken
    of_ann = {"X-ClickHouse-User": ANN.name, "X-ClickHouse-Key": ANN.password, "x-tenant": tenant}
    assert OverHttp(receiver).send("logs", logs(["b"]), of_ann).is_taken
    assert stored.sql("SELECT groupArray(Body) FROM (SELECT Body FROM otel_logs ORDER BY Body)") == "['a','b']"


def test_what_is_too_large_is_refused_for_good(receiver: Gateway, stored: Endpoint, tenant: str) -> None:
    dropped = lambda: metrics_of(receiver).sum("windrow_otlp_refused_requests_total", signal="logs", sender="drops")  # noqa: E731
    before = dropped()
    large = logs(["x" * 1000] * 200)
    headers = {"x-tenant": tenant}
    for packing in ("", "gzip"):
        told = OverHttp(receiver).send("logs", large, headers, packing)
        assert (told.status, "retry-after" in told.headers) == (413, False), told
        told = OverGrpc(receiver).send("logs", large, headers, packing)
        assert (told.status, told.retry_after_seconds) == ("RESOURCE_EXHAUSTED", None), told
    assert not_made(stored, tenant)
    assert dropped() == before + 4


def test_a_request_that_is_cut_anywhere_is_refused_for_good(over: OverHttp | OverGrpc, stored: Endpoint, tenant: str) -> None:
    """Where what is left is no request any more; cut between two of its parts it is another one."""
    whole = logs(["one"])
    bad = {400, "INVALID_ARGUMENT"}
    statuses = [over.send("logs", whole[:length]).status for length in range(1, len(whole))]
    assert set(statuses) <= bad, statuses
    assert over.send("logs", whole).is_taken
    assert stored.sql("SELECT count() FROM otel_logs") == "1"


def test_json_that_is_cut_anywhere_is_refused_for_good(over_http: OverHttp, stored: Endpoint) -> None:
    over_http.kind = JSON
    whole = as_json(logs(["one"]))
    for length in range(len(whole)):
        told = over_http.send("logs", whole[:length])
        assert (told.status, told.refusal.code) == (400, 3), whole[:length]


# Each spoils the record that it stands in: no value of its field, or none that JSON has.
SPOILED = {
    "logs": (
        '"timeUnixNano":"noon"', '"timeUnixNano":-1', '"timeUnixNano":01', '"severityNumber":"LOUD"', '"severityText":7', '"body":"text"',
        '"body":{"intValue":"1.5"}', '"body":{"bytesValue":"%"}', '"body":{"boolValue":"true"}', '"body":{"doubleValue":NaN}',
        '"body":{"doubleValue":1e999}', '"body":{"arrayValue":[]}', '"body":' + '{"arrayValue":{"values":[' * 40 + "]}}" * 40,
        '"attributes":{}', '"attributes":[7]', '"traceId":"00"', '"spanId":"zz00000000000000"', r'"eventName":"\q"', '"flags":4294967296',
    ),
    "traces": ('"kind":"NEW"', '"startTimeUnixNano":1.5', '"events":[{"name":7}]', '"links":[{"traceId":"00"}]', '"status":{"code":"BAD"}'),
    "metrics": ('"asInt":"x"', '"asDouble":{}', '"exemplars":[{"spanId":"00"}]', '"timeUnixNano":true', '"attributes":[{"key":7}]'),
}  # fmt: skip
AROUND = {
    "logs": '{{"resourceLogs":[{{"scopeLogs":[{{"logRecords":[{}]}}]}}]}}',
    "traces": '{{"resourceSpans":[{{"scopeSpans":[{{"spans":[{}]}}]}}]}}',
    "metrics": '{{"resourceMetrics":[{{"scopeMetrics":[{{"metrics":[{{"name":"m","gauge":{{"dataPoints":[{}]}}}}]}}]}}]}}',
}
TABLES_OF = {"logs": "otel_logs", "traces": "otel_traces", "metrics": "otel_metrics_gauge"}
REJECTED = {"logs": "rejected_log_records", "traces": "rejected_spans", "metrics": "rejected_data_points"}


@pytest.mark.parametrize("signal", SPOILED)
def test_json_that_can_not_be_read_takes_no_other_record_along(over_http: OverHttp, stored: Endpoint, receiver: Gateway, signal: str) -> None:
    over_http.kind = JSON
    good = '{"attributes":[{"key":"k","value":{"stringValue":"good"}}]}'
    bad = [f'{{"attributes":[{{"key":"k","value":{{"stringValue":"bad"}}}}],{spoiled}}}' for spoiled in SPOILED[signal]]
    rejected = lambda: metrics_of(receiver).sum("windrow_otlp_rejected_rows_total", signal=signal)  # noqa: E731
    before = rejected()
    told = over_http.send(signal, AROUND[signal].format(",".join([good, *bad, good])).encode())
    assert told.is_taken and getattr(told.partial, REJECTED[signal]) == len(bad) and "the field" in told.partial.error_message, told
    attributes = {"logs": "LogAttributes", "traces": "SpanAttributes", "metrics": "Attributes"}[signal]
    assert stored.sql(f"SELECT {attributes}['k'], count() FROM {TABLES_OF[signal]} GROUP BY 1") == "good\t2"
    assert rejected() == before + len(bad)
    # Where nothing can be read, the request is none.
    assert over_http.send(signal, AROUND[signal].format(bad[0]).encode()).status == 400


def test_protobuf_that_can_not_be_read_takes_no_other_record_along(over: OverHttp | OverGrpc, stored: Endpoint) -> None:
    def within(number: int, content: bytes) -> bytes:
        return bytes([number << 3 | 2, len(content)]) + content

    # Cut off, without a number, of another wire type, an id of another length, an end of no group.
    bad = (b"\x62\x05x", b"\x00", b"\x08\x05", within(9, b"abc"), b"\x0c")
    records = b"".join(within(2, record) for record in (within(12, b"a"), *bad, within(12, b"b")))
    told = over.send("logs", within(1, within(2, records)) + within(1, within(2, b"\x12\x09")) + logs(["c"]))
    assert told.is_taken and told.partial.rejected_log_records == len(bad) + 1, told
    assert stored.sql("SELECT arraySort(groupArray(if(EventName = '', Body, EventName))) FROM otel_logs") == "['a','b','c']"


def test_half_of_a_letter_is_a_replacement_character(over_http: OverHttp, stored: Endpoint) -> None:
    """As JSON.stringify leaves a text that was cut."""
    over_http.kind = JSON
    bodies = ",".join(f'{{"body":{{"stringValue":"{text}"}}}}' for text in (r"cut \ud83d", r"\ude00", "whole"))
    told = over_http.send("logs", AROUND["logs"].format(bodies).encode())
    assert (told.status, json.loads(told.body)) == (200, {}), told
    assert stored.sql("SELECT arraySort(groupArray(Body)) FROM otel_logs") == "['cut \ufffd','whole','\ufffd']"


@pytest.mark.parametrize("packing", ["gzip", "zstd"])
def test_a_packed_body_that_is_cut_anywhere_is_refused_for_good(over_http: OverHttp, stored: Endpoint, packing: str) -> None:
    from harness.otlp import PACK

    whole = PACK[packing](logs(["one"]))
    for length in range(1, len(whole)):
        told = over_http.send("logs", whole[:length], {"Content-Encoding": packing})
        assert told.status == 400, length


def test_other_addresses_and_types_are_refused(receiver: Gateway, tenant: str) -> None:
    over = OverHttp(receiver, headers={"x-tenant": tenant})
    assert over.send("profiles", b"").status == 404
    assert over.send("logs", b"", {"Content-Type": "text/plain"}).status == 415
    assert over.send("logs", b"", {"Content-Encoding": "bz2"}).status == 415
    with socket.create_connection(("127.0.0.1", receiver.otlp_ports[1])) as connection:
        connection.sendall(b"GET /v1/logs HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
        answer = b"".join(iter(lambda: connection.recv(4096), b""))
    assert answer.startswith(b"HTTP/1.1 405 ") and b"\r\nAllow: POST\r\n" in answer


def test_a_request_with_a_name_is_stored_once(over: OverHttp | OverGrpc, stored: Endpoint) -> None:
    for _ in range(3):
        assert over.send("logs", logs(["a", "b"]), {"x-windrow-request-id": "first"}).is_taken
        assert over.send("metrics", all_metrics(), {"x-windrow-request-id": "first"}).is_taken
    assert over.send("logs", logs(["a", "b"]), {"x-windrow-request-id": "second"}).is_taken
    assert stored.sql("SELECT count() FROM otel_logs") == "4"
    for table in METRIC_TABLES:
        assert stored.sql(f"SELECT count() FROM {table}") == "1", table


def test_equal_requests_without_a_name_are_two(over: OverHttp | OverGrpc, stored: Endpoint) -> None:
    for _ in range(2):
        assert over.send("logs", logs(["a"])).is_taken
    assert stored.sql("SELECT count() FROM otel_logs") == "2"


def test_rows_that_a_table_refuses_are_rejected_for_good(over: OverHttp | OverGrpc, stored: Endpoint) -> None:
    """One of the tables of a request takes nothing: what is in the others is kept, and the sender does not send it again."""
    assert over.send("metrics", all_metrics("first")).is_taken
    stored.sql("ALTER TABLE otel_metrics_sum ADD CONSTRAINT plain CHECK MetricName = 'first'")
    told = over.send("metrics", all_metrics("second"))
    assert told.is_taken and told.partial.rejected_data_points == 1 and "plain" in told.partial.error_message, told
    assert stored.sql("SELECT count() FROM otel_metrics_sum") == "1"
    assert stored.sql("SELECT count() FROM otel_metrics_gauge") == "2"


def test_a_table_of_ones_own_making_is_filled_as_far_as_it_goes(over: OverHttp | OverGrpc, stored: Endpoint, tenant: str) -> None:
    """And a column that it gets later is filled from then on."""
    stored.using("default").sql(f"CREATE DATABASE {tenant}")
    stored.sql("CREATE TABLE otel_logs (Body String, ServiceName Nullable(String), own UInt8 DEFAULT 7) ORDER BY Body")
    assert over.send("logs", logs(["a"])).is_taken
    assert stored.sql("SELECT * FROM otel_logs").split("\t") == ["a", "shop", "7"]
    stored.sql("ALTER TABLE otel_logs ADD COLUMN SeverityText String")

    def is_filled() -> bool:
        assert over.send("logs", logs(["b"])).is_taken
        return stored.sql("SELECT countIf(SeverityText = 'INFO') FROM otel_logs") != "0"

    eventually(is_filled, "the new column is filled")


def test_a_table_that_is_dropped_is_made_again(over: OverHttp | OverGrpc, stored: Endpoint) -> None:
    assert over.send("logs", logs(["a"])).is_taken
    stored.sql("DROP TABLE otel_logs SYNC")

    def is_taken_again() -> bool:
        told = over.send("logs", logs(["b"]))
        assert told.is_taken or told.status in (503, "UNAVAILABLE"), told
        return told.is_taken

    eventually(is_taken_again, "the table is made again")
    assert set(stored.sql("SELECT Body FROM otel_logs").split()) == {"b"}


def test_a_table_that_cannot_hold_the_rows_is_named(over: OverHttp | OverGrpc, stored: Endpoint, tenant: str) -> None:
    stored.using("default").sql(f"CREATE DATABASE {tenant}")
    stored.sql("CREATE TABLE otel_logs (Body Date, x UInt8) ORDER BY x")
    told = over.send("logs", logs(["a"]))
    assert told.status in (404, "FAILED_PRECONDITION") and "Body" in told.message, told


def test_pages_of_sites_that_are_named_may_send(start_gateway: Callable[..., Gateway]) -> None:
    gateway = start_gateway('[otlp]\nallowed_origins = ["https://shop.example"]\n', PORTS)
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "content-type,authorization"}

    def preflight(origin: str, path: str = "/v1/traces") -> tuple[int, str | None, str | None]:
        connection = http.client.HTTPConnection("127.0.0.1", gateway.otlp_ports[1], timeout=60)
        try:
            connection.request("OPTIONS", path, headers={"Origin": origin, **asked})
            answer = connection.getresponse()
            answer.read()
            allowed = [answer.getheader(f"Access-Control-Allow-{name}") for name in ("Origin", "Headers")]
            return answer.status, *allowed
        finally:
            connection.close()

    assert preflight("https://shop.example") == (204, "https://shop.example", "content-type,authorization")
    assert preflight("https://shop.example.evil") == (405, None, None)
    assert preflight("https://shop.example", "/v1/profiles")[0] == 404
    over = OverHttp(gateway, headers={"X-ClickHouse-User": TESTER.name, "X-ClickHouse-Key": TESTER.password})
    for origin, allowed in (("https://shop.example", "https://shop.example"), ("https://other.example", None)):
        told = over.send("logs", logs(["a"]), {"Origin": origin})
        assert (told.is_taken, told.headers.get("access-control-allow-origin")) == (True, allowed), told


def test_balancers_ask_for_its_health(receiver: Gateway) -> None:
    """As nobody's user, by the service that gRPC has for it."""
    with OverGrpc(receiver).channel() as channel:
        check = channel.unary_unary("/grpc.health.v1.Health/Check")
        serving = b"\x08\x01"
        for service in ("", *(f"opentelemetry.proto.collector.{name}" for name in SERVICES.values())):
            asked = b"\x0a" + bytes([len(service)]) + service.encode() if service else b""
            assert check(asked, timeout=60) == serving, service
        for wrong, status in ((b"\x0a\x03abc", "NOT_FOUND"), (b"\xff", "INVALID_ARGUMENT"), (b"x" * 200, "RESOURCE_EXHAUSTED")):
            with pytest.raises(grpc.RpcError) as refused:
                check(wrong, timeout=60)
            assert refused.value.code().name == status, wrong


def test_tenants_have_plain_names(receiver: Gateway) -> None:
    for headers in ({"x-tenant": "a`b"}, {"x-tenant": "../x"}, {"x-tenant": "t" * 101}, {}):
        assert OverHttp(receiver).send("logs", logs(["a"]), headers).status == 400, headers
        assert OverGrpc(receiver).send("logs", logs(["a"]), headers).status == "INVALID_ARGUMENT", headers


def test_what_is_counted(receiver: Gateway, tenant: str, stored: Endpoint) -> None:
    def counted() -> list[float]:
        metrics = metrics_of(receiver)
        names = ["requests_total", "rows_total", "payload_bytes_total", "refused_requests_total", "record_age_seconds_count"]
        return [metrics.sum(f"windrow_otlp_{name}", signal="logs") for name in names]

    before, payload = counted(), logs(["a", "b", "c"])
    over = OverHttp(receiver, headers={"x-tenant": tenant})
    assert over.send("logs", payload).is_taken and over.send("logs", b"\xff").status == 400
    assert [after - was for after, was in zip(counted(), before, strict=True)] == [1, 3, len(payload), 1, 1]


def test_a_connection_of_http_serves_many_requests(receiver: Gateway, tenant: str, stored: Endpoint) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", receiver.otlp_ports[1], timeout=60)
    for n in range(20):
        connection.request("POST", "/v1/logs", logs([str(n)]), {"Content-Type": "application/x-protobuf", "x-tenant": tenant})
        answer = connection.getresponse()
        assert (answer.status, answer.read()) == (200, b"")
    connection.close()
    assert stored.sql("SELECT uniqExact(Body) FROM otel_logs") == "20"


def test_rows_of_several_tenants_in_one_request(start_gateway: Callable[..., Gateway]) -> None:
    config = '[otlp]\nack = "stored"\ndatabase = "of_{tenant}"\ntenant_attribute = "team"\ndefault_tenant = "nobody"\n'
    gateway = start_gateway(config, PORTS)
    requests = [logs([body], of) for body, of in (("a", resource(team="red")), ("b", resource(team="blue")), ("c", resource()))]
    # Requests one after the other are one request with the resources of all.
    assert OverHttp(gateway).send("logs", b"".join(requests)).is_taken
    for team, body in (("red", "a"), ("blue", "b"), ("nobody", "c")):
        assert gateway.direct.sql(f"SELECT Body FROM of_{team}.otel_logs").split() == [body]


def test_requests_may_be_known_by_their_bytes(start_gateway: Callable[..., Gateway]) -> None:
    gateway = start_gateway('[otlp]\nack = "stored"\ndeduplicate_by_bytes = true\n', PORTS)
    for over in (OverHttp(gateway), OverGrpc(gateway)):
        assert over.send("logs", logs(["a"])).is_taken and over.send("logs", logs(["b"])).is_taken
    assert gateway.direct.sql("SELECT Body, count() FROM otel_logs GROUP BY 1 ORDER BY 1").split() == ["a", "1", "b", "1"]


def test_rows_that_nobody_waits_for_are_held_for_others(start_gateway: Callable[..., Gateway]) -> None:
    gateway = start_gateway('[otlp]\nhold_ms = 3600000\n', PORTS)
    for over in (OverHttp(gateway), OverGrpc(gateway)) * 5:
        assert over.send("logs", logs(["a"])).is_taken
    assert gateway.direct.sql("SELECT count() FROM otel_logs") == "0"
    gateway.http.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert gateway.direct.sql("SELECT count(), uniqExact(_part) FROM otel_logs") == "10\t1"


def test_tables_are_not_made_where_the_settings_have_it_so(start_gateway: Callable[..., Gateway]) -> None:
    gateway = start_gateway("[otlp]\ncreate_schema = false\n", PORTS)
    told = OverHttp(gateway).send("logs", logs(["a"]))
    assert told.status == 404 and "otel_logs" in told.message, told
    assert OverGrpc(gateway).send("logs", logs(["a"])).status == "FAILED_PRECONDITION"


def test_columns_of_ones_own_are_filled_by_a_mapping(start_gateway: Callable[..., Gateway]) -> None:
    config = """
[otlp]
ack = "stored"
logs_table = "lines"
[[otlp.mappings]]
kind = "logs"
columns = { message = "Body", pod = "ResourceAttributes['pod']", at = "Timestamp" }
"""
    gateway = start_gateway(config, PORTS)
    gateway.direct.sql("CREATE TABLE lines (at DateTime64(9, 'UTC'), message String, pod String) ORDER BY at")
    assert OverHttp(gateway).send("logs", logs(["a"], resource(pod="p"))).is_taken
    assert gateway.direct.sql("SELECT message, pod, toUnixTimestamp64Nano(at) FROM lines").split() == ["a", "p", str(NOON_NS)]


def test_tokens_and_mappings_change_while_it_runs(start_gateway: Callable[..., Gateway]) -> None:
    mapping = '[[otlp.mappings]]\nkind = "logs"\ncolumns = {{ a = "{source}" }}\n'
    token = '[[otlp.tokens]]\ntoken = "{token}"\nuser = "tester"\npassword = "te&st er"\n'
    config = '[otlp]\nack = "stored"\n' + token.format(token="first") + mapping.format(source="Body")
    gateway = start_gateway(config, PORTS)
    gateway.direct.sql("CREATE TABLE otel_logs (a String) ORDER BY a")
    over = OverHttp(gateway, headers={"Authorization": "Bearer first"})
    assert over.send("logs", logs(["body"])).is_taken
    changed = config.replace("first", "second").replace("Body", "SeverityText")
    gateway.config_path.write_text(changed + gateway.users())
    gateway.child.signal(signal.SIGHUP)
    eventually(lambda: over.send("logs", logs(["body"])).status == 401, "the first token is not known any more")
    over.headers["Authorization"] = "Bearer second"
    assert over.send("logs", logs(["body"])).is_taken
    assert "INFO" in gateway.direct.sql("SELECT DISTINCT a FROM otel_logs").split()


def test_attributes_may_be_json(start_gateway: Callable[..., Gateway]) -> None:
    gateway = start_gateway('[otlp]\nack = "stored"\njson = true\n', PORTS)
    assert OverHttp(gateway).send("logs", logs(["a"], resource(pod="p"))).is_taken
    assert OverGrpc(gateway).send("traces", spans(["s"])).is_taken
    assert gateway.direct.sql("SELECT ResourceAttributes.pod FROM otel_logs").split() == ["p"]
    assert gateway.direct.sql("SELECT count() FROM otel_traces") == "1"


def test_who_waits_for_a_table_waits_for_no_hold(start_gateway: Callable[..., Gateway]) -> None:
    gateway = start_gateway('[otlp]\nhold_ms = 3600000\n[[tables]]\ntable = "otel_logs"\nack = "stored"\n', PORTS)
    assert OverHttp(gateway).send("logs", logs(["a"])).is_taken
    assert gateway.direct.sql("SELECT Body FROM otel_logs") == "a"


def test_both_ports_speak_tls_if_the_data_port_does(start_gateway: Callable[..., Gateway], tmp_path: Path) -> None:
    certificate = made_in(tmp_path, "DNS:localhost")
    config = f'[http]\ntls_certificate = "{certificate.cert}"\ntls_key = "{certificate.key}"\n[otlp]\nack = "stored"\n'
    gateway = start_gateway(config, PORTS)
    authority = certificate.cert.read_bytes()
    for over in (OverHttp(gateway, authority=authority), OverGrpc(gateway, authority=authority)):
        assert over.send("logs", logs(["a"])).is_taken
    assert gateway.direct.sql("SELECT count() FROM otel_logs") == "2"


def test_requests_that_come_together_find_one_table(receiver: Gateway, stored: Endpoint, tenant: str) -> None:
    from concurrent.futures import ThreadPoolExecutor

    def send(n: int) -> Told:
        return OverHttp(receiver, headers={"x-tenant": tenant}).send("logs", logs([f"{uuid.uuid4()}"]))

    with ThreadPoolExecutor(16) as pool:
        assert all(told.is_taken for told in pool.map(send, range(48)))
    assert stored.sql("SELECT uniqExact(Body) FROM otel_logs") == "48"
