"""The programs in docs/python.md and docs/writer.md run, in the order in which they stand there."""

from __future__ import annotations

import ast
import builtins
import inspect
import linecache
import re
import types
from pathlib import Path
from typing import Any

import pytest
from harness.paths import ROOT
from harness.redis import Redis

ADDRESS = re.compile(r'host="localhost"')
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
        await run_program(text, f"<program {number} of {page}>", names)
    for name in ("client", "sync_client"):
        ended = names[name].close()
        if inspect.isawaitable(ended):
            await ended
