"""The columns of a table are asked for once in a while; a change of the table is seen all the same."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Callable
from decimal import Decimal
from itertools import permutations
from typing import Any

import clickhouse_connect
import numpy
import pandas
import pytest

import windrow
from windrow import exceptions
from windrow._shared.tables import REMEMBERED_S, Remembered, dedups


async def describes(client: Any, table: str) -> int:
    """How often the client has asked for this table's columns."""
    return int(client.asked.count(table))


async def counting(where: dict[str, Any]) -> Any:
    client = await windrow.get_async_client(**where)
    client.asked = []
    send = client._transport.send

    async def counted(request: Any) -> Any:
        body = request.body if isinstance(request.body, bytes) else b""
        if body.startswith(b"DESCRIBE TABLE"):
            client.asked.append(body.split(b"`")[1].decode())
        return await send(request)

    client._transport.send = counted
    return client


async def test_columns_are_asked_for_once(where: dict[str, Any], direct: Any) -> None:
    direct.sql("CREATE TABLE t (id Int32, s String) ENGINE = Memory")
    client = await counting(where)
    for number in range(5):
        await client.insert("t", [(number, "x")])
    assert await describes(client, "t") == 1
    await client.command("ALTER TABLE t ADD COLUMN n Int8")
    await client.insert("t", [(5, "x", 1)])
    assert await describes(client, "t") == 2
    await client.insert(
        "t", [(6, "x", 1)], column_type_names=["Int32", "String", "Int8"], column_names=["id", "s", "n"]
    )
    assert await describes(client, "t") == 2
    await client.close()


@pytest.mark.parametrize(
    "change, row",
    [
        ("DROP COLUMN s", (1,)),
        ("ADD COLUMN n Int8", (1, "x", 2)),
        ("MODIFY COLUMN id String", ("one", "x")),
        ("RENAME COLUMN s TO r", (1, "x")),
    ],
)
async def test_a_change_by_somebody_else_is_seen(where: dict[str, Any], direct: Any, change: str, row: Any) -> None:
    direct.sql("CREATE TABLE t (k Int8 DEFAULT 0, id Int32, s String) ENGINE = MergeTree ORDER BY k")
    direct.sql("ALTER TABLE t DROP COLUMN IF EXISTS nothing")
    async with await windrow.get_async_client(**where) as client:
        await client.insert("t", [(0, 0, "zero")])
        direct.sql(f"ALTER TABLE t {change}")
        await client.insert("t", [(0, *row)])
    assert direct.sql("SELECT count() FROM t").strip() == "2"


async def test_an_error_that_has_other_reasons_stays(where: dict[str, Any], direct: Any) -> None:
    direct.sql("CREATE TABLE t (id Int32, CONSTRAINT small CHECK id < 10) ENGINE = Memory")
    client = await counting(where)
    await client.insert("t", [(1,)])
    with pytest.raises(exceptions.DatabaseError) as raised:
        await client.insert("t", [(100,)])
    assert raised.value.code == 469 and raised.value.name == "VIOLATED_CONSTRAINT"
    with pytest.raises(exceptions.DataError) as wrong:
        await client.insert("t", [("x",)])
    assert (wrong.value.column, wrong.value.type_name, wrong.value.row) == ("id", "Int32", 0)
    assert direct.sql("SELECT count() FROM t").strip() == "1"
    await client.close()


def test_what_is_remembered_is_forgotten_in_time() -> None:
    now = [0.0]
    known = Remembered(lambda: now[0])
    known.put("t", 1)
    assert known.get("t") == 1
    now[0] = REMEMBERED_S + 1
    assert known.get("t") is None


@pytest.mark.parametrize(
    "definition, recognises",
    [
        (
            "CREATE TABLE t (a Int8) ENGINE = MergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = 100",
            True,
        ),
        (
            "CREATE TABLE t (a Int8) ENGINE = MergeTree ORDER BY a SETTINGS non_replicated_deduplication_window = 0",
            False,
        ),
        ("CREATE TABLE t (a Int8) ENGINE = MergeTree ORDER BY a SETTINGS index_granularity = 8192", False),
        ("CREATE TABLE t (a Int8) ENGINE = ReplicatedMergeTree('/a', 'b') ORDER BY a", True),
        (
            "CREATE TABLE t (a Int8) ENGINE = ReplicatedMergeTree SETTINGS replicated_deduplication_window = 0",
            False,
        ),
        ("CREATE TABLE t (a Int8) ENGINE = Distributed(c, d, t)", False),
        ("CREATE TABLE t (a Int8) ENGINE = Memory", False),
        ("", False),
    ],
)
def test_which_tables_recognise_repetitions(definition: str, recognises: bool) -> None:
    assert dedups(definition) is recognises


WAYS: dict[str, Callable[[Any, list[tuple[Any, ...]]], Any]] = {
    "rows": lambda client, rows: client.insert("t", rows),
    "many rows": lambda client, rows: client.insert("t", rows * 3000),
    "columns": lambda client, rows: client.insert("t", list(zip(*rows)), column_oriented=True),
    "a frame": lambda client, rows: client.insert_df("t", pandas.DataFrame(rows, columns=["n", "e"])),
    "an array": lambda client, rows: client.insert("t", numpy.array(rows, dtype=[("n", float), ("e", "O")])),
    "dicts": lambda client, rows: client.insert("t", [dict(zip(("n", "e"), row)) for row in rows]),
}


@pytest.mark.parametrize("way", [*WAYS, "a context"])
async def test_each_way_to_insert_sees_a_change(where: dict[str, Any], direct: Any, way: str) -> None:
    """Of an Enum ClickHouse compares no names, of a number the type alone."""
    create = "CREATE OR REPLACE TABLE t (n {}, e {}) ENGINE = Memory"
    direct.sql(create.format("Int32", "Enum8('a' = 1, 'b' = 2)"))
    async with await windrow.get_async_client(**where) as client:
        context = await client.create_insert_context("t")
        direct.sql(create.format("Float64", "Enum8('b' = 1, 'a' = 2)"))
        rows = [(0.5, "a"), (-3.0, "b")]
        if way == "a context":
            await client.insert(data=rows, context=context)
        else:
            await WAYS[way](client, rows)
    assert direct.sql("SELECT DISTINCT n, e FROM t ORDER BY n").splitlines() == ["-3\tb", "0.5\ta"]


@pytest.mark.parametrize(
    ("was", "now", "value", "stored"),
    [
        ("Int32", "Float64", 0.5, "0.5"),
        ("Int32", "Int64", 3, "3"),
        ("Date", "DateTime('UTC')", datetime.datetime(2024, 3, 4, 5, 6, tzinfo=datetime.timezone.utc), "2024-03-04 05:06:00"),
        ("Decimal(18, 3)", "Decimal(18, 6)", Decimal("3.141592"), "3.141592"),
        ("Enum8('a' = 1, 'b' = 2)", "Enum8('b' = 1, 'a' = 2)", "a", "a"),
    ],
)
async def test_a_change_that_a_gateway_has_not_seen_either(
    gateway_where: dict[str, Any], direct: Any, was: str, now: str, value: Any, stored: str
) -> None:
    direct.sql(f"CREATE TABLE t (n Int8, v {was}) ENGINE = MergeTree ORDER BY n")
    async with await windrow.get_async_client(**gateway_where) as client:
        for number in range(2):
            await client.insert("t", [(number, value)], settings={"async_insert": 1})
        direct.sql(f"CREATE OR REPLACE TABLE t (n Int8, v {now}) ENGINE = MergeTree ORDER BY n")
        await client.insert("t", [(2, value)], settings={"async_insert": 1})
    assert direct.sql("SELECT n, v FROM t").strip() == f"2\t{stored}"


async def test_a_header_that_is_spelt_otherwise_is_no_change(where: dict[str, Any], direct: Any) -> None:
    """What the server words otherwise than it describes it goes as a block."""
    direct.sql("CREATE TABLE t (v Tuple(a Int32, b String)) ENGINE = Memory")
    client = await counting(where)
    for number in range(3):
        await client.insert("t", [((number, "x"),)], settings={"print_pretty_type_names": 1})
    assert direct.sql("SELECT count() FROM t WHERE v.b = 'x'").strip() == "3"
    await client.close()


# Types between which a table's column may change.
NUMBERS = [
    "Int32", "Int64", "UInt8", "UInt256", "Float32", "Float64", "Bool", "Decimal(18, 3)", "Decimal(18, 6)",
    "Nullable(Float64)", "SimpleAggregateFunction(sum, Float64)",
]  # fmt: skip
TIMES = [
    "Date", "Date32", "DateTime", "DateTime('Asia/Tokyo')", "DateTime64(3)", "DateTime64(6)", "DateTime64(3, 'Asia/Tokyo')",
    "Nullable(DateTime)",
]  # fmt: skip
TEXTS = [
    "String", "FixedString(1)", "FixedString(3)", "LowCardinality(String)", "Nullable(String)", "LowCardinality(Nullable(String))",
    "Enum8('a' = 1, 'b' = 2)", "Enum8('b' = 1, 'a' = 2)", "Enum8('a' = 1)", "Enum16('a' = 1, 'b' = 2)",
]  # fmt: skip
MEMBERS = ["Int32", "Float64", "Bool", "Decimal(18, 3)", "Nullable(Float64)"]
DURATIONS = ["Time", "Time64(3)", "Time64(6)"]
MOMENT = datetime.datetime(2024, 3, 4, 5, 6, 7, 891234)
#: Of a table: it is described after each change.
COLUMNS = 16
#: Old and new type, and a value that a cast would change.
CHANGES: list[tuple[str, str, Any]] = [
    *((*pair, Decimal("3.141592")) for pair in permutations(NUMBERS, 2)),
    *((*pair, value) for pair in permutations(TIMES, 2) for value in (MOMENT, MOMENT.replace(tzinfo=datetime.timezone.utc))),
    *((*pair, "a") for pair in permutations(TEXTS, 2)),
    *((*pair, datetime.timedelta(seconds=3, microseconds=141592)) for pair in permutations(DURATIONS, 2)),
    *((f"Array({was})", f"Array({now})", [0.5, 3]) for was, now in permutations(MEMBERS, 2)),
    *((f"Map(String, {was})", f"Map(String, {now})", {"k": 0.5}) for was, now in permutations(MEMBERS, 2)),
    *((f"Tuple(a {was}, b {now})", f"Tuple(b {was}, a {now})", {"a": 0.5, "b": 3}) for was, now in permutations(MEMBERS, 2)),
    ("Nullable(Int32)", "Int32", None),
    ("Nullable(String)", "String", None),
    ("Bool", "Nullable(Bool)", None),
    ("UUID", "Nullable(UUID)", None),
    ("Array(Nullable(Int8))", "Array(Int8)", [None]),
]  # fmt: skip


async def test_values_are_stored_in_the_types_of_now(where: dict[str, Any], direct: Any) -> None:
    """Whatever they were when they were asked for; clickhouse-connect asks each time."""
    straight = clickhouse_connect.get_client(**where)
    async with await windrow.get_async_client(**where) as client:
        stored = 0
        for start in range(0, len(CHANGES), COLUMNS):
            stored += await check_changes(CHANGES[start : start + COLUMNS], client, straight, direct)
    assert stored > 0.7 * len(CHANGES)


async def check_changes(changes: list[tuple[str, str, Any]], client: Any, straight: Any, direct: Any) -> int:
    """Each in a column of its own. How many values were stored."""

    def make(types: list[str]) -> None:
        columns = ", ".join(f"c{number} {name}" for number, name in enumerate(types))
        direct.sql(f"CREATE OR REPLACE TABLE t (id Int32, {columns}) ENGINE = Memory")

    def stored() -> dict[int, str]:
        columns = ", ".join(f"toString(tuple(c{number}))" for number in range(len(changes)))
        rows = direct.sql(f"SELECT id, [{columns}][id + 1] FROM t").splitlines()
        return {int(number): text for number, text in (row.split("\t") for row in rows)}

    make([was for was, _, _ in changes])
    client._tables.clear()
    await client.describe("t")
    [(key, (_, known))] = client._tables._known.items()
    make([now for _, now, _ in changes])
    for number, (_, _, value) in enumerate(changes):
        client._tables.put(key, known)
        with contextlib.suppress(exceptions.Error):
            await client.insert("t", [(number, value)], column_names=["id", f"c{number}"])
    found = stored()
    direct.sql("TRUNCATE TABLE t")
    for number, (_, now, value) in enumerate(changes):
        # What it takes for some types alone: other whole numbers than int, None for a UUID.
        with contextlib.suppress(Exception):
            columns = {"column_names": ["id", f"c{number}"], "column_type_names": ["Int32", now]}
            straight.insert("t", [(number, value)], **columns)
    expected = stored()
    wrong = {number: (text, expected[number]) for number, text in found.items() if text != expected.get(number, text)}
    assert {changes[number]: texts for number, texts in wrong.items()} == {}
    return len(found)
