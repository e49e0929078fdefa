"""How a text is written as a JSON string or as an SQL literal."""

from __future__ import annotations

import enum
import json
from random import Random


class Language(enum.Enum):
    JSON = "JSONEachRow"
    SQL = "VALUES"

    def quoted(self, text: str) -> str:
        """In the plainest spelling."""
        if self is Language.JSON:
            return json.dumps(text, ensure_ascii=False)
        return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"

    def quoted_at_random(self, rng: Random, text: str) -> str:
        """With escapes where they are needed, and here and there where they aren't."""
        spell = json_character if self is Language.JSON else sql_character
        quote = '"' if self is Language.JSON else "'"
        return quote + "".join(spell(rng, character) for character in text) + quote


JSON_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f", '"': '\\"', "\\": "\\\\", "/": "\\/"}
SQL_SHORT = {"\n": "\\n", "\t": "\\t", "\r": "\\r", "\b": "\\b", "\f": "\\f", "\0": "\\0", "\\": "\\\\"}


def json_character(rng: Random, character: str) -> str:
    needed = character in '"\\' or ord(character) < 32
    if not needed and rng.random() < 0.9:
        return character
    if character in JSON_SHORT and rng.random() < 0.7:
        return JSON_SHORT[character]
    units = character.encode("utf-16-be")
    digits = "\\u%02x%02x" if rng.random() < 0.5 else "\\u%02X%02X"
    return "".join(digits % (units[at], units[at + 1]) for at in range(0, len(units), 2))


def sql_character(rng: Random, character: str) -> str:
    if character == "'":
        return rng.choice(("''", "\\'"))
    if character != "\\" and rng.random() < 0.9:
        return character
    if character in SQL_SHORT:
        return SQL_SHORT[character]
    if rng.random() < 0.5:
        return character
    return "".join("\\x%02x" % byte for byte in character.encode("utf-8"))
