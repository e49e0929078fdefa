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
from harness.gateway import Gateway, flat
from harness.inserts import HELD, INTO_T, Background, ids, make_table, queued_inserts
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


OLD_SYNTAX = "CREATE TABLE t (d Date, a UInt64) ENGINE = MergeTree(d, (a), 8192)"


def expect_repeats_by_token_only(tested: Endpoint, direct: Endpoint) -> None:
    tested.sql(OLD_SYNTAX, allow_deprecated_syntax_for_merge_tree=1)
    for manner in (*MANNERS, *MANNERS):
        send(tested, INTO_T, '{"a":1}', manner)
        send(tested, INTO_T, '{"a":2}', {**manner, **NAMED})
    eventually(lambda: ids(direct) == [1] * 6 + [2], "seven rows are stored")


def test_a_table_in_the_old_syntax_has_no_window_but_tokens_work(start_gateway: Callable[..., Gateway]) -> None:
    """ClickHouse creates none where the server's default is a window: on an engine of ours that has to be off."""
    gateway = start_gateway("manage_deduplication_window = false\n")
    expect_repeats_by_token_only(gateway.http.as_user(TESTER.name, TESTER.password), gateway.direct)


def test_a_table_of_a_server_in_the_old_syntax_can_be_given_no_window(tmp_path: Path) -> None:
    with OwnServer(tmp_path, MANAGED) as server:
        expect_repeats_by_token_only(server.tested, server.direct)
        warnings = [flat(event) for event in server.gateway.log_events() if "does not deduplicate" in flat(event)["message"]]
        assert len(warnings) == 1 and "doesn't support settings changes" in warnings[0]["message"]


NAMED = {"insert_deduplication_token": "x"}
# The rows 1 and 2, in many forms.
FORMS: dict[str, Callable[[Endpoint, dict], Reply]] = {
    "JSONEachRow": lambda t, s: send(t, INTO_T, '{"a":1}\n{"a":2}', s),
    "CSV": lambda t, s: send(t, "INSERT INTO t FORMAT CSV", "1\n2\n", s),
    "RowBinary": lambda t, s: send(t, "INSERT INTO t FORMAT RowBinary", b"".join(n.to_bytes(8, "little") for n in (1, 2)), s),
    "Native": lambda t, s: send(
        t, "INSERT INTO t FORMAT Native", t.request("SELECT toUInt64(number + 1) AS a FROM numbers(2) FORMAT Native").body, s
    ),
    "VALUES in the text": lambda t, s: send(t, None, "INSERT INTO t VALUES (1), (2)", s),
    "gzip": lambda t, s: send(t, INTO_T, gzip.compress(b'{"a":1}{"a":2}'), s, headers={"Content-Encoding": "gzip"}),
    "an expression": lambda t, s: send(t, "INSERT INTO t VALUES", "(0 + 1), (1 + 1)", s),
    "JSON": lambda t, s: send(
        t, "INSERT INTO t FORMAT JSON", '{"meta":[{"name":"a","type":"UInt64"}],"data":[{"a":1},{"a":2}]}', s
    ),
}
# How an insert may be sent; all but the last are told when it is stored.
MANNERS = [{"async_insert": 0}, ASYNC, {**ASYNC, "wait_for_async_insert": 0}]


def test_one_token_is_one_insert_however_it_is_sent(tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    for form in FORMS.values():
        for manner in MANNERS:
            form(tested, {**manner, **NAMED})
    assert stored(tested, direct) == [1, 2]


@pytest.mark.parametrize("first", FORMS)
def test_any_form_may_be_the_first(tested: Endpoint, direct: Endpoint, first: str) -> None:
    make_table(direct)
    FORMS[first](tested, {**ASYNC, **NAMED})
    for form in FORMS.values():
        form(tested, {"async_insert": 0, **NAMED})
    assert stored(tested, direct) == [1, 2]


def test_a_repeat_is_answered_as_the_first_was(tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    replies = [FORMS["CSV"](tested, {**ASYNC, **NAMED}) for _ in range(2)]
    assert [reply.summary["written_rows"] for reply in replies] == ["2", "2"]


def test_other_tokens_and_other_tables_are_other_inserts(tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    make_table(direct, name="u")
    for token in ("x", "y"):
        send(tested, INTO_T, '{"a":1}', {**ASYNC, "insert_deduplication_token": token})
    send(tested, "INSERT INTO u FORMAT JSONEachRow", '{"a":1}', {**ASYNC, **NAMED})
    assert stored(tested, direct) == [1, 1]
    assert stored(tested, direct, "u") == [1]


@pytest.mark.parametrize("engine", ["ReplacingMergeTree ORDER BY a", "SummingMergeTree ORDER BY a", "Log", "Memory"])
def test_tokens_work_in_tables_of_many_kinds(tested: Endpoint, direct: Endpoint, engine: str) -> None:
    direct.sql(f"CREATE TABLE t (a UInt64, v UInt64 DEFAULT 1) ENGINE = {engine}")
    for token in ("x", "y"):
        for manner in MANNERS:
            send(tested, INTO_T, '{"a":1}', {**manner, "insert_deduplication_token": token})
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    inserts = direct.sql("SELECT count() FROM t") if "Tree" not in engine else None
    assert inserts in (None, "2")


def test_of_repeats_that_come_at_once_one_is_stored(tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    with Background(tested) as background:
        waiting = [background.insert("1\n2\n", "INSERT INTO t FORMAT CSV", **manner, **NAMED) for manner in MANNERS * 8]
        assert [insert.reply().status for insert in waiting] == [200] * 24
    assert stored(tested, direct) == [1, 2]


def test_a_repeat_waits_for_the_first_to_be_stored(tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    with Background(tested) as background:
        first = background.insert("1\n", "INSERT INTO t FORMAT CSV", **HELD, **NAMED)
        eventually(lambda: queued_inserts(tested) == 1, "the first is queued")
        second = background.insert("1\n", "INSERT INTO t FORMAT CSV", **HELD, **NAMED)
        third = background.insert("2\n", "INSERT INTO t FORMAT CSV", **HELD)
        eventually(lambda: queued_inserts(tested) == 2, "the third is queued, and the second is not")
        assert not second.answered()
        tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
        assert [insert.reply().status for insert in (first, second, third)] == [200] * 3
    assert stored(tested, direct) == [1, 2]


BY_OLD_SETTING = {**HELD, "deduplicate_insert": "backward_compatible_choice"}


@pytest.mark.parametrize("wait", [0, 1])
@pytest.mark.parametrize(("asks", "expected"), [(1, [1, 2, 2, 3]), (0, [1, 1, 1, 2, 2, 3])])
def test_of_repeats_within_one_batch_the_first_is_stored(
    tested: Endpoint, direct: Endpoint, wait: int, asks: int, expected: list[int]
) -> None:
    """As in ClickHouse's own queue: an insert counts as a whole, and one row in common makes no repeat."""
    make_table(direct, settings=OWNERS)
    settings = {**BY_OLD_SETTING, "async_insert_deduplicate": asks, "wait_for_async_insert": wait}
    with Background(tested) as background:
        inserts = [background.insert(body, "INSERT INTO t FORMAT CSV", **settings) for body in ("1\n", "1\n", "2\n3\n", "2\n", "1\n")]
        queued = 3 if asks else 5
        eventually(lambda: queued_inserts(tested) == queued, f"{queued} inserts are in the queue")
        assert ids(direct) == []
        tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
        assert [insert.reply().status for insert in inserts] == [200] * 5
    assert stored(tested, direct) == expected


def test_an_insert_that_failed_may_be_sent_again(tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, "a UInt64, CONSTRAINT small CHECK a < 5")
    for manner in MANNERS[:2]:
        failed = tested.request(INTO_T, b'{"a":7}', {**manner, **NAMED})
        assert failed.code == 469, failed.text
    direct.sql("ALTER TABLE t DROP CONSTRAINT small")
    for manner in MANNERS:
        send(tested, INTO_T, '{"a":7}', {**manner, **NAMED})
    assert stored(tested, direct) == [7]


PARTITIONED = "a UInt64, p UInt8"


@pytest.mark.parametrize("manner", MANNERS[:2])
def test_a_part_of_a_repeat_is_stored_where_its_partition_is_new(tested: Endpoint, direct: Endpoint, manner: dict) -> None:
    direct.sql(f"CREATE TABLE t ({PARTITIONED}) ENGINE = MergeTree PARTITION BY p ORDER BY a {OWNERS}")
    settings = {**manner, **NAMED}
    send(tested, "INSERT INTO t FORMAT CSV", "1,1\n2,2\n", settings)
    send(tested, "INSERT INTO t FORMAT CSV", "3,2\n4,3\n5,2\n6,3\n", settings)
    send(tested, "INSERT INTO t FORMAT CSV", "7,1\n8,2\n9,3\n", settings)
    # As the engine itself has it.
    assert stored(tested, direct) == [1, 2, 4, 6]


def test_equal_rows_are_a_repeat_where_the_owner_wants_it_in_any_format(tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, settings=OWNERS)
    for form in ("JSONEachRow", "CSV", "RowBinary", "Native", "VALUES in the text", "gzip"):
        for manner in MANNERS[1:]:
            FORMS[form](tested, manner)
    assert stored(tested, direct) == [1, 2]
    send(tested, "INSERT INTO t FORMAT CSV", "2\n1\n", ASYNC)
    send(tested, "INSERT INTO t FORMAT CSV", "1\n", ASYNC)
    assert stored(tested, direct) == [1, 1, 1, 2, 2], "another order, and a part, are other inserts"


def test_a_window_holds_as_many_inserts_as_its_owner_says(tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, settings="SETTINGS non_replicated_deduplication_window = 3")
    for number in (1, 2, 3, 4, 2, 1):
        send(tested, INTO_T, f'{{"a":{number}}}', ASYNC)
    assert stored(tested, direct) == [1, 1, 2, 3, 4]


@pytest.mark.parametrize(
    "statement",
    ["TRUNCATE TABLE t", "ALTER TABLE t DROP PARTITION 1", "ALTER TABLE t DETACH PARTITION 1", "CREATE OR REPLACE TABLE t ({}) ENGINE = MergeTree PARTITION BY p ORDER BY a"],
)
def test_rows_that_are_gone_may_be_inserted_again(tested: Endpoint, direct: Endpoint, statement: str) -> None:
    direct.sql(f"CREATE TABLE t ({PARTITIONED}) ENGINE = MergeTree PARTITION BY p ORDER BY a")
    for _ in range(2):
        for manner in MANNERS:
            send(tested, "INSERT INTO t FORMAT CSV", "1,1\n", {**manner, **NAMED})
        assert stored(tested, direct) == [1]
        tested.sql(statement.format(PARTITIONED))
        assert stored(tested, direct) == []


def test_rows_that_were_deleted_are_still_known(tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    send(tested, INTO_T, '{"a":1}', {**ASYNC, **NAMED})
    tested.sql("ALTER TABLE t DELETE WHERE 1", mutations_sync=2)
    send(tested, INTO_T, '{"a":1}', {**ASYNC, **NAMED})
    assert stored(tested, direct) == []


@pytest.mark.parametrize("end", ["stop", "kill", "a folder of its former name"])
def test_what_is_stored_is_known_to_the_next_gateway(start_gateway: Callable[..., Gateway], end: str) -> None:
    gateway = start_gateway()
    make_table(gateway.direct)
    for number in range(3):
        for manner in MANNERS:
            tested = gateway.http.as_user(TESTER.name, TESTER.password)
            FORMS["CSV"](tested, {**manner, **NAMED})
        if end == "kill":
            gateway.kill()
        else:
            assert gateway.stop() == 0
        if end == "a folder of its former name":
            (gateway.data_dir / "deduplication").rename(gateway.data_dir / "ledger")
        gateway.start()
    tested = gateway.http.as_user(TESTER.name, TESTER.password)
    FORMS["JSONEachRow"](tested, {"async_insert": 0, **NAMED})
    assert stored(tested, gateway.direct) == [1, 2]
