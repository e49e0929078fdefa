"""Rows that can never be stored: their sender hears of it and drops them, so they are dead letters, and can be repaired."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue, KeyValueList
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, ResourceLogs, ScopeLogs

from harness.dead_letters import DeadLetters
from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.otlp import NOON_NS, SCOPE, OverGrpc, OverHttp, all_metrics, logs, resource, text
from harness.users import TESTER

PORTS = ("--otlp-grpc", "127.0.0.1:0", "--otlp-http", "127.0.0.1:0")
# Tests share a gateway, and have a database each: their tenant's.
CONFIG = """
[otlp]
database = "{tenant}"
tenant_header = "x-tenant"
json = true
"""
VIOLATED_CONSTRAINT, CANNOT_PARSE_TEXT = 469, 6


@pytest.fixture(scope="module")
def receiver(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Gateway]:
    started = Gateway(tmp_path_factory.mktemp("receiver"), CONFIG, PORTS)
    yield started
    assert started.stop() == 0, started.child.log()[-3000:]


@pytest.fixture
def tenant(request: pytest.FixtureRequest) -> str:
    return "".join(letter if letter.isalnum() else "_" for letter in request.node.name)[-100:]


@pytest.fixture
def stored(receiver: Gateway, tenant: str) -> Endpoint:
    return receiver.direct.using(tenant)


@pytest.fixture
def letters(receiver: Gateway, tenant: str) -> DeadLetters:
    return DeadLetters(receiver, tenant)


@pytest.fixture(params=["http", "grpc"])
def over(request: pytest.FixtureRequest, receiver: Gateway, tenant: str) -> OverHttp | OverGrpc:
    headers = {"x-tenant": tenant, "X-ClickHouse-User": TESTER.name, "X-ClickHouse-Key": TESTER.password}
    return OverHttp(receiver, headers=headers) if request.param == "http" else OverGrpc(receiver, headers)


def some_unfit() -> bytes:
    """Of four records two: JSON has no form for infinity, and no two values for one path."""
    path = AnyValue(kvlist_value=KeyValueList(values=[text("b", "within")]))
    attributes = [
        [text("a", "fine")],
        [KeyValue(key="ratio", value=AnyValue(double_value=math.inf)), text("a", "infinite")],
        [text("a.b", "beside"), KeyValue(key="a", value=path)],
        [],
    ]
    records = [
        LogRecord(time_unix_nano=NOON_NS + n, body=AnyValue(string_value=f"body {n}"), attributes=of)
        for n, of in enumerate(attributes)
    ]
    scopes = [ScopeLogs(scope=SCOPE, log_records=records)]
    return ExportLogsServiceRequest(resource_logs=[ResourceLogs(resource=resource(), scope_logs=scopes)]).SerializeToString()


def bodies(stored: Endpoint) -> list[str]:
    return stored.sql("SELECT Body FROM otel_logs ORDER BY Body").splitlines()


def test_rows_that_are_rejected_are_kept_with_why(
    over: OverHttp | OverGrpc, stored: Endpoint, letters: DeadLetters
) -> None:
    told = over.send("logs", some_unfit())
    assert told.is_taken and told.partial.rejected_log_records == 2, told
    assert "infinite" in told.partial.error_message
    [letter] = letters.all()
    assert (letter["rows"], letter["code"], letter["user"], letter["table"]) == (2, 0, TESTER.name, "otel_logs"), letter
    assert letter["error"] == told.partial.error_message
    rows = letters.rows(letter)
    assert [row["Body"] for row in rows] == ["body 1", "body 2"]
    # What JSON has no form for is a text in it; what would be two values are both there.
    assert [row["LogAttributes"] for row in rows] == ['{"a":"infinite","ratio":"Infinity"}', '{"a":{"b":"within"},"a.b":"beside"}']
    listed = letters.command("list", "--database", letters.database)
    assert "infinite" in listed.out and letters.command("show", str(letter["id"])).code == 0, listed
    eventually(lambda: bodies(stored) == ["body 0", "body 3"], "the others are stored")


def test_a_retry_stores_them_once_the_table_can(over: OverHttp | OverGrpc, stored: Endpoint, letters: DeadLetters) -> None:
    assert over.send("logs", some_unfit()).is_taken
    [before] = letters.all()
    letters.retry(ids=[before["id"]])
    # Its table has not changed: of the two rows ClickHouse still can't take one.
    [again] = eventually(lambda: [each for each in letters.all() if each["id"] != before["id"]], "it comes back")
    assert again["code"] != 0 and again["attempts"] >= 1, again
    for name in ("ResourceAttributes", "ScopeAttributes", "LogAttributes"):
        stored.sql(f"ALTER TABLE otel_logs MODIFY COLUMN {name} String")
    letters.retry(ids=[again["id"]])
    eventually(lambda: bodies(stored) == [f"body {n}" for n in range(4)], "all are stored")
    eventually(lambda: letters.all() == [], "no letter is left")


def test_what_clickhouse_refuses_later_is_a_dead_letter(
    over: OverHttp | OverGrpc, stored: Endpoint, letters: DeadLetters
) -> None:
    """It was answered before, when it was on the disk."""
    assert over.send("logs", logs(["before"])).is_taken
    eventually(lambda: bodies(stored) == ["before"], "it is stored")
    stored.sql("ALTER TABLE otel_logs ADD CONSTRAINT short CHECK length(Body) < 10")
    told = over.send("logs", logs(["x" * 20]))
    assert (told.is_taken, told.body) == (True, b""), told
    assert over.send("logs", logs(["after"])).is_taken
    [letter] = letters.come(1)
    assert (letter["code"], letter["rows"], letter["user"]) == (VIOLATED_CONSTRAINT, 1, TESTER.name), letter
    assert [row["Body"] for row in letters.rows(letter)] == ["x" * 20]
    eventually(lambda: bodies(stored) == ["after", "before"], "those beside it are stored")
    stored.sql("ALTER TABLE otel_logs DROP CONSTRAINT short")
    letters.retry(ids=[letter["id"]])
    eventually(lambda: len(bodies(stored)) == 3, "the retry is stored")


def test_a_column_that_takes_the_rows_no_more(start_gateway: Callable[..., Gateway]) -> None:
    """Its type is changed when they are acknowledged and wait for others."""
    held = 'flush_policy = "fixed"\nasync_insert_busy_timeout_max_ms = 3600000\n'
    gateway = start_gateway(f"[gather]\n{held}", PORTS)
    letters, tester = DeadLetters(gateway, "default"), gateway.http.as_user(TESTER.name, TESTER.password)
    for over in (OverHttp(gateway), OverGrpc(gateway)):
        assert over.send("logs", logs(["no number"])).is_taken
    gateway.direct.sql("ALTER TABLE otel_logs DROP INDEX idx_lower_body")
    gateway.direct.sql("ALTER TABLE otel_logs MODIFY COLUMN Body UInt64")
    tester.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    found = letters.come(2)
    assert all(letter["code"] == CANNOT_PARSE_TEXT and letter["rows"] == 1 for letter in found), found
    assert [row["Body"] for letter in found for row in letters.rows(letter)] == ["no number"] * 2
    gateway.direct.sql("ALTER TABLE otel_logs MODIFY COLUMN Body String")
    assert letters.retry()["retried"] == 2
    tester.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    eventually(lambda: bodies(gateway.direct) == ["no number"] * 2, "they are stored")


def test_points_without_a_table_are_kept_beside_those_that_have_one(
    receiver: Gateway, over: OverHttp | OverGrpc, stored: Endpoint, letters: DeadLetters, tenant: str
) -> None:
    receiver.direct.sql(f"CREATE DATABASE {tenant}")
    stored.sql("CREATE TABLE otel_metrics_sum (MetricName Date, n UInt8) ORDER BY n")
    told = over.send("metrics", all_metrics("second"))
    assert told.is_taken and told.partial.rejected_data_points == 1 and "MetricName" in told.partial.error_message, told
    [letter] = letters.all()
    assert (letter["table"], letter["rows"]) == ("otel_metrics_sum", 1), letter
    [row] = letters.rows(letter)
    assert (row["MetricName"], row["Value"], row["ServiceName"]) == ("second", 2, "shop")
    # Windrow sees it go, and makes it as it should be.
    receiver.http.as_user(TESTER.name, TESTER.password).sql(f"DROP TABLE {tenant}.otel_metrics_sum SYNC")
    told = over.send("metrics", all_metrics("third"))
    assert told.is_taken and told.partial.rejected_data_points == 0, told
    letters.retry()
    names = lambda: stored.sql("SELECT MetricName FROM otel_metrics_sum ORDER BY MetricName").split()  # noqa: E731
    eventually(lambda: names() == ["second", "third"], "the retry is stored")


def test_a_flood_of_rows_that_nobody_can_store_stays_within_the_bound(start_gateway: Callable[..., Gateway]) -> None:
    """Then senders are to keep them, with all that the request has; as soon as there is room, they are taken."""
    by_tenant = 'database = "{tenant}"\ntenant_attribute = "tenant"\n'
    gateway = start_gateway(f'[dead_letters]\nmax_bytes = "1MiB"\n[otlp]\njson = true\n{by_tenant}', PORTS)
    letters, taken = DeadLetters(gateway, "bad"), 0
    attribute = [KeyValue(key="ratio", value=AnyValue(double_value=math.nan))]
    record = LogRecord(time_unix_nano=NOON_NS, body=AnyValue(string_value="x" * 100_000), attributes=attribute)
    scopes = [ScopeLogs(scope=SCOPE, log_records=[record])]
    unfit = ResourceLogs(resource=resource(tenant="bad"), scope_logs=scopes)
    payload = ExportLogsServiceRequest(resource_logs=[unfit]).SerializeToString()
    for over in (OverHttp(gateway), OverGrpc(gateway)):
        while (told := over.send("logs", payload)).is_taken:
            taken += 1
            assert taken < 50
        assert told.status in (503, "UNAVAILABLE") and told.retry_after_seconds == 1, told
        assert "dead_letters.max_bytes" in told.message or "dead letter" in told.message, told
    assert len(letters.all()) == taken
    # What it is sent with is kept by its sender, too, and stored once.
    beside = logs(["beside"], resource(tenant="good"))
    assert OverHttp(gateway).send("logs", logs(["first"], resource(tenant="good"))).is_taken
    for over in (OverHttp(gateway), OverGrpc(gateway)):
        assert not over.send("logs", beside + payload).is_taken
    gateway.http.as_user(TESTER.name, TESTER.password).sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert bodies(gateway.direct.using("good")) == ["first"]
    letters.discard()
    assert OverHttp(gateway).send("logs", payload).is_taken
