"""Which formats patterns mean, compared with clickhouse-connect's; names of types; what options refuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from clickhouse_connect.datatypes import format as other_format
from clickhouse_connect.datatypes import registry as other_registry
from clickhouse_connect.datatypes.base import ch_read_formats, ch_write_formats
from read.results import block_of, rows

from windrow._shared import formats
from windrow.datatypes import format as our_format
from windrow.datatypes.dynamic import TypedVariant, typed_variant
from windrow.datatypes.registry import get_from_name
from windrow.exceptions import DataError, InternalError, ProgrammingError


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    yield
    our_format.clear_all_formats()
    other_format.clear_all_formats()


def by_name(found: dict[Any, str]) -> dict[str, str]:
    named = {data_type.__name__: form for data_type, form in found.items()}
    return {name: form for name, form in named.items() if name in formats.VALID_FORMATS}


STEPS = [
    [("set_default_formats", ("IPv*", "string"))],
    [("set_default_formats", ("ip", "string", "UUID", "string"))],
    [("set_read_format", ("Int*", "string"))],
    [("set_write_format", ("date", "int"))],
    [("set_default_formats", ("*64", "native")), ("clear_default_format", ("Int",))],
    [("set_read_format", ("*", "native")), ("clear_read_format", ("*Time*",)), ("clear_write_format", ("UUID",))],
    [("set_read_format", ("Tuple", "tuple")), ("clear_all_formats", ())],
]


@pytest.mark.parametrize("steps", STEPS, ids=str)
def test_defaults(steps: list[tuple[str, tuple[str, ...]]]) -> None:
    for name, arguments in steps:
        getattr(our_format, name)(*arguments)
        getattr(other_format, name)(*arguments)
    assert formats.read_formats() == by_name(ch_read_formats)
    assert formats.write_formats() == by_name(ch_write_formats)


@pytest.mark.parametrize("arguments", [("NoSuchType", "string"), ("UUID", "int"), ("UUID",), ("I*", "signed")], ids=str)
def test_refused_as_there(arguments: tuple[str, ...]) -> None:
    with pytest.raises(other_format.ProgrammingError):
        other_format.set_default_formats(*arguments)
    with pytest.raises(ProgrammingError, match="No type|can't be given as|no format"):
        our_format.set_default_formats(*arguments)


def test_the_query_wins_over_the_process_and_the_column_over_both() -> None:
    data = block_of(1, ("a", "IPv4", b"\4\3\2\1"), ("b", "IPv4", b"\4\3\2\1"), ("c", "Date", b"\1\0"))
    our_format.set_read_format("IPv4", "string")
    our_format.set_read_format("Date", "int")
    assert rows(data) == [("1.2.3.4", "1.2.3.4", 1)]
    assert rows(data, query_formats={"IP*": "int"}) == [(16909060, 16909060, 1)]
    assert rows(data, query_formats={"IP*": "int"}, column_formats={"b": "string"}) == [(16909060, "1.2.3.4", 1)]
    assert rows(data, column_formats={"b": {"IPv": "int"}}) == [("1.2.3.4", 16909060, 1)]


TYPES = [
    "UInt8", "Nullable(String)", "LowCardinality(Nullable(String))", "Array(Array(UInt8))", "DateTime64(3, 'UTC')",
    "Tuple(a UInt8, b String)", "Tuple(UInt8, String)", "Array(Tuple(a UInt8, b Tuple(c String)))", "Tuple()",
    "Nullable(Tuple(a UInt8))", "Map(String, Array(UInt8))", "Enum8('b c' = -2, 'a' = 1)", "Decimal(9, 2)",
    "FixedString(3)",
    "JSON", "JSON(a UInt32, `b.c` String)", "JSON(max_dynamic_paths = 8, a UInt32)", "Variant(String, UInt8)",
    "Dynamic",
    "Dynamic(max_types=3)", "Nested(a UInt8, b String)", "Point", "SimpleAggregateFunction(sum, UInt64)", "IntervalDay",
    "AggregateFunction(sum, UInt64)", "QBit(Float32, 3)", "Bool", "IPv6", "Nullable(Nothing)", "Time64(3)",
]  # fmt: skip


@pytest.mark.parametrize("name", TYPES)
def test_names_of_types(name: str) -> None:
    ours, theirs = get_from_name(name), other_registry.get_from_name(name)
    assert ours.name == theirs.name
    assert (ours.nullable, ours.low_card) == (theirs.nullable, theirs.low_card) or "Nothing" in name
    if theirs.base_type not in ("BigDecimal",):
        assert ours.base_type == theirs.base_type
    assert get_from_name(name) is ours


def test_parts_of_types() -> None:
    pair = get_from_name("Tuple(a UInt8, `b c` Nullable(String))")
    assert pair.element_names == ("a", "b c")
    assert [element.name for element in pair.element_types] == ["UInt8", "Nullable(String)"]
    inner = get_from_name("Array(DateTime64(3, 'UTC'))").element_type
    assert inner is not None and inner.arguments == ("3", "'UTC'")


def test_no_type() -> None:
    with pytest.raises(InternalError, match="NoSuchType"):
        get_from_name("NoSuchType(1)")


def test_values_with_their_type() -> None:
    assert typed_variant([1], "Array(UInt8)") == TypedVariant([1], "Array(UInt8)")
    for value, name in ((None, "UInt8"), (1, "NoSuchType")):
        with pytest.raises(DataError):
            typed_variant(value, name)


@pytest.mark.parametrize(
    "arguments",
    [{"tz_mode": "other"}, {"query_tz": "No/Where"}, {"column_tzs": {"x": "No/Where"}}],
    ids=str,
)
def test_options_that_are_refused(arguments: dict[str, Any]) -> None:
    with pytest.raises(ProgrammingError):
        rows(b"", **arguments)


def test_a_zone_that_nobody_knows() -> None:
    with pytest.raises(ProgrammingError, match="the zone No/Where, which isn't known"):
        rows(block_of(1, ("x", "DateTime('No/Where')", b"\0\0\0\0")))
