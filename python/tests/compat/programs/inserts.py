"""Inserts of rows, columns, frames, arrays, Arrow and raw blocks."""

from __future__ import annotations

import datetime
import decimal
import ipaddress
import uuid
from typing import Any

from compat.program import Run, program, program_for

UTC = datetime.timezone.utc
SOME_ID = uuid.UUID("61f0c404-5cb3-11e7-907b-a6006ad3dba0")


@program
async def rows(run: Run) -> Any:
    await run.table("a UInt32, b String, c Nullable(Float64)")
    summary = await run.client.insert("t", [[1, "x", 1.5], [2, "y", None], (3, "", 0.0)])
    return summary, await run.stored()


@program
async def rows_with_column_names(run: Run) -> Any:
    await run.table("a UInt32, b String DEFAULT 'none', c Array(UInt8)")
    await run.client.insert("t", [[[1, 2], 7], [[], 8]], column_names=["c", "a"])
    return await run.stored()


@program
async def one_column_by_name(run: Run) -> Any:
    await run.table("a UInt32, b String DEFAULT 'none'")
    await run.client.insert("t", [[7], [8]], column_names="a")
    return await run.stored()


@program
async def columns(run: Run) -> Any:
    await run.table("a UInt32, b String")
    await run.client.insert("t", [[1, 2, 3], ["x", "y", "z"]], column_oriented=True)
    return await run.stored()


@program
async def types_given(run: Run) -> Any:
    await run.table("a UInt32, b Nullable(String)")
    await run.client.insert("t", [[1, "x"]], column_names=["a", "b"], column_type_names=["UInt32", "Nullable(String)"])
    kinds = [run.module("datatypes.registry").get_from_name(name) for name in ("UInt32", "Nullable(String)")]
    await run.client.insert("t", [[2, None]], column_names=["a", "b"], column_types=kinds)
    return await run.stored()


@program
async def another_database(run: Run) -> Any:
    await run.table("a UInt32")
    database = run.where["database"]
    await run.client.insert("t", [[1]], database=database)
    await run.client.insert(f"{database}.t", [[2]])
    await run.client.insert(f"`{database}`.`t`", [[3]])
    return await run.stored()


@program
async def odd_names(run: Run) -> Any:
    await run.client.command("CREATE TABLE `odd table` (`a b` UInt8, `c``d` String, `e.f` UInt8) ENGINE Memory")
    await run.client.insert("`odd table`", [[1, "x", 2]], column_names=["a b", "c`d", "e.f"])
    await run.client.insert("`odd table`", [[3, "y", 4]])
    return await run.stored("SELECT * FROM `odd table` ORDER BY ALL")


@program
async def computed_columns(run: Run) -> Any:
    await run.table("a UInt32, twice UInt32 MATERIALIZED a * 2, alias UInt32 ALIAS a + 1, e UInt8 EPHEMERAL 3, d UInt8 DEFAULT e")
    await run.client.insert("t", [[5, 9]], column_names=["a", "d"])
    return await run.raises(run.client.insert("t", [[6]])), await run.stored("SELECT *, twice, alias FROM t ORDER BY ALL")


@program
async def a_context(run: Run) -> Any:
    await run.table("a UInt32, b String")
    context = await run.client.create_insert_context("t", ["a", "b"])
    seen = [context.empty, context.table, context.column_names, [kind.name for kind in context.column_types]]
    await run.client.insert(data=[[1, "x"], [2, "y"]], context=context)
    seen.append(context.empty)
    await run.client.insert(data=[[3, "z"]], context=context)
    context.data = [[4, "w"]]
    summary = await run.client.data_insert(context)
    return seen, summary, await run.stored()


@program
async def no_data(run: Run) -> Any:
    await run.table("a UInt32")
    nothing = await run.raises(run.client.insert("t"))
    empty = await run.client.insert("t", [])
    without_table = await run.raises(run.client.insert(data=[[1]]))
    return nothing, empty, without_table, await run.stored()


@program
async def many_rows(run: Run) -> Any:
    await run.table("a UInt64, b String")
    await run.client.insert("t", [[number, str(number)] for number in range(100_000)])
    return await run.stored("SELECT count(), sum(a), sum(cityHash64(b)) FROM t")


@program
async def settings_of_an_insert(run: Run) -> Any:
    await run.table("a UInt32", more="ENGINE MergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = 10")
    for _ in range(2):
        await run.client.insert("t", [[1]], settings={"insert_deduplication_token": "same"})
    return await run.stored(), await run.raises(run.client.insert("t", [[1]], settings={"no_such_setting": 1}))


# Values as programs give them, the columns' type, and the values.
VALUES: dict[str, tuple[str, list[Any]]] = {
    "int8": ("Int8", [-128, 127, 0, True]),
    "uint64": ("UInt64", [0, 2**64 - 1, 7]),
    "int128": ("Int128", [-(2**127), 2**127 - 1, 0]),
    "uint256": ("UInt256", [0, 2**256 - 1]),
    "float32": ("Float32", [1.5, -0.0, float("inf"), 3]),
    "float64": ("Float64", [1.1, float("nan"), 2]),
    "nullable_float": ("Nullable(Float64)", [1.1, None, 2]),
    "decimal": ("Decimal(18, 4)", [decimal.Decimal("1.2345"), decimal.Decimal("-0.1"), 3]),
    "decimal256": ("Decimal(76, 10)", [decimal.Decimal("12345678901234567890.0123456789"), decimal.Decimal("-1")]),
    "nullable_decimal": ("Nullable(Decimal(9, 2))", [decimal.Decimal("1.25"), None]),
    "bool": ("Bool", [True, False, 1, 0]),
    "string": ("String", ["", "Grüße ✓", "a\tb\nc\0d", "x" * 300]),
    "string_of_bytes": ("String", [b"abc", b"\xff\x00"]),
    "nullable_string": ("Nullable(String)", ["x", None, ""]),
    "fixed_string": ("FixedString(4)", ["abcd", "ab\0\0", "ab", ""]),
    "fixed_string_of_bytes": ("FixedString(4)", [b"abcd", b"\xff\xfe\xfd\xfc"]),
    "low_cardinality": ("LowCardinality(String)", ["a", "b", "a", ""]),
    "low_cardinality_nullable": ("LowCardinality(Nullable(String))", ["a", None, "a"]),
    "date": ("Date", [datetime.date(2024, 2, 29), datetime.date(1970, 1, 1), datetime.date(2149, 6, 6)]),
    "date_of_date_time": ("Date", [datetime.datetime(2024, 2, 29, 23, 59)]),
    "date32": ("Date32", [datetime.date(1900, 1, 1), datetime.date(2299, 12, 31)]),
    "nullable_date": ("Nullable(Date)", [datetime.date(2024, 2, 29), None]),
    "date_time_aware": ("DateTime('UTC')", [datetime.datetime(2024, 7, 1, 12, tzinfo=UTC)]),
    "date_time_zone": ("DateTime('Asia/Tokyo')", [datetime.datetime(2024, 7, 1, 12, tzinfo=UTC)]),
    "date_time_naive": ("DateTime", [datetime.datetime(2024, 7, 1, 12)]),
    "date_time_naive_zone": ("DateTime('Asia/Tokyo')", [datetime.datetime(2024, 7, 1, 12)]),
    "date_time_of_int": ("DateTime('UTC')", [1700000000, 0]),
    "date_time64": ("DateTime64(6, 'UTC')", [datetime.datetime(2024, 7, 1, 12, 0, 0, 123456, tzinfo=UTC)]),
    "date_time64_before": ("DateTime64(3, 'UTC')", [datetime.datetime(1955, 7, 1, 12, 0, 0, 500000, tzinfo=UTC)]),
    "date_time64_naive": ("DateTime64(3)", [datetime.datetime(2024, 7, 1, 12, 0, 0, 987654)]),
    "date_time64_nanoseconds": ("DateTime64(9, 'UTC')", [datetime.datetime(2024, 7, 1, 12, 0, 0, 1, tzinfo=UTC)]),
    "nullable_date_time": ("Nullable(DateTime64(3, 'UTC'))", [None, datetime.datetime(2024, 7, 1, tzinfo=UTC)]),
    "time": ("Time", [datetime.timedelta(hours=1, seconds=5), datetime.timedelta(hours=-1)]),
    "time_of_times": ("Time", [datetime.time(12, 34, 56)]),
    "time_of_text": ("Time", ["12:34:56", "-01:00:00"]),
    "time64": ("Time64(3)", [datetime.timedelta(milliseconds=1500)]),
    "time64_of_times": ("Time64(3)", [datetime.time(12, 34, 56, 789000)]),
    "uuid": ("UUID", [SOME_ID, uuid.UUID(int=0)]),
    "uuid_of_text": ("UUID", [str(SOME_ID)]),
    "nullable_uuid": ("Nullable(UUID)", [SOME_ID, None]),
    "ipv4": ("IPv4", [ipaddress.IPv4Address("10.1.2.3"), ipaddress.IPv4Address("0.0.0.0")]),
    "ipv4_of_text": ("IPv4", ["10.1.2.4", "255.255.255.255"]),
    "ipv6": ("IPv6", [ipaddress.IPv6Address("2001:db8::1"), ipaddress.IPv6Address("::1")]),
    "ipv6_of_text": ("IPv6", ["2001:db8::1", "::1"]),
    "ipv6_mapped": ("IPv6", ["1.2.3.4", ipaddress.IPv4Address("1.2.3.4")]),
    "enum_names": ("Enum8('a' = -1, 'b' = 2)", ["a", "b"]),
    "enum_numbers": ("Enum8('a' = -1, 'b' = 2)", [-1, 2]),
    "nullable_enum": ("Nullable(Enum16('a' = 1000))", ["a", None]),
    "array": ("Array(UInt32)", [[1, 2], [], (3,)]),
    "array_of_arrays": ("Array(Array(String))", [[["a"], []], []]),
    "array_of_nullable": ("Array(Nullable(Int32))", [[1, None], []]),
    "tuple": ("Tuple(UInt8, String)", [(1, "a"), [2, "b"]]),
    "named_tuple": ("Tuple(n UInt8, s Nullable(String))", [{"n": 1, "s": "a"}, {"s": None, "n": 2}]),
    "map": ("Map(String, UInt8)", [{"a": 1, "b": 2}, {}]),
    "map_of_arrays": ("Map(UInt8, Array(String))", [{1: ["a"], 2: []}]),
    "point": ("Point", [(1.5, -2.5), (0, 0)]),
    "polygon": ("Polygon", [[[(0, 0), (1, 1), (0, 1)]]]),
    "simple_aggregate": ("SimpleAggregateFunction(sum, UInt64)", [1, 2]),
    "json_of_dicts": ("JSON", [{"a": 1, "b": {"c": "x"}}, {}, {"d": [1, 2]}]),
    "json_of_strings": ("JSON", ['{"a": 1}', "{}"]),
    "variant": ("Variant(UInt64, String)", [1, "x", None]),
    "dynamic": ("Dynamic", ["x", None, 5]),
}


@program_for(**VALUES)
async def values_of_type(run: Run, case: tuple[str, list[Any]]) -> Any:
    kind, values = case
    allowed = {"allow_suspicious_types_in_order_by": 1, "enable_time_time64_type": 1}
    await run.client.command(f"CREATE TABLE t (n UInt32, v {kind}) ENGINE Memory", settings={"enable_time_time64_type": 1})
    await run.client.insert("t", [[number, value] for number, value in enumerate(values)], settings=allowed)
    return await run.stored("SELECT * FROM t ORDER BY n")


@program_for(**VALUES)
async def columns_of_type(run: Run, case: tuple[str, list[Any]]) -> Any:
    kind, values = case
    await run.client.command(f"CREATE TABLE t (n UInt32, v {kind}) ENGINE Memory", settings={"enable_time_time64_type": 1})
    await run.client.insert("t", [list(range(len(values))), values], column_oriented=True)
    return await run.stored("SELECT * FROM t ORDER BY n")


# What a column's type does not take: the error's class, that nothing is stored, and that the client goes on.
REFUSED: dict[str, tuple[str, Any]] = {
    "text_for_int": ("UInt8", "x"),
    "none_for_int": ("Int32", None),
    "list_for_string": ("String", [1]),
    "text_for_float": ("Float64", "x"),
    "long_fixed_string": ("FixedString(2)", "abc"),
    "text_for_uuid": ("UUID", "not a uuid"),
    "text_for_ip": ("IPv4", "300.1.1.1"),
    "int_for_array": ("Array(UInt8)", 5),
    "text_for_date": ("Date", "yesterday"),
    "int_too_large": ("UInt8", 300),
}


@program_for(**REFUSED)
async def refused_values(run: Run, case: tuple[str, Any]) -> Any:
    kind, value = case
    await run.table(f"v {kind}")
    error = await run.raises(run.client.insert("t", [[value]]))
    if isinstance(error, Exception):
        return "refused", await run.stored()
    return "taken", await run.stored()


@program
async def too_few_values(run: Run) -> Any:
    await run.table("a UInt8, b UInt8")
    return await run.raises(run.client.insert("t", [[1]])), await run.stored()


@program
async def no_such_table(run: Run) -> Any:
    return await run.raises(run.client.insert("no_such_table", [[1]]))


@program
async def no_such_column(run: Run) -> Any:
    await run.table("a UInt8")
    return await run.raises(run.client.insert("t", [[1]], column_names=["b"]))


@program
async def a_constraint(run: Run) -> Any:
    await run.table("a UInt8, CONSTRAINT small CHECK a < 10")
    error = await run.raises(run.client.insert("t", [[1], [20]]))
    return type(error).__name__, getattr(error, "code", None), getattr(error, "name", None), await run.stored()


@program
async def raw_blocks(run: Run) -> Any:
    await run.table("a UInt8, b String")
    await run.client.raw_insert("t", insert_block="1,x\n2,y\n", fmt="CSV")
    await run.client.raw_insert("t", ["b", "a"], b"z\t3\n", fmt="TSV")
    await run.client.raw_insert("t", insert_block='{"a":4,"b":"w"}', fmt="JSONEachRow")
    summary = await run.client.raw_insert("t", ["a"], b"a\n5\n", fmt="CSVWithNames", settings={"input_format_csv_use_best_effort_in_schema_inference": 1})
    return summary, await run.stored()


@program
async def a_raw_block_from_a_file(run: Run) -> Any:
    await run.table("a UInt8, b String")
    (run.folder / "block.csv").write_text("1,x\n2,y\n")
    with (run.folder / "block.csv").open("rb") as file:
        await run.client.raw_insert("t", insert_block=file, fmt="CSV")
    return await run.stored()


@program
async def a_compressed_raw_block(run: Run) -> Any:
    import gzip

    await run.table("a UInt8, b String")
    await run.client.raw_insert("t", insert_block=gzip.compress(b"1,x\n"), fmt="CSV", compression="gzip")
    return await run.stored()


@program
async def a_bad_raw_block(run: Run) -> Any:
    await run.table("a UInt8")
    error = await run.raises(run.client.raw_insert("t", insert_block="x\n", fmt="CSV"))
    return type(error).__name__, error.code, error.name, await run.stored()


@program
async def a_file_by_the_tool(run: Run) -> Any:
    import gzip

    await run.table("a UInt8, b String")
    (run.folder / "rows.csv").write_text("a,b\n1,x\n2,y\n")
    (run.folder / "rows.csv.gz").write_bytes(gzip.compress(b"a,b\n3,z\n"))
    (run.folder / "rows.tsv").write_text("4\tw\n")
    tool = run.module("driver.tools").insert_file_async
    await tool(run.client, "t", str(run.folder / "rows.csv"))
    await tool(run.client, "t", str(run.folder / "rows.csv.gz"))
    await tool(run.client, "t", str(run.folder / "rows.tsv"), fmt="TSV", column_names=["a", "b"], database=run.where["database"])
    return await run.stored()
