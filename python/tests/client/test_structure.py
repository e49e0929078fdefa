"""The columns of a table are asked for once in a while; a change of the table is seen all the same."""

from __future__ import annotations

from typing import Any

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
