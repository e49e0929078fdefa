"""Values of the types that hold others."""

from __future__ import annotations

from random import Random

from differential.kind import Kind
from differential.language import Language
from differential.scalars import (
    Bool, Decimal, Enumeration, FixedString, Float, Integer, Ipv4, Ipv6, String, Uuid,
)  # fmt: skip
from differential.times import DATES, Date, DateTime


class Nullable(Kind):
    def __init__(self, inner: Kind):
        self.inner = inner
        self.name = f"Nullable({inner.name})"

    def plain(self, rng: Random, language: Language) -> str:
        if rng.random() < 0.25:
            return "null" if language is Language.JSON else "NULL"
        return self.inner.plain(rng, language)

    def peculiarities(self, language: Language) -> list[str]:
        return [*self.inner.peculiarities(language), "NULL", "null", "nulL", "nullx", '"null"', '"NULL"', "'NULL'",
            "\\N", "nan"]


class LowCardinality(Kind):
    def __init__(self, inner: Kind):
        self.inner = inner
        self.name = f"LowCardinality({inner.name})"

    def plain(self, rng: Random, language: Language) -> str:
        return self.inner.plain(rng, language)

    def peculiarities(self, language: Language) -> list[str]:
        return self.inner.peculiarities(language)


def spaced(rng: Random, separator: str) -> str:
    return rng.choice((separator, separator + " ", " " + separator + " ")) if rng.random() < 0.5 else separator


class Holder(Kind):
    """Odd in its own punctuation, or by one odd value inside."""

    def value(self, rng: Random, language: Language, spell) -> str:
        raise AssertionError(f"{type(self).__name__} has no values")

    def plain(self, rng: Random, language: Language) -> str:
        return self.value(rng, language, lambda kind: kind.plain(rng, language))

    def odd(self, rng: Random, language: Language) -> str:
        if rng.random() < 0.35:
            return super().odd(rng, language)

        def spell(kind: Kind) -> str:
            return kind.odd(rng, language) if rng.random() < 0.4 else kind.plain(rng, language)

        return self.value(rng, language, spell)


class Array(Holder):
    peculiar = ("[]", "[", "]", "[,]", "[ ]", "[1,,2]", "[1 2]", "[null]", "array(1)", "(1,2)")

    def __init__(self, inner: Kind):
        self.inner = inner
        self.name = f"Array({inner.name})"

    def value(self, rng: Random, language: Language, spell) -> str:
        elements = [spell(self.inner) for _ in range(rng.choice((0, 1, 2, 3)))]
        return "[" + spaced(rng, ",").join(elements) + "]"


class Map(Holder):
    peculiar = ("{}", "{", '{"a"}', '{"a":}', '{"a":1,"a":2}', "{'a':1,'a':2}", "map('a', 1)", '[["a",1]]',
        "[('a',1)]", '{"1":1,"1":3}', "{1:1,1:2}", '{null:1}', "{'a',1}")  # fmt: skip

    def __init__(self, key: Kind, inner: Kind):
        self.key, self.inner = key, inner
        self.name = f"Map({key.name}, {inner.name})"

    def value(self, rng: Random, language: Language, spell) -> str:
        pairs = [f"{self.key_of(spell, language)}{spaced(rng, ':')}{spell(self.inner)}" for _ in range(rng.choice((0,
            1, 2, 3)))]
        return "{" + spaced(rng, ",").join(pairs) + "}"

    def key_of(self, spell, language: Language) -> str:
        key = spell(self.key)
        return f'"{key}"' if language is Language.JSON and not key.startswith('"') else key


class Tuple(Holder):
    peculiar = ("[]", "{}", "()", "(1)", "(1,)", "[1]", "tuple(1,2)", "(1,2,3,4)", '{"b":1}', '{"A":1}',
        '{"a":1,"zzz":[1,{}]}', '{"a":1,"a":2}', '{"a":null}', '{"1":1}')  # fmt: skip

    def __init__(self, *elements: Kind, names: tuple[str, ...] = ()):
        self.elements, self.names = elements, names
        listed = [f"{name} {kind.name}" for name, kind in zip(names, elements)] or [kind.name for kind in elements]
        self.name = f"Tuple({', '.join(listed)})"

    def value(self, rng: Random, language: Language, spell) -> str:
        values = [spell(kind) for kind in self.elements]
        if language is Language.SQL:
            return "(" + spaced(rng, ",").join(values) + ")"
        if not self.names:
            return "[" + spaced(rng, ",").join(values) + "]"
        members = [f'"{name}"{spaced(rng, ":")}{value}' for name, value in zip(self.names, values)]
        if rng.random() < 0.3:
            rng.shuffle(members)
        return "{" + spaced(rng, ",").join(members) + "}"

    def odd(self, rng: Random, language: Language) -> str:
        if self.names and language is Language.JSON and rng.random() < 0.25:
            kept = [(name, kind) for name, kind in zip(self.names, self.elements) if rng.random() < 0.6]
            members = [f'"{name}":{kind.plain(rng, language)}' for name, kind in kept]
            return "{" + ",".join(members) + "}"
        return super().odd(rng, language)


UINT8, INT64, UINT256 = Integer(8, False), Integer(64, True), Integer(256, False)
ENUM = Enumeration("Enum8", {"a": 1, "b": 2})
BERLIN = DateTime("Europe/Berlin", 3)
NULLABLE = tuple(
    Nullable(kind)
    for kind in (INT64, UINT256, Float(64), Decimal(18, 4), String(), FixedString(3), Bool(), *DATES, DateTime(),
    BERLIN, Uuid(), Ipv4(), Ipv6(), ENUM)
)
LOW_CARDINALITY = (
    LowCardinality(String()), LowCardinality(Nullable(String())), LowCardinality(FixedString(4)),
    LowCardinality(Integer(32, False)),
    LowCardinality(Date("Date", 1970, 2149)), LowCardinality(Nullable(DateTime("UTC"))),
)  # fmt: skip
ARRAYS = (
    Array(UINT8), Array(String()), Array(Float(32)), Array(Nullable(INT64)), Array(DateTime("UTC")),
    Array(Decimal(9, 3)), Array(LowCardinality(String())),
    Array(Array(Integer(16, True))), Array(ENUM), Array(Bool()),
)  # fmt: skip
MAPS = (
    Map(String(), Integer(64, False)), Map(INT64, String()), Map(LowCardinality(String()), Nullable(String())),
    Map(Date("Date", 1970, 2149), Float(64)),
    Map(Uuid(), Array(String())), Map(String(), Map(String(), UINT8)), Map(FixedString(2), Bool()),
)  # fmt: skip
TUPLES = (
    Tuple(UINT8, String()), Tuple(INT64), Tuple(UINT8, Nullable(String()), names=("a", "b")),
    Tuple(Date("Date", 1970, 2149), Array(String()), names=("day", "tags")),
    Tuple(Tuple(Integer(32, True), Float(64)), Bool()), Tuple(ENUM, DateTime("", 3), names=("e", "at")),
)  # fmt: skip
DEEP = (
    Array(Tuple(String(), Nullable(Float(64)))), Map(String(), Tuple(INT64, Array(String()), names=("id", "list"))),
    Array(Map(String(), Array(Nullable(UINT8)))),
    Tuple(Map(String(), String()), Array(Array(LowCardinality(Nullable(String())))), names=("labels", "rows")),
    Array(Tuple(Ipv6(), BERLIN, names=("ip", "at"))),
)  # fmt: skip
COMPOSITES = (*NULLABLE, *LOW_CARDINALITY, *ARRAYS, *MAPS, *TUPLES, *DEEP)
