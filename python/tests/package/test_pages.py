"""The programs in docs/python.md and docs/writer.md run, in the order in which they stand there."""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import os
import re
import types
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy
from harness.paths import ROOT
from harness.redis import Redis
from sqlalchemy.dialects import registry

ADDRESS = re.compile(r'host="localhost"')
URL = "windrow://localhost:8123/default"
GATEWAY = re.compile(r'host="gateway"')
REDIS = "redis://localhost:6379"
BLOCK = re.compile(r"^```python\n(.*?)^```$", re.S | re.M)


async def run_program(text: str, name: str, names: dict[str, Any]) -> None:
    """Runs one block; `await` and `async with` may stand at its top. Its lines are shown when it fails."""
    linecache.cache[name] = (len(text), None, text.splitlines(True), name)
    code = compile(text, name, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    outcome = types.FunctionType(code, names)()
    if inspect.iscoroutine(outcome):
        await outcome


# The tree has no entry points, which the installed package has.
if not os.environ.get("WINDROW_TEST_INSTALLED"):
    registry.register("windrow", "windrow.sqlalchemy", "WindrowDialect")


def url_of(where: dict[str, Any]) -> str:
    arguments = (where[name] for name in ("username", "password", "host", "port", "database"))
    return sqlalchemy.URL.create("windrow", *arguments).render_as_string(hide_password=False)


@pytest.mark.parametrize("page", ["python.md", "writer.md"])
async def test_they_run(
    page: str,
    where: dict[str, Any],
    gateway_where: dict[str, Any],
    redis: Redis,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    address, gateway = (
        ", ".join(f"{name}={value!r}" for name, value in place.items()) for place in (where, gateway_where)
    )
    # Compiled modules import by way of the builtins of whoever calls them.
    names: dict[str, Any] = {"__name__": "page", "__builtins__": builtins}
    programs = BLOCK.findall((ROOT / "docs" / page).read_text())
    assert programs
    for number, text in enumerate(programs, 1):
        text = GATEWAY.sub(lambda _: gateway, ADDRESS.sub(lambda _: address, text)).replace(REDIS, redis.address)
        text = text.replace(URL, url_of(where))
        await run_program(text, f"<program {number} of {page}>", names)
    if "engine" in names:
        names["engine"].dispose()
    for name in ("client", "sync_client"):
        ended = names[name].close()
        if inspect.isawaitable(ended):
            await ended
