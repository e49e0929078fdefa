"""Runs the examples of a docstring, in which `await` may stand at top level."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import doctest
import inspect
import io
import traceback
from typing import Any

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
FLAGS = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT


def examples_of(module: Any) -> list[doctest.DocTest]:
    """The docstrings of a module that have examples: its own, and those of what it defines."""
    return [test for test in doctest.DocTestFinder(exclude_empty=True).find(module) if test.examples]


def failures_of(test: doctest.DocTest, names: dict[str, Any], loop: asyncio.AbstractEventLoop) -> list[str]:
    checker = doctest.OutputChecker()
    found = []
    for example in test.examples:
        said = run(example, names, loop)
        wanted = example.exc_msg if example.exc_msg is not None else example.want
        if not checker.check_output(wanted, said, OPTIONS):
            line = (test.lineno or 0) + example.lineno + 1
            found.append(f"{test.name} (line {line}):\n{example.source}{checker.output_difference(example, said, OPTIONS)}")
    return found


def run(example: doctest.Example, names: dict[str, Any], loop: asyncio.AbstractEventLoop) -> str:
    """What it printed, or the last lines of the exception that it raised."""
    said = io.StringIO()
    try:
        with contextlib.redirect_stdout(said):
            answer = eval(compile(example.source, "<docstring>", "single", FLAGS, True), names)
            if inspect.iscoroutine(answer):
                loop.run_until_complete(answer)
    except Exception as error:
        if example.exc_msg is None:
            return said.getvalue() + traceback.format_exc()
        return "".join(traceback.format_exception_only(type(error), error))
    return said.getvalue()
