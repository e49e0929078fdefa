"""What kind of statement a text is; parameters; arguments of a client. Nothing here needs a server."""

from __future__ import annotations

from typing import Any

import pytest

from windrow import exceptions
from windrow._shared.binding import bind
from windrow._shared.insert_sql import rows_insert
from windrow._shared.options import client_options
from windrow._shared.sql import statement, tokens


@pytest.mark.parametrize(
    "text, bare, is_read, is_insert",
    [
        ("SELECT 1;", "SELECT 1", True, False),
        ("SELECT 1 -- a; b\n;; ", "SELECT 1 -- a; b\n ", True, False),
        ("SELECT ';'", "SELECT ';'", True, False),
        ("SELECT $x$ ; $x$;", "SELECT $x$ ; $x$", True, False),
        ("(SELECT 1) UNION ALL (SELECT 2)", "(SELECT 1) UNION ALL (SELECT 2)", True, False),
        ("WITH 1 AS a SELECT a", "WITH 1 AS a SELECT a", True, False),
        ("WITH a AS (SELECT 1) INSERT INTO t SELECT * FROM a", None, False, True),
        ("WITH 1 AS a INSERT INTO t FORMAT CSV\nb;", "WITH 1 AS a INSERT INTO t FORMAT CSV\nb;", False, True),
        ("WITH (INSERT INTO t) AS a SELECT a", None, False, False),
        ("INSERT INTO t VALUES (1)", None, False, True),
        ("SELECT 1 INTO OUTFILE 'a'", None, False, False),
        ("SELECT 1; DROP TABLE t", None, False, False),
        ("SELECT 1 PARALLEL WITH DROP TABLE t", None, False, False),
        ("SELECT 'a", None, False, False),
        ("SELECT 1 /* /* */", None, False, False),
        ("EXPLAIN SELECT 1", None, True, False),
        ("SHOW TABLES", None, True, False),
        ("DROP TABLE t", None, False, False),
        ("", None, False, False),
    ],
)
def test_kinds_of_statements(text: str, bare: str | None, is_read: bool, is_insert: bool) -> None:
    known = statement(text)
    assert (known.is_read, known.is_insert) == (is_read, is_insert)
    if bare is not None:
        assert known.bare == bare


def test_every_prefix_of_a_query_is_read_to_its_end() -> None:
    text = "WITH a AS (SELECT 'it''s' /* x /* y */ */) SELECT $t$ ; $t$, `b``c`, {p:Array(String)} FROM a -- end\n;"
    for end in range(len(text) + 1):
        assert "".join(token.text for token in tokens(text[:end])) == text[:end]


def test_long_texts_are_read_in_linear_time() -> None:
    for text in ("'" * 20_001, "$" * 20_001, "/*" * 20_001, "{a" * 20_001, ";" * 20_001, "$a$ " * 5_001):
        statement(text)


def test_a_statement_may_itself_be_a_parameter() -> None:
    bound = bind("%s", [type("Sql", (), {"__str__": lambda self: "SELECT 1;"})()], None)
    assert bound.text == "SELECT 1" and bound.statement.is_read


class Sql:
    """A text that is written into a query as it is."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


WHOLE = [
    "INSERT INTO t (s) FORMAT TabSeparated\nv1;\n",
    "WITH 1 AS y INSERT INTO t (s) FORMAT TabSeparated\nv1;\n",
    "WITH 1 AS y INSERT INTO t SELECT y;",
    "SELECT a FROM t LIMIT 0",
    "SELECT a FROM t LIMIT 5;",
    "SELECT a INTO OUTFILE 'f'",
    "SHOW POLICIES;",
    "DROP TABLE t;",
    "SELECT 'a;', `b;` -- c;",
]


@pytest.mark.parametrize("text", WHOLE)
def test_what_is_sent_is_judged_wherever_a_parameter_stands(text: str) -> None:
    """Each word of the statement in turn is a parameter, and each run of words."""
    words = [token for token in tokens(text) if token.kind != "space"]
    for first in range(len(words)):
        for last in range(first, len(words)):
            start, end = words[first].start, words[last].end
            beside = (text[:start].replace("%", "%%"), text[end:].replace("%", "%%"))
            value = Sql(text[start:end])
            for query, parameters in (("%s".join(beside), [value]), ("%(x)s".join(beside), {"x": value})):
                bound = bind(query, parameters, None)
                assert (bound.text, bound.statement) == (statement(text).bare, statement(text)), query


@pytest.mark.parametrize(
    "text, table, columns, names",
    [
        ("INSERT INTO t VALUES", "t", None, None),
        ("insert into d.`t` (a, `b c`) values (%s, %s);", "d.`t`", ("a", "b c"), None),
        ("INSERT INTO TABLE t (a, b) VALUES (%(x)s, %(y)s)", "t", ("a", "b"), ("x", "y")),
    ],
)
def test_inserts_with_separate_rows(text: str, table: str, columns: Any, names: Any) -> None:
    plan = rows_insert(text)
    assert plan is not None and (plan.table, plan.columns, plan.names) == (table, columns, names)


@pytest.mark.parametrize(
    "text",
    [
        "INSERT INTO t SELECT 1",
        "INSERT INTO t VALUES (%s, 1)",
        "INSERT INTO t (a) VALUES (%s, %s)",
        "INSERT INTO t (a, b) VALUES (%s, %(x)s)",
        "INSERT INTO t VALUES (%s) SETTINGS a = 1",
        "SELECT 1",
        "INSERT",
        "",
    ],
)
def test_other_inserts_are_left_to_the_server(text: str) -> None:
    assert rows_insert(text) is None


def options_of(**arguments: Any) -> Any:
    named = dict.fromkeys(("host", "username", "database", "interface", "port", "dsn", "settings", "generic_args"))
    given = {**named, "password": "", "secure": False}
    others = {name: value for name, value in arguments.items() if name not in given}
    given.update({name: value for name, value in arguments.items() if name in given})
    return client_options("async", **given, others=others)


def test_a_dsn_says_everything() -> None:
    made = options_of(dsn="https://joe:se%40cret@db.example:8444/sales?compress=zstd&query_limit=5&verify=false")
    assert (made.host, made.port, made.username, made.password, made.database) == (
        "db.example", 8444, "joe", "se@cret", "sales",
    )  # fmt: skip
    assert (made.encoding, made.query_limit) == ("zstd", 5)
    # The interface is not the DSN's to say: clickhouse-connect doesn't look at its scheme either.
    assert made.url == "http://db.example:8444"


def test_compression_is_left_out_towards_this_machine() -> None:
    assert options_of(host="localhost").encoding is None
    assert options_of(host="127.0.0.9").encoding is None
    assert options_of(host="::1").encoding is None
    assert options_of(host="db.example").encoding == "lz4"
    assert options_of(host="localhost", compress="zstd").encoding == "zstd"
    assert options_of(host="db.example", compress=False).encoding is None
    with pytest.raises(exceptions.ProgrammingError):
        _ = options_of(compress="rar").encoding


def test_credentials_that_contradict_each_other() -> None:
    with pytest.raises(exceptions.ProgrammingError):
        options_of(access_token="t", username="joe")
    with pytest.raises(exceptions.ProgrammingError):
        options_of(access_token="t", token_provider=lambda: "t")
    with pytest.raises(exceptions.ProgrammingError, match="connector_limit"):
        options_of(pool_mgr=object())
    with pytest.raises(TypeError, match="unknown_option"):
        options_of(unknown_option=1)
    assert options_of(generic_args={"ch_max_threads": 3, "compress": False}).settings == {"max_threads": 3}


def test_data_of_an_insert_is_not_looked_into() -> None:
    for text in ("INSERT INTO `a`.values (format, `values`) VALUES ", "INSERT INTO t SETTINGS a = 1 FORMAT JSONEachRow\n"):
        known = statement(text + "it's {a:Int32} SELECT LIMIT 0 ;;" * 3 + "x;")
        assert known.is_insert and known.is_whole and not (known.is_select or known.has_limit or known.is_read)
