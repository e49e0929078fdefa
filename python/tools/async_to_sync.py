"""Makes windrow/_sync from windrow/_async, so that the two clients can't drift apart.

The package's build does it (`build_backend.py`), and git doesn't keep what is made. After an edit in windrow/_async,
`python python/tools/async_to_sync.py` makes it anew for a package that runs from this folder.

The source is taken as tokens, never as text: words inside strings and comments stay, except for docstrings, where
`await ` and `async ` are taken out of the examples. What is different by nature (sockets, threads) is written by hand
on both sides and listed in HAND_WRITTEN; a line that ends with `# async only` is left out of the synchronous file, one
that ends with `# sync only: <code>` is replaced by that code.
"""

from __future__ import annotations

import io
import re
import tokenize
from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent / "windrow"
HAND_WRITTEN = {
    "blocks.py",
    "bytestream.py",
    "connection.py",
    "dialing.py",
    "lanes.py",
    "pool.py",
    "response.py",
    "sending.py",
    "stopper.py",
    "transport.py",
    "writer.py",
}

WORDS = {
    "AsyncClient": "Client",
    "AsyncGenerator": "Generator",
    "AsyncIterable": "Iterable",
    "AsyncIterator": "Iterator",
    "AsyncTransport": "SyncTransport",
    "AsyncWriter": "Writer",
    "StopAsyncIteration": "StopIteration",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "__aiter__": "__iter__",
    "__anext__": "__next__",
    "_async": "_sync",
    "aclose": "close",
    "aiter": "iter",
    "anext": "next",
    "get_async_client": "get_client",
    "create_async_client": "create_client",
}
DROPPED = {"async", "await"}
ASYNC_ONLY = re.compile(r"#\s*async only\s*$")
SYNC_ONLY = re.compile(r"^(\s*).*#\s*sync only:\s*(.*?)\s*$")
STRING_ANNOTATION = re.compile(r"\b(" + "|".join(WORDS) + r")\b")
HEADER = "# Made from windrow/_async/{name} when the package was built; edit that file.\n"


def converted(source: str, name: str) -> str:
    """The synchronous file for one asynchronous file."""
    lines = []
    for line in source.splitlines(keepends=True):
        if ASYNC_ONLY.search(line):
            continue
        other = SYNC_ONLY.match(line)
        lines.append(f"{other.group(1)}{other.group(2)}\n" if other else line)
    return HEADER.format(name=name) + tokens_converted("".join(lines))


def tokens_converted(source: str) -> str:
    """The source with its words replaced; everything between the words stays as it is."""
    lines = source.splitlines(keepends=True)
    edits: list[tuple[int, int, int, str]] = []
    previous = tokenize.NEWLINE
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        row, column = token.start
        if token.type == tokenize.NAME and token.string in DROPPED:
            width = len(token.string)
            rest = lines[row - 1][column + width :]
            edits.append((row, column, width + len(rest) - len(rest.lstrip(" ")), ""))
        elif token.type == tokenize.NAME and token.string in WORDS:
            edits.append((row, column, len(token.string), WORDS[token.string]))
        elif token.type == tokenize.STRING and starts_statement(previous):
            edits.extend(docstring_edits(token, lines))
        if token.type not in (tokenize.COMMENT, tokenize.NL):
            previous = token.type
    for row, column, width, text in sorted(edits, reverse=True):
        line = lines[row - 1]
        lines[row - 1] = line[:column] + text + line[column + width :]
    return "".join(lines)


def starts_statement(previous: int) -> bool:
    """Whether a string after this token is a docstring."""
    return previous in (tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENCODING)


def docstring_edits(token: tokenize.TokenInfo, lines: list[str]) -> list[tuple[int, int, int, str]]:
    """What changes in a docstring: `await`, `async` before with/for/def, and the names of classes and functions."""
    edits = []
    for row in range(token.start[0], token.end[0] + 1):
        line = lines[row - 1]
        for found in re.finditer(r"\bawait |\basync (?=with|for|def)", line):
            edits.append((row, found.start(), found.end() - found.start(), ""))
        for found in STRING_ANNOTATION.finditer(line):
            edits.append((row, found.start(), found.end() - found.start(), WORDS[found.group(1)]))
    return edits


def outcome() -> dict[Path, str]:
    """Every generated file with its text."""
    made = {}
    for path in sorted((PACKAGE / "_async").glob("*.py")):
        if path.name not in HAND_WRITTEN:
            made[PACKAGE / "_sync" / path.name] = converted(path.read_text(), path.name)
    return made


def write() -> None:
    """Writes what is not there yet, and removes what has no source any more. In an sdist all is made already."""
    made = outcome()
    for path in (PACKAGE / "_sync").glob("*.py"):
        if path not in made and path.name not in HAND_WRITTEN:
            path.unlink()
    for path, text in made.items():
        if not path.exists() or path.read_text() != text:
            path.write_text(text)


if __name__ == "__main__":
    write()
