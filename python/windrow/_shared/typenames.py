"""The parts of a type's name, as far as parameters need them, and its spelling."""

from __future__ import annotations

import re
from functools import lru_cache

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_QUOTED = re.compile(r"'(?:[^'\\]|\\.|'')*'|`(?:[^`\\]|\\.)*`")
_DECIMAL = re.compile(r"\bDecimal(32|64|128|256)\(\s*(\d+)\s*\)")
_DIGITS = {"32": 9, "64": 18, "128": 38, "256": 76}
_SPACING = re.compile(
    r"(?P<quoted>'(?:[^'\\]|\\.|'')*'|`(?:[^`\\]|\\.)*`)(?P<equals>\s*=\s*)?|\s*(?P<sign>[(),])\s*|\s+"
)
_WRAPPERS = ("lowcardinality(", "nullable(")


@lru_cache(maxsize=512)
def as_clickhouse_spells(name: str) -> str:
    """The name with spaces where ClickHouse has them, and Decimals as it calls them.

    >>> as_clickhouse_spells("Array( Decimal(10,2) )"), as_clickhouse_spells("Enum8('a,b'=1,'c'=2)")
    ('Array(Decimal(10, 2))', "Enum8('a,b' = 1, 'c' = 2)")
    """

    def spaced(found: re.Match[str]) -> str:
        if found["quoted"]:
            return found["quoted"] + (" = " if found["equals"] else "")
        return {None: " ", ",": ", "}.get(found["sign"]) or found["sign"]

    spelled = _SPACING.sub(spaced, name.strip())
    return _DECIMAL.sub(lambda found: f"Decimal({_DIGITS[found[1]]}, {found[2]})", spelled)


@lru_cache(maxsize=512)
def base_and_arguments(name: str) -> tuple[str, tuple[str, ...]]:
    """The type's name without LowCardinality and Nullable, and its arguments.

    >>> base_and_arguments("Nullable(DateTime64(3, 'UTC'))")
    ('DateTime64', ('3', "'UTC'"))
    """
    name = name.strip()
    for wrapper in _WRAPPERS:
        if name.lower().startswith(wrapper) and name.endswith(")"):
            name = name[len(wrapper) : -1].strip()
    opening = name.find("(")
    if opening < 0 or not name.endswith(")"):
        return name, ()
    return name[:opening].strip(), tuple(_split(name[opening + 1 : -1]))


def element_types(name: str) -> tuple[str, ...]:
    """The types inside of a Tuple or Nested, without the elements' names."""
    return tuple(_without_name(argument) for argument in base_and_arguments(name)[1])


def names_in(name: str) -> set[str]:
    """The lower-case names of the type and of all types inside."""
    base, arguments = base_and_arguments(name)
    found = {base.lower()}
    if base.lower() in ("tuple", "nested"):
        arguments = element_types(name)
    if base.lower() in ("array", "tuple", "nested", "map", "variant"):
        for argument in arguments:
            found |= names_in(argument)
    return found


def _split(text: str) -> list[str]:
    """The arguments between commas that stand in no bracket and no quote."""
    parts, depth, start, at = [], 0, 0, 0
    while at < len(text):
        quoted = _QUOTED.match(text, at)
        if quoted:
            at = quoted.end()
            continue
        sign = text[at]
        depth += (sign == "(") - (sign == ")")
        if sign == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
        at += 1
    last = text[start:].strip()
    return [*parts, last] if last else parts


def _without_name(argument: str) -> str:
    """`a Int32` is Int32; `Int32` stays, and so does `Enum8('a b' = 1)`."""
    named = _QUOTED.match(argument) if argument[:1] == "`" else _WORD.match(argument)
    if named is None:
        return argument
    rest = argument[named.end() :]
    return rest.strip() if rest[:1].isspace() and rest.strip()[:1] != "(" else argument
