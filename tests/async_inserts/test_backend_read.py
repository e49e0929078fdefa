"""Payloads that only ClickHouse can read: it is asked to, and they are gathered like those that are read here."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest

from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.gathered import Batch
from harness.inserts import HELD, HELD_NOT_WAITING, Background, make_table, parts_made, queued_inserts, rows
from harness.newer import Newer
from harness.raw_http import RawConnection, head
from harness.remote import RemoteGateway
from harness.users import ANN, JOE, TESTER

VALUES = "INSERT INTO t VALUES"
AT_ONCE = {"async_insert": 1, "async_insert_use_adaptive_busy_timeout": 0, "async_insert_busy_timeout_ms": 5}


def counted(gateway: Gateway, sample: str) -> int:
    with RawConnection(gateway.admin) as connection:
        lines = connection.exchange(head("GET", "/metrics", (("Host", "x"),)), "GET").text.splitlines()
    return sum(int(line.split()[-1]) for line in lines if line.split(" ")[0] == sample)


def asked(gateway: Gateway) -> int:
    return counted(gateway, "windrow_inserts_backend_read_total")


def forwarded(gateway: Gateway, reason: str) -> int:
    return counted(gateway, f'windrow_forwarded_requests_total{{reason="{reason}"}}')


def test_expressions_share_a_batch_with_rows_of_any_format(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, "a UInt64, d DateTime('UTC'), s Nullable(String)")
    before = asked(gateway)
    with Batch(tested, query=VALUES) as batch:
        batch.add("(1 + 1, toDateTime('2020-01-02 03:04:05', 'UTC'), upper('x')), (3, now() - now(), NULL)")
        batch.add("(4, 0, 'literal')")
        batch.add('{"a":5,"d":"2 Jan 2020 3:04:05"}', query="INSERT INTO t FORMAT JSONEachRow")
        replies = batch.flush()
    assert [reply.status for reply in replies] == [200] * 3, [reply.text for reply in replies]
    assert [reply.summary["written_rows"] for reply in replies] == ["2", "1", "1"]
    assert direct.sql("SELECT a, toUnixTimestamp(d), s FROM t ORDER BY a").splitlines() == [
        "2\t1577934245\tX", "3\t0\t\\N", "4\t0\tliteral", "5\t1577934245\t\\N",
    ]  # fmt: skip
    assert (parts_made(direct), asked(gateway) - before) == (1, 2)


def test_the_time_is_that_of_the_arrival(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, "t DateTime64(6)")
    with Batch(tested, query=VALUES) as batch:
        begin = direct.sql("SELECT now64(6)")
        batch.add("(now64(6))")
        end = direct.sql("SELECT now64(6)")
        batch.flush()
    assert begin <= direct.sql("SELECT t FROM t") <= end


def test_expressions_know_parameters_user_and_settings_of_their_insert(
    gateway: Gateway, tested: Endpoint, direct: Endpoint
) -> None:
    make_table(direct, "a UInt64, s String")
    row = "({x:UInt64}, concat(currentUser(), ' in ', currentDatabase(), ' at ', timezone()))"
    before = asked(gateway)
    for x, zone in ((1, "Asia/Tokyo"), (2, "Europe/Berlin")):
        reply = tested.insert(VALUES, row, param_x=x, session_timezone=zone, **AT_ONCE)
        assert reply.status == 200, reply.text
    stored = direct.sql("SELECT * FROM t ORDER BY a").splitlines()
    at = f"{TESTER.name} in {direct.database} at"
    assert stored == [f"1\t{at} Asia/Tokyo", f"2\t{at} Europe/Berlin"]
    assert asked(gateway) == before + 2


def test_nobody_reads_more_than_he_may(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    direct.sql("CREATE DATABASE IF NOT EXISTS narrow")
    direct.sql("CREATE OR REPLACE TABLE narrow.t (a UInt64, b UInt64) ENGINE = MergeTree ORDER BY a")
    make_table(direct, name="secret")
    joe, query = tested.as_user(JOE.name, JOE.password), "INSERT INTO narrow.t (a) VALUES"
    before = asked(gateway)
    reply = joe.insert(query, f"((SELECT count() FROM {direct.database}.secret))", **AT_ONCE)
    assert (reply.status, reply.code) == (500, 497)
    assert asked(gateway) == before
    assert joe.insert(query, "((SELECT count() + 41 + 1 FROM narrow.t))", **AT_ONCE).status == 200
    assert asked(gateway) == before + 1
    assert direct.sql("SELECT * FROM narrow.t") == "42\t0"


def test_no_table_of_a_sender_is_hidden(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    make_table(direct, name="message")
    direct.sql("INSERT INTO message VALUES (41)")
    before = asked(gateway)
    assert tested.insert(VALUES, "((SELECT sum(a) + 1 FROM message)), (1)", **AT_ONCE).status == 200
    assert direct.sql("SELECT a FROM t ORDER BY a") == "1\n42"
    assert asked(gateway) == before + 1


def test_expressions_format_as_the_insert_says(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, "s String")
    query = "INSERT INTO t SETTINGS output_format_json_quote_64bit_integers = 0 VALUES"
    before = asked(gateway)
    for statement in (VALUES, query):
        settings = {**AT_ONCE, "output_format_json_quote_64bit_integers": 1}
        assert tested.insert(statement, "(toJSONString(map('k', 1::UInt64)))", **settings).status == 200
    assert direct.sql("SELECT s FROM t ORDER BY s FORMAT TSVRaw") == '{"k":"1"}\n{"k":1}'
    assert asked(gateway) == before + 2


OTHER_NATIVE = [f"output_format_native_{name}" for name in (
    "encode_types_in_binary_format", "write_json_as_string", "use_flattened_dynamic_and_json_serialization"
)] + ["extremes", "use_query_cache"]  # fmt: skip


def test_the_answer_has_the_form_that_is_known_here(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, "a UInt64, s LowCardinality(String)")
    make_table(direct, "a UInt64, j JSON, d Dynamic", "own")
    settings = {**AT_ONCE, **dict.fromkeys(OTHER_NATIVE, 1), "low_cardinality_allow_in_native_format": 0}
    before = asked(gateway)
    replies = [
        tested.insert(VALUES, "(1 + 1, lower('X'))", **settings),
        tested.insert("INSERT INTO own VALUES", """(3, '{"k":1}', 5)""", **settings),
    ]
    assert [reply.code for reply in replies] == [None, None], [reply.text for reply in replies]
    assert asked(gateway) == before + 2
    assert direct.sql("SELECT * FROM t") == "2\tx"
    assert direct.sql("SELECT *, dynamicType(d) FROM own FORMAT TSVRaw") == '3\t{"k":1}\t5\tInt64'


def questions_seen(backend: Newer) -> list[dict[str, str]]:
    """About payloads of `t`. Of a parameter that came several times the last counts."""
    urls = [dict(parse_qsl(urlsplit(target).query)) for target in backend.seen]
    return [url for url in urls if url.get("query", "").startswith("SELECT `a` FROM ")]


@pytest.fixture
def start_seeing(tmp_path: Path) -> Iterator[Callable[[Endpoint], tuple[Gateway, Newer]]]:
    """Starts a gateway with something between it and its backend that sees what is asked."""
    with contextlib.ExitStack() as running:

        def start(direct: Endpoint) -> tuple[Gateway, Newer]:
            backend = running.enter_context(Newer(direct, "26.7.1.1"))
            gateway = RemoteGateway(tmp_path / "seeing", backend.url, direct)
            running.callback(gateway.stop)
            return gateway, backend

        yield start


def test_own_settings_go_last(start_seeing, direct: Endpoint) -> None:
    """The embedded engine has no query cache, so what it is asked has to tell."""
    make_table(direct)
    gateway, backend = start_seeing(direct)
    tested = gateway.http.as_user(TESTER.name, TESTER.password).using(direct.database)
    for query in (VALUES, "INSERT INTO t SETTINGS use_query_cache = 1 VALUES"):
        assert tested.insert(query, "(1 + 1)", use_query_cache=1, max_result_bytes=0, **AT_ONCE).status == 200
    questions = questions_seen(backend)
    assert [(url["use_query_cache"], url["max_result_bytes"]) for url in questions] == [("0", str(256 << 10))] * 2


PROFILES = [
    ("breaks", {"read_overflow_mode_leaf": "break"}, False),
    ("breaks_late", {"timeout_overflow_mode": "break"}, False),
    ("writes_otherwise", {"output_format_native_encode_types_in_binary_format": 1}, False),
    ("cuts_forms", {"http_max_multipart_form_data_size": 12}, True),
]  # fmt: skip


def test_profiles_hide_no_rows(start_gateway) -> None:
    """Some keep ClickHouse from being asked, and bear on nothing else."""
    entry = '[[embedded.users]]\nname = "{}"\npassword = "p"\nsettings = {{ {} }}\n'
    settings = [", ".join(f"{key} = {json.dumps(value)}" for key, value in each.items()) for _, each, _ in PROFILES]
    users = "".join(entry.format(name, each) for (name, _, _), each in zip(PROFILES, settings))
    gateway: Gateway = start_gateway(users)
    make_table(gateway.direct)
    for name, _, is_asked in PROFILES:
        before = asked(gateway)
        user = gateway.http.as_user(name, "p")
        assert user.insert(VALUES, "(1 + 1), (2 + 2), (3 + 3), (4 + 4)", **AT_ONCE).status == 200
        assert gateway.direct.sql("SELECT count(), sum(a) FROM t") == "4\t20", name
        assert asked(gateway) - before == is_asked, name
        gateway.direct.sql("TRUNCATE TABLE t")


BREAKING = ("read_overflow_mode", "read_overflow_mode_leaf", "timeout_overflow_mode_leaf")
FORWARDED = [
    *((name, "a UInt64", VALUES, "(1 + 1), (2 + 1)", {name: "break"}, "expression") for name in BREAKING),
    ("a setting that hides rows of a SELECT", "a UInt64", VALUES, "(1 + 1), (2 + 1)", {"limit": 1}, "expression"),
    ("a value that a DEFAULT may stand for", "a UInt64, b UInt64 DEFAULT 7", VALUES, "(1 + 1, DEFAULT)", {}, "value"),
    ("a NULL that a DEFAULT may stand for", "a UInt64, b UInt64 DEFAULT 7", VALUES, "(1 + 1, nullIf(1, 1))", {}, "value"),
    ("a field that a DEFAULT may stand for", "a UInt64, b UInt64 DEFAULT 7", "INSERT INTO t FORMAT CustomSeparated",
        "1\t\n", {}, "format"),
    ("more than it seems", "a UInt64, s String", VALUES, "(1, repeat('x', 1000000))", {}, "expression"),
    ("states of a version", "a UInt64, s AggregateFunction(sumMap, Array(UInt8), Array(UInt64))",
        "INSERT INTO t FORMAT RowBinary", b"\1" + bytes(8), {}, "type"),
    ("what is wrong", "a UInt64", VALUES, "(1 + 'x')", {}, "expression"),
]  # fmt: skip


@pytest.mark.parametrize("name, columns, query, payload, settings, reason", FORWARDED, ids=[case[0] for case in FORWARDED])
def test_what_might_come_back_as_something_else_is_forwarded(
    name: str, columns: str, query: str, payload: str | bytes, settings: dict, reason: str,
    gateway: Gateway, tested: Endpoint, direct: Endpoint,
) -> None:  # fmt: skip
    make_table(direct, columns)
    make_table(direct, columns, "alone")
    alone = direct.insert(query.replace(" t ", " alone "), payload, **settings)
    before = asked(gateway)
    # Were it gathered, it would wait for a flush that doesn't come.
    reply = tested.insert(query, payload, **HELD, wait_for_async_insert_timeout=1, **settings)
    assert (reply.status, reply.code) == (alone.status, alone.code), reply.text
    assert direct.sql("SELECT * FROM t ORDER BY a") == direct.sql("SELECT * FROM alone ORDER BY a")
    assert asked(gateway) == before


JSON_IN_NATIVE = "SELECT toUInt64({n}) AS a, '{{\"k{n}\":[{n},\"x\"],\"s\":{{\"t\":{n}.5}}}}'::JSON AS j FORMAT {format}"
STATE = "SELECT toUInt64({n}) AS a, uniqState(number) AS j FROM numbers({n} + 1) FORMAT {format}"
OWN_BLOCKS = [
    ("json", "JSON", JSON_IN_NATIVE, "*, JSONAllPathsWithTypes(j)"),
    ("state", "AggregateFunction(uniq, UInt64)", STATE, "a, finalizeAggregation(j)"),
    ("dynamic", "Dynamic", "SELECT toUInt64({n}) AS a, if({n} % 2 = 0, 'x'::Dynamic, {n}::Dynamic) AS j FORMAT {format}",
        "*, dynamicType(j)"),
    ("qbit", "QBit(Float32, 3)", "SELECT toUInt64({n}) AS a, [{n}, 0.5, 3]::QBit(Float32, 3) AS j FORMAT {format}", "*"),
]  # fmt: skip


@pytest.mark.parametrize("form", ["RowBinary", "RowBinaryWithNamesAndTypes"])
@pytest.mark.parametrize("name, data_type, render, shown", OWN_BLOCKS, ids=[case[0] for case in OWN_BLOCKS])
def test_types_that_are_not_known_here(
    name: str, data_type: str, render: str, shown: str, form: str, gateway: Gateway, tested: Endpoint, direct: Endpoint
) -> None:
    columns = f"a UInt64, j {data_type}, CONSTRAINT seven CHECK a != 7"
    make_table(direct, columns)
    make_table(direct, columns, "alone")
    query, before = f"INSERT INTO t FORMAT {form}", asked(gateway)
    payloads = [direct.request(render.format(n=n, format=form)).body for n in (1, 2, 7, 3)]
    expected = [direct.insert(query.replace(" t ", " alone "), payload) for payload in payloads]
    with Background(tested) as background:
        inserts = [background.insert(payload, query, **HELD) for payload in payloads]
        eventually(lambda: queued_inserts(tested) == len(payloads), "all are queued")
        tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
        replies = [insert.reply() for insert in inserts]
    assert [reply.code for reply in replies] == [reply.code for reply in expected] == [None, None, 469, None]
    assert asked(gateway) == before + len(payloads)
    read = f"SELECT {shown} FROM {{}} ORDER BY a FORMAT JSONEachRow"
    assert direct.sql(read.format("t")) == direct.sql(read.format("alone"))
    assert parts_made(direct) < 3


def test_what_was_asked_for_survives_a_kill(start_gateway) -> None:
    gateway: Gateway = start_gateway()
    tested, direct = gateway.http.as_user(TESTER.name, TESTER.password), gateway.direct
    make_table(direct, "a UInt64, j JSON")
    make_table(direct, "a UInt64", "plain")
    for n in (1, 2):
        assert tested.insert(VALUES, f"({n}, '{{\"k{n}\":{n}}}')", **HELD_NOT_WAITING).status == 200
        assert tested.insert("INSERT INTO plain VALUES", f"({n} + 1)", **HELD_NOT_WAITING).status == 200
    assert asked(gateway) == 4
    gateway.kill()
    gateway.start()
    direct = gateway.direct
    counts = "SELECT (SELECT count() FROM t), (SELECT count() FROM plain)"
    eventually(lambda: direct.answers() and direct.sql(counts) == "2\t2", "all are stored")
    assert direct.sql("SELECT * FROM t ORDER BY a FORMAT TSV") == '1\t{"k1":1}\n2\t{"k2":2}'
    assert direct.sql("SELECT * FROM plain ORDER BY a") == "2\n3"


def test_a_repeat_is_known_by_its_rows(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, settings="SETTINGS non_replicated_deduplication_window = 100")
    for body in ("(1 + 1)", "(3 - 1)", "(2)", "(1 + 2)"):
        assert tested.insert(VALUES, body, **AT_ONCE).status == 200
    assert tested.insert("INSERT INTO t FORMAT JSONEachRow", rows(3), **AT_ONCE).status == 200
    assert direct.sql("SELECT a FROM t ORDER BY a") == "2\n3"


def test_a_column_added_elsewhere_is_not_skipped(start_gateway) -> None:
    gateway: Gateway = start_gateway("[gather]\nschema_ttl_ms = 3_600_000\nadmission_ttl_ms = 3_600_000\n")
    tested, direct = gateway.http.as_user(TESTER.name, TESTER.password), gateway.direct
    query = "INSERT INTO t FORMAT CustomSeparatedWithNames"
    make_table(direct)
    assert tested.insert(query, "a\tlater\n1\tlost\n", **AT_ONCE).status == 200
    direct.sql("ALTER TABLE t ADD COLUMN later String")

    def is_kept() -> bool:
        assert tested.insert(query, "a\tlater\n3\tkept\n", **AT_ONCE).status == 200
        return direct.sql("SELECT count() FROM t WHERE later = 'kept'") != "0"

    eventually(is_kept, "the value of the new column is kept")
    assert counted(gateway, "windrow_inserts_backend_read_total") > 1


class Held:
    """A page that an expression waits for until it is released."""

    def __init__(self):
        self.asked, self.released = threading.Event(), threading.Event()
        held = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                held.asked.set()
                held.released.wait(60)
                self.send_response(200)
                self.send_header("Content-Length", "3")
                self.end_headers()
                # Some of those that asked have gone.
                with contextlib.suppress(OSError):
                    self.wfile.write(b"41\n")

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{self.server.server_port}/"
        self.row = f"((SELECT a + 1 FROM url('{url}', 'TSV', 'a UInt64')))"

    def __enter__(self) -> Held:
        return self

    def __exit__(self, *_: object) -> None:
        self.released.set()
        self.server.shutdown()
        self.server.server_close()


def test_slow_expressions_hold_nobody_up(start_gateway) -> None:
    """A quarter of the connections are for questions: here it is one."""
    gateway: Gateway = start_gateway("[backend_pool]\nmax_connections = 4\n")
    tested, other = gateway.http.as_user(TESTER.name, TESTER.password), "INSERT INTO other VALUES"
    make_table(gateway.direct)
    make_table(gateway.direct, name="other")

    def is_asked_again() -> bool:
        assert tested.insert(other, "(1 + 1)", **AT_ONCE).status == 200
        return asked(gateway) == 1

    with Background(tested) as background, Held() as held:
        slow = background.insert(held.row, VALUES, **AT_ONCE)
        assert held.asked.wait(60)
        assert tested.insert(other, "(1 + 1)", **AT_ONCE).status == 200
        assert (asked(gateway), forwarded(gateway, "syntax")) == (0, 1)
        eventually(is_asked_again, "the slow one is given up")
        assert not slow.answered()
        held.released.set()
        assert slow.reply().status == 200
    assert gateway.direct.sql("SELECT * FROM t") == "42"


@pytest.fixture
def tight_engine(tmp_path: Path) -> Iterator[Engine]:
    """Its users may not set what is set to ask."""
    engine = Engine(tmp_path / "engine")
    engine.kill()
    users = engine.folder / "users.xml"
    tight = "<default><constraints><max_result_bytes><const/></max_result_bytes></constraints></default>"
    users.write_text(users.read_text().replace("<profiles><default/>", f"<profiles>{tight}"))
    engine.start()
    yield engine
    engine.stop()


def test_who_may_not_ask_is_not_asked_for_again(tight_engine: Engine, start_seeing) -> None:
    direct = tight_engine.direct
    make_table(direct)
    gateway, backend = start_seeing(direct)
    for user in (TESTER, TESTER, ANN, ANN):
        tested = gateway.http.as_user(user.name, user.password)
        assert tested.insert(VALUES, "(1 + 1)", **AT_ONCE).status == 200
    assert asked(gateway) == 0
    assert len(questions_seen(backend)) == 2
