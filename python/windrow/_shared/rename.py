"""The rules by which the columns of a result are renamed (`rename_response_column`)."""

from __future__ import annotations

import re
from collections.abc import Callable


def renamer_of(method: str | None) -> Callable[[str], str] | None:
    """The function for a rule's name; None for none. ValueError for a name that isn't known."""
    name = (method or "none").strip().lower()
    if name not in _RULES:
        raise ValueError(f"rename_response_column={method!r} isn't known: use one of {', '.join(_RULES)}")
    return _RULES[name]


def remove_prefix(name: str) -> str:
    """`t.user_id` is user_id."""
    return name.rpartition(".")[2]


def to_camelcase(name: str) -> str:
    """`user_id` is userId."""
    words = re.split(r"[\s_]+", name)
    return words[0] + "".join(word[:1].upper() + word[1:] for word in words[1:])


def to_underscore(name: str) -> str:
    """`userId` and `user id` are user_id; runs of capitals stay as they are but for their first letter."""
    made: list[str] = []
    before = "letter"
    for sign in name:
        if sign.isspace():
            if before == "letter":
                made.append("_")
            before = "space"
        elif sign.isupper():
            if before == "letter":
                made.append("_" + sign.lower())
            else:
                made.append(sign.lower() if before == "space" else sign)
            before = "capital"
        else:
            made.append(sign)
            before = "letter"
    return "".join(made).removeprefix("_")


_RULES: dict[str, Callable[[str], str] | None] = {
    "none": None,
    "remove_prefix": remove_prefix,
    "to_camelcase": to_camelcase,
    "to_camelcase_without_prefix": lambda name: to_camelcase(remove_prefix(name)),
    "to_underscore": to_underscore,
    "to_underscore_without_prefix": lambda name: to_underscore(remove_prefix(name)),
}
