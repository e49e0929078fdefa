"""Inserts as many clients send them, and what they leave behind in a table."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from harness.endpoint import Endpoint, Reply
from harness.raw_http import RawConnection, RawReply, head

INTO_T = "INSERT INTO t FORMAT JSONEachRow"
# A batch that nothing but a size limit, a command or a shutdown seals: what the test wants to see happens by its cause.
HELD = {"async_insert": 1, "async_insert_use_adaptive_busy_timeout": 0, "async_insert_busy_timeout_ms": 3_600_000}
HELD_NOT_WAITING = {**HELD, "wait_for_async_insert": 0}
# And not on the disk either.
HELD_IN_MEMORY = {**HELD, "windrow_ack": "memory"}


def rows(*numbers: int) -> str:
    return "".join(f'{{"a":{number}}}\n' for number in numbers)


def make_table(direct: Endpoint, columns: str = "a UInt64", name: str = "t", settings: str = "") -> None:
    direct.sql(f"CREATE TABLE {name} ({columns}) ENGINE = MergeTree ORDER BY tuple() {settings}")


def ids(direct: Endpoint, table: str = "t") -> list[int]:
    return [int(line) for line in direct.sql(f"SELECT a FROM {table} ORDER BY a").splitlines()]


def parts_made(direct: Endpoint, table: str = "t") -> int:
    """How many parts inserts have made: MergeTree numbers its blocks from 1, and merges keep the highest number."""
    query = f"SELECT max(max_block_number) FROM system.parts WHERE database = '{direct.database}' AND table = '{table}'"
    return int(direct.sql(query))


def send_all_then_read(endpoint: Endpoint, bodies: list[bytes], query: str = INTO_T, **settings: object) -> list[RawReply]:
    """Every insert on a connection of its own; all are sent before the first answer is read."""
    fixed = (("Host", endpoint.host), ("Authorization", endpoint.basic_auth()))
    target = endpoint.target(query, settings)
    requests = [head("POST", target, (*fixed, ("Content-Length", str(len(body))))) + body for body in bodies]
    connections = [RawConnection(endpoint) for _ in bodies]
    try:
        for connection, request in zip(connections, requests):
            connection.send(request)
        return [connection.read_reply() for connection in connections]
    finally:
        for connection in connections:
            connection.close()


@dataclass(frozen=True)
class Waiting:
    """An insert under way in a thread."""

    future: object

    def reply(self) -> Reply:
        return self.future.result(180)

    def answered(self) -> bool:
        return self.future.done()


class Background:
    """Inserts that wait for their acknowledgement while the test goes on."""

    def __init__(self, endpoint: Endpoint, at_once: int = 64):
        self.endpoint = endpoint
        self.threads = ThreadPoolExecutor(at_once)

    def __enter__(self) -> Background:
        return self

    def __exit__(self, *_: object) -> None:
        self.threads.shutdown(wait=True)

    def insert(self, body: str, query: str = INTO_T, **settings: object) -> Waiting:
        return Waiting(self.threads.submit(self.endpoint.insert, query, body, **settings))


def queued(tested: Endpoint, table: str = "t") -> list[dict]:
    """The live queue of one table, a row per batch."""
    query = (
        "SELECT length(entries.query_id) AS inserts, total_bytes FROM system.asynchronous_inserts"
        f" WHERE database = '{tested.database}' AND table = '{table}' FORMAT JSONEachRow"
    )
    return [json.loads(line) for line in tested.sql(query, output_format_json_quote_64bit_integers=0).splitlines()]


def queued_inserts(tested: Endpoint, table: str = "t") -> int:
    return sum(batch["inserts"] for batch in queued(tested, table))
