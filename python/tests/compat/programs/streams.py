"""Streams: blocks of columns, blocks of rows, rows, arrays, frames, Arrow, bytes."""

from __future__ import annotations

from typing import Any

from compat.program import Run, program

QUERY = "SELECT number, toString(number) AS s, toDate('2024-01-01') + number % 100 AS d FROM numbers(100000)"
FAILS = "SELECT number, throwIf(number = 150000, 'on purpose') FROM numbers(200000) SETTINGS max_block_size = 10000"


@program
async def column_blocks(run: Run) -> Any:
    columns: list[list[Any]] = [[], [], []]
    async with await run.client.query_column_block_stream(QUERY) as stream:
        names = stream.source.column_names
        async for block in stream:
            for column, more in zip(columns, block):
                column.extend(more)
    return names, [column[:3] + column[-3:] for column in columns], [len(column) for column in columns]


@program
async def row_blocks(run: Run) -> Any:
    rows = []
    async with await run.client.query_row_block_stream(QUERY) as stream:
        types = stream.source.column_types
        async for block in stream:
            rows.extend(block)
    return [kind.name for kind in types], len(rows), rows[:3], rows[-3:]


@program
async def rows(run: Run) -> Any:
    async with await run.client.query_rows_stream(QUERY) as stream:
        found = [row async for row in stream]
    return len(found), found[:3], found[-3:]


@program
async def rows_of_nothing(run: Run) -> Any:
    async with await run.client.query_rows_stream("SELECT number FROM numbers(5) WHERE number > 10") as stream:
        return [row async for row in stream], stream.source.column_names


@program
async def arrays(run: Run) -> Any:
    parts = []
    async with await run.client.query_np_stream("SELECT number, number * 2 AS d FROM numbers(100000)") as stream:
        async for block in stream:
            parts.append(block)
    return sum(len(part) for part in parts), parts[0][:3], parts[0].dtype, parts[-1][-3:]


@program
async def frames(run: Run) -> Any:
    import pandas

    async with await run.client.query_df_stream(QUERY) as stream:
        whole = pandas.concat([frame async for frame in stream], ignore_index=True)
    return len(whole), whole.head(3), whole.tail(3), [str(kind) for kind in whole.dtypes]


@program
async def arrow(run: Run) -> Any:
    import pyarrow

    async with await run.client.query_arrow_stream(QUERY) as stream:
        whole = pyarrow.Table.from_batches([batch async for batch in stream])
    return whole.num_rows, whole.slice(0, 3), whole.slice(99_997)


@program
async def arrow_frames(run: Run) -> Any:
    lengths, heads = [], []
    for library in ("pandas", "polars"):
        async with await run.client.query_df_arrow_stream(QUERY, dataframe_library=library) as stream:
            frames = [frame async for frame in stream]
        lengths.append(sum(len(frame) for frame in frames))
        heads.append(frames[0].head(3))
    return lengths, heads


@program
async def raw_bytes(run: Run) -> Any:
    async with await run.client.raw_stream(QUERY, fmt="CSV") as stream:
        data = b"".join([part async for part in stream])
    return len(data), data[:60], data[-60:]


@program
async def a_stream_closed_early(run: Run) -> Any:
    async with await run.client.query_rows_stream("SELECT number FROM numbers(10000000)") as stream:
        async for row in stream:
            first = row
            break
    return first, (await run.client.query("SELECT 'still works'")).result_rows


@program
async def a_stream_without_its_context(run: Run) -> Any:
    stream = await run.client.query_rows_stream("SELECT 1")
    error = await run.raises(stream.__anext__())
    async with stream:
        pass
    return error


@program
async def a_stream_used_twice(run: Run) -> Any:
    stream = await run.client.query_rows_stream("SELECT number FROM numbers(3)")
    async with stream:
        found = [row async for row in stream]
    try:
        async with stream:
            return found, [row async for row in stream]
    except Exception as error:
        return found, error


@program
async def an_error_in_mid_stream(run: Run) -> Any:
    seen = 0
    try:
        async with await run.client.query_row_block_stream(FAILS) as stream:
            async for block in stream:
                seen += len(block)
    except run.module("driver.exceptions").StreamFailureError as error:
        # What it says, clickhouse-connect loses when it sees the connection's end first; ours is in transport/test_faults.py.
        return type(error).__name__, seen <= 150000
    return seen


@program
async def an_error_in_the_middle_of_a_whole_result(run: Run) -> Any:
    errors = [await run.raises(ask(FAILS)) for ask in (run.client.query, run.client.query_np, run.client.query_df)]
    return [(type(error).__name__, error.code, error.name, "on purpose" in str(error)) for error in errors]


@program
async def an_error_in_the_middle_of_a_result_that_is_read_while_it_is_made(run: Run) -> Any:
    """clickhouse-connect sees the connection's end first, now and then, and has no code then."""
    settings = {"wait_end_of_query": 0}
    late = [await run.raises(ask(FAILS, settings=settings)) for ask in (run.client.query, run.client.query_df)]
    early = await run.raises(run.client.query("SELECT throwIf(number = 3) FROM numbers(10)", settings=settings))
    return [type(error).__name__ for error in (*late, early)], early.code


@program
async def an_error_in_a_raw_stream(run: Run) -> Any:
    try:
        async with await run.client.raw_stream(FAILS, fmt="CSV") as stream:
            async for _ in stream:
                pass
    except Exception:
        # That of the transport there, StreamFailureError with ClickHouse's code here.
        return "an error"
    return "no error"


@program
async def several_streams_at_once(run: Run) -> Any:
    async with await run.client.query_rows_stream("SELECT number FROM numbers(50000)") as first:
        async with await run.client.query_rows_stream("SELECT -number FROM numbers(50000)") as second:
            pairs = [(row, await second.__anext__()) async for row in first]
    return len(pairs), pairs[:2], pairs[-1]


@program
async def a_limited_stream(run: Run) -> Any:
    async with await run.client.query_rows_stream("SELECT number FROM numbers(100) LIMIT 5") as stream:
        return [row async for row in stream]
