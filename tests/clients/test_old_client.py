"""Debian's clickhouse-client, 18.16: its protocol is of 2018, and its connections are passed on whole."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from typing import NamedTuple

import pytest

from clients.routes import forwarded_by_reason, gathered_by_table
from harness.endpoint import Endpoint
from harness.engine import Engine
from harness.gateway import Gateway

SECONDS = 120
COLUMNS = "(n UInt64, s String, kind LowCardinality(String), at DateTime('UTC'), a Array(Nullable(Int32)), d UInt64 DEFAULT n + 1)"
LINES = "".join(f'{number},"text {number} ""quoted""","k","2024-02-29 12:34:56","[1,NULL]"\n' for number in range(20_000)).encode()


class Step(NamedTuple):
    query: str
    stdin: bytes = b""
    options: tuple[str, ...] = ()


STEPS = (
    Step(f"CREATE TABLE old {COLUMNS} ENGINE = MergeTree ORDER BY n"),
    Step("INSERT INTO old (n, s) VALUES (100000, 'it''s'), (100001, upper('x'))"),
    Step("INSERT INTO old (n, s, kind, at, a) FORMAT CSV", LINES),
    Step("INSERT INTO old FORMAT JSONEachRow", b'{"n": 100002, "s": "left out"}\n', ("--compression", "0")),
    # As many blocks as that makes.
    Step("INSERT INTO old (n, s) FORMAT TSV", b"200000\ta\n200001\tb\n200002\tc\n", ("--max_insert_block_size", "1")),
    Step("SELECT count(), sum(n), sum(d), sum(length(s)) FROM old"),
    Step("SELECT * FROM old ORDER BY n FORMAT TSVWithNamesAndTypes"),
    Step("SELECT kind, count() FROM old GROUP BY kind WITH TOTALS ORDER BY kind FORMAT TSV", options=("--extremes", "1")),
    Step("SELECT getSetting('max_block_size')", options=("--max_block_size", "4321")),
    Step("SET max_block_size = 1234; SELECT getSetting('max_block_size')", options=("--multiquery",)),
    Step("CREATE TEMPORARY TABLE t (n UInt64); INSERT INTO t SELECT 7; SELECT * FROM t", options=("--multiquery",)),
    Step("SELECT not_there"),
    Step("INSERT INTO nowhere VALUES (1)"),
    Step("INSERT INTO old (n) FORMAT CSV", b"no number\n"),
    Step("SELECT throwIf(number = 900000) FROM numbers(1000000) FORMAT Null"),
    Step("DROP TABLE old"),
)


class Said(NamedTuple):
    code: int
    out: str
    err: str


def ask(endpoint: Endpoint, step: Step) -> Said:
    where = ["--host", endpoint.host, "--port", str(endpoint.port), "--database", endpoint.database]
    login = ["--user", endpoint.user, "--password", endpoint.password]
    command = ["clickhouse-client", *where, *login, *step.options, "--query", step.query]
    ended = subprocess.run(command, input=step.stdin, capture_output=True, timeout=SECONDS, check=False)
    said = (text.decode().replace(str(endpoint.port), "PORT") for text in (ended.stdout, ended.stderr))
    return Said(ended.returncode, *said)


def test_it_says_the_same(server: Engine | Gateway, native: Endpoint, direct_native: Endpoint, subtests: pytest.Subtests) -> None:
    version = subprocess.run(["clickhouse-client", "--version"], capture_output=True, text=True, check=True).stdout
    assert "version 18." in version, f"this test is about Debian's clickhouse-client, and found {version}"
    before = forwarded_by_reason(server) if isinstance(server, Gateway) else None
    straight = [ask(direct_native, step) for step in STEPS]
    for step, expected in zip(STEPS, straight, strict=True):
        with subtests.test(step.query):
            assert ask(native, step) == expected
    # ClickHouse's codes, of which a shell sees eight bits.
    assert [said.code for said in straight] == [0] * 11 + [47, 60, 117, 395 % 256, 0], straight
    if before is not None:
        # A reason is counted for each connection.
        assert forwarded_by_reason(server) - before == {"hello": len(STEPS)}
        assert not gathered_by_table(server, native.database)


def test_a_wrong_password_is_its_own_error(gateway: Gateway, native: Endpoint) -> None:
    said = ask(replace(native, password="wrong"), Step("SELECT 1"))
    assert said.code != 0
    assert "Code: 516" in said.err, said
