"""What a later ClickHouse does otherwise, decided by the version that it names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from harness.endpoint import Endpoint
from harness.gateway import Gateway
from harness.inserts import ids, make_table
from harness.newer import Newer
from harness.remote import RemoteGateway
from harness.users import TESTER

AS_CSV = "INSERT INTO t FORMAT CSV"


@pytest.fixture
def backend(gateway: Gateway, direct: Endpoint) -> Iterator[Newer]:
    make_table(direct)
    with Newer(direct, "26.8.1.1") as newer:
        yield newer


@pytest.fixture
def newer(backend: Newer, direct: Endpoint, tmp_path: Path) -> Iterator[Endpoint]:
    front = RemoteGateway(tmp_path / "newer", backend.url, direct)
    yield front.http.as_user(TESTER.name, TESTER.password).using(direct.database)
    front.stop()


@pytest.mark.parametrize("settings", [
    {"input_format": "JSONEachRow"},
    {"format": "JSONEachRow"},
    {"input_format": "JSONEachRow", "format": "TSV"},
])  # fmt: skip
def test_a_setting_goes_before_the_format_clause(
    newer: Endpoint, backend: Newer, direct: Endpoint, settings: dict[str, str]
) -> None:
    """This engine knows no such setting: that it accepts the insert shows that neither probe nor flush carried it."""
    reply = newer.insert(AS_CSV, '{"a":1}\n{"a":2}\n', **settings)
    assert reply.status == 200, reply.text
    assert reply.summary["written_rows"] == "2"
    assert ids(direct) == [1, 2]


def test_clauses_around_a_query_are_the_backends_business(newer: Endpoint, backend: Newer, direct: Endpoint) -> None:
    assert newer.insert("INSERT INTO t FORMAT JSONEachRow", '{"a":1}', limit=5).status == 200
    assert any("limit=5" in path and "JSONEachRow" in path for path in backend.seen), "it was forwarded as it came"
    assert newer.insert("INSERT INTO t FORMAT JSONEachRow", '{"a":2}', filter="a > 1").code == 115
    assert ids(direct) == [1]


def test_this_version_knows_none_of_them(gateway: Gateway, tested: Endpoint, direct: Endpoint) -> None:
    make_table(direct)
    for name in ("format", "input_format", "output_format", "compression", "select", "filter"):
        reply = tested.insert("INSERT INTO t FORMAT JSONEachRow", '{"a":1}', **{name: "CSV"})
        assert (reply.status, reply.code) == (404, 115), f"{name}: {reply.text}"
    for clause in ("database = 'system'", "query_id = 'x'", "compress = 1", "format = 'CSV'", "role = 'x'"):
        reply = tested.insert(f"INSERT INTO t SETTINGS {clause} FORMAT JSONEachRow", '{"a":1}')
        assert reply.code == 115, f"{clause}: {reply.text}"
    assert ids(direct) == []
