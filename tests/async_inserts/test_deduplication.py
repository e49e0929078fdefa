"""What is dropped as a repeat, and what is not: windows of deduplication, Windrow's and their owners'."""

from __future__ import annotations

import gzip
import urllib.parse
from collections.abc import Callable
from pathlib import Path

import pytest

from harness.endpoint import Endpoint, Reply
from harness.engine import Engine
from harness.eventually import eventually
from harness.gateway import flat
from harness.inserts import INTO_T, ids, make_table
from harness.remote import RemoteGateway
from harness.users import TESTER

ASYNC = {"async_insert": 1}
OWNERS = "SETTINGS non_replicated_deduplication_window = 100"


def stored(tested: Endpoint, direct: Endpoint, table: str = "t") -> list[int]:
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    return ids(direct, table)


def send(endpoint: Endpoint, query: str | None, body: bytes | str = b"", settings: dict | None = None, **more: object) -> Reply:
    data = body.encode() if isinstance(body, str) else body
    reply = endpoint.request(query, data, settings, **more)
    assert reply.status == 200, reply.text
    return reply


# The row 1, sent on every path that there is.
PATHS: dict[str, Callable[[Endpoint], Reply]] = {
    "sync": lambda t: send(t, INTO_T, '{"a":1}', {"async_insert": 0}),
    "async, waiting": lambda t: send(t, INTO_T, '{"a":1}', ASYNC),
    "async, not waiting": lambda t: send(t, INTO_T, '{"a":1}', {**ASYNC, "wait_for_async_insert": 0}),
    "async, Native": lambda t: send(t, "INSERT INTO t FORMAT RowBinary", (1).to_bytes(8, "little"), ASYNC),
    "VALUES in the URL": lambda t: send(t, "INSERT INTO t VALUES (1)", settings=ASYNC),
    "VALUES in the body": lambda t: send(t, None, "INSERT INTO t VALUES (1)", ASYNC),
    "an expression": lambda t: send(t, "INSERT INTO t VALUES", "(0 + 1)", ASYNC),
    "a format that is forwarded": lambda t: send(t, "INSERT INTO t FORMAT JSON", '{"meta":[{"name":"a","type":"UInt64"}],"data":[{"a":1}]}', ASYNC),
    "compressed": lambda t: send(
        t, INTO_T, gzip.compress(b'{"a":1}'), ASYNC, headers={"Content-Encoding": "gzip"}
    ),
    "statement in a compressed body": lambda t: send(
        t, None, gzip.compress(b"INSERT INTO t SELECT 1 AS a ORDER BY ALL"), headers={"Content-Encoding": "gzip"}
    ),
    "INSERT SELECT": lambda t: send(t, None, "INSERT INTO t SELECT 1"),
    "INSERT SELECT in order": lambda t: send(t, None, "INSERT INTO t SELECT 1 AS a ORDER BY ALL"),
    "INSERT SELECT that reads a form": lambda t: send(
        t,
        "INSERT INTO t SELECT a FROM rows ORDER BY ALL",
        b'--x\r\nContent-Disposition: form-data; name="rows"; filename="r"\r\n\r\n1\r\n--x--\r\n',
        {"rows_structure": "a UInt64"},
        headers={"Content-Type": "multipart/form-data; boundary=x"},
    ),
    "by a column matcher": lambda t: send(t, "INSERT INTO t (*) FORMAT TSV", "1\n", ASYNC),
}


@pytest.mark.parametrize("path", PATHS)
def test_equal_inserts_are_all_stored_where_nobody_asked_for_deduplication(tested: Endpoint, direct: Endpoint, path: str) -> None:
    make_table(direct)
    for _ in range(5):
        PATHS[path](tested)
    assert stored(tested, direct) == [1] * 5


@pytest.mark.parametrize("behind", ["MergeTree ORDER BY tuple()", "Null"])
def test_equal_rows_that_views_write_are_all_stored(tested: Endpoint, direct: Endpoint, behind: str) -> None:
    direct.sql(f"CREATE TABLE t (a UInt64) ENGINE = {behind}")
    make_table(direct, name="behind")
    direct.sql("CREATE MATERIALIZED VIEW v TO behind AS SELECT intDiv(a, 10) AS a FROM t")
    for path in ("sync", "async, waiting", "INSERT SELECT"):
        PATHS[path](tested)
        PATHS[path](tested)
    assert stored(tested, direct, "behind") == [0] * 6


def test_equal_rows_that_come_through_a_buffer_are_all_stored(tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, name="base")
    engine = f"Buffer({direct.database}, base, 1, 1000, 1000, 1000, 1000, 100000, 100000)"
    direct.sql(f"CREATE TABLE t (a UInt64) ENGINE = {engine}")
    for path in ("sync", "async, waiting", "INSERT SELECT"):
        PATHS[path](tested)
        tested.sql("OPTIMIZE TABLE t")
    assert stored(tested, direct, "base") == [1] * 3


@pytest.mark.parametrize("path", sorted({*PATHS} - {"INSERT SELECT"}))
def test_a_window_of_the_tables_owner_deduplicates(tested: Endpoint, direct: Endpoint, path: str) -> None:
    make_table(direct, settings=OWNERS)
    for _ in range(3):
        PATHS[path](tested)
    assert stored(tested, direct) == [1]


@pytest.mark.parametrize("switch", [{"deduplicate_insert": "disable"}, {"deduplicate_insert": "backward_compatible_choice", "insert_deduplicate": 0}])
@pytest.mark.parametrize("is_async", [0, 1])
def test_a_window_of_the_tables_owner_can_be_switched_off(tested: Endpoint, direct: Endpoint, switch: dict, is_async: int) -> None:
    make_table(direct, settings=OWNERS)
    for _ in range(3):
        send(tested, INTO_T, '{"a":1}', {**switch, "async_insert": is_async})
    assert stored(tested, direct) == [1] * 3


ASKING = [
    ({"insert_deduplication_token": "x"}, ""),
    ({"deduplicate_insert": "enable"}, ""),
    ({"insert_deduplicate": 1}, ""),
    ({}, "SETTINGS insert_deduplication_token = 'x' "),
    ({}, "SETTINGS deduplicate_insert = 'enable' "),
]


@pytest.mark.parametrize("is_async", [0, 1])
@pytest.mark.parametrize("in_url, in_text", ASKING)
def test_who_asks_is_deduplicated_in_any_table(tested: Endpoint, direct: Endpoint, in_url: dict, in_text: str, is_async: int) -> None:
    make_table(direct)
    for _ in range(3):
        send(tested, f"INSERT INTO t {in_text}FORMAT JSONEachRow", '{"a":1}', {**in_url, "async_insert": is_async})
    assert stored(tested, direct) == [1]


def test_an_insert_select_with_a_token_is_deduplicated(tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    for _ in range(3):
        send(tested, None, "INSERT INTO t SELECT 1 SETTINGS insert_deduplication_token = 'x'")
        send(tested, None, "INSERT INTO t SELECT 2", {"insert_deduplication_token": "y"})
    assert stored(tested, direct) == [1, 2]


MANAGED = "manage_deduplication_window = true\n"


def settings_of(direct: Endpoint) -> str:
    return direct.sql(f"SELECT engine_full FROM system.tables WHERE database = '{direct.database}' AND name = 't'")


class OwnServer:
    """A ClickHouse that the gateway did not start, with ClickHouse's own defaults, and a gateway in front of it."""

    def __init__(self, folder: Path, config: str):
        self.engine = Engine(folder / "engine")
        self.direct = self.engine.direct
        url = f"http://{TESTER.name}:{urllib.parse.quote(TESTER.password)}@{self.direct.host}:{self.direct.port}"
        self.gateway = RemoteGateway(folder / "gateway", url, self.direct, config)
        self.tested = self.gateway.http.as_user(TESTER.name, TESTER.password)

    def __enter__(self) -> OwnServer:
        return self

    def __exit__(self, *_: object) -> None:
        self.gateway.stop()
        self.engine.stop()


def test_a_table_of_a_server_is_given_a_window_that_deduplicates_nobody(tmp_path: Path) -> None:
    with OwnServer(tmp_path, MANAGED) as server:
        make_table(server.direct)
        PATHS["async, waiting"](server.tested)
        assert "non_replicated_deduplication_window = 10061" in settings_of(server.direct)
        for path in PATHS:
            PATHS[path](server.tested)
            PATHS[path](server.tested)
        expected = [1] * (1 + 2 * len(PATHS))
        eventually(lambda: ids(server.direct) == expected, f"{len(expected)} rows are stored")


def test_a_server_whose_windows_are_not_managed_is_left_alone_and_the_log_says_so_once(tmp_path: Path) -> None:
    with OwnServer(tmp_path, "") as server:
        make_table(server.direct)
        for settings in ({}, {"input_format_null_as_default": 0}):
            send(server.tested, INTO_T, '{"a":1}', {**ASYNC, **settings})
        assert "deduplication_window" not in settings_of(server.direct)
        warnings = [event for event in server.gateway.log_events() if "does not deduplicate" in flat(event)["message"]]
        assert [flat(event)["table"] for event in warnings] == ["t"]
