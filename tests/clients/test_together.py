"""Inserts of many clients meet in one batch, whatever format each of them speaks."""

from __future__ import annotations

from harness.endpoint import Endpoint
from harness.eventually import eventually
from harness.gateway import Gateway
from harness.inserts import HELD, Background, parts_made, queued_inserts

COLUMNS = (
    "id UInt64, s String, maybe Nullable(Int32), kind LowCardinality(String), price Decimal(18, 4), at DateTime64(3, 'UTC'),"
    " tags Array(String), notes Map(LowCardinality(String), String)"
)
ROW = (
    "toUInt64({id}) AS id, concat('text ', toString(id)) AS s, if(id % 2, NULL, toInt32(id)) AS maybe, toLowCardinality('k') AS kind,"
    " toDecimal64(id, 4) AS price, toDateTime64('2024-02-29 12:34:56.789', 3, 'UTC') AS at, ['a', s] AS tags,"
    " CAST(map('n', s) AS Map(LowCardinality(String), String)) AS notes"
)
# What the clients of these tests send by themselves.
FORMATS = (
    "JSONEachRow Values Native RowBinary RowBinaryWithNamesAndTypes CSV CSVWithNames TabSeparated TSVWithNamesAndTypes MsgPack"
).split()


def payloads(direct: Endpoint) -> dict[str, bytes]:
    """A row for each format; its id is the format's place."""
    return {
        fmt: direct.request(f"SELECT {ROW.format(id=number)} FORMAT {fmt}").body for number, fmt in enumerate(FORMATS)
    }


def test_every_format_in_one_part(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    direct.sql(f"CREATE TABLE t ({COLUMNS}, added UInt64 DEFAULT id + 1) ENGINE = MergeTree ORDER BY id")
    names = "(id, s, maybe, kind, price, at, tags, notes)"
    with Background(tested) as background:
        waiting = [
            background.insert(body, f"INSERT INTO t {names} FORMAT {fmt}", **HELD) for fmt, body in payloads(direct).items()
        ]
        eventually(lambda: queued_inserts(tested) == len(FORMATS), "all of them are gathered")
        tested.sql("SYSTEM FLUSH ASYNC INSERT QUEUE t")
        replies = [one.reply() for one in waiting]
    assert [(reply.status, reply.summary["written_rows"]) for reply in replies] == [(200, "1")] * len(FORMATS)
    assert parts_made(direct) == 1
    rows = " UNION ALL ".join(f"SELECT {ROW.format(id=number)}" for number in range(len(FORMATS)))
    expected = direct.sql(f"SELECT *, id + 1 AS added FROM ({rows}) ORDER BY id FORMAT JSONEachRow")
    assert direct.sql("SELECT * FROM t ORDER BY id FORMAT JSONEachRow") == expected
