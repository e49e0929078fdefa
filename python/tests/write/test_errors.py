"""What doesn't fit is refused with the column, its type, the row and the value."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

import pytest
from write.cases import ENUM

from windrow import _core, exceptions

REFUSED: list[tuple[str, Any]] = [
    ("Int8", 128),
    ("Int8", -129),
    ("UInt8", -1),
    ("UInt16", 65536),
    ("Int64", 2**63),
    ("UInt64", 2**64),
    ("UInt64", -1),
    ("Int64", 2**200),
    ("Int128", 2**127),
    ("Int128", -(2**127) - 1),
    ("UInt128", -1),
    ("UInt128", 2**128),
    ("Int256", -(2**255) - 1),
    ("UInt256", 2**256),
    ("UInt256", -(2**200)),
    ("Int32", None),
    ("Int32", "x"),
    ("Int32", ""),
    ("Int32", []),
    ("Int32", 1e300),
    ("Float32", 1e300),
    ("Float64", "x"),
    ("Float64", None),
    ("String", None),
    ("String", 5),
    ("String", 0),
    ("String", "\ud800"),
    ("String", ["a"]),
    ("FixedString(2)", "abc"),
    ("FixedString(2)", b"abc"),
    ("FixedString(2)", b"a"),
    ("FixedString(2)", None),
    ("Date", dt.date(1969, 12, 31)),
    ("Date", dt.date(2149, 6, 7)),
    ("Date", "yesterday"),
    ("Date", 1.5),
    ("Date", 65536),
    ("DateTime", dt.datetime(1969, 12, 31, tzinfo=dt.timezone.utc)),
    ("DateTime", dt.date(2020, 1, 1)),
    ("DateTime", 2**32),
    ("DateTime64(9)", dt.datetime(9999, 1, 1, tzinfo=dt.timezone.utc)),
    ("DateTime64(3)", "x"),
    ("Time", "1:60:00"),
    ("Time", "1000:00:00"),
    ("Time", "1:00"),
    ("Time", "1:00:00."),
    ("Time", 3600000),
    ("Time64(3)", dt.timedelta(days=100)),
    ("Decimal(9, 2)", Decimal("10000000")),
    ("Decimal(9, 2)", 10**30),
    ("Decimal(9, 2)", float("nan")),
    ("Decimal(9, 2)", Decimal("Infinity")),
    ("Decimal(9, 2)", "1.2.3"),
    ("Decimal(9, 2)", "1e99999999999"),
    ("Decimal(9, 2)", True),
    ("Decimal(76, 0)", 10**76),
    ("UUID", "not a uuid"),
    ("UUID", "0" * 33),
    ("UUID", b"123"),
    ("UUID", 2**128),
    ("UUID", -1),
    ("UUID", 1.5),
    ("IPv4", "1.2.3"),
    ("IPv4", "::1"),
    ("IPv4", 2**32),
    ("IPv4", None),
    ("IPv6", "x"),
    (ENUM, "c"),
    (ENUM, 1),
    (ENUM, 1.5),
    (ENUM, None),
    ("Array(Int32)", None),
    ("Array(Int32)", 5),
    ("Array(Int32)", [1, None]),
    ("Array(Array(Int32))", [[1], 2]),
    ("Nullable(Int32)", "x"),
    ("Array(Nullable(Int32))", [None, "x"]),
    ("Tuple(Int32, String)", (1,)),
    ("Tuple(Int32, String)", (1, "a", 2)),
    ("Tuple(Int32, String)", None),
    ("Tuple(Int32, String)", {"a": 1}),
    ("Tuple(a Int32)", {"b": 1}),
    ("Tuple()", (1,)),
    ("Map(String, Int32)", [("a", 1)]),
    ("Map(String, Int32)", {"a": "x"}),
    ("Map(String, Int32)", {1: 1}),
    ("Map(String, Int32)", None),
    ("Nested(a Int32)", [{"b": 1}]),
    ("Variant(String, Int32)", 1.5),
    ("Variant(Int8, Int32)", 1),
    ("JSON", {1, 2}),
    ("JSON", {"a": object()}),
    ("Point", (1.0,)),
    ("QBit(Float32, 4)", [1.0]),
]


def one_row(type_name: str, value: Any) -> list[tuple[Any, ...]]:
    return [(0, 1), (1, value)]


@pytest.mark.parametrize(("type_name", "value"), REFUSED, ids=[f"{t}-{str(v)[:20]}" for t, v in REFUSED])
def test_column_type_row_and_value_are_named(type_name: str, value: Any) -> None:
    plain = _core.Encoder(["first", "the column"], ["UInt8", type_name])
    binary = _core.RowBinary(["first", "the column"], ["UInt8", type_name])
    calls = [
        lambda: plain.rows([(5, value)], 0, 1),
        lambda: plain.columns([[5], [value]], 0, 1),
        lambda: binary.encode([(5, value)]),
    ]
    for call in calls:
        with pytest.raises(exceptions.DataError) as caught:
            call()
        error = caught.value
        assert (error.column, error.type_name, error.row) == ("the column", type_name, 0)
        assert error.value is not None and error.value[:90] == repr(value)[:90]
        assert len(error.value) <= 100
        assert "`the column`" in str(error) and type_name in str(error) and "row 0" in str(error)


def test_rows_are_counted_from_the_start_of_the_data() -> None:
    encoder = _core.Encoder(["a"], ["Int32"])
    rows: list[Any] = [(number,) for number in range(3000)]
    rows[2500] = ("x",)
    for given in (rows, tuple(rows), NotAList(rows)):
        for start in (0, 300, 2500):
            with pytest.raises(exceptions.DataError) as caught:
                encoder.rows(given, start, 3000)
            assert caught.value.row == 2500
        assert len(encoder.rows(given, 0, 2500)) > 10_000
    with pytest.raises(exceptions.DataError) as caught:
        encoder.columns([[row[0] for row in rows]], 1000, 2600)
    assert caught.value.row == 2500


class NotAList:
    def __init__(self, rows: list[Any]) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: Any) -> Any:
        return self.rows[place]


def test_what_python_raised_is_the_cause() -> None:
    with pytest.raises(exceptions.DataError) as caught:
        _core.Encoder(["a"], ["Int32"]).rows([("x",)], 0, 1)
    assert isinstance(caught.value.__cause__, ValueError)


def test_an_interrupt_is_not_the_values_fault() -> None:
    class Interrupted:
        def __int__(self) -> int:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        _core.Encoder(["a"], ["Int32"]).rows([(Interrupted(),)], 0, 1)


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        ((1,), "1 values"),
        ((1, 2, 3), "3 values"),
        ([], "0 values"),
        ({"a": 1}, "no value for column `b`"),
        ({"a": 1, "b": 2, "c": 3}, "3 values"),
        (5, "len"),
        (None, "len"),
        ("abc", "3 values"),
    ],
)
def test_rows_of_another_shape_are_refused(row: Any, reason: str) -> None:
    names, types = ["a", "b"], ["Int32", "Int32"]
    for call in (
        lambda: _core.Encoder(names, types).rows([(1, 2), row], 0, 2),
        lambda: _core.RowBinary(names, types).encode([(1, 2), row]),
    ):
        with pytest.raises(exceptions.DataError, match=reason) as caught:
            call()
        assert caught.value.row == 1


def test_missing_rows_are_refused() -> None:
    encoder = _core.Encoder(["a"], ["Int32"])
    for data in ([(1,)], ((1,),), NotAList([(1,)])):
        with pytest.raises(exceptions.DataError, match="fewer rows"):
            encoder.rows(data, 0, 2)


@pytest.mark.parametrize("type_name", ["AggregateFunction(sum, UInt64)", "Nonsense", "Array(", ""])
def test_types_that_cannot_be_written_are_refused_at_once(type_name: str) -> None:
    for make in (_core.Encoder, _core.RowBinary):
        with pytest.raises(exceptions.DataError) as caught:
            make(["the column"], [type_name])
        assert (caught.value.column, caught.value.type_name) == ("the column", type_name)
    with pytest.raises(ValueError):
        _core.Encoder(["a", "b"], ["Int32"])
