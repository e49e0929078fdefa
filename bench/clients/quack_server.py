"""A DuckDB that serves quack: `python -m bench.clients.quack_server FILE PORT`. Prints a line when it is ready, then runs each line of its
input, JSON, and prints the single value it gives."""

from __future__ import annotations

import json
import sys

import duckdb
from duckdb_extensions import import_extension

TOKEN = "bench-token"


def with_quack(path: str) -> duckdb.DuckDBPyConnection:
    for extension in ("httpfs", "quack"):
        import_extension(extension)
    connection = duckdb.connect(path)
    connection.execute("LOAD httpfs; LOAD quack")
    return connection


def main() -> None:
    path, port = sys.argv[1:]
    server = with_quack(path)
    server.execute(f"CALL quack_serve('quack:localhost:{port}', token='{TOKEN}')")
    print(json.dumps("ready"), flush=True)
    for line in sys.stdin:
        row = server.cursor().execute(json.loads(line)).fetchone()
        print(json.dumps(row[0] if row else None), flush=True)


if __name__ == "__main__":
    main()
