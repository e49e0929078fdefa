"""What programs that were written for clickhouse-connect count on, beyond what the compared programs show."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest
from harness.endpoint import Endpoint
from harness.scripted import Exchange, chunk, head

import windrow
import windrow.dbapi
from windrow import exceptions
from windrow._shared.binding import bind
from windrow._shared.options import client_options
from windrow.datatypes.dynamic import typed_variant
from windrow.datatypes.registry import get_from_name

#: A block of one column and five rows, as far as the column's type.
BEGUN = b"\x01\x00\x02\xff\xff\xff\xff\x00\x01\x05\x01n\x05UInt8"


@pytest.fixture
def client(where: dict[str, Any]) -> Iterator[windrow.Client]:
    made = windrow.create_client(**where)
    yield made
    made.close()


def test_names_of_the_makers() -> None:
    assert windrow.create_client is windrow.get_client is windrow.driver.create_client
    assert windrow.create_async_client is windrow.get_async_client is windrow.driver.create_async_client


def test_an_index_names_columns(client: windrow.Client, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (id UInt64, what String) ORDER BY id")
    frame = pd.DataFrame({"id": [1], "what": ["a"]})
    client.insert_df("t", frame, column_names=frame.columns)
    client.insert("t", [(2, "b")], column_names=frame.columns)
    client.insert("t", [(3, "c")], column_names=frame.columns, column_type_names=pd.Index(["UInt64", "String"]))
    client.raw_insert("t", frame.columns, b"4\td\n", fmt="TabSeparated")
    with client.writer("t", frame.columns) as writer:
        writer.write_row((5, "e"))
    assert direct.sql("SELECT groupArray((id, what)) FROM (SELECT * FROM t ORDER BY id)") == (
        "[(1,'a'),(2,'b'),(3,'c'),(4,'d'),(5,'e')]"
    )


async def test_an_index_names_columns_async(where: dict[str, Any], direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (id UInt64) ORDER BY id")
    frame = pd.DataFrame({"id": [1]})
    async with await windrow.create_async_client(**where) as client:
        await client.insert_df("t", frame, column_names=frame.columns)
    assert direct.sql("SELECT id FROM t") == "1"


@pytest.mark.parametrize("kind", [exceptions.DataError, ValueError, TypeError])
def test_errors_of_values_are_pythons_too(client: windrow.Client, direct: Endpoint, kind: type[Exception]) -> None:
    direct.sql("CREATE TABLE t (at IPv4) ORDER BY tuple()")
    with pytest.raises(kind) as caught:
        client.insert("t", [(ipaddress.ip_address("10.0.0.1"),), ("10.0",)], column_names=["at"])
    assert (type(caught.value), caught.value.row) == (exceptions.DataError, 1)  # type: ignore[attr-defined]


def test_errors_of_values_stay_what_they_are_in_executemany(where: dict[str, Any], direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (n UInt8) ORDER BY tuple()")
    with windrow.dbapi.connect(**where) as connection, connection.cursor() as cursor:
        with pytest.raises(exceptions.DataError):
            cursor.executemany("INSERT INTO t VALUES", [(1,), (256,)])


@pytest.mark.parametrize(
    ("query", "sent"),
    [
        ("INSERT INTO t FORMAT TabSeparated\nv3;", "INSERT INTO t FORMAT TabSeparated\nv3;"),
        ("INSERT INTO t (s) FORMAT CSV\n;", "INSERT INTO t (s) FORMAT CSV\n;"),
        ("/* a */ INSERT INTO t FORMAT TSV\nit's;;", "/* a */ INSERT INTO t FORMAT TSV\nit's;;"),
        ("INSERT INTO t FORMAT TabSeparated;", "INSERT INTO t FORMAT TabSeparated"),
        ("INSERT INTO t VALUES ('a;');", "INSERT INTO t VALUES ('a;')"),
        ("INSERT INTO t (format, s) SELECT 1, 'a';", "INSERT INTO t (format, s) SELECT 1, 'a'"),
        ("SELECT 1;", "SELECT 1"),
    ],
)
def test_semicolons_that_are_data_stay(query: str, sent: str) -> None:
    assert bind(query, None, None).text == sent
    assert bind(query, {"unused": 1}, None).text == sent


def test_data_ends_as_it_was_given(client: windrow.Client, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (s String) ORDER BY s")
    client.raw_query("INSERT INTO t FORMAT TabSeparated\nv3;")
    client.command("INSERT INTO t FORMAT TabSeparated\n;")
    client.query("INSERT INTO t FORMAT TabSeparated\n%(s)s;", parameters={"s": 5})
    client.command("INSERT INTO t FORMAT TabSeparated;", data="v4;")
    client.command("INSERT INTO t VALUES ('a') ; ")
    assert direct.sql("SELECT s FROM t ORDER BY s").split("\n") == ["5;", ";", "a", "v3;", "v4;"]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("Decimal(10,2)", "Decimal(10, 2)"),
        ("Array( Decimal( 10,2 ) )", "Array(Decimal(10, 2))"),
        ("Decimal64(4)", "Decimal(18, 4)"),
        ("Enum8('a,(b)'=1)", "Enum8('a,(b)' = 1)"),
        ("DateTime64(3,'UTC')", "DateTime64(3, 'UTC')"),
        ("Tuple(`a , b` UInt8,c  String)", "Tuple(`a , b` UInt8, `c` String)"),
    ],
)
def test_types_are_spelled_as_clickhouse_does(given: str, name: str) -> None:
    assert typed_variant(1, given).type_name == get_from_name(given).name == name


def test_a_variants_alternative_without_spaces(client: windrow.Client, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (v Variant(Decimal(10, 2), String)) ORDER BY tuple()")
    client.insert("t", [(typed_variant("1.5", "Decimal(10,2)"),)], column_names=["v"])
    assert direct.sql("SELECT v, variantType(v) FROM t") == "1.5\tDecimal(10, 2)"


@pytest.mark.parametrize(
    ("query", "parameters", "answer"),
    [
        ("SELECT {foo$x$bar:String}", {"foo$x$bar": "a", "$x$": 5}, b"a\n"),
        ("SELECT {foo$x$bar:String}, $x$", {"foo$x$bar": "a", "$x$": b"it's"}, b"a\tit\\'s\n"),
        ("SELECT 1 AS foo$x$bar, $x$, foo$x$bar", {"$x$": b"b"}, b"1\tb\t1\n"),
        ("SELECT 'costs $x$'", {"$x$": 5}, b"costs $x$\n"),
    ],
)
def test_a_marker_inside_of_a_name_is_none(client: windrow.Client, query: str, parameters: Any, answer: bytes) -> None:
    assert client.raw_query(query, parameters=parameters) == answer


@pytest.mark.parametrize(
    ("precision", "digits", "kept"),
    [(8, 80, True), (8, 89, False), (7, 90, False), (5, 0, False), (3, 0, True), (9, 89, True)],
)
@pytest.mark.parametrize("dtype", ["datetime64[ns]", "datetime64[ns, UTC]", object])
def test_digits_of_moments_are_not_lost(
    client: windrow.Client, direct: Endpoint, precision: int, digits: int, kept: bool, dtype: Any
) -> None:
    """Cut where NumPy has such a unit (3), or as objects as far as a datetime goes; else kept or refused."""
    direct.sql(f"CREATE TABLE t (at DateTime64({precision}, 'UTC'), maybe Nullable(DateTime64({precision}, 'UTC'))) ORDER BY at")
    moment = f"2024-05-01 12:00:00.1234567{digits:02d}"
    at = pd.Series([pd.Timestamp(moment, tz="UTC" if "UTC" in str(dtype) else None)], dtype=dtype)
    frame = pd.DataFrame({"at": at, "maybe": at})
    if kept or (dtype is object and precision < 7):
        client.insert_df("t", frame)
        assert direct.sql("SELECT at, maybe FROM t") == "\t".join([moment[: 20 + precision]] * 2)
    else:
        with pytest.raises(exceptions.DataError, match=r"more digits than a DateTime64\(\d\) keeps"):
            client.insert_df("t", frame)


def test_an_answer_that_is_cut_off_is_a_stream_failure(where: dict[str, Any], scripted: Any) -> None:
    """clickhouse-connect has one class for it, whether the result was to come as a stream or as a whole."""

    def script(exchange: Exchange) -> None:
        exchange.read_request()
        exchange.send(head("200 OK", {"Transfer-Encoding": "chunked"}) + chunk(BEGUN))

    server = scripted(script)
    for ask in ("query", "raw_query", "command", "query_np", "query_arrow"):
        client = windrow.Client(options_for(server.host, server.port))
        with pytest.raises(exceptions.StreamFailureError, match="the connection was closed in the middle"):
            getattr(client, ask)("SELECT 1")
        client.close()


def options_for(host: str, port: int) -> Any:
    named = dict.fromkeys(("username", "database", "interface", "dsn", "settings", "generic_args"))
    others = {"query_retries": 0, "connect_timeout": 5}
    return client_options("sync", host=host, port=port, password="", secure=False, others=others, **named)


@pytest.mark.parametrize("mode", ["sync", "async"])
async def test_connection_errors_name_the_server(mode: str, scripted: Any) -> None:
    def hang_up(exchange: Exchange) -> None:
        exchange.read_request()

    server = scripted(hang_up)
    for at in ((server.host, server.port), ("127.0.0.1", 1)):
        with pytest.raises(exceptions.OperationalError, match=rf"\({at[0]}:{at[1]}\)"):
            if mode == "sync":
                windrow.get_client(host=at[0], port=at[1], query_retries=0)
            else:
                await windrow.get_async_client(host=at[0], port=at[1], query_retries=0)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"hots": "a"}, "get_client() got an unexpected keyword argument 'hots': do you mean 'host'?"),
        ({"pasword": None}, "get_client() got an unexpected keyword argument 'pasword': do you mean 'password'?"),
        ({"user_nam": "a"}, "get_client() got an unexpected keyword argument 'user_nam': do you mean 'user_name'?"),
        (
            {"max_threads": 4},
            "get_client() got an unexpected keyword argument 'max_threads': settings of ClickHouse go into settings={...}",
        ),
    ],
)
def test_unknown_arguments_are_named(given: dict[str, Any], said: str) -> None:
    for make in (windrow.get_client, windrow.create_client):
        with pytest.raises(TypeError) as caught:
            make(**given)
        assert str(caught.value) == said
    with pytest.raises(TypeError, match="compres.* do you mean 'compress'"):
        windrow.get_client(dsn="http://localhost/?compres=lz4")
