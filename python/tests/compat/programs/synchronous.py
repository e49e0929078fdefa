"""The synchronous client, and DB-API 2.0 over it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from compat.program import Run, program


async def in_thread(work: Callable[[], Any]) -> Any:
    return await asyncio.to_thread(work)


def attempt(work: Callable[[], Any]) -> Any:
    try:
        return work()
    except Exception as error:
        return error


@program
async def queries(run: Run) -> Any:
    def work() -> Any:
        with run.connect_sync() as client:
            client.command("CREATE TABLE t (a UInt32, b String) ENGINE Memory")
            summary = client.insert("t", [[1, "x"], [2, "y"]])
            with client.query_rows_stream("SELECT number FROM numbers(10)") as stream:
                rows = list(stream)
            return (
                summary, rows, client.query("SELECT * FROM t ORDER BY a"), client.query_df("SELECT * FROM t ORDER BY a"),
                client.query_np("SELECT a FROM t ORDER BY a"), client.query_arrow("SELECT * FROM t ORDER BY a"),
                client.raw_query("SELECT 1", fmt="CSV"), client.ping(), client.command("SELECT count() FROM t"),
            )  # fmt: skip

    return await in_thread(work)


@program
async def streams(run: Run) -> Any:
    def work() -> Any:
        found = []
        with run.connect_sync() as client:
            with client.query_column_block_stream("SELECT number, -number FROM numbers(10)") as stream:
                found.append((stream.source.column_names, list(stream)))
            with client.query_row_block_stream("SELECT number FROM numbers(10)") as stream:
                found.append([list(block) for block in stream])
            with client.query_df_stream("SELECT number FROM numbers(10)") as stream:
                found.append(list(stream))
            with client.query_np_stream("SELECT number FROM numbers(10)") as stream:
                found.append(list(stream))
            # Arrow's reader is at its end before the answer is: with one session for all, ClickHouse might find it locked.
            with run.connect_sync(autogenerate_session_id=False) as free:
                with free.query_arrow_stream("SELECT number FROM numbers(10)") as stream:
                    found.append(list(stream))
            raw = client.raw_stream("SELECT number FROM numbers(10)", fmt="CSV")
            found.append(b"".join(raw))
        return found

    return await in_thread(work)


@program
async def inserts(run: Run) -> Any:
    import pandas
    import pyarrow

    def work() -> Any:
        with run.connect_sync() as client:
            client.command("CREATE TABLE t (a Int64, b String) ENGINE Memory")
            client.insert_df("t", pandas.DataFrame({"a": [1], "b": ["x"]}))
            client.insert_arrow("t", pyarrow.table({"a": [2], "b": ["y"]}))
            client.raw_insert("t", insert_block="3,z\n", fmt="CSV")
            context = client.create_insert_context("t", data=[[4, "w"]])
            client.insert(context=context)
            (run.folder / "rows.csv").write_text("a,b\n5,v\n")
            run.module("driver.tools").insert_file(client, "t", str(run.folder / "rows.csv"))
            return client.query("SELECT * FROM t ORDER BY a"), attempt(lambda: client.insert("t", [["x", 1]])) is not None

    return await in_thread(work)


@program
async def errors(run: Run) -> Any:
    def work() -> Any:
        with run.connect_sync() as client:
            return attempt(lambda: client.query("SELECT * FROM no_such_table")), attempt(lambda: client.command("DROP TABLE no_such_table"))

    return await in_thread(work)


def connection(run: Run) -> Any:
    return run.module("dbapi").connect(**run.where)


@program
async def db_api_selects(run: Run) -> Any:
    def work() -> Any:
        with connection(run) as opened, opened.cursor() as cursor:
            cursor.execute("SELECT number AS n, toString(number) AS s, if(number = 1, NULL, number) AS m FROM numbers(5)")
            seen = [cursor.rowcount, [(column[0], str(column[1]), *column[2:]) for column in cursor.description]]
            seen += [cursor.fetchone(), cursor.fetchmany(2), cursor.fetchall(), cursor.fetchone(), cursor.fetchall()]
            cursor.execute("SELECT %(a)s, %(b)s", {"a": 1, "b": "it's"})
            seen.append(cursor.fetchall())
            cursor.execute("SELECT {a:String}", {"a": "x"})
            seen.append(cursor.fetchall())
            return seen

    return await in_thread(work)


@program
async def db_api_inserts(run: Run) -> Any:
    def work() -> Any:
        with connection(run) as opened, opened.cursor() as cursor:
            cursor.execute("CREATE TABLE t (a UInt32, b String) ENGINE Memory")
            cursor.executemany("INSERT INTO t (a, b) VALUES", [(1, "x"), (2, "y")])
            cursor.executemany("INSERT INTO t (a, b) VALUES (%s, %s)", [(3, "z")])
            cursor.executemany("INSERT INTO t (a, b) VALUES (%(a)s, %(b)s)", [{"a": 4, "b": "w"}, {"a": 5, "b": "it's"}])
            cursor.execute("INSERT INTO t VALUES (6, 'v')")
            opened.commit()
            cursor.execute("SELECT * FROM t ORDER BY a")
            return cursor.fetchall()

    return await in_thread(work)


@program
async def db_api_errors(run: Run) -> Any:
    def work() -> Any:
        opened = connection(run)
        cursor = opened.cursor()
        found = [attempt(lambda: cursor.execute("SELECT * FROM no_such_table")), attempt(opened.rollback)]
        cursor.close()
        found.append(attempt(lambda: cursor.execute("SELECT 1")))
        opened.close()
        return found

    return await in_thread(work)


@program
async def db_api_module(run: Run) -> Any:
    import datetime

    dbapi = run.module("dbapi")
    names = ("Error", "DatabaseError", "OperationalError", "ProgrammingError", "DataError", "IntegrityError", "InternalError",
             "NotSupportedError", "InterfaceError", "Warning")  # fmt: skip
    # What a DataError is besides, here.
    more = ("ValueError", "TypeError")
    parents = [getattr(dbapi, name).__mro__ for name in names if hasattr(dbapi, name)]
    families = [[parent.__name__ for parent in family if parent.__name__ not in more] for family in parents]
    constants = dbapi.apilevel, dbapi.threadsafety, dbapi.paramstyle
    return constants, families, getattr(dbapi, "Date", datetime.date)(2024, 1, 1)
