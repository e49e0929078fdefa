"""Results as Arrow, compared with what ClickHouse's own FORMAT ArrowStream gives for the same query: schema and values."""

from __future__ import annotations

import gc
import math
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from windrow import _core
from windrow.exceptions import DatabaseError

NATIVE = {
    "client_protocol_version": 54405,
    "output_format_native_use_flattened_dynamic_and_json_serialization": 1,
}
SETTINGS = {
    "allow_experimental_nullable_tuple_type": 1,
    "allow_experimental_qbit_type": 1,
    "allow_suspicious_low_cardinality_types": 1,
    "allow_suspicious_variant_types": 1,
    "enable_time_time64_type": 1,
    "session_timezone": "Asia/Istanbul",
}
# The queries whose answers the decoder's own tests keep.
GOLDEN = Path(__file__).parents[3] / "clients/results/tests/golden/cases.txt"
CASES = {name: query for name, query in (line.split("\t") for line in GOLDEN.read_text().splitlines())}
REFUSED = {"qbit"}
# Arrow itself wants texts to be UTF-8 and times of a day not to be negative; ClickHouse has no such wish.
NOT_VALID = {"strings", "times_of_day"}
JSON_VALUES = [
    "-1::Int256", "1.5::Float32", "1e100", "inf", "-inf", "nan", "1e20", "1e21", "1e-6", "1e-7", "123456.789", "-0.",
    "0.1 + 0.2", "5e-324", "toFloat32(0.1)", "toFloat32(1e10)", "toBFloat16(1.1)", "18446744073709551615",
    "toDate('2020-01-01')", "toDate32('1920-01-01')", "toDate32('2299-12-31')",
    "toDateTime('2020-01-01 00:00:00', 'Asia/Tokyo')", "toDateTime('2020-07-01 00:00:00', 'Europe/Berlin')",
    "toDateTime64('2020-01-01 00:00:00.123', 3)", "toDateTime64('1969-12-31 23:59:59.5', 1, 'UTC')",
    "toDateTime64('1900-01-01 00:00:00.1', 3, 'Europe/Berlin')",
    "toDecimal64(-1.5, 3)", "toDecimal64(-0.05, 3)", "toDecimal32(5, 0)", "toDecimal32(0, 3)",
    "toDecimal256('-123456789012345678901234567890.00100', 5)",
    "'61f0c404-5cb3-11e7-907b-a6006ad3dba0'::UUID", "'1.2.3.4'::IPv4", "'::1'::IPv6", "'::ffff:1.2.3.4'::IPv6",
    "'2001:db8:0:0:1:0:0:1'::IPv6", "'::1.2.3.4'::IPv6", "'a\"'::Enum8('a\"' = -1)", "'b'::Enum16('b' = -300)",
    "'ab'::FixedString(3)", "true", "[1, NULL]", "[1.5, nan]", "['a']", "[[true], []]", "map('a', 1)", "map(1, 2)",
    "map(toDate('2020-01-01'), [1])", "(1, 'a')", "(1, NULL)::Tuple(x UInt8, y Nullable(String))", "tuple()",
    "toLowCardinality('l')", "INTERVAL 1 DAY", "'01:02:03'::Time", "'-123:02:03.5'::Time64(3)", "[(1, 2)]::Ring",
    "['{\"a\": 1}'::JSON]", "unhex('00011f7f22412f5c08090a0c0d')", "concat(unhex('e280a8'), 'x', unhex('e280a9e2808a'))",
    "'{\"a\":{\"b\":[{\"c\":null},{}]}}'::JSON(d Date, e DateTime, f Nullable(Float64), g Array(String))",
    "'{}'::JSON(p Variant(UInt8), q Dynamic, r Nullable(UInt8), s.t.u String, s.t.v UInt8)",
    "'{\"x\":{\"y\":{\"z\":1},\"w\":2},\"x-\":1,\"xa\":3,\"x.q\":[]}'::JSON",
]  # fmt: skip


def answer_to(direct: Any, query: str, settings: dict[str, Any]) -> bytes:
    reply = direct.request(None, query.encode(), {**SETTINGS, **settings})
    assert reply.status == 200, reply.text
    return reply.body


def blocks_of(direct: Any, query: str) -> list[_core.Block]:
    answer = answer_to(direct, f"{query} FORMAT Native", NATIVE)
    return _core.Decoder.of_bytes(answer, _core.ReadOptions()).advance(2, 1 << 40)


def theirs(direct: Any, query: str, **settings: int) -> pa.Table:
    answer = answer_to(direct, f"{query} FORMAT ArrowStream", settings)
    return pa.ipc.open_stream(answer).read_all()


def ours(direct: Any, query: str, **options: Any) -> pa.Table:
    return pa.table(_core.ArrowStream(blocks_of(direct, query), timezone="Asia/Istanbul", **options))


def comparable(column: pa.ChunkedArray) -> Any:
    """Values of a column, with NaN as a text, and texts that are not UTF-8 as bytes."""
    if pa.types.is_string(column.type):
        return column.cast(pa.binary()).to_pylist()
    values = column.to_pylist()
    return ["nan" if isinstance(value, float) and math.isnan(value) else value for value in values]


def assert_same(mine: pa.Table, other: pa.Table) -> None:
    assert mine.schema == other.schema
    for name in other.column_names:
        assert comparable(mine[name]) == comparable(other[name]), name


@pytest.mark.parametrize("name", [name for name in CASES if name not in REFUSED])
def test_schema_and_values_are_those_of_clickhouse(direct: Any, name: str) -> None:
    mine = ours(direct, CASES[name])
    mine.validate(full=name not in NOT_VALID)
    assert_same(mine, theirs(direct, CASES[name]))


@pytest.mark.parametrize("name", [name for name in CASES if name not in REFUSED])
def test_with_dictionaries_and_binary_strings(direct: Any, name: str) -> None:
    mine = ours(direct, CASES[name], string_as_string=False, low_cardinality_as_dictionary=True)
    mine.validate(full=name not in NOT_VALID)
    settings = {"output_format_arrow_string_as_string": 0, "output_format_arrow_low_cardinality_as_dictionary": 1}
    assert_same(mine, theirs(direct, CASES[name], **settings))


def test_every_precision_has_its_unit(direct: Any) -> None:
    times = [f"toDateTime64('2024-01-01 00:00:00.123456789', {p}, 'UTC') AS t{p}" for p in range(10)]
    days = [f"'01:02:03.123456789'::Time64({p}) AS d{p}" for p in range(10)]
    units = "Nanosecond Microsecond Millisecond Second Minute Hour Day Week Month Quarter Year".split()
    intervals = [f"toInterval{unit}(-3) AS {unit}" for unit in units]
    query = f"SELECT {', '.join(times + days + intervals)}"
    assert_same(ours(direct, query), theirs(direct, query))


@pytest.mark.parametrize("value", JSON_VALUES)
def test_dynamic_values_are_the_text_that_clickhouse_writes(direct: Any, value: str) -> None:
    query = f"SELECT materialize({value})::Dynamic AS d"
    mine, other = ours(direct, query), theirs(direct, query)
    assert mine.schema == other.schema
    assert [c.storage.cast(pa.binary()).to_pylist() for c in mine["d"].chunks] == [
        c.storage.cast(pa.binary()).to_pylist() for c in other["d"].chunks
    ]


def test_what_clickhouse_refuses_is_refused_with_its_code(direct: Any) -> None:
    with pytest.raises(DatabaseError, match=r"Method getDataAt is not supported for Tuple\(FixedString\(3\)") as caught:
        ours(direct, CASES["qbit"])
    assert (caught.value.code, caught.value.name) == (48, "NOT_IMPLEMENTED")


def test_chosen_columns_only(direct: Any) -> None:
    blocks = blocks_of(direct, "SELECT 1 AS a, 'x' AS b, 2.5 AS c")
    table = pa.table(_core.ArrowStream(blocks, columns=[2, 0]))
    assert table.to_pydict() == {"c": [2.5], "a": [1]}
    with pytest.raises(IndexError):
        _core.ArrowStream(blocks, columns=[3])
    with pytest.raises(ValueError, match="no schema"):
        _core.ArrowStream([])


def test_a_block_is_taken_by_other_libraries(direct: Any) -> None:
    query = "SELECT number AS n, toString(number) AS s, if(number = 1, NULL, number) AS o FROM numbers(3)"
    (block,) = blocks_of(direct, query)
    expected = {"n": [0, 1, 2], "s": ["0", "1", "2"], "o": [0, None, 2]}
    assert pa.record_batch(block).to_pydict() == expected
    assert pa.schema(block).names == ["n", "s", "o"]
    assert polars.DataFrame(block).to_dict(as_series=False) == expected
    frame = pandas.DataFrame.from_arrow(_core.ArrowStream([block]))
    assert frame["s"].tolist() == ["0", "1", "2"]


def test_memory_of_the_block_is_used_and_kept(direct: Any) -> None:
    (block,) = blocks_of(direct, "SELECT number AS n, toString(number) AS s FROM numbers(1000)")
    address = block.parts(0).data.address
    batch = pa.record_batch(block)
    assert batch["n"].buffers()[1].address == address
    assert batch["s"].buffers()[2].address == block.parts(1).data.address
    column = batch["n"]
    del block, batch
    gc.collect()
    assert pc.sum(column).as_py() == 499_500


def test_a_stream_can_be_read_more_than_once_and_left_unread(direct: Any) -> None:
    stream = _core.ArrowStream(blocks_of(direct, "SELECT number FROM numbers(10) SETTINGS max_block_size = 3"))
    capsules = [stream.__arrow_c_stream__() for _ in range(3)]
    assert pa.table(stream).num_rows == pa.table(stream).num_rows == 10
    reader = pa.RecordBatchReader.from_stream(stream)
    assert reader.read_next_batch().num_rows == 3
    reader.close()
    del capsules
