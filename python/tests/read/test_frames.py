"""NumPy arrays and pandas frames: shapes, dtypes and values are those that clickhouse-connect makes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import clickhouse_connect
import numpy as np
import pandas as pd
import pytest
from harness.endpoint import Endpoint
from read import expressions
from read.results import SETTINGS, blocks, native, told

from windrow._shared.frames import NumpyFrames, PandasFrames
from windrow.exceptions import ProgrammingError

# NumPy has no unit for tenths of a second.
TENTHS = (", 1) + number", ", 8) + number")
SCALARS = [expression for expression in expressions.SCALARS if not expression.endswith(TENTHS)]
FLAT = [*SCALARS, *map(expressions.nullable, SCALARS), *expressions.LOW_CARDINALITY, "NULL"]
NESTED = [*expressions.CONTAINERS, *expressions.DOCUMENTS]

OF_ALL: list[dict[str, Any]] = [
    {},
    {"use_none": False},
    {"max_str_len": 3},
    {"encoding": "latin-1"},
    {"query_formats": {"String": "bytes", "FixedString": "string", "UUID": "string", "IP": "string"}},
    {"query_formats": {"UInt64": "signed"}},
]
OF_NUMPY = [*OF_ALL, {"use_none": False, "max_str_len": 3}, {"query_formats": {"Date": "int", "Int": "string"}}]
OF_PANDAS = [
    *OF_ALL,
    {"tz_mode": "aware"},
    {"tz_mode": "schema"},
    {"query_tz": "America/New_York"},
    {"query_tz": "UTC", "tz_mode": "aware"},
    {"use_extended_dtypes": False},
    {"use_extended_dtypes": False, "max_str_len": 3},
    {"use_extended_dtypes": False, "query_tz": "America/New_York"},
]
FRAME_ARGUMENTS = ("use_none", "max_str_len", "use_extended_dtypes")


@pytest.fixture(scope="module")
def other(engine: Any) -> Any:
    direct: Endpoint = engine.direct
    client = clickhouse_connect.get_client(
        host=direct.host, port=direct.port, username=direct.user, password=direct.password, tz_source="server"
    )
    yield client
    client.close()


def select(chosen: list[str]) -> str:
    return f"SELECT {', '.join(f'{expression} AS c{at}' for at, expression in enumerate(chosen))} FROM numbers(3)"


def made(frames: Any, endpoint: Endpoint, query: str, given: dict[str, Any]) -> Any:
    reading = {name: value for name, value in given.items() if name not in FRAME_ARGUMENTS[1:]}
    found = blocks(native(endpoint, query), **reading)
    arguments = {name: given[name] for name in FRAME_ARGUMENTS if name in given}
    return frames(found[0].names, found[0].type_names, **arguments).whole(found)


def seen(value: Any, outermost: bool = True) -> Any:
    """As `told`, but inside of containers NumPy's scalars are Python's values, and pandas' NA is None."""
    if value is pd.NA or value is pd.NaT or value is None:
        return repr(value) if outermost else "None"
    if isinstance(value, (np.datetime64, np.timedelta64)):
        return "NaT" if np.isnat(value) else (str(value.dtype), str(value))
    if isinstance(value, np.generic):
        return seen(value.item(), outermost)
    if isinstance(value, Decimal):
        return value  # 0 and 0E-9 are equal
    if isinstance(value, (list, tuple)):
        return type(value).__name__, [seen(element, False) for element in value]
    if isinstance(value, dict):
        return "dict", sorted((str(key), str(seen(element, False))) for key, element in value.items())
    return told(value)


@pytest.mark.parametrize("given", OF_NUMPY, ids=str)
def test_arrays_of_many_columns(other: Any, engine: Any, given: dict[str, Any]) -> None:
    chosen = [*FLAT, *([] if "max_str_len" in given else NESTED)]
    expected = other.query_np(select(chosen), settings=SETTINGS, **given)
    found = made(NumpyFrames, engine.direct, select(chosen), given)
    assert found.shape == expected.shape and found.dtype.names == expected.dtype.names
    for at, expression in enumerate(chosen):
        name = f"c{at}"
        assert found.dtype[name] == expected.dtype[name], expression
        assert_equal(list(found[name]), list(expected[name]), expression)


def assert_equal(ours: list[Any], theirs: list[Any], expression: str) -> None:
    """Three differences are meant.

    In containers times and NULL are Python's, not NumPy's or pandas' (test_values compares them). NULL of a number that
    is shown as text is None, not the text None. A column without any value has no type to speak of.
    """
    in_containers = expression in NESTED and any(word in expression for word in ("toDate", "NULL", "2020-01-01"))
    if in_containers or expression == "NULL":
        return
    theirs = [None if mine is None and value == "None" else value for value, mine in zip(theirs, ours, strict=True)]
    assert [seen(value) for value in ours] == [seen(value) for value in theirs], expression


ALONE = [
    "number", "number, number + 1 AS b", "number, toInt32(number) AS b", "'x' AS a, 'y' AS b", "number AS a, 'x' AS b",
    "toDate(1) AS a, toDate(2) AS b", "[1] AS a, [2] AS b", "[1, 2] AS a", "[[1], [2, 3]] AS a", "(1, 2) AS a",
    "number / 2 AS a, number / 3 AS b", "true AS a", "if(number = 1, NULL, true) AS a",
    "toTime64('01:02:03.5', 3) AS t",
    "if(number = 1, NULL, number) AS a", "if(number = 1, NULL, number) AS a, number AS b", "map('a', 1) AS a",
    "[1, 2, 3]::QBit(Float32, 3) AS a",
]  # fmt: skip


@pytest.mark.parametrize("columns", ALONE)
def test_shapes_of_arrays(other: Any, engine: Any, columns: str) -> None:
    query = f"SELECT {columns} FROM numbers(3)"
    expected, found = other.query_np(query, settings=SETTINGS), made(NumpyFrames, engine.direct, query, {})
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert seen(found.tolist()) == seen(expected.tolist())
    found[:] = found[::-1].copy()  # it may be written to


@pytest.mark.parametrize("given", OF_PANDAS, ids=str)
def test_frames(other: Any, engine: Any, given: dict[str, Any]) -> None:
    chosen = [*FLAT, *([] if given.get("use_extended_dtypes") is False else NESTED)]
    expected = other.query_df(select(chosen), settings=SETTINGS, **given)
    found = made(PandasFrames, engine.direct, select(chosen), given)
    assert list(found) == list(expected)
    for at, expression in enumerate(chosen):
        ours, theirs = found[f"c{at}"], expected[f"c{at}"]
        assert repr(ours.dtype) == repr(theirs.dtype), expression
        assert type(ours.array) is type(theirs.array), expression
        assert_equal(list(ours), list(theirs), expression)
        ours.iloc[0] = ours.iloc[1]  # it may be written to


def test_several_blocks(engine: Any) -> None:
    query = """SELECT number, toString(number) AS s, if(number % 3 = 0, NULL, number) AS n,
        toLowCardinality(if(number % 5 = 0, NULL, toString(number % 7))) AS l, [number] AS a,
        if(number % 2 = 0, NULL, toDateTime(number, 'Asia/Tokyo')) AS t, if(number % 4 = 0, NULL, 'é') AS e
        FROM numbers(1000) SETTINGS max_block_size = 100"""
    found = blocks(native(engine.direct, query))
    assert len(found) == 10
    frames = PandasFrames(found[0].names, found[0].type_names)
    whole, parts = frames.whole(found), [frames.block(block) for block in found]
    pd.testing.assert_frame_equal(whole, pd.concat(parts, ignore_index=True))
    assert list(whole["number"]) == list(range(1000)) and list(whole["s"]) == list(map(str, range(1000)))
    assert [number for number, null in enumerate(whole["n"].isna()) if null] == list(range(0, 1000, 3))
    assert list(whole["l"])[1:8] == ["1", "2", "3", "4", pd.NA, "6", "0"]
    assert list(whole["a"]) == [[number] for number in range(1000)]
    assert [str(value) for value in whole["t"][:2]] == ["NaT", "1970-01-01 09:00:01+09:00"]
    arrays = NumpyFrames(found[0].names, found[0].type_names)
    table, pieces = arrays.whole(found), [arrays.block(block) for block in found]
    assert table.dtype == pieces[0].dtype
    assert table.tolist() == [row for piece in pieces for row in piece.tolist()]
    assert table["a"][999] == [999] and table["n"][3] is None and table["l"][5] is None


def test_texts_that_are_no_texts(engine: Any) -> None:
    """A character cut in two by the end of a value is none, though the bytes of all values together are fine."""
    query = "SELECT if(number = 0, unhex('c3'), unhex('a9')) AS x FROM numbers(2)"
    assert list(made(PandasFrames, engine.direct, query, {})["x"]) == ["c3", "a9"]
    assert list(made(PandasFrames, engine.direct, query, {"encoding": "latin-1"})["x"]) == ["Ã", "©"]


def test_frames_outlive_their_blocks(engine: Any) -> None:
    query = "SELECT toString(number) AS s, number AS n, toLowCardinality(toString(number % 3)) AS l FROM numbers(50000)"
    frame = made(PandasFrames, engine.direct, query, {})
    for _ in range(20):
        made(NumpyFrames, engine.direct, query, {})
    assert list(frame["s"]) == list(map(str, range(50000)))
    assert list(frame["n"]) == list(range(50000)) and list(frame["l"][:4]) == ["0", "1", "2", "0"]


def test_nothing() -> None:
    assert NumpyFrames((), ()).whole([]).shape == (0,)
    assert PandasFrames((), ()).whole([]).empty


@pytest.mark.parametrize("frames", [NumpyFrames, PandasFrames])
@pytest.mark.parametrize("type_name", ["DateTime64(1)", "Time64(8)"])
def test_units_that_numpy_does_not_have(engine: Any, frames: Any, type_name: str) -> None:
    with pytest.raises(ProgrammingError, match="Cannot use"):
        made(frames, engine.direct, f"SELECT CAST(0, '{type_name}') AS x", {})
