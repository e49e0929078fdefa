"""docs/clickhouse-connect.md has every public name of clickhouse-connect, and what it says of each is so."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from harness.paths import ROOT

from package.surface import Surface, surfaces

PAGE = ROOT / "docs" / "clickhouse-connect.md"
ALL = {surface.where: surface for surface in surfaces()}


class Told(NamedTuple):
    here: str
    why: str


def told() -> dict[tuple[str, str], Told]:
    found: dict[tuple[str, str], Told] = {}
    for line in PAGE.read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        where = re.fullmatch(r"`([^`]+)`", cells[0].strip("| "))
        if not line.startswith("| `") or where is None or len(cells) < 3 or cells[2] not in ("same", "better", "not there"):
            continue
        for name in re.findall(r"`([^`]+)`", cells[1]):
            assert (where[1], name) not in found, f"{where[1]}.{name} is there twice"
            found[where[1], name] = Told(cells[2], cells[3].rstrip("| ") if len(cells) > 3 else "")
    return found


TOLD = told()


@pytest.mark.parametrize("surface", ALL.values(), ids=lambda surface: surface.where.replace(" ", "_"))
def test_every_name_is_there(surface: Surface) -> None:
    missing = [name for name in surface.theirs if (surface.where, name) not in TOLD]
    assert not missing, f"names of clickhouse-connect that {PAGE.name} doesn't have under {surface.where}"


def test_nothing_is_told_of_names_that_are_not_there() -> None:
    gone = [(where, name) for where, name in TOLD if where not in ALL or name not in ALL[where].theirs]
    assert not gone


def test_what_is_said_is_so() -> None:
    wrong = [
        f"{where}.{name} is {said.here}"
        for (where, name), said in TOLD.items()
        if where in ALL and (said.here == "not there") == (name in ALL[where].ours)
    ]
    assert not wrong


def test_what_is_better_or_missing_has_a_reason() -> None:
    assert not [key for key, said in TOLD.items() if said.here != "same" and not said.why]


@pytest.mark.parametrize("where", ["AsyncClient", "Client"])
def test_methods_take_the_same_arguments(where: str) -> None:
    surface = ALL[where]
    differing = {
        name: [argument for argument in arguments(method) if argument not in arguments(surface.ours[name])]
        for name, method in surface.theirs.items()
        if callable(method) and name in surface.ours
    }
    assert not {name: lacking for name, lacking in differing.items() if lacking}


def arguments(function: Any) -> Iterator[str]:
    return iter(inspect.signature(function).parameters)
