"""A web service that takes clicks and says which pages are read. Every click is acknowledged as soon as it is in a buffer on disk,
and reaches ClickHouse in batches; a service that is killed sends what it had taken when it is started again.

    pip install windrow fastapi uvicorn
    CLICKHOUSE_DSN=http://localhost:8123 uvicorn --app-dir examples python_fastapi:app

    curl localhost:8000/clicks -H 'Content-Type: application/json' -d '{"visitor": 1, "page": "/"}'
    curl localhost:8000/pages
"""

from __future__ import annotations

import datetime
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

import windrow
from windrow.driver.exceptions import DatabaseError

DSN = os.environ.get("CLICKHOUSE_DSN", "http://localhost:8123")
BUFFER = os.environ.get("CLICKS_FOLDER", "clicks-buffer")

# A table with a deduplication window recognises a batch that is sent again after a crash.
TABLE = """
CREATE TABLE IF NOT EXISTS clicks (at DateTime64(3), visitor UInt64, page LowCardinality(String))
ENGINE MergeTree ORDER BY (page, at) SETTINGS non_replicated_deduplication_window = 1000
"""


class Click(BaseModel):
    visitor: int
    page: str


@asynccontextmanager
async def lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with await windrow.get_async_client(dsn=DSN) as client:
        await client.command(TABLE)
        async with client.writer("clicks", ["at", "visitor", "page"], buffer=f"disk:{BUFFER}", flush_interval=0.5) as writer:
            app.state.client, app.state.writer = client, writer
            yield
        # Leaving the writer's block has sent what it held.


app = FastAPI(lifespan=lifespan)


@app.post("/clicks", status_code=202)
async def take(click: Click) -> None:
    try:
        await app.state.writer.write_row((datetime.datetime.now(datetime.timezone.utc), click.visitor, click.page))
    except DatabaseError as error:
        # A visitor that is no UInt64, say: the error names the column.
        raise HTTPException(422, str(error)) from error


@app.get("/pages")
async def pages(limit: int = 10) -> list[dict[str, Any]]:
    query = "SELECT page, count() AS clicks, uniq(visitor) AS visitors FROM clicks GROUP BY page ORDER BY clicks DESC, page LIMIT {limit:UInt32}"
    result = await app.state.client.query(query, parameters={"limit": limit})
    return list(result.named_results())


@app.get("/health")
async def health() -> dict[str, Any]:
    return {"clickhouse": await app.state.client.ping()}
