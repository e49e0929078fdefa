"""Drives a ClickHouse over the native protocol with asynch: ways to insert, each into a table of its own, types, and reads."""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from asynch import Connection, Pool
from asynch.cursors import Cursor, DictCursor
from asynch.errors import ServerException
from kinds import TYPES
from report import Report, equal
from settings import DATABASE, HOST, PASSWORD, PORT, USER
from small_table import NAMES, ROWS, create, native_rows

report = Report()
WHERE = {"host": HOST, "port": PORT, "user": USER, "password": PASSWORD, "database": DATABASE}
WAITING = {"async_insert": 1, "wait_for_async_insert": 1}
NOT_WAITING = {"async_insert": 1, "wait_for_async_insert": 0}
PINNED_OFF = {"async_insert": 0}
# Ten rows are three blocks.
IN_THREE = {"insert_block_size": 4}
MANY, MANY_AT_ONCE = 300_000, 50_000
# Whoever waits for a packet that nobody sends is to say so before the program is given up.
PATIENCE_SECONDS = 60
# This client doesn't know them, doesn't write them, or doesn't read what ClickHouse writes of them.
UNKNOWN = {"bfloat16", "time", "time64", "variant", "dynamic", "array_of_tuples"}
Insert = Callable[[str], Awaitable[object]]


@asynccontextmanager
async def cursor(settings: dict[str, object] | None = None, kind: type[Cursor] = Cursor, **options: object) -> AsyncIterator[Cursor]:
    async with Connection(**WHERE, settings=settings or {}, **options) as connection, connection.cursor(cursor=kind) as opened:
        yield opened


async def ask(query: str, args: object = None, settings: dict[str, object] | None = None) -> list[tuple]:
    async with cursor(settings) as own:
        await own.execute(query, args)
        return await own.fetchall()


async def value(query: str, **settings: object) -> object:
    ((only,),) = await ask(query, settings=settings)
    return only


async def raises(code: int, call: Awaitable[object]) -> str:
    """ClickHouse's code, as the client's typed error has it."""
    try:
        await call
    except ServerException as error:
        assert error.code == code, f"code {error.code} instead of {code}: {error}"
        return str(error)
    raise AssertionError("no error was raised")


async def run(name: str, check: Callable[[], Awaitable[object]]) -> None:
    await report.run_async(name, lambda: asyncio.wait_for(check(), PATIENCE_SECONDS))


async def stored(table: str) -> object:
    while await value(f"SELECT count() FROM {table}") < len(ROWS):
        pass
    return equal(native_rows(await ask(f"SELECT * FROM {table} ORDER BY id")), ROWS)


async def some_landed(table: str) -> object:
    got = await ask(f"SELECT id, s, maybe, tags FROM {table} ORDER BY id")
    return equal(got, [(row[0], row[1], None, []) for row in ROWS])


async def case(table: str, insert: Insert, inserts: int = 1, check: Insert = stored) -> None:
    async def body() -> object:
        await ask(create(report.sends(table, inserts)))
        await insert(table)
        return await check(table)

    await run(f"insert {table}", body)


def rows_with(settings: dict[str, object] | None = None, data: object = None, **options: object) -> Insert:
    async def insert(table: str) -> object:
        async with cursor(settings, **options) as own:
            return equal(await own.execute(f"INSERT INTO {table} VALUES", [*ROWS] if data is None else data), len(ROWS))

    return insert


async def by_executemany(table: str) -> object:
    async with cursor() as own:
        return equal(await own.executemany(f"INSERT INTO {table} VALUES", [*ROWS]), len(ROWS))


async def values(table: str) -> None:
    """The client puts the values into the text."""
    async with cursor() as own:
        for row in ROWS:
            await own.execute(f"INSERT INTO {table} (id, s) VALUES (%(id)s, %(s)s)", {"id": row[0], "s": row[1]})


async def one_by_one(table: str) -> None:
    async with cursor(WAITING) as own:
        for row in ROWS:
            equal(await own.execute(f"INSERT INTO {table} VALUES", [row]), 1)


async def by_pool(table: str) -> None:
    """A task for each row; they share a few connections."""
    async with Pool(minsize=1, maxsize=4, **WHERE) as pool:

        async def one(row: list[object]) -> int:
            async with pool.connection() as connection, connection.cursor() as own:
                return await own.execute(f"INSERT INTO {table} VALUES", [row])

        equal(await asyncio.gather(*map(one, ROWS)), [1] * len(ROWS))


async def at_once(table: str) -> None:
    """A task and a connection for each row."""

    async def one(row: list[object]) -> int:
        async with cursor(WAITING) as own:
            return await own.execute(f"INSERT INTO {table} VALUES", [row])

    equal(await asyncio.gather(*map(one, ROWS)), [1] * len(ROWS))


async def in_turns(table: str) -> None:
    """Inserts and questions on one connection."""
    async with cursor() as own:
        for start in range(0, len(ROWS), 2):
            equal(await own.execute(f"INSERT INTO {table} VALUES", ROWS[start : start + 2]), 2)
            await own.execute(f"SELECT count() FROM {table}")
            equal(await own.fetchall(), [(start + 2,)])


async def many(table: str) -> object:
    async with cursor({"insert_block_size": MANY_AT_ONCE}) as own:
        return equal(await own.execute(f"INSERT INTO {table} (id) VALUES", [(number,) for number in range(MANY)]), MANY)


async def all_of_many(table: str) -> object:
    return equal(await ask(f"SELECT count(), uniqExact(id), max(id) FROM {table}"), [(MANY, MANY, MANY - 1)])


async def after_set(table: str) -> object:
    async with cursor(IN_THREE) as own:
        await own.execute("SET max_insert_threads = 1")
        return equal(await own.execute(f"INSERT INTO {table} VALUES", [*ROWS]), len(ROWS))


async def of_temporary(table: str) -> None:
    async with cursor(IN_THREE) as own:
        await own.execute(f"CREATE TEMPORARY TABLE scratch AS {table} ENGINE = Memory")
        equal(await own.execute(f"INSERT INTO {report.sends('scratch')} VALUES", [*ROWS]), len(ROWS))
        await own.execute(f"INSERT INTO {table} SELECT * FROM scratch")


async def inserts() -> None:
    await case("lists", rows_with())
    await case("tuples", rows_with(data=[tuple(row) for row in ROWS]))
    await case("dicts", rows_with(data=[dict(zip(NAMES, row)) for row in ROWS]))
    await case("generator", rows_with(IN_THREE, (row for row in ROWS)))
    await case("blocks", rows_with(IN_THREE))
    await case("executemany", by_executemany)
    await case("waiting", rows_with(WAITING))
    await case("not_waiting", rows_with(NOT_WAITING))
    await case("not_waiting_blocks", rows_with({**NOT_WAITING, **IN_THREE}))
    await case("pinned_off", rows_with(PINNED_OFF))
    await case("pinned_off_blocks", rows_with({**PINNED_OFF, **IN_THREE}))
    await case("events_none", rows_with({**IN_THREE, "send_profile_events": 0}))
    await case("events_none_off", rows_with({**PINNED_OFF, **IN_THREE, "send_profile_events": 0}))
    await case("important", rows_with(WAITING, settings_is_important=True))
    for compression in ("lz4", "lz4hc", "zstd", False):
        await case(f"packed_{compression or 'not'}", rows_with(compression=compression))
        await case(f"packed_{compression or 'not'}_blocks", rows_with(IN_THREE, compression=compression))
    await case("values", values, len(ROWS), some_landed)
    await case("one_by_one", one_by_one, len(ROWS))
    await case("by_pool", by_pool, len(ROWS))
    await case("at_once", at_once, len(ROWS))
    await case("in_turns", in_turns, 5)
    await case("many", many, 1, all_of_many)
    await case("after_set", after_set)
    await case("of_temporary", of_temporary)


async def refused(table: str, code: int, insert: Insert) -> None:
    async def body() -> object:
        await ask(create(report.sends(table)))
        await ask(f"ALTER TABLE {table} ADD CONSTRAINT small CHECK id < 5")
        said = await raises(code, insert(table))
        equal(await value(f"SELECT count() FROM {table}"), 0)
        return said

    await run(f"{table} is {code}", body)


async def errors() -> None:
    await refused("constraint", 469, rows_with())
    await refused("constraint_waiting", 469, rows_with({**WAITING, **IN_THREE}))
    await refused("constraint_off", 469, rows_with(PINNED_OFF))
    await refused("important_setting", 115, rows_with({"no_such_setting": 1}, settings_is_important=True))
    report.sends("nowhere")
    await run("unknown table is 60", lambda: raises(60, ask("INSERT INTO nowhere VALUES", [(1,)])))
    await run("reading an unknown table is 60", lambda: raises(60, ask("SELECT * FROM nowhere")))
    await run("syntax error is 62", lambda: raises(62, ask("SELEC 1")))
    await run("goes on behind an error", goes_on)


async def goes_on() -> object:
    async with cursor() as own:
        await raises(60, own.execute("SELECT * FROM nowhere"))
    return await value("SELECT 1")


async def copied(name: str, kind: str, values: list[str]) -> object:
    rows = " UNION ALL ".join(f"SELECT toUInt64({number}) AS id, CAST({value} AS {kind}) AS v" for number, value in enumerate(values))
    allowed = {"allow_suspicious_low_cardinality_types": 1}
    await ask(f"CREATE TABLE from_{name} (id UInt64, v {kind}) ENGINE = MergeTree ORDER BY id AS {rows}", settings=allowed)
    await ask(f"CREATE TABLE type_{name} (id UInt64, v {kind}) ENGINE = MergeTree ORDER BY id", settings=allowed)
    read = await ask(f"SELECT * FROM from_{name} ORDER BY id")
    await ask(f"INSERT INTO {report.sends(f'type_{name}')} VALUES", read)
    text = "SELECT toString(groupArray((id, toString(v)))) FROM (SELECT * FROM {} ORDER BY id)"
    return equal(await value(text.format(f"type_{name}")), await value(text.format(f"from_{name}")))


async def types() -> None:
    for name, (kind, values) in TYPES.items():
        if name not in UNKNOWN:
            await run(f"insert {kind}", lambda: copied(name, kind, values))


async def streamed() -> object:
    async with cursor() as own:
        own.set_stream_results(True, 10_000)
        await own.execute("SELECT number FROM numbers(100000)")
        return equal(sum([number async for (number,) in own]), sum(range(100_000)))


async def as_dicts() -> object:
    async with cursor(kind=DictCursor) as own:
        await own.execute("SELECT number AS n, 'x' AS s FROM numbers(2)")
        return equal(await own.fetchall(), [{"n": 0, "s": "x"}, {"n": 1, "s": "x"}])


async def substituted() -> object:
    query = "SELECT %(n)s + 1, %(s)s, toDate(%(day)s)"
    return equal(await ask(query, {"n": 41, "s": "it's \\ \n", "day": datetime.date(2024, 2, 29)}), [(42, "it's \\ \n", datetime.date(2024, 2, 29))])


async def outside_tables() -> object:
    async with cursor(compression="lz4") as own:
        own.set_external_table("beside", [("x", "UInt32")], [(number,) for number in range(1000)])
        await own.execute("SELECT sum(x) FROM beside")
        return equal(await own.fetchall(), [(sum(range(1000)),)])


async def session() -> object:
    async with cursor() as own:
        await own.execute("SET max_block_size = 4321")
        await own.execute("SELECT getSetting('max_block_size')")
        return equal(await own.fetchall(), [(4321,)])


async def query_id() -> object:
    async with cursor() as own:
        own.set_query_id("asynch_query")
        await own.execute("SELECT query_id()")
        return equal(await own.fetchall(), [("asynch_query",)])


async def cancelled() -> object:
    """By another task, while it runs; the connection goes on."""
    async with Connection(**WHERE) as connection, connection.cursor() as own, connection.cursor() as other:
        own.set_query_id("asynch_cancelled")
        running = asyncio.create_task(own.execute("SELECT count() FROM system.numbers"))
        while await value("SELECT count() FROM system.processes WHERE query_id = 'asynch_cancelled'") == 0:
            pass
        equal(await connection.cancel(), True)
        await running
        await other.execute("SELECT 1")
        return equal(await other.fetchall(), [(1,)])


async def pinged() -> object:
    async with Connection(**WHERE) as connection:
        await connection.ping()
        async with connection.cursor() as own:
            await own.execute("SELECT 1")
        await connection.ping()
        return equal(await connection.is_live(), True)


async def compressions() -> object:
    for name in ("lz4", "lz4hc", "zstd", False):
        # What is packed with ZSTD this client doesn't read.
        async with cursor({"network_compression_method": "LZ4"}, compression=name) as own:
            await own.execute("SELECT number, repeat('x', 100) FROM numbers(100000)")
            equal(len(await own.fetchall()), 100_000)
    return "both ways"


async def reads() -> None:
    for check in (streamed, as_dicts, substituted, outside_tables, session, query_id, cancelled, pinged, compressions):
        await run(check.__name__.replace("_", " "), check)


async def main() -> None:
    await inserts()
    await errors()
    await types()
    await reads()
    report.print()


asyncio.run(main())
