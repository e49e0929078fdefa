"""A plugin of pytest for clickhouse-driver's own tests: what they import of their repository, and what makes their tables."""

from __future__ import annotations

import contextlib
import functools
import http.client
import io
import logging
import os
import sys
import time
import types
import unittest
import urllib.parse


def module(name: str, **members: object) -> None:
    """One of those that the source package lacks."""
    made = types.ModuleType(name)
    vars(made).update(members)
    sys.modules[name] = made


def skip_by_server_version(case: unittest.TestCase, wanted: tuple[int, ...]) -> None:
    case.skipTest(f"for ClickHouse {wanted} and later")


def require_server_version(*wanted: int):
    def decorated(test):
        @functools.wraps(test)
        def asked_first(case, *arguments):
            case.client.connection.connect()
            if case.client.connection.server_info.version_tuple() < wanted:
                skip_by_server_version(case, wanted)
            return test(case, *arguments)

        return asked_first

    return decorated


@contextlib.contextmanager
def capture_logging(name: str, level: str):
    logger, text = logging.getLogger(name), io.StringIO()
    handler, before = logging.StreamHandler(text), logger.level
    logger.addHandler(handler)
    logger.setLevel(level)
    try:
        yield text
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)


@contextlib.contextmanager
def patch_env_tz(name: str):
    with unittest.mock.patch.dict(os.environ, {"TZ": name}):
        time.tzset()
        yield
    time.tzset()


def run_by_http(case, statement: str, database: str | None = None, encoding: str = "utf-8", **settings: object) -> str:
    """Instead of `clickhouse-client --query`."""
    # Who drops a database while a connection to it is being made ends an embedded ClickHouse 26.7.
    if statement.startswith("DROP DATABASE"):
        return ""
    statement = statement.replace("CREATE DATABASE ", "CREATE DATABASE IF NOT EXISTS ")
    target = "/?" + urllib.parse.urlencode({"database": database or case.database, **settings})
    connection = http.client.HTTPConnection(case.host, int(os.environ["SUITE_HTTP_PORT"]), timeout=60)
    try:
        headers = {"X-ClickHouse-User": case.user, "X-ClickHouse-Key": case.password}
        connection.request("POST", target, statement.encode(), headers)
        answer = connection.getresponse()
        content = answer.read()
    finally:
        connection.close()
    if answer.status != 200:
        raise RuntimeError(content.decode("utf-8", "replace"))
    return content.decode(encoding)


def pytest_configure() -> None:
    module("tests.log", configure=lambda level: None)
    module("tests.numpy.util", check_numpy=lambda test: test)
    module(
        "tests.util",
        skip_by_server_version=skip_by_server_version,
        require_server_version=require_server_version,
        capture_logging=capture_logging,
        patch_env_tz=patch_env_tz,
    )
    import tests

    # The package is made of its folder alone: a name that it lacks is looked for as an attribute.
    tests.log = sys.modules["tests.log"]
    from tests.testcase import BaseTestCase

    BaseTestCase.emit_cli = classmethod(run_by_http)
