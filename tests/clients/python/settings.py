"""Where the server is: the same variables for the programs of all languages."""

from __future__ import annotations

import os

HOST = os.environ["CLICKHOUSE_HOST"]
PORT = int(os.environ["CLICKHOUSE_PORT"])
USER = os.environ["CLICKHOUSE_USER"]
PASSWORD = os.environ["CLICKHOUSE_PASSWORD"]
DATABASE = os.environ["CLICKHOUSE_DATABASE"]
CONNECTION = {"host": HOST, "port": PORT, "username": USER, "password": PASSWORD, "database": DATABASE}
