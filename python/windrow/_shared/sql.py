"""What kind of statement a text is: enough of ClickHouse's lexer to add a FORMAT, and to know what may be repeated.

The text itself is never changed but for semicolons that end the statement. Answers for the same text are remembered,
since programs send few different texts; long texts aren't, so that the memory stays small.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

MAX_REMEMBERED_CHARS = 4096

READS = frozenset(("SELECT", "SHOW", "DESCRIBE", "DESC", "EXISTS", "WITH", "EXPLAIN"))
COMMANDS = frozenset(
    (
        "CREATE ALTER SYSTEM GRANT REVOKE CHECK DETACH ATTACH DROP DELETE KILL OPTIMIZE SET RENAME TRUNCATE USE UPDATE"
    ).split()
)
STRUCTURE_WORDS = frozenset(("CREATE", "ALTER", "DROP", "RENAME", "EXCHANGE", "ATTACH", "DETACH", "UNDROP", "USE"))

_SPACES = " \\t\\n\\r\\v\\f\u0085\u00a0\u180e\u2000-\u200d\u2028\u2029\u202f\u205f\u2060\u3000\ufeff"
_TOKEN = re.compile(
    rf"""
    (?P<space>[{_SPACES}]+ | (?:--|//|\#[\ !])[^\n]*\n?)
  | (?P<comment>/\*)
  | (?P<quoted>'(?:[^'\\]|\\.|'')*' | "(?:[^"\\]|\\.|"")*" | `(?:[^`\\]|\\.|``)*`
      | \u2018[^\u2019]*\u2019 | \u201c[^\u201d]*\u201d)
  | (?P<broken>['"`\u2018\u201c])
  | (?P<heredoc>\$(?P<tag>[A-Za-z0-9_]*)\$.*?\$(?P=tag)\$)
  | (?P<parameter>\{{(?:\w|\$)+:[^}}]+\}})
  | (?P<word>[A-Za-z_][A-Za-z0-9_$]*)
  | (?P<number>[0-9]+[A-Za-z0-9_]*)
  | (?P<sign>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_BEFORE_NAMES = ("INTO", "TABLE", ".")
_COMMENT_EDGE = re.compile(r"/\*|\*/")


@dataclass(slots=True)
class Token:
    """One token; `kind` is the name of the group that matched."""

    kind: str
    text: str
    start: int
    end: int


@dataclass(frozen=True)
class Statement:
    """What is known of a text. `bare` is the text without the semicolons that end it; data of an INSERT stays whole."""

    bare: str
    first_word: str
    is_insert: bool
    is_command: bool
    is_read: bool
    is_select: bool
    has_limit: bool
    ends_with_limit_zero: bool
    is_whole: bool
    """False when a quote or a comment doesn't end: nothing may be concluded then."""


def tokens(text: str) -> Iterator[Token]:
    """The tokens of a text; the last one is of kind `broken` when a quote or a comment doesn't end."""
    at = 0
    while at < len(text):
        found = _TOKEN.match(text, at)
        if found is None:  # pragma: no cover - `sign` matches anything
            return
        kind = found.lastgroup or "sign"
        kind = "heredoc" if kind == "tag" else kind
        end = found.end()
        if kind == "comment":
            end = _end_of_comment(text, at)
            kind = "space" if end else "broken"
        if kind == "broken":
            yield Token(kind, text[at:], at, len(text))
            return
        yield Token(kind, text[at:end], at, end)
        at = end


def _end_of_comment(text: str, start: int) -> int:
    """Where the comment that starts here ends (comments nest); 0 if it doesn't."""
    depth = 0
    for edge in _COMMENT_EDGE.finditer(text, start):
        depth += 1 if edge.group() == "/*" else -1
        if depth == 0:
            return edge.end()
    return 0


def statement(text: str) -> Statement:
    """What kind of statement the text is.

    >>> statement("INSERT INTO t SELECT 1").is_insert
    True
    >>> statement("SELECT 1; ").bare
    'SELECT 1 '
    """
    return _remembered(text) if len(text) <= MAX_REMEMBERED_CHARS else _analysed(text)


def _analysed(text: str) -> Statement:
    words: list[str] = []  # upper-case words; other tokens by their text
    ends: list[int] = []  # semicolons with nothing behind them
    cut = False  # a semicolon with something behind it
    whole = True
    inserts = False  # an INSERT, also behind WITH
    data = -1  # where its data begins, which isn't looked into
    depth = 0
    for token in tokens(text):
        if token.kind == "space":
            continue
        if token.kind == "broken":
            whole = False
        if token.text == ";":
            ends.append(token.start)
            continue
        if ends:
            cut = True
            ends.clear()
        depth += (token.text == "(") - (token.text == ")")
        if depth <= 0 and token.kind == "word":
            if inserts and words[-1] not in _BEFORE_NAMES:
                if words[-1] == "FORMAT" or token.text.upper() == "VALUES":
                    data = token.end
                    break
            starts = words == ["INSERT"] or (words[-1:] == ["INSERT"] and words[0] == "WITH")
            inserts = inserts or (starts and token.text.upper() == "INTO")
        words.append(
            token.text.upper() if token.kind == "word" else token.text if token.kind in ("sign", "number") else "''"
        )
    first = next((word for word in words if word != "("), "")
    pairs = set(zip(words, words[1:], strict=False))
    return Statement(
        bare=_bare_insert(text, data, words) if inserts else _without(text, ends) if whole else text,
        first_word=first,
        is_insert=inserts,
        is_command=first in COMMANDS or _shows_policies(words),
        is_read=whole
        and not cut
        and not inserts
        and first in READS
        and pairs.isdisjoint((("INTO", "OUTFILE"), ("INSERT", "INTO"), ("PARALLEL", "WITH"))),
        is_select="SELECT" in words,
        has_limit="LIMIT" in words,
        ends_with_limit_zero=whole and words[-2:] == ["LIMIT", "0"],
        is_whole=whole,
    )


_remembered = lru_cache(maxsize=1024)(_analysed)


def _bare_insert(text: str, data: int, words: list[str]) -> str:
    """The INSERT without semicolons at its end, unless they may be data, which is all that follows the name of a FORMAT."""
    if data >= 0 and words[-1] == "FORMAT" and text[data:].strip(";"):
        return text
    return text.rstrip(";")


def _shows_policies(words: list[str]) -> bool:
    return words in (["SHOW", "POLICIES"], ["SHOW", "ROW", "POLICIES"])


def _without(text: str, places: list[int]) -> str:
    for place in reversed(places):
        text = text[:place] + text[place + 1 :]
    return text
