"""Values of a result are those that clickhouse-connect makes, of every type and under every option."""

from __future__ import annotations

from typing import Any

import clickhouse_connect
import pytest
from harness.endpoint import Endpoint
from read import expressions
from read.results import SETTINGS, columns, decoder, native, rows, told

from windrow.datatypes.registry import get_from_name

PLAIN = [*expressions.SCALARS, *map(expressions.nullable, expressions.SCALARS), *expressions.NOTHING]
ALL_BUT_DOCUMENTS = [*PLAIN, *expressions.LOW_CARDINALITY, *expressions.CONTAINERS, *expressions.OF_MANY_TYPES]
ALL = [*ALL_BUT_DOCUMENTS, *expressions.DOCUMENTS, *expressions.VECTORS]

OPTIONS: list[dict[str, Any]] = [
    {},
    {"use_none": False},
    {"tz_mode": "aware"},
    {"tz_mode": "schema"},
    {"query_tz": "America/New_York"},
    {"query_tz": "America/New_York", "tz_mode": "aware"},
    {"query_tz": "UTC", "tz_mode": "schema"},
    {"column_tzs": "Asia/Tokyo"},
    {"column_tzs": "UTC"},
    {"column_tzs": "UTC", "tz_mode": "schema"},
    {"column_tzs": "Etc/GMT", "tz_mode": "aware"},
    {"encoding": "latin-1"},
    {"encoding": "ascii"},
    *({"query_formats": {"*": form}} for form in ("int", "bytes", "tuple", "json", "pairs", "typed", "time", "signed")),
    {"query_formats": {"Date*": "int", "ipv": "string", "UUID": "string"}},
    {"column_formats": {"UUID": "string", "IPv*": "string", "Date*": "int"}},
    {"use_none": False, "query_formats": {"*": "int"}},
]
AS_TEXT: list[dict[str, Any]] = [
    {"query_formats": {"*": "string"}},
    {"column_formats": "string"},
    {"use_none": False, "query_formats": {"*": "string"}},
]


@pytest.fixture(scope="module")
def other(engine: Any) -> Any:
    direct: Endpoint = engine.direct
    client = clickhouse_connect.get_client(
        host=direct.host, port=direct.port, username=direct.user, password=direct.password, tz_source="server"
    )
    yield client
    client.close()


def arguments(given: dict[str, Any], count: int) -> dict[str, Any]:
    """`column_tzs` and `column_formats` of every column."""
    of_columns = ("column_tzs", "column_formats")
    spread = {key: {f"c{at}": given[key] for at in range(count)} for key in of_columns if key in given}
    return {**given, **spread}


def select(chosen: list[str]) -> str:
    return f"SELECT {', '.join(f'{expression} AS c{at}' for at, expression in enumerate(chosen))} FROM numbers(3)"


def assert_same(other: Any, endpoint: Endpoint, chosen: list[str], given: dict[str, Any]) -> None:
    query, given = select(chosen), arguments(given, len(chosen))
    expected = other.query(query, settings=SETTINGS, **given)
    data = native(endpoint, query)
    found = rows(data, **given)
    assert told([list(column) for column in zip(*found, strict=True)]) == told(columns(data, **given))
    reading = decoder(data)
    reading.advance(0)
    header = reading.header()
    assert header is not None and list(header[0]) == list(expected.column_names)
    for at, expression in enumerate(chosen):
        theirs = [row[at] for row in expected.result_rows]
        ours = [row[at] for row in found]
        # clickhouse-connect writes the NULL of a number that is shown as text as the text None.
        theirs = [None if mine is None and value == "None" else value for value, mine in zip(theirs, ours, strict=True)]
        assert told(ours) == told(theirs) or is_known(expression, theirs, ours), expression
        if "JSON" not in expression:
            assert get_from_name(header[1][at]).name == expected.column_types[at].name


def is_known(expression: str, theirs: list[Any], ours: list[Any]) -> bool:
    """0 for NULL of a Decimal without decimals, clickhouse-connect has 0E-9; and the text None again, in containers."""
    return theirs == ours or expression in ("NULL", "[NULL, 1]", "map('a', NULL::Nullable(UInt8))")


@pytest.mark.parametrize("given", OPTIONS, ids=str)
def test_values(other: Any, engine: Any, given: dict[str, Any]) -> None:
    assert_same(other, engine.direct, ALL, given)


@pytest.mark.parametrize("given", AS_TEXT, ids=str)
def test_values_as_text(other: Any, engine: Any, given: dict[str, Any]) -> None:
    assert_same(other, engine.direct, ALL_BUT_DOCUMENTS, given)


def test_documents_as_text(engine: Any) -> None:
    document = '{"a":{"b":[1,{"c":"x"}],"t":"2020-01-01 00:00:00"}}'
    data = native(engine.direct, f"SELECT '{document}'::JSON")
    assert rows(data, query_formats={"JSON": "string"}) == [(document.encode(),)]


def test_a_path_through_another_paths_value_keeps_its_dots(engine: Any) -> None:
    data = native(engine.direct, """SELECT '{"a": 1, "a.b": 2}'::JSON""")
    assert rows(data) == [({"a": 1, "a.b": 2},)]


def test_all_blocks_of_a_large_result(engine: Any) -> None:
    """What is kept of one block says nothing of the next."""
    query = """SELECT number, toLowCardinality(toString(intDiv(number, 1000) + number % 3)),
        toDate('1970-01-01') + number % 20000, [toLowCardinality(toString(number))],
        if(number % 3 = 0, number::Variant(UInt64, String), ('n' || toString(number))::Variant(UInt64, String)),
        toDateTime(number * 40000, 'Europe/London')
        FROM numbers(30000) SETTINGS max_block_size = 1000"""
    found = rows(native(engine.direct, query))
    assert len(found) == 30000
    for number, word, day, words, variant, moment in found:
        assert word == str(number // 1000 + number % 3)
        assert day.toordinal() - 719163 == number % 20000
        assert words == [str(number)]
        assert variant == (number if number % 3 == 0 else f"n{number}")
        assert moment.timestamp() == number * 40000
