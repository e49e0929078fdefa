"""What a test knows of a type: its everyday values and its odd ones."""

from __future__ import annotations

from random import Random

from differential.language import Language

# Sent to every type. Some are values of it, most are not.
ANYTHING = (
    "null", "NULL", "Null", "nul", "true", "false", "True", "TRUE", "0", "-0", "1", "-1", "+1", "007", "1.", ".5",
    "1.5",
    "1e3", "1E-3", "1e400", "1_000", "0x1F", "0b11", "nan", "NaN", "inf", "-Infinity", "256", "65536", "4294967296",
    "18446744073709551616", "-9223372036854775809", "1" + "0" * 40, "9" * 90, '"5"', '"-5"', '"+5"', '"5.0"', '"5 "',
    '" 5"', '""', '"null"', '"NULL"', '"\\\\N"', '"true"', '"abc"', '"a\\u0062c"', '"\\ud83d\\ude00"', '"\\ud83d"',
    '"\\q"',
    "''", "'5'", "'-5'", "'+5'", "'5.0'", "'abc'", "'a''b'", "'\\x41'", "'\\q'", "'NULL'", "'null'", "[]", "[1]",
    "[[1]]",
    "['a']", '["a"]', "[null]", "[NULL]", "[1,]", "{}", '{"a":1}', "{'a':1}", "{1:2}", "()", "(1)", "(1,'a')", "(1,)",
    "2020-01-02", '"2020-01-02"', "'2020-01-02'", '"2020-01-02 03:04:05"', "'2020-01-02 03:04:05'", "1+1", "-(1)",
    # No function of the time: the two sides are asked one after the other, and midnight may be between them.
    "toDateTime('2020-01-02 03:04:05')",
    "toDate('2020-01-02')-1", "toUInt8(5)", "'a'||'b'", "DEFAULT", "default", "1 /* c */", "1 -- c\n", "", " ", "-", '"', "'", "@",
    "1;", "\u00a0", "\ufeff1",
)  # fmt: skip
# For edits of a value's text.
ALPHABET = "0123456789-+.eE:,TZ \t\n\\/'\"[]{}()nulNULtfxu_\0\x7fé\u2028😀\udcff;#"


class Kind:
    """A type; subclasses say how its values look."""

    name: str
    # Spellings that only this type may take, or that are at its limits.
    peculiar: tuple[str, ...] = ()
    # Whether its plain payloads are expected to be gathered.
    everyday = True

    def plain(self, rng: Random, language: Language) -> str:
        """A value as clients write it every day: these have to be gathered."""
        raise AssertionError(f"{type(self).__name__} has no plain values")

    def peculiarities(self, language: Language) -> list[str]:
        """Texts for inside of quotes and without them."""
        return [form for text in self.peculiar for form in (language.quoted(text), text)]

    def odd(self, rng: Random, language: Language) -> str:
        """A value that ClickHouse may take, may take for something else or may refuse."""
        peculiar = self.peculiarities(language)
        luck = rng.random()
        if peculiar and luck < 0.45:
            return rng.choice(peculiar)
        if luck < 0.7:
            return rng.choice(ANYTHING)
        return edited(rng, self.plain(rng, language))


def edited(rng: Random, text: str, most_edits: int = 2) -> str:
    """With a character or two changed, doubled, put in or taken out."""
    for _ in range(rng.randint(1, most_edits)):
        at = rng.randint(0, len(text))
        kept = at + rng.randint(0, 1)
        text = text[:at] + rng.choice(("", rng.choice(ALPHABET), text[at : at + 1] * 2)) + text[kept:]
    return text
