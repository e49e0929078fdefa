"""Arrow in, Arrow through a stream, Arrow out; formats and settings set for the whole program."""

import asyncio
import json
import sys

import pyarrow
from clickhouse_connect import common, get_async_client
from clickhouse_connect.datatypes.format import clear_all_formats, set_default_formats
from clickhouse_connect.driver.external import ExternalData
from clickhouse_connect.driver.query import QueryResult
from clickhouse_connect.driver.summary import QuerySummary

common.set_setting("autogenerate_session_id", False)
set_default_formats("IPv*", "string", "UUID", "string")


async def main() -> None:
    async with await get_async_client(**json.loads(sys.argv[1])) as client:
        await client.command("CREATE TABLE hits (ip IPv4, id UUID, n UInt64) ENGINE MergeTree ORDER BY n")
        hits = [["10.0.0.1", "61f0c404-5cb3-11e7-907b-a6006ad3dba0", 1], ["10.0.0.2", "61f0c404-5cb3-11e7-907b-a6006ad3dba1", 2]]
        summary = await client.insert("hits", hits)
        assert isinstance(summary, QuerySummary)
        table = await client.query_arrow("SELECT n, toString(ip) AS ip FROM hits ORDER BY n")
        await client.command("CREATE TABLE copies (n UInt64, ip String) ENGINE MergeTree ORDER BY n")
        await client.insert_arrow("copies", pyarrow.concat_tables([table, table]))
        names = ExternalData(file_name="names.csv", fmt="CSV", structure="ip String, name String", data=b"10.0.0.1,one\n10.0.0.2,two\n")
        joined = await client.query("SELECT name, count() AS c FROM copies JOIN names USING ip GROUP BY name ORDER BY name", external_data=names)
        assert isinstance(joined, QueryResult)
        async with await client.query_arrow_stream("SELECT number FROM numbers(100000)", settings={"max_block_size": 10000}) as stream:
            total = 0
            async for batch in stream:
                total += pyarrow.compute.sum(batch.column(0)).as_py()
        many = await asyncio.gather(*(client.query("SELECT {n:UInt8} AS n", parameters={"n": n}) for n in range(20)))
        found = {
            "written": summary.written_rows,
            "rows": (await client.query("SELECT * FROM hits ORDER BY n")).result_rows,
            "joined": joined.result_rows,
            "schema": str(table.schema.remove_metadata()),
            "total": total,
            "many": [each.first_row[0] for each in many],
            "csv": (await client.raw_query("SELECT * FROM copies ORDER BY n, ip", fmt="CSV")).decode(),
        }
        print(json.dumps(found))
    clear_all_formats()


asyncio.run(main())
