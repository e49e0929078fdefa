"""What of a suite passed straight, and must pass through the gateway as well."""

from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True)
class Suite:
    name: str
    # How many of its tests are known to pass straight: fewer, and something was not run.
    least: int
    # Of those that are asked through the gateway alone: what their names begin with, as a regular expression.
    only_through: str


@dataclass(frozen=True)
class Outcome:
    """By a test's name, whether it passed; what was skipped is not there. `said` is what to read if something is odd."""

    passed: dict[str, bool]
    said: str

    def those_passed(self) -> set[str]:
        return {name for name, passed in self.passed.items() if passed}


def compare(suite: Suite, straight: Outcome, through: Outcome) -> None:
    passed, passed_through = straight.those_passed(), through.those_passed()
    print(f"{suite.name}: {len(passed)} passed straight, {len(passed_through)} through the gateway")
    assert len(passed) >= suite.least, f"only {len(passed)} passed straight:\n{straight.said[-6000:]}"
    alone = {name for name in through.passed if re.match(suite.only_through, name)}
    assert alone, "none of those that are asked through the gateway alone was run"
    lost = sorted((passed | alone) - passed_through)
    assert not lost, f"{len(lost)} pass straight, or ought to, and fail through the gateway: {lost}\n{excerpts(through.said, lost)}"


def excerpts(said: str, names: list[str]) -> str:
    """What was printed near the first mention of each of some of them."""
    lines, found = said.splitlines(), []
    for name in names[:5]:
        last = name.rsplit(".", 1)[-1].rsplit("::", 1)[-1]
        near = next((at for at, line in enumerate(lines) if last in line and "PASS" not in line), None)
        if near is not None:
            found.append("\n".join(lines[near : near + 30]))
    return "\n...\n".join(found) or said[-6000:]
