"""SELECT, DDL and whatever else is not gathered, in DuckDB's SQL over ClickHouse's HTTP interface."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Iterator
from pathlib import Path

import clickhouse_connect
import pytest

from harness.duckdb import READER, DuckDbGateway
from harness.endpoint import ClickHouseError, Endpoint
from harness.eventually import eventually
from harness.raw_http import RawConnection

ENDLESS = "SELECT sum(a.range + b.range) FROM range(10000000) a, range(10000000) b"
FAILS_LATE = "SELECT CASE WHEN range < 400000 THEN range ELSE error('too far')::BIGINT END AS a FROM range(1000000)"


@pytest.fixture
def reader(duck: Endpoint) -> Endpoint:
    return duck.as_user(*READER)


@pytest.fixture(scope="module")
def narrow(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DuckDbGateway]:
    """A gateway that runs one query at a time: who holds the place shows."""
    started = DuckDbGateway(tmp_path_factory.mktemp("narrow"), config="[duckdb]\nmax_result_connections = 1\n")
    yield started
    started.stop()


def test_tables_are_made_filled_read_and_dropped(duck: Endpoint) -> None:
    duck.sql("CREATE TABLE made (id BIGINT NOT NULL, name VARCHAR)")
    reply = duck.request(None, b"INSERT INTO made SELECT range, 'n' || range FROM range(5)")
    assert (reply.status, reply.body, reply.summary["written_rows"]) == (200, b"", "5")
    assert duck.sql("SELECT * FROM default.made WHERE id > 2 ORDER BY id") == "3\tn3\n4\tn4"
    assert duck.sql("SELECT `id` FROM `default`.`made` ORDER BY `id` LIMIT 1 FORMAT JSONEachRow") == '{"id":0}'
    assert duck.sql("INSERT INTO made SELECT 9, NULL RETURNING id, name") == "9\t\\N"
    assert duck.request(None, b"UPDATE made SET name = 'x' WHERE id < 2").summary["written_rows"] == "2"
    duck.sql("DROP TABLE made")
    with pytest.raises(ClickHouseError) as missing:
        duck.sql("SELECT * FROM made")
    assert (missing.value.status, missing.value.code) == (404, 60)


def test_databases_are_schemas(duck: Endpoint) -> None:
    duck.sql("CREATE SCHEMA other")
    other = duck.using("other")
    other.sql("CREATE TABLE t AS SELECT 1 AS a")
    assert other.sql("SELECT a, currentDatabase() FROM t") == "1\tother"
    assert duck.sql("SELECT a, currentDatabase() FROM other.t") == "1\tdefault"
    assert other.sql("SHOW TABLES") == duck.sql("SHOW TABLES FROM other") == "t"
    assert duck.sql("EXISTS TABLE other.t") + duck.sql("EXISTS other.nothing") == "10"
    assert set(duck.sql("SHOW DATABASES").split("\n")) == {"default", "other"}
    with pytest.raises(ClickHouseError) as missing:
        duck.using("nowhere").sql("SELECT 1")
    assert (missing.value.status, missing.value.code) == (404, 81)


def test_describe_has_clickhouses_columns_and_types(duck: Endpoint) -> None:
    columns = "a BIGINT NOT NULL, b DECIMAL(9,2), c VARCHAR[], d VARCHAR DEFAULT 'x', e HUGEINT"
    duck.sql(f"CREATE TABLE described ({columns})")
    rows = [json.loads(line) for line in duck.sql("DESCRIBE TABLE described FORMAT JSONEachRow").split("\n")]
    assert [(row["name"], row["type"], row["default_type"]) for row in rows] == [
        ("a", "Int64", ""),
        ("b", "Nullable(Decimal(9, 2))", ""),
        ("c", "Array(Nullable(String))", ""),
        ("d", "Nullable(String)", "DEFAULT"),
        ("e", "Nullable(Int128)", ""),
    ]
    assert set(rows[0]) == {
        "name", "type", "default_type", "default_expression", "comment", "codec_expression", "ttl_expression",
    }  # fmt: skip
    assert duck.sql("DESCRIBE (SELECT 1::INTEGER AS x, 'y' AS y)").split("\t")[:2] == ["x", "Nullable(Int32)"]


ERRORS = [
    ("SELECT * FROM nowhere", 404, 60),
    ("SELEC 1", 400, 62),
    ("SELECT 1 FORMAT Zork", 404, 73),
    ("SELECT nothing", 404, 47),
    ("SELECT nofunction(1)", 404, 46),
    ("SELECT 1; SELECT 2", 400, 62),
    ("  ;  ", 400, 62),
    ("SELECT 'a\0b'", 400, 62),
    ("SELECT 'x'::INTEGER", 400, 6),
    ("SELECT {a:UInt8}", 500, 456),
    ("SET threads = 1", 501, 48),
    ("BEGIN", 501, 48),
    ("CREATE TEMPORARY TABLE x (a INT)", 501, 48),
    ("KILL QUERY WHERE 1", 501, 48),
    ("COPY (SELECT 1) TO '/tmp/windrow-must-not-exist.csv'", 500, 497),
    ("SELECT * FROM read_csv('/etc/passwd')", 500, 497),
]


@pytest.mark.parametrize(("query", "status", "code"), ERRORS)
def test_errors_have_clickhouses_form(duck: Endpoint, query: str, status: int, code: int) -> None:
    reply = duck.request(None, query.encode())
    assert (reply.status, reply.code) == (status, code), reply.text
    assert reply.headers["x-clickhouse-exception-code"] == str(code)
    assert re.fullmatch(r"Code: \d+\. DB::Exception: .* \(\w+\) \(DuckDB v[\d.]+\)\n", reply.text, re.S), reply.text


def test_settings_are_known_or_refused(duck: Endpoint) -> None:
    assert duck.sql("SELECT 1", max_threads=4, output_format_json_quote_64bit_integers=1) == "1"
    assert duck.sql("SELECT 1 SETTINGS max_threads = 4, log_comment = 'x'") == "1"
    for reply in (duck.request("SELECT 1", settings={"zork": 1}), duck.request("SELECT 1 SETTINGS zork = 1")):
        assert (reply.status, reply.code) == (404, 115)
    assert "'zork'" in reply.text


WRITES = ["CREATE TABLE readonly (a INT)", "INSERT INTO t SELECT 1", "DROP TABLE t", "CHECKPOINT",
          "WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x", "EXPLAIN ANALYZE DELETE FROM t",
          "CALL f()"]  # fmt: skip


@pytest.mark.parametrize("query", WRITES)
def test_readers_do_not_write(duck: Endpoint, reader: Endpoint, query: str) -> None:
    for reply in (
        duck.request(query, method="GET"),
        duck.request(None, query.encode(), {"readonly": 1}),
        reader.request(None, query.encode()),
    ):
        assert (reply.status, reply.code) == (500, 164), reply.text
    assert "method GET implies readonly" in duck.request(query, method="GET").text
    assert reader.sql("SELECT 42") == "42"


def test_who_is_not_known_reads_nothing(duck: Endpoint) -> None:
    for user, password in ((READER[0], "wrong"), ("nobody", ""), ("default", "x")):
        reply = duck.as_user(user, password).request("SELECT 1", method="GET")
        assert reply.status in (401, 403) and reply.code in (194, 516), reply.text


PARAMETERS = [
    ("UInt8", "200", "200"),
    ("Int64", "-5", "-5"),
    ("Float64", "1.5", "1.5"),
    ("String", "it's \\t \\\\ {x} -- ;", "it\\'s \\t \\\\ {x} -- ;"),
    ("Nullable(String)", "\\N", "\\N"),
    ("Bool", "true", "true"),
    ("Date", "2024-02-29", "2024-02-29"),
    ("DateTime64(3)", "2024-02-29 01:02:03.5", "2024-02-29 01:02:03.500000"),
    ("UUID", "61f0c404-5cb3-11e7-907b-a6006ad3dba0", "61f0c404-5cb3-11e7-907b-a6006ad3dba0"),
    ("Decimal(9, 2)", "1.25", "1.25"),
    ("Array(UInt8)", "[1, 2]", "[1,2]"),
    ("Array(String)", "['a\\'b', '']", "['a\\'b','']"),
    ("Array(Nullable(Int32))", "[NULL]", "[NULL]"),
]


@pytest.mark.parametrize(("data_type", "value", "shown"), PARAMETERS)
def test_parameters_are_values_of_their_type(duck: Endpoint, data_type: str, value: str, shown: str) -> None:
    assert duck.sql(f"SELECT {{p:{data_type}}}", param_p=value) == shown


def test_names_can_be_parameters(duck: Endpoint) -> None:
    duck.sql('CREATE TABLE "odd ""name" AS SELECT 7 AS a')
    assert duck.sql("SELECT a FROM {t:Identifier}", param_t='odd "name') == "7"
    for value in ("1 OR 1", "--", "'"):
        assert duck.request("SELECT {p:Int32}", settings={"param_p": value}).code == 457


def test_answers_have_clickhouses_headers(duck: Endpoint, oracle: Endpoint) -> None:
    for format_name in ("TSV", "JSON", "CSVWithNames", "Native", "RowBinary"):
        ours, theirs = (e.request(f"SELECT 1 FORMAT {format_name}", method="GET") for e in (duck, oracle))
        assert sorted(ours.headers) == sorted(theirs.headers)
        assert ours.headers["content-type"] == theirs.headers["content-type"]
        assert ours.headers["x-clickhouse-format"] == theirs.headers["x-clickhouse-format"] == format_name
        assert ours.summary["result_rows"] == "1" and set(ours.summary) == set(theirs.summary)
    named = duck.request("SELECT 1", settings={"query_id": "mine", "default_format": "JSONEachRow"})
    assert (named.headers["x-clickhouse-query-id"], named.body) == ("mine", b'{"1":1}\n')
    assert duck.request("SELECT 1", headers={"X-ClickHouse-Format": "JSONCompactEachRow"}).body == b"[1]\n"


def test_probes_need_no_user(duck: Endpoint) -> None:
    nobody = duck.as_user("nobody", "wrong")
    for path in ("/ping", "/replicas_status", "/"):
        with RawConnection(nobody) as connection:
            reply = connection.exchange(f"GET {path} HTTP/1.1\r\nHost: x\r\n\r\n".encode(), "GET")
        assert (reply.status, reply.body) == (200, b"Ok.\n")
    with RawConnection(duck) as connection:
        reply = connection.exchange(b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n", "GET")
    assert reply.status in (403, 404)


def test_a_post_without_a_length_is_refused(duck: Endpoint) -> None:
    with RawConnection(duck) as connection:
        reply = connection.exchange(b"POST /?query=SELECT+1 HTTP/1.1\r\nHost: x\r\n\r\n")
    assert (reply.status, reply.code) == (411, 381)


@pytest.mark.parametrize("encoding", ["gzip", "zstd", "lz4", "deflate"])
def test_answers_and_bodies_are_compressed(duck: Endpoint, encoding: str) -> None:
    query = "SELECT range, 'some text' FROM range(100000)"
    plain = duck.request(None, query.encode())
    headers = {"Accept-Encoding": encoding, "Content-Encoding": "gzip"}
    packed = duck.request(None, gzip.compress(query.encode()), headers=headers)
    assert (packed.status, packed.headers["content-encoding"]) == (200, encoding)
    assert len(packed.body) < len(plain.body) / 3
    if encoding == "gzip":
        assert gzip.decompress(packed.body) == plain.body
    unpacked = duck.request(query, settings={"enable_http_compression": 0}, headers={"Accept-Encoding": encoding})
    assert "content-encoding" not in unpacked.headers and unpacked.body == plain.body


def test_clickhouses_blocks_are_those_of_clickhouse(duck: Endpoint, oracle: Endpoint) -> None:
    ours, theirs = (
        e.request(f"SELECT {n}::{t} AS number FROM {f} FORMAT TSV", settings={"compress": 1}).body
        for e, n, t, f in ((duck, "range", "BIGINT", "range(1000)"), (oracle, "number", "Int64", "numbers(1000)"))
    )
    # The checksum and the sizes differ with the compressor; the method and the raw size are ClickHouse's.
    assert ours[16:17] == theirs[16:17] and ours[21:25] == theirs[21:25]


def test_an_error_in_the_middle_breaks_the_body(duck: Endpoint) -> None:
    with RawConnection(duck) as connection:
        head = f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {len(FAILS_LATE)}\r\n\r\n"
        reply = connection.exchange((head + FAILS_LATE).encode())
    tag = reply.get("X-ClickHouse-Exception-Tag")
    assert reply.status == 200 and not reply.complete
    found = re.search(rb"\r\n__exception__\r\n(\w+)\r\n(.*)\n(\d+) \1\r\n__exception__\r\n$", reply.body, re.S)
    assert found and found.group(1).decode() == tag and b"too far" in found.group(2)
    assert int(found.group(3)) == len(found.group(2)) + 1


def test_who_waits_for_the_end_gets_the_error_alone(duck: Endpoint) -> None:
    reply = duck.request(None, FAILS_LATE.encode(), {"wait_end_of_query": 1})
    assert reply.status >= 400 and "too far" in reply.text and len(reply.body) < 2000
    whole = duck.request(None, b"SELECT range FROM range(2000000)", {"wait_end_of_query": 1})
    assert whole.summary["result_rows"] == "2000000" and whole.body.endswith(b"\n1999999\n")


def test_limits_of_time_and_rows_hold(duck: Endpoint) -> None:
    late = duck.request(ENDLESS, settings={"max_execution_time": 0.3})
    assert (late.status, late.code) == (408, 159)
    many = duck.request("SELECT range FROM range(10)", settings={"max_result_rows": 3})
    assert (many.status, many.code) == (500, 396)
    some = duck.sql("SELECT range FROM range(10)", max_result_rows=3, result_overflow_mode="break")
    assert some == "0\n1\n2"


def test_a_client_that_leaves_stops_its_query(narrow: DuckDbGateway) -> None:
    """The gateway runs one query at a time, and this one would take hours."""
    with RawConnection(narrow.http) as connection:
        connection.send(f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {len(ENDLESS)}\r\n\r\n{ENDLESS}".encode())
        no_place = {"max_execution_time": 0.2}
        eventually(lambda: narrow.http.request("SELECT 1", settings=no_place).code == 159, "the place is taken")
    eventually(lambda: narrow.http.request("SELECT 1", settings=no_place).status == 200, "the place is free")


def test_memory_stays_flat_however_long_the_answer(narrow: DuckDbGateway) -> None:
    """3 GB of rows, of which a slow reader takes a little."""
    before_kib = resident_kib(narrow.child.pid)
    query = "SELECT range, range * 2 AS b FROM range(200000000)"
    with RawConnection(narrow.http, receive_buffer_bytes=64 << 10) as connection:
        connection.send(f"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: {len(query)}\r\n\r\n{query}".encode())
        assert connection.read_head().status == 200
        for _ in range(400):
            connection.up_to(100_000)
        grown_kib = resident_kib(narrow.child.pid) - before_kib
    assert grown_kib < 100 * 1024
    eventually(lambda: narrow.http.sql("SELECT 1") == "1", "the query has been stopped")


def resident_kib(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status).group(1))


def test_clickhouse_connect_connects_inserts_and_reads(duck: Endpoint) -> None:
    client = clickhouse_connect.get_client(host=duck.host, port=duck.port, username="default", password="")
    assert client.server_version.count(".") == 3
    client.command("CREATE TABLE connected (id BIGINT, name VARCHAR, tags VARCHAR[])")
    client.insert("connected", [[1, "a", ["x"]], [2, None, []]], column_names=["id", "name", "tags"])
    result = client.query("SELECT * FROM connected WHERE id <= {most:Int64} ORDER BY id", parameters={"most": 2})
    assert result.column_names == ("id", "name", "tags")
    assert result.result_rows == [(1, "a", ["x"]), (2, None, [])]
    assert client.query_arrow("SELECT id FROM connected ORDER BY id").column("id").to_pylist() == [1, 2]
    assert client.query_df("SELECT count(*) AS n FROM connected").n.tolist() == [2]
    client.close()


CONNECTING = [
    "SELECT version(), timezone()",
    "SELECT name, value, readonly FROM system.settings LIMIT 10000 FORMAT Native",
    "SELECT 1 AS check FORMAT Native",
    "SELECT displayName(), version(), revision(), timezone()",
    "SELECT 1 FORMAT TabSeparated",
    "SELECT currentDatabase()",
    "SELECT value FROM system.settings WHERE name = 'readonly'",
    "SELECT name FROM system.databases",
    "SELECT database, name, engine FROM system.tables",
    "SELECT name, type, default_kind FROM system.columns WHERE database = 'default'",
    "SELECT * FROM system.one",
    "SELECT number FROM system.numbers LIMIT 3",
    "SELECT * FROM numbers(3)",
]


@pytest.mark.parametrize("query", CONNECTING)
def test_what_clients_ask_when_they_connect_is_answered(duck: Endpoint, query: str) -> None:
    # So that there is one to be listed, whatever ran before.
    duck.sql("CREATE TABLE IF NOT EXISTS listed (a BIGINT)")
    reply = duck.request(None, query.encode(), {"client_protocol_version": 54460})
    assert reply.status == 200 and (reply.body or "columns" in query), reply.text


def test_tables_of_the_gateway_are_read_like_any(duck: Endpoint, reader: Endpoint) -> None:
    duck.sql("CREATE TABLE logged (a BIGINT)")
    assert duck.insert("INSERT INTO logged FORMAT JSONEachRow", '{"a": 1}', query_id="it's mine").status == 200
    query = (
        "SELECT log.status, log.rows, log.table, log.event_time_microseconds > TIMESTAMP '2020-01-01' AS late "
        "FROM system.asynchronous_insert_log log WHERE log.query_id = 'it''s mine'"
    )
    eventually(lambda: duck.sql(query) == "Ok\t1\tlogged\ttrue", "the insert is in the log")
    assert reader.sql("SELECT count(*) FROM system.asynchronous_insert_log") == "0"
    for table in ("asynchronous_inserts", "windrow_dead_letters"):
        assert duck.sql(f"SELECT count(*) FROM system.{table}") == "0"
