"""Where a query's text, parameters and settings may stand."""

from __future__ import annotations

import pytest

from harness.compare import Comparison, Request
from harness.endpoint import Endpoint

EMPTY = "TRUNCATE TABLE {database}.t"


@pytest.fixture
def table(direct: Endpoint) -> str:
    direct.sql("CREATE TABLE t (a UInt64, s String) ENGINE = MergeTree ORDER BY a")
    return direct.database


def post(parameters: dict[str, str], body: bytes = b"", headers: tuple[tuple[str, str], ...] = ()) -> Request:
    return Request(parameters=tuple(parameters.items()), body=body, headers=headers)


@pytest.mark.parametrize(
    ("in_url", "in_body"),
    [
        ("SELECT 1", b""),
        ("SELECT 1 FORMAT JSON", b""),
        (None, b"SELECT 1"),
        (None, b"  SELECT 1 ;  "),
        ("", b"SELECT 1"),
        ("SELECT 1,", b"2"),
        ("SELECT", b"1, 2 FORMAT CSV"),
        ("SELECT 1 -- a comment", b"+ 1"),
        ("SELECT 'a", b"b'"),
        ("SELECT 1;", b"SELECT 2"),
        (None, b"SELECT 1; SELECT 2"),
        (None, b""),
        (None, b"   "),
        (None, b"-- only a comment"),
        (None, "SELECT 'ü€😀'".encode()),
        (None, b"SELECT '\xff\xfe'"),
        (None, b"SELECT '\x00'"),
    ],
)
def test_select_split_over_url_and_body(both: Comparison, in_url: str | None, in_body: bytes) -> None:
    both.same(post({} if in_url is None else {"query": in_url}, in_body))


INSERT_SPLITS = [
    ("INSERT INTO t VALUES", b"(1,'a'),(2,'b')"),
    ("INSERT INTO t VALUES (1,'a'),", b"(2,'b')"),
    ("INSERT INTO t VALUES (1,'a')", b""),
    ("INSERT INTO t VALUES (1,'a')", b",(2,'b')"),
    (None, b"INSERT INTO t VALUES (1,'a'),(2,'b');"),
    (None, b"INSERT INTO t FORMAT Values (1,'a') (2,'b')"),
    ("INSERT INTO", b"t VALUES (1,'a')"),
    ("INSERT INTO t (a) VALUES", b"(1)"),
    ("INSERT INTO t (s, a) FORMAT Values", b"('x', 1)"),
    ("INSERT INTO t FORMAT JSONEachRow", b'{"a":1,"s":"x"}\n{"a":2}'),
    ("INSERT INTO t FORMAT JSONEachRow", b'[{"a":1},{"a":2,"s":"y"}]'),
    ("INSERT INTO t FORMAT JSONEachRow {\"a\":1}", b'{"a":2}'),
    (None, b'INSERT INTO t FORMAT JSONEachRow {"a":1} {"a":2}'),
    (None, b'INSERT INTO t FORMAT JSONEachRow\n{"a":1}\n{"a":2}\n'),
    (None, b'INSERT INTO t SETTINGS max_threads = 1 FORMAT JSONEachRow\n{"a":1}\n'),
    ("INSERT INTO t FORMAT CSV", b'1,"x"\n2,"y"'),
    ("INSERT INTO t FORMAT TSV", b"1\tx\n2\ty\n"),
    ("INSERT INTO t FORMAT RowBinary", b"\x01\x00\x00\x00\x00\x00\x00\x00\x01x"),
    ("INSERT INTO t SELECT number, 'n' FROM numbers(3)", b""),
    (None, b"INSERT INTO t SELECT number, 'n' FROM numbers(3)"),
    ("INSERT INTO t FORMAT JSONEachRow", b""),
    ("INSERT INTO t VALUES", b""),
    ("INSERT INTO t FORMAT CSV", b""),
    ("INSERT INTO t", b""),
]


@pytest.mark.parametrize(("in_url", "in_body"), INSERT_SPLITS)
def test_insert_split_over_url_and_body(
    both: Comparison, direct: Endpoint, table: str, in_url: str | None, in_body: bytes
) -> None:
    parameters = {"database": table} | ({} if in_url is None else {"query": in_url})
    request = post(parameters, in_body)
    request.send_to(both.oracle)
    expected = direct.sql("SELECT * FROM t ORDER BY a FORMAT JSONCompactEachRow")
    both.same(request, before=(EMPTY.format(database=table),))
    assert direct.sql("SELECT * FROM t ORDER BY a FORMAT JSONCompactEachRow") == expected


def test_parameters(both: Comparison) -> None:
    query = "SELECT {n:Int32} + 1, {s:String}, {list:Array(String)}, {none:Nullable(Int8)}"
    given = {"param_n": "41", "param_s": "a\\tb ü", "param_list": "['x','y']", "param_none": "\\N"}
    both.same(post({"query": query, **given}))
    both.same(post({"query": query}))
    both.same(post({"query": "SELECT {n:Int32}", "param_n": "x"}))


def test_parameters_of_an_insert(both: Comparison, direct: Endpoint, table: str) -> None:
    parameters = {"database": table, "query": "INSERT INTO t VALUES ({n:UInt64}, {s:String})", "param_n": "7", "param_s": "x"}
    both.same(post(parameters), before=(EMPTY.format(database=table),))
    assert direct.sql("SELECT * FROM t") == "7\tx"


def test_identifier_parameter_of_an_insert(both: Comparison, direct: Endpoint, table: str) -> None:
    parameters = {"database": table, "query": "INSERT INTO {name:Identifier} FORMAT JSONEachRow", "param_name": "t"}
    both.same(post(parameters, b'{"a":1}'), before=(EMPTY.format(database=table),))
    assert direct.sql("SELECT a FROM t") == "1"


#: Whatever a parameter is for: who asks, where, what is to be done, or a value in the statement.
PARAMETERS = (
    "database",
    "role",
    "quota_key",
    "query_id",
    "session_id",
    "session_timeout",
    "default_format",
    "log_comment",
    "max_threads",
    "max_insert_block_size",
    "async_insert",
    "wait_for_async_insert",
    "insert_deduplicate",
    "session_timezone",
    "param_x",
    "no_such_setting",
    "",
)


@pytest.mark.parametrize("name", PARAMETERS)
def test_an_insert_with_a_parameter_that_is_no_text(both: Comparison, direct: Endpoint, table: str, name: str) -> None:
    """What the gateway can't read it does not leave out: ClickHouse gets the insert as it came, and judges."""
    where = [("database", table)] if name != "database" else []
    insert = [*where, (name, b"\xff\xfe"), ("query", "INSERT INTO t FORMAT JSONEachRow")]
    request = Request(parameters=tuple(insert), body=b'{"a":1}')
    stored = []
    for endpoint in (both.oracle, both.tested):
        direct.sql(EMPTY.format(database=table))
        reply = request.send_to(endpoint)
        stored.append((reply.status, direct.sql("SELECT count() FROM t")))
    assert stored[0] == stored[1]


@pytest.mark.parametrize("statement", ["INSERT INTO t FORMAT JSONEachRow", "INSERT INTO t SELECT 1, 'x'"])
def test_a_token_that_is_no_text_is_refused(both: Comparison, direct: Endpoint, table: str, statement: str) -> None:
    """Left out, the insert's repeat would be stored once more."""
    parameters = (("database", table), ("insert_deduplication_token", b"\xff"), ("query", statement))
    reply = Request(parameters=parameters, body=b'{"a":1}' if "FORMAT" in statement else b"").send_to(both.tested)
    assert reply.status == 400 and b"insert_deduplication_token has to be UTF-8 text" in reply.body
    assert direct.sql("SELECT count() FROM t") == "0"


@pytest.mark.parametrize("name", ["default_format", "output_format", "format"])
def test_default_format(both: Comparison, name: str) -> None:
    both.same(post({"query": "SELECT 1 AS x", name: "JSONCompact"}))
    both.same(post({"query": "SELECT 1 AS x FORMAT CSV", name: "JSONCompact"}))
    both.same(post({"query": "SELECT 1 AS x", name: "Zork"}))


def test_headers_instead_of_parameters(both: Comparison, direct: Endpoint, table: str) -> None:
    headers = (("X-ClickHouse-Format", "JSONEachRow"), ("X-ClickHouse-Database", direct.database))
    both.same(post({}, b"SELECT currentDatabase() AS d", headers))
    both.same(post({"database": "system"}, b"SELECT currentDatabase() AS d", headers))
    insert = post({"query": "INSERT INTO t FORMAT JSONEachRow"}, b'{"a":1}', headers)
    both.same(insert, before=(EMPTY.format(database=table),))
    assert direct.sql("SELECT a FROM t") == "1"


def test_database_parameter(both: Comparison, direct: Endpoint) -> None:
    both.same(post({"database": direct.database, "query": "SELECT currentDatabase()"}))
    both.same(post({"database": "nowhere", "query": "SELECT 1"}))
    both.same(post({"database": "nowhere", "query": "INSERT INTO t FORMAT JSONEachRow"}, b'{"a":1}'))


def test_query_id(both: Comparison, direct: Endpoint, table: str) -> None:
    reply = both.same(post({"query_id": "my-id-1", "query": "SELECT queryID()"}))
    assert (reply.text, reply.get("X-ClickHouse-Query-Id")) == ("my-id-1\n", "my-id-1")
    both.same(Request(parameters=(("query", "SELECT 1"),), headers=(("X-ClickHouse-Query-Id", "from-header"),)))
    insert = {"database": table, "query_id": "my-insert", "query": "INSERT INTO t FORMAT JSONEachRow"}
    reply = both.same(post(insert, b'{"a":1}'), before=(EMPTY.format(database=table),))
    assert reply.get("X-ClickHouse-Query-Id") == "my-insert"


def test_settings(both: Comparison) -> None:
    both.same(post({"query": "SELECT getSetting('max_block_size')", "max_block_size": "17"}))
    both.same(post({"query": "SELECT 1", "max_block_size": "many"}))
    reply = both.same(post({"query": "SELECT 1", "no_such_setting": "1"}))
    assert (reply.status, reply.code) == (404, 115)
    both.same(post({"query": "SELECT 1", "max_threads": "1", "profile": "default"}))
    both.same(post({"query": "SELECT 1", "profile": "nobody"}))
    both.same(post({"query": "SELECT 1", "quota_key": "k"}))


def test_unknown_setting_of_an_insert(both: Comparison, direct: Endpoint, table: str) -> None:
    insert = {"database": table, "query": "INSERT INTO t FORMAT JSONEachRow", "no_such_setting": "1"}
    reply = both.same(post(insert, b'{"a":1}'))
    assert (reply.status, reply.code) == (404, 115)
    assert direct.sql("SELECT count() FROM t") == "0"


@pytest.mark.parametrize("repeated", [("a", "a"), ("", "a")])
def test_repeated_query_parameter(both: Comparison, repeated: tuple[str, str]) -> None:
    both.same(Request(parameters=tuple(("query", f"SELECT 1 AS {name}") if name else ("query", "") for name in repeated)))


@pytest.mark.parametrize("target", ["/?query=SELECT+1%2B1", "/?query=SELECT%201", "/?query=SELECT%", "/?query", "/?&&", "/?=1", "/?query=SELECT%zz"])
def test_odd_encodings_of_the_target(both: Comparison, target: str) -> None:
    both.same(Request("GET", target, body=None))


def test_roles(both: Comparison, direct: Endpoint) -> None:
    both.same(post({"query": "SELECT currentRoles()", "role": "nobody"}))


def test_external_tables(both: Comparison) -> None:
    boundary = "----boundary42"
    parts = [
        ('name="query"', "SELECT name, n FROM people JOIN counts USING (id) ORDER BY id"),
        ('name="people"; filename="people.csv"', "1,ann\n2,bob\n"),
        ('name="counts"; filename="counts.tsv"', "1\t10\n2\t20\n"),
        ('name="param_unused"', "1"),
    ]
    body = "".join(f"--{boundary}\r\nContent-Disposition: form-data; {what}\r\n\r\n{data}\r\n" for what, data in parts)
    structures = {
        "people_structure": "id UInt8, name String",
        "people_format": "CSV",
        "counts_types": "UInt8,UInt32",
        "counts_structure": "id UInt8, n UInt32",
    }
    headers = (("Content-Type", f"multipart/form-data; boundary={boundary}"),)
    del structures["counts_types"]
    reply = both.same(post(structures, (body + f"--{boundary}--\r\n").encode(), headers))
    assert reply.text == "ann\t10\nbob\t20\n"
    del structures["counts_structure"]
    both.same(post(structures, (body + f"--{boundary}--\r\n").encode(), headers))


def test_multipart_query_parameters(both: Comparison) -> None:
    boundary = "x"
    parts = [("query", "SELECT {n:UInt8} * 2"), ("param_n", "21")]
    body = "".join(f'--{boundary}\r\nContent-Disposition: form-data; name="{n}"\r\n\r\n{v}\r\n' for n, v in parts)
    headers = (("Content-Type", f"multipart/form-data; boundary={boundary}"),)
    assert both.same(post({}, (body + f"--{boundary}--\r\n").encode(), headers)).text == "42\n"
