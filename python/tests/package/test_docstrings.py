"""The examples in docstrings run, against ClickHouse.

They find `windrow`, and `client`: an async client in windrow._async, else a client; each docstring in a database of its own.
"""

from __future__ import annotations

import asyncio
import doctest
import importlib
import pkgutil
from typing import Any

import pytest
from package.docstrings import examples_of, failures_of

import windrow


def modules() -> list[str]:
    found = pkgutil.walk_packages(windrow.__path__, "windrow.")
    return ["windrow", *(module.name for module in found if not module.name.endswith("__main__"))]


EXAMPLES = {test.name: test for name in modules() for test in examples_of(importlib.import_module(name))}


@pytest.mark.parametrize("test", EXAMPLES.values(), ids=EXAMPLES.keys())
def test_examples_run(test: doctest.DocTest, where: dict[str, Any]) -> None:
    loop = asyncio.new_event_loop()
    is_async = test.name.startswith("windrow._async")
    client = loop.run_until_complete(windrow.get_async_client(**where)) if is_async else windrow.get_client(**where)
    try:
        names = {**test.globs, "windrow": windrow, "client": client, "__name__": "__main__"}
        failures = failures_of(test, names, loop)
        assert not failures, "\n".join(failures)
    finally:
        if is_async:
            loop.run_until_complete(client.close())
        else:
            client.close()
        loop.close()
