"""Which methods and paths answer, and with what."""

from __future__ import annotations

import pytest

from harness.compare import Comparison, Request
from harness.endpoint import Endpoint


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "OPTIONS"])
@pytest.mark.parametrize("path", ["/", "/ping", "/replicas_status"])
@pytest.mark.parametrize("authorised", [True, False])
def test_without_a_query(both: Comparison, method: str, path: str, authorised: bool) -> None:
    body = b"" if method == "POST" else None
    both.same(Request(method, path, body=body, authorised=authorised))


@pytest.mark.parametrize("path", ["/ping", "/", "/replicas_status"])
def test_health_needs_no_user(tested: Endpoint, path: str) -> None:
    reply = Request("GET", path, body=None, authorised=False).send_to(tested)
    assert (reply.status, reply.text) == (200, "Ok.\n")


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "BREW"])
@pytest.mark.parametrize("path", ["/", "/ping", "/unknown/path"])
def test_other_methods(both: Comparison, method: str, path: str) -> None:
    both.same(Request(method, path, (("query", "SELECT 1"),), body=b""))


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
@pytest.mark.parametrize("path", ["/unknown", "/ping/", "/pingpong", "//", "/default/t.csv", "/%2e%2e/etc", "/?", "/ping?x=1"])
def test_other_paths(both: Comparison, method: str, path: str) -> None:
    both.same(Request(method, path, body=b"" if method == "POST" else None))


def test_unknown_path_is_404(tested: Endpoint) -> None:
    reply = Request("GET", "/unknown", body=None).send_to(tested)
    assert reply.status == 404
    assert reply.text.startswith("There is no handle /unknown")


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST"])
def test_select_by_each_method(both: Comparison, method: str) -> None:
    both.same(Request(method, parameters=(("query", "SELECT number FROM numbers(3)"),), body=b"" if method == "POST" else None))


def test_get_may_not_write(both: Comparison, direct: Endpoint) -> None:
    direct.sql("CREATE TABLE t (a UInt64) ENGINE = MergeTree ORDER BY a")
    insert = (("database", direct.database), ("query", "INSERT INTO t VALUES (1)"))
    reply = both.same(Request("GET", parameters=insert, body=None))
    assert (reply.status, reply.code) == (500, 164)
    both.same(Request("GET", parameters=(("query", f"CREATE TABLE {direct.database}.u (a UInt8) ENGINE = Memory"),), body=None))
    assert direct.sql("SELECT count() FROM t") == "0"


def test_cors(both: Comparison) -> None:
    origin = ("Origin", "https://dashboards.example")
    both.same(Request("GET", parameters=(("query", "SELECT 1"), ("add_http_cors_header", "1")), headers=(origin,), body=None))
    preflight = (origin, ("Access-Control-Request-Method", "POST"), ("Access-Control-Request-Headers", "authorization"))
    both.same(Request("OPTIONS", headers=preflight, body=None, authorised=False))


@pytest.mark.parametrize("path", ["/play", "/dashboard", "/js/uplot.js", "/binary"])
def test_built_in_pages(both: Comparison, path: str) -> None:
    both.same(Request("GET", path, body=None, authorised=False))
