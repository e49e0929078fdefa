"""Payloads that can't be read into columns, or need not be, are gathered as the text they are."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from differential.duel import QUICKLY
from harness.endpoint import Endpoint, Reply
from harness.gateway import Gateway
from harness.gathered import Batch
from harness.inserts import (
    HELD, HELD_NOT_WAITING, Background, ids, make_table, parts_made, queued, send_all_then_read,
)  # fmt: skip
from harness.raw_http import RawConnection, head

JSON = "a UInt64, j JSON"
DEFAULT = "a UInt64, b UInt64 DEFAULT a + 1"
STATE = "a UInt64, s AggregateFunction(sum, UInt64)"


def counted(gateway: Gateway, name: str, **labels: str) -> int:
    with RawConnection(gateway.admin) as connection:
        lines = connection.exchange(head("GET", "/metrics", (("Host", "x"),)), "GET").text.splitlines()
    sample = name + ("{" + ",".join(f'{key}="{value}"' for key, value in labels.items()) + "}" if labels else "")
    return sum(int(line.split()[-1]) for line in lines if line.split(" ")[0] == sample)


def passthrough_inserts(gateway: Gateway) -> int:
    return counted(gateway, "windrow_inserts_passthrough_total")


def forwarded(gateway: Gateway, reason: str) -> int:
    return counted(gateway, "windrow_forwarded_requests_total", reason=reason)


def verdicts(replies: list[Reply]) -> list[int | None]:
    return [None if reply.status == 200 else reply.code for reply in replies]


def contents(direct: Endpoint, table: str) -> str:
    return "\n".join(sorted(direct.sql(f"SELECT * FROM {table} FORMAT JSONEachRow").splitlines()))


@dataclass(frozen=True)
class Case:
    name: str
    columns: str
    format: str
    payloads: tuple[str | bytes, ...]
    rows: tuple[int, ...]
    settings: tuple[tuple[str, object], ...] = ()


def state(direct: Endpoint, of: int) -> str:
    """An aggregation's state as JSON has it."""
    query = f"SELECT sumState(toUInt64({of})) AS s FORMAT JSONEachRow"
    return direct.sql(query, output_format_json_escape_forward_slashes=0)


JOINED = [
    Case("json", JSON, "JSONEachRow", ('{"a":1,"j":{"x":1}}', '{"a":2,"j":{"y":"}{"}}\n{"a":3}', '{"a":4,"j":{"z":"[{"}},'), (1, 2, 1)),
    Case("json in brackets", JSON, "JSONEachRow", ('[{"a":1,"j":{}},{"a":2}]', '{"a":3}', ' [ {"a":4} ]\n'), (2, 1, 1)),
    Case("json strings", JSON, "JSONStringsEachRow", ('{"a":"1","j":"{\\"x\\":1}"}', '{"a":"2"}\n'), (1, 1)),
    Case("dynamic", "a UInt64, d Dynamic", "NDJSON", ('{"a":1,"d":"x"}', '{"a":2,"d":[1]}', '{"a":3,"d":null}'), (1, 1, 1)),
    Case("variant", "a UInt64, v Variant(String, UInt64)", "JSONEachRow", ('{"a":1,"v":"x"}', '{"a":2,"v":7}'), (1, 1)),
    Case("compact", JSON, "JSONCompactEachRow", ('[1,{"x":[1]}]', '[2,{}],\n[3,{"y":1}]'), (1, 2)),
    Case("compact with names", JSON, "JSONCompactEachRowWithNames", ('["j","a"]\n[{"x":1},1]', '["j","a"]\n[{},2]\n'), (1, 1)),
    Case(
        "compact with types", JSON, "JSONCompactStringsEachRowWithNamesAndTypes",
        ('["a","j"],["UInt64","JSON"],["1","{}"]', '["a","j"]\n["UInt64","JSON"]\n["2","{\\"x\\":2}"]'), (1, 1),
    ),
    Case("objects", "j JSON", "JSONAsObject", ('{"a":1}', '[{"a":2},{"a":3}]', '{"a":{"b":"\\"}"}}'), (1, 2, 1)),
    Case("csv", JSON, "CSV", ('1,"{""x"":1}"', '2,{}\r\n3,"{""y"":\n""b""}"\r\n', ' 4 , "{}" \n'), (1, 2, 1)),
    Case("csv with names", JSON, "CSVWithNames", ('j,a\n{},1', 'j,a\n"{""x"":2}",2\n'), (1, 1)),
    Case("csv with types", JSON, "CSVWithNamesAndTypes", ("a,j\nUInt64,JSON\n1,{}", "a,j\nUInt64,JSON\n2,{}\n3,{}\n"), (1, 2)),
    Case("csv with another delimiter", JSON, "CSV", ("1;{}", '2;"{""x"":"";""}"\n'), (1, 1), (("format_csv_delimiter", ";"),)),
    Case("tsv", JSON, "TSV", ('1\t{"x":1}', '2\t{"y":"a\\\\nb"}\n3\t{}\n'), (1, 2)),
    Case("tsv with names", JSON, "TabSeparatedWithNames", ("j\ta\n{}\t1", 'j\ta\n{"x":2}\t2\n'), (1, 1)),
    Case("raw tsv", JSON, "TSVRaw", ('1\t{"x":"\\\\"}', "2\t{}\n"), (1, 1)),
    Case("tsv with arrays", "a Array(String), j JSON", "TSV", ("['x','y\\'z']\t{}", "[]\t{}\n"), (1, 1)),
    Case("mixed defaults", DEFAULT, "JSONEachRow", ('{"a":1}\n{"a":2,"b":5}', '{"a":3,"b":1}\n{"a":4}'), (2, 2)),
    Case(
        "another reading", "a UInt64, i IPv4", "JSONEachRow", ('{"a":1,"i":"1.2.3.4"}', '{"a":2,"i":"5.6.7.8"}'), (1, 1),
        (("input_format_ipv4_default_on_conversion_error", 1),),
    ),
]  # fmt: skip


@pytest.mark.parametrize("case", JOINED, ids=lambda case: case.name)
def test_rows_are_as_if_inserted_one_by_one(case: Case, gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, case.columns)
    make_table(direct, case.columns, "alone")
    for payload in case.payloads:
        reply = direct.insert(f"INSERT INTO alone FORMAT {case.format}", payload, **dict(case.settings))
        assert reply.status == 200, reply.text
    before = passthrough_inserts(gateway)
    with Batch(tested, query=f"INSERT INTO t FORMAT {case.format}", **dict(case.settings)) as batch:
        replies = batch.add(*case.payloads).flush()
    assert [(reply.status, reply.text) for reply in replies] == [(200, "")] * len(case.payloads)
    assert tuple(int(reply.summary["written_rows"]) for reply in replies) == case.rows
    assert contents(direct, "t") == contents(direct, "alone")
    assert parts_made(direct) == 1
    assert passthrough_inserts(gateway) - before == len(case.payloads)


def test_states_of_aggregations(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, STATE)
    payloads = ['{"a":%d,%s\n' % (n, state(direct, n).removeprefix("{")) for n in range(5)]
    before = passthrough_inserts(gateway)
    with Batch(tested) as batch:
        assert verdicts(batch.add(*payloads).flush()) == [None] * 5
    assert direct.sql("SELECT a, finalizeAggregation(s) FROM t ORDER BY a") == "\n".join(f"{n}\t{n}" for n in range(5))
    assert (parts_made(direct), passthrough_inserts(gateway) - before) == (1, 5)


KEPT_APART = [
    ("syntax", "JSONEachRow", '{"a":1,"j":{}', "type"),
    ("a semicolon", "JSONEachRow", '{"a":1};', "type"),
    ("a byte order mark", "JSONEachRow", b'\xef\xbb\xbf{"a":1}', "type"),
    ("names first", "CSV", "a,j\n1,{}\n", "type"),
    ("names first, in TSV", "TSV", "j\ta\n{}\t1\n", "type"),
    ("too few fields", "CSV", "1\n", "type"),
    ("an open quote", "CSV", '1,"{}\n', "type"),
    ("an escape at the end", "TSV", "1\t{}\\", "type"),
    ("names in another order of letters", "CSVWithNames", "A,J\n1,{}\n", "type"),
    ("no rows", "CSVWithNames", "a,j\n", "type"),
    ("a setting that skips", "CSV", "x\n1,{}\n", "type"),
]


@pytest.mark.parametrize("name, format_name, payload, reason", KEPT_APART, ids=[case[0] for case in KEPT_APART])
def test_what_can_not_be_joined_for_certain_is_forwarded(
    name: str, format_name: str, payload: str | bytes, reason: str, gateway: Gateway, tested: Endpoint, direct: Endpoint
) -> None:
    settings = {"input_format_csv_skip_first_lines": 1} if name == "a setting that skips" else {}
    make_table(direct, JSON)
    make_table(direct, JSON, "alone")
    alone = direct.insert(f"INSERT INTO alone FORMAT {format_name}", payload, **settings)
    before, passthrough = forwarded(gateway, reason), passthrough_inserts(gateway)
    reply = tested.insert(f"INSERT INTO t FORMAT {format_name}", payload, **QUICKLY, **settings)
    assert (reply.status, reply.text) == (alone.status, alone.text)
    assert contents(direct, "t") == contents(direct, "alone")
    # What ClickHouse can read it is asked to.
    assert forwarded(gateway, reason) == before + (alone.status != 200 or name == "no rows")
    assert passthrough_inserts(gateway) == passthrough


BORDERS = [
    ("a UInt64, x Array(String), j JSON", "TSV", ("1\t['x", "y']\t{}\n")),
    ("x Array(UInt8)", "TSV", ("[1,\n", "2]\n")),
    ("m Map(String, UInt8)", "TSV", ("{'a':\n", "1}\n")),
    ("t Tuple(UInt8, UInt8), d Dynamic", "TSV", ("(1,\n", "2)\tx\n")),
    ("a UInt8, t Tuple(UInt8, UInt8), d Dynamic", "CSV", ("1,5\n", ",6,x\n")),
    ("s String, j JSON", "CSV", ('"x\n', 'y",{}\n')),
    ("j JSON", "JSONEachRow", ('{"j":\n', "{}}\n")),
    ("v Variant(UInt64, String), d Date", "CSV", ("x,2020\n", "1,5\n")),
    ("v Variant(UInt64, String), d Date32", "TSV", ("x\t2020-01\n", "5\t\n")),
]


@pytest.mark.parametrize("columns, format_name, halves", BORDERS)
def test_no_payload_goes_on_in_the_next(
    columns: str, format_name: str, halves: tuple[str, str], gateway: Gateway, tested: Endpoint, direct: Endpoint
) -> None:
    """Two bad inserts must not make a good one."""
    make_table(direct, columns)
    query, passthrough = f"INSERT INTO t FORMAT {format_name}", passthrough_inserts(gateway)
    for half in halves:
        before = direct.sql("SELECT count() FROM t")
        alone = direct.insert(query, half)
        stored_alone = int(direct.sql("SELECT count() FROM t")) - int(before)
        reply = tested.insert(query, half, **QUICKLY)
        assert (reply.status, reply.text) == (alone.status, alone.text)
        assert int(direct.sql("SELECT count() FROM t")) == int(before) + 2 * stored_alone
    assert passthrough_inserts(gateway) == passthrough, "neither is joined with others"


@pytest.mark.parametrize("engine", ["MergeTree ORDER BY a", "Memory", "Log", "Null"])
@pytest.mark.parametrize("has_view", [False, True])
def test_one_culprit_among_fifty_fails_alone(
    engine: str, has_view: bool, gateway: Gateway, tested: Endpoint, direct: Endpoint
) -> None:
    direct.sql(f"CREATE TABLE t (a UInt64, d Date, s AggregateFunction(sum, UInt8)) ENGINE = {engine}")
    seen = "t"
    if has_view:
        direct.sql("CREATE TABLE u (a UInt64) ENGINE = MergeTree ORDER BY a")
        direct.sql("CREATE MATERIALIZED VIEW view TO u AS SELECT a FROM t")
        seen = "u"
    good = '{{"a":{n},"d":"2026-11-22"}}\n'
    bad = good.format(n=31) + '{"a":999,"d":"yesterday"}\n'
    bodies = [(bad if n == 31 else good.format(n=n)).encode() for n in range(50)]
    together = {"async_insert_max_query_number": 50, "async_insert_use_adaptive_busy_timeout": 0}
    replies = send_all_then_read(tested, bodies, async_insert_busy_timeout_ms=3_600_000, **together)
    assert [n for n, reply in enumerate(replies) if reply.status != 200] == [31]
    alone = direct.insert("INSERT INTO t FORMAT JSONEachRow", bad)
    assert "(at row 2)" in alone.text, "the row is counted within its own insert"
    assert (replies[31].status, replies[31].text) == (alone.status, alone.text)
    assert ids(direct, seen) == ([n for n in range(50) if n != 31] if (engine, has_view) != ("Null", False) else [])


def test_many_culprits(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, JSON)
    bodies = ['{"a":%s,"j":{}}' % ("-1" if n % 7 == 0 else n) for n in range(30)]
    with Batch(tested) as batch:
        replies = batch.add(*bodies).flush()
    assert [n for n, reply in enumerate(replies) if reply.status != 200] == [n for n in range(30) if n % 7 == 0]
    assert ids(direct) == [n for n in range(30) if n % 7]


def test_who_does_not_wait_shares_with_who_waits(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, JSON)
    with Batch(tested) as batch:
        batch.add('{"a":1,"j":{}}')
        assert tested.insert(batch.query, '{"a":2,"j":{}}', **HELD_NOT_WAITING).status == 200
        batch.await_queued(2)
        assert len(queued(tested)) == 1
        assert verdicts(batch.flush()) == [None]
    assert (ids(direct), parts_made(direct)) == ([1, 2], 1)


def test_other_settings_of_reading_do_not_share(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, "a UInt64, d DateTime('UTC'), j JSON")
    row = '{"a":%d,"d":"%s"}'
    with Batch(tested) as batch:
        batch.add(row % (1, "2026-11-22 10:00:00"))
        tested.insert(batch.query, row % (2, "22 Nov 2026"), **HELD_NOT_WAITING, date_time_input_format="best_effort")
        tested.insert(batch.query, row % (3, "2026-11-22 12:00:00"), **HELD_NOT_WAITING, date_time_input_format="basic")
        batch.await_queued(3)
        assert sorted(entry["inserts"] for entry in queued(tested)) == [1, 1, 1]
        batch.flush()
    assert direct.sql("SELECT a, toHour(d) FROM t ORDER BY a") == "1\t10\n2\t0\n3\t12"


def test_other_headers_do_not_share(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, JSON)
    query = "INSERT INTO t FORMAT CSVWithNames"
    for payload in ("a,j\n1,{}\n", 'j,a\n{},2\n', "a\n3\n", "a,j\n4,{}\n"):
        assert tested.insert(query, payload, **HELD_NOT_WAITING).status == 200
    assert sorted(entry["inserts"] for entry in queued(tested)) == [1, 1, 2]
    tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE")
    assert (ids(direct), parts_made(direct)) == ([1, 2, 3, 4], 3)


def test_a_column_that_is_added_meanwhile(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    """The columns are those that the table had when the insert came."""
    make_table(direct, JSON)
    with Batch(tested, query="INSERT INTO t FORMAT CSV") as batch:
        batch.add("1,{}", "2,{}\n")
        direct.sql("ALTER TABLE t ADD COLUMN first UInt64 DEFAULT 7 FIRST")
        assert verdicts(batch.flush()) == [None, None]
    assert direct.sql("SELECT first, a FROM t ORDER BY a") == "7\t1\n7\t2"


def test_the_queue_and_the_log_show_them(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, JSON)
    where = f"WHERE database = '{direct.database}'"
    with Batch(tested, query="INSERT INTO t FORMAT CSV") as batch:
        batch.add("1,{}", "2,{}\n")
        assert tested.sql(f"SELECT format, total_bytes FROM system.asynchronous_inserts {where}") == "CSV\t9"
        batch.flush()
    log = f"SELECT format, data_kind, bytes, rows, status FROM system.asynchronous_insert_log {where} ORDER BY bytes"
    assert tested.sql(log) == "CSV\tParsed\t4\t1\tOk\nCSV\tParsed\t5\t1\tOk"


def test_an_insert_is_withdrawn_alone(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, JSON)
    with Batch(tested) as batch, Background(tested) as background:
        batch.add('{"a":1,"j":{}}')
        impatient = background.insert('{"a":2,"j":{}}', **{**HELD, "wait_for_async_insert_timeout": 1})
        assert impatient.reply().code == 159
        assert verdicts(batch.flush()) == [None]
    assert ids(direct) == [1]


def test_large_payloads_are_forwarded(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct, JSON)
    before = forwarded(gateway, "too_large")
    payload = "".join('{"a":%d,"j":{}}\n' % n for n in range(80_000))
    assert len(payload) > 1 << 20
    assert tested.insert("INSERT INTO t FORMAT JSONEachRow", payload, **HELD).status == 200
    assert (direct.sql("SELECT count() FROM t"), forwarded(gateway, "too_large") - before) == ("80000", 1)
