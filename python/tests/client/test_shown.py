"""What clients and results show of themselves: where and what, never a password, never more than a screen."""

from __future__ import annotations

from typing import Any

import pytest

import windrow
import windrow.dbapi
from windrow._shared.http_options import proxy_of_url
from windrow._shared.options import client_options
from windrow._shared.results import NumpyResult, QueryResult

SECRETS = ("te&st er", "te%26st%20er", "dGVzdGVy", "hunter2")


async def test_clients(where: dict[str, Any]) -> None:
    at = f"http://{where['host']}:{where['port']}"
    with windrow.get_client(**where, headers={"X-Key": "hunter2"}) as client:
        shown = repr(client)
        assert shown.startswith(f"Client({at}, user 'tester', database '{where['database']}', server 2")
        assert not any(secret in shown + repr(client._options) for secret in SECRETS)
    async with await windrow.get_async_client(**where) as client:
        assert repr(client) == "Async" + shown
    with windrow.dbapi.connect(**where) as connection:
        assert repr(connection) == f"Connection({shown})"


def test_options_keep_secrets() -> None:
    none = dict.fromkeys(("host", "username", "database", "interface", "port", "dsn", "settings", "generic_args"))
    others = {"access_token": "hunter2", "http_proxy": "http://me:hunter2@proxy:1", "headers": {"a": "hunter2"}}
    options = client_options("sync", **{**none, "password": "", "secure": False, "others": others})
    assert "hunter2" not in f"{options!r} {options.http_options()!r} {proxy_of_url('http://a:hunter2@b')!r}"
    options = client_options("sync", **{**none, "password": "hunter2", "secure": False, "others": {}})
    assert "hunter2" not in repr(options)


@pytest.mark.parametrize("column_oriented", [False, True])
def test_a_result_shows_its_first_rows(where: dict[str, Any], column_oriented: bool) -> None:
    with windrow.get_client(**where) as client:
        result = client.query("SELECT number, toString(number) AS text FROM numbers(12)", column_oriented=column_oriented)
    lines = repr(result).split("\n")
    assert lines[:2] == ["QueryResult(number UInt64, text String; 12 rows)", "  (0, '0')"]
    assert lines[10:] == ["  (9, '9')", "  2 more rows"]
    assert result._repr_html_().count("<tr>") == 11 and "<p>2 more rows</p>" in result._repr_html_()


def test_html_is_escaped_and_bounded() -> None:
    evil = '<script>alert("&")</script>'
    result = QueryResult([(evil, [evil])] * 1000 + [("x" * 10**6, b"y" * 10**6)], column_names=(evil, "b"))
    for shown in (result._repr_html_(), QueryResult([("x" * 10**6, ["z" * 10**6])], column_names=("a", "b"))._repr_html_()):
        assert "<script" not in shown and len(shown) < 10_000
    assert "&lt;script&gt;alert(&quot;&amp;&quot;)&lt;/script&gt;" in result._repr_html_()
    assert len(repr(result)) < 5000 and repr(QueryResult([(1,)])) == "QueryResult(; 1 row)\n  (1)"
    assert repr(NumpyResult(None, ("a",))) == "NumpyResult(a)"
