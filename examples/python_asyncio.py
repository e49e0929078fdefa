"""A hundred writers insert one row at a time, and wait until it is stored, through a gateway that runs:

    python3 examples/python_asyncio.py [http://user:password@host:8123]

Any HTTP client will do; this one comes with Python. A connection that is kept open spares both sides the opening.
"""

from __future__ import annotations

import asyncio
import base64
import http.client
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import quote, unquote, urlsplit

WRITERS = 100
INSERTS_EACH = 20
TABLE = "windrow_example_writers"


class Connection:
    """A kept-alive connection, used by one writer at a time."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        kind = http.client.HTTPSConnection if parts.scheme == "https" else http.client.HTTPConnection
        self.http = kind(parts.hostname, parts.port or 8123)
        self.headers = {}
        if parts.username is not None:
            user = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            self.headers["Authorization"] = "Basic " + base64.b64encode(user.encode()).decode()

    def send(self, query: str, body: str = "") -> str:
        self.http.request("POST", f"/?query={quote(query)}", body.encode(), self.headers)
        answer = self.http.getresponse()
        text = answer.read().decode().strip()
        if answer.status != 200:
            raise RuntimeError(f"HTTP {answer.status}: {text}")
        return text


def write(url: str, writer: int) -> None:
    connection = Connection(url)
    for number in range(INSERTS_EACH):
        row = {"writer": writer, "number": number}
        # Comes back when the row is stored; an error would be raised.
        connection.send(f"INSERT INTO {TABLE} FORMAT JSONEachRow", json.dumps(row))


async def main(url: str) -> None:
    connection = Connection(url)
    connection.send(f"CREATE OR REPLACE TABLE {TABLE} (writer UInt32, number UInt32) ORDER BY (writer, number)")
    started = time.monotonic()
    loop = asyncio.get_running_loop()
    with ThreadPoolExecutor(WRITERS) as threads:
        await asyncio.gather(*(loop.run_in_executor(threads, write, url, writer) for writer in range(WRITERS)))
    seconds = time.monotonic() - started
    rows = connection.send(f"SELECT uniqExact(writer, number) FROM {TABLE}")
    # Each part that an insert makes takes the next number of a block.
    parts = connection.send(f"SELECT max(max_block_number) FROM system.parts WHERE table = '{TABLE}' AND database = currentDatabase()")
    print(f"{WRITERS * INSERTS_EACH} inserts in {seconds:.1f} s, {rows} rows stored, in {parts} parts as they came")
    connection.send(f"DROP TABLE {TABLE}")


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1] if len(sys.argv) > 1 else "http://127.0.0.1:8123"))
