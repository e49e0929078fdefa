"""Commands, contexts, raw queries, errors, and what a client says of itself."""

from __future__ import annotations

import asyncio
from typing import Any

from compat.program import Run, program, program_for


@program
async def commands(run: Run) -> Any:
    client = run.client
    return [
        await client.command("CREATE TABLE t (a UInt8) ENGINE Memory"),
        await client.command("INSERT INTO t VALUES (1), (2)"),
        await client.command("SELECT count() FROM t"),
        await client.command("SELECT 1, 2, 'x'"),
        await client.command("SELECT number FROM numbers(3)"),
        await client.command("SELECT 'one text'"),
        await client.command("SELECT a FROM t WHERE a > 100"),
        await client.command("SHOW TABLES"),
        await client.command("EXISTS TABLE t"),
        await client.command("SELECT 1.5"),
        await client.command("SELECT 'a\\tb\\nc'"),
        await client.command("SELECT -7"),
        await client.command("SELECT NULL"),
        await client.command("SELECT ''"),
        await client.command("TRUNCATE TABLE t"),
        await client.command("DROP TABLE t"),
    ]


@program
async def a_command_with_data(run: Run) -> Any:
    await run.table("a UInt8, b String")
    first = await run.client.command("INSERT INTO t FORMAT CSV", data="1,x\n")
    second = await run.client.command("INSERT INTO t FORMAT CSV", data=b"2,y\n")
    return first, second, await run.stored()


@program
async def a_command_without_a_database(run: Run) -> Any:
    inside = await run.client.command("SELECT currentDatabase() != 'default'")
    return inside, await run.client.command("SELECT currentDatabase()", use_database=False)


@program
async def a_command_with_settings(run: Run) -> Any:
    return await run.client.command("SELECT getSetting('max_threads')", settings={"max_threads": 5})


@program_for(
    csv="CSV", names="CSVWithNames", json="JSONEachRow", native="Native", tsv="TSV", none=None, row_binary="RowBinary", parquet_like="JSONCompact"
)
async def raw_queries(run: Run, form: str | None) -> Any:
    query = "SELECT number AS a, toString(number) AS b FROM numbers(3)"
    answer = await run.client.raw_query(query, fmt=form, settings={"output_format_write_statistics": 0})
    return type(answer).__name__, answer


@program
async def raw_queries_with_parameters(run: Run) -> Any:
    first = await run.client.raw_query("SELECT {a:Int32}", parameters={"a": 5}, fmt="CSV")
    second = await run.client.raw_query("SELECT %(a)s", parameters={"a": "x"}, fmt="CSV")
    third = await run.client.raw_query("SELECT currentDatabase()", use_database=False, fmt="TSV")
    return first, second, third, await run.client.raw_query("SELECT 1 FORMAT JSONEachRow")


@program
async def query_contexts(run: Run) -> Any:
    context = run.client.create_query_context(
        query="SELECT number, {v:String} AS v FROM numbers(3)",
        parameters={"v": "x"},
        settings={"max_threads": 1},
        column_oriented=True,
    )
    first = await run.client.query(context=context)
    context.set_parameter("v", "y")
    second = await run.client.query(context=context)
    context.set_parameters({"v": "z"})
    third = await run.client.query(context=context)
    fourth = await run.client.query("SELECT 'other'", context=context)
    return first, second, third, fourth, context.is_select, context.is_insert, context.is_command, context.has_limit, context.final_query


@program
async def a_context_in_every_form(run: Run) -> Any:
    context = run.client.create_query_context(query="SELECT number AS a, toString(number) AS b FROM numbers(3)", use_none=False)
    rows = await run.client.query(context=context)
    array, frame = await run.client.query_np(context=context), await run.client.query_df(context=context)
    async with await run.client.query_rows_stream(context=context) as stream:
        return rows, array, frame, [row async for row in stream]


@program
async def kinds_of_statements(run: Run) -> Any:
    statements = [
        "SELECT 1", "select 1 limit 5", "WITH x AS (SELECT 1) SELECT * FROM x", "INSERT INTO t VALUES (1)", "CREATE TABLE x (a Int8) ENGINE Memory",
        "-- c\nSELECT 1", "/* limit */ SELECT 1", "ALTER TABLE t DROP COLUMN a", "DROP TABLE t", "SHOW TABLES", "DESCRIBE t", "EXISTS t",
        "SET a = 1", "GRANT x TO y", "OPTIMIZE TABLE t", "  insert into t select 1",
    ]  # fmt: skip
    contexts = [run.client.create_query_context(query=statement) for statement in statements]
    return [(context.is_select, context.is_insert, context.is_command, context.has_limit) for context in contexts]


ERRORS: dict[str, str] = {
    "no_table": "SELECT * FROM no_such_table",
    "no_column": "SELECT no_such_column FROM system.one",
    "no_function": "SELECT no_such_function(1)",
    "syntax": "SELECT FROM WHERE",
    "no_database": "SELECT * FROM no_such_database.t",
    "types": "SELECT 'x' + 1",
    "thrown": "SELECT throwIf(1, 'my own words')",
    "zero": "SELECT intDiv(1, 0)",
    "cast": "SELECT toInt32('x')",
    "empty": "SELECT",
    "settings": "SELECT 1 SETTINGS no_such_setting = 1",
    "rows": "SELECT * FROM numbers(1000) SETTINGS max_result_rows = 10",
    "time": "SELECT sleep(3) SETTINGS max_execution_time = 1, timeout_before_checking_execution_speed = 0",
}


@program_for(**{name: query for name, query in ERRORS.items() if name != "time"})
async def errors_of_queries(run: Run, query: str) -> Any:
    return await run.raises(run.client.query(query))


@program_for(**{name: ERRORS[name] for name in ("no_table", "syntax", "thrown")})
async def errors_of_other_methods(run: Run, query: str) -> Any:
    client = run.client
    doing = (client.command(query), client.query_np(query), client.query_df(query), client.query_rows_stream(query))
    found = [await run.raises(each) for each in doing]
    for each in (client.raw_query(query), client.query_arrow(query), client.raw_stream(query), client.query_arrow_stream(query)):
        error = await run.raises(each)
        found.append((type(error).__name__, getattr(error, "code", None), getattr(error, "name", None)))
    return found


@program
async def errors_of_commands(run: Run) -> Any:
    await run.table("a UInt8")
    statements = ("CREATE TABLE t (a UInt8) ENGINE Memory", "DROP TABLE no_such_table", "INSERT INTO t VALUES ('x')", "ALTER TABLE t DROP COLUMN b")
    return [await run.raises(run.client.command(statement)) for statement in statements]


@program
async def errors_cut_short(run: Run) -> Any:
    common = run.module("common")
    common.set_setting("max_error_size", 60)
    try:
        return await run.raises(run.client.query("SELECT no_such_column FROM system.one"))
    finally:
        common.set_setting("max_error_size", 1024)


@program_for(hidden=False, shown=True, scrubbed="scrub", scrub_word="scrubbed")
async def errors_shown(run: Run, shown: Any) -> Any:
    try:
        client = await run.connect(show_clickhouse_errors=shown)
    except Exception as error:
        return error
    return await run.raises(client.query("SELECT * FROM no_such_table")), await run.raises(client.command("DROP TABLE no_such_table"))


@program
async def a_wrong_password(run: Run) -> Any:
    error = await run.raises(run.connect(password="wrong"))
    return type(error).__name__, error.code, error.name


@program
async def nobody_listens(run: Run) -> Any:
    error = await run.raises(run.connect(host="127.0.0.1", port=1))
    return type(error).__name__, error.code


@program
async def arguments_that_do_not_go_together(run: Run) -> Any:
    return [
        await run.raises(run.connect(access_token="x")),
        await run.raises(run.connect(compress="no_such_method")),
        await run.raises(run.connect(interface="ftp", port=None)),
        await run.raises(run.connect(headers="x")),
        await run.raises(run.connect(query_limit="many")),
        await run.raises(run.connect(autogenerate_query_id="perhaps")),
    ]


@program
async def missing_arguments(run: Run) -> Any:
    return [
        await run.raises(run.client.query("")),
        await run.raises(run.client.insert("t")),
        await run.raises(run.client.ping(timeout=0)),
    ]


@program
async def what_a_client_says(run: Run) -> Any:
    client = run.client
    return (
        client.database == run.where["database"],
        client.server_version,
        str(client.server_tz),
        client.min_version("21.3"),
        client.min_version("99.1"),
        client.min_version("26.7.1"),
        await client.ping(),
        sorted(client.server_settings)[:3] != [],
        client.uri,
    )


@program
async def a_ping_of_nobody(run: Run) -> Any:
    client = await run.connect()
    return await client.ping(), await client.ping(timeout=5)


@program
async def a_dsn(run: Run) -> Any:
    from urllib.parse import quote

    where = run.where
    dsn = f"http://{quote(where['username'])}:{quote(where['password'])}@{where['host']}:{where['port']}/{where['database']}?query_limit=2&send_receive_timeout=30"
    client = await run.package.get_async_client(dsn=dsn)
    try:
        return await client.query("SELECT number, currentDatabase() AS d FROM numbers(5)")
    finally:
        await client.close()


@program
async def an_unknown_argument(run: Run) -> Any:
    error = await run.raises(run.connect(no_such_argument=5))
    return type(error).__name__, "'no_such_argument'" in str(error)


@program_for(lz4="lz4", zstd="zstd", gzip="gzip", br="br", on=True, off=False)
async def compressions(run: Run, method: Any) -> Any:
    client = await run.connect(compress=method)
    await run.table("a UInt64, b String")
    await client.insert("t", [[number, "x" * 100] for number in range(2000)])
    result = await client.query("SELECT * FROM t ORDER BY a")
    return result.row_count, result.result_rows[-1], await client.query_arrow("SELECT sum(a) AS s FROM t"), await client.raw_query("SELECT 1", fmt="CSV")


@program_for(remove="remove_prefix", camel="to_camelcase", underscore="to_underscore", camel_bare="to_camelcase_without_prefix", under_bare="to_underscore_without_prefix", wrong="wrong")
async def renamed_columns(run: Run, method: str) -> Any:
    query = "SELECT 1 AS `t.some_column`, 2 AS `Other Column`, 3 AS plain, 4 AS `a.b.cD`"
    try:
        client = await run.connect(rename_response_column=method)
        return await client.query(query), await client.query_df(query)
    except Exception as error:
        return error


@program
async def a_context_manager(run: Run) -> Any:
    async with await run.package.get_async_client(**run.where) as client:
        first = (await client.query("SELECT 1")).result_rows
    return first, type(await run.raises(client.query("SELECT 1"))).__name__


@program
async def many_at_once(run: Run) -> Any:
    client = await run.connect(autogenerate_session_id=False)
    answers = await asyncio.gather(*(client.query("SELECT {n:UInt32} AS n", parameters={"n": number}) for number in range(50)))
    return [answer.first_row for answer in answers]


@program
async def a_cancelled_query(run: Run) -> Any:
    client = await run.connect(autogenerate_session_id=False)
    task = asyncio.create_task(client.query("SELECT sleepEachRow(0.01) FROM numbers(100000) SETTINGS max_block_size = 10"))
    while not await client.command("SELECT count() FROM system.processes WHERE query LIKE 'SELECT sleepEachRow(0.01)%'"):
        pass
    task.cancel()
    try:
        await task
    except asyncio.CancelledError:
        return "cancelled", (await client.query("SELECT 'goes on'")).result_rows
    return "no"


@program
async def transport_settings(run: Run) -> Any:
    return await run.client.query("SELECT getClientHTTPHeader('X-Own') AS h SETTINGS allow_get_client_http_header = 1", transport_settings={"X-Own": "v"})


@program
async def headers_of_a_client(run: Run) -> Any:
    client = await run.connect(headers={"X-Own": "w"})
    return await client.query("SELECT getClientHTTPHeader('X-Own') AS h SETTINGS allow_get_client_http_header = 1")


@program
async def query_ids(run: Run) -> Any:
    client = await run.connect(autogenerate_query_id=True)
    answers = [await client.query("SELECT queryID() AS q") for _ in range(2)]
    own = f"an_id_of_my_own_{run.folder.name}"
    fixed = await client.query("SELECT queryID() AS q", settings={"query_id": own})
    return [answer.query_id == answer.first_row[0] for answer in answers], fixed.first_row == (own,), fixed.query_id == own
