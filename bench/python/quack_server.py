"""A DuckDB that serves quack: `quack_server.py FILE PORT`. Prints a line when it is ready, then runs each line of its input and prints
the single value it gives.
"""

from __future__ import annotations

import json
import sys

import duckdb
from duckdb_extensions import import_extension

TOKEN = "bench-token"


def main() -> None:
    path, port = sys.argv[1:]
    for extension in ("httpfs", "quack"):
        import_extension(extension)
    server = duckdb.connect(path)
    server.execute("LOAD httpfs; LOAD quack")
    server.execute(f"CALL quack_serve('quack:localhost:{port}', token='{TOKEN}')")
    print("ready", flush=True)
    for line in sys.stdin:
        row = server.cursor().execute(line).fetchone()
        print(json.dumps(row[0] if row else None), flush=True)


if __name__ == "__main__":
    main()
