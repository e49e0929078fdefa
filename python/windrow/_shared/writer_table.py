"""What a writer asks of its table, and how its batches are worded. No I/O: questions and what their answers mean."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from windrow import _core
from windrow._shared.errors import Error, ProgrammingError
from windrow._shared.identifiers import quote_identifier
from windrow.datatypes.base import ClickHouseType
from windrow.datatypes.registry import get_from_name

#: Kinds of columns that take no values, as DESCRIBE calls them.
COMPUTED = frozenset({"MATERIALIZED", "ALIAS"})
#: EPHEMERAL columns take values, and have to be named for it.
NOT_BY_DEFAULT = COMPUTED | {"EPHEMERAL"}

#: What ClickHouse says when the columns are not those that the rows were written for.
STRUCTURE_CODES = frozenset({10, 16, 44, 47, 53})
#: From so many rows on ClickHouse is told to make one block of a batch.
_ONE_BLOCK_ROWS = 100_000
#: Its errors as ClickHouse words them, and not what a proxy's page may say.
_EXCEPTION = re.compile(r"\bCode:\s*(\d{1,9})\b[^\n]{0,40}\bDB::\w*Exception.*", re.DOTALL)
_HEADER_MISMATCH = "(while reading header)"
_WINDOW = re.compile(r"\b(?:non_)?replicated_deduplication_window\s*=\s*(\d+)")


@dataclass(frozen=True)
class Destination:
    """A table, and the columns that are written."""

    database: str
    table: str
    columns: list[str]
    types: list[str]

    @property
    def for_core(self) -> tuple[str, str, list[str], list[str]]:
        return (self.database, self.table, self.columns, self.types)


def table_parts(table: str, database: str | None) -> tuple[str, str]:
    """Database and table of `table` or `database.table`, each of them perhaps in backticks or double quotes."""
    parts = re.findall(r"`(?:[^`\\]|\\.|``)*`|\"(?:[^\"\\]|\\.|\"\")*\"|[^.]+", table)
    names = [_unquoted(part) for part in parts]
    if len(names) == 1:
        return database or "", names[0]
    if len(names) == 2:
        return names[0], names[1]
    raise ProgrammingError(f"writer: {table!r} does not name a table")


def _unquoted(name: str) -> str:
    if len(name) > 1 and name[0] == name[-1] and name[0] in "`\"":
        return re.sub(r"\\(.)", r"\1", name[1:-1].replace(name[0] * 2, name[0]))
    return name


def full_name(database: str, table: str) -> str:
    name = quote_identifier(table)
    return f"{quote_identifier(database)}.{name}" if database else name


def question_options(client: Any) -> dict[str, Any]:
    """How a writer asks: types on one line, names as text whatever formats the program has chosen for its own
    results."""
    settings = {"print_pretty_type_names": 0, **own_session(client)}
    return {"settings": settings, "query_formats": {"String": "string"}}


def own_session(client: Any) -> dict[str, str]:
    """Several batches are under way at once, beside the client's own queries, and a session serves one."""
    return {"session_id": str(uuid.uuid4())} if client.get_client_setting("session_id") else {}


def describe_statement(database: str, table: str) -> str:
    return f"DESCRIBE TABLE {full_name(database, table)}"


def destination_of(
    database: str, table: str, columns: Sequence[str] | None, described: Iterable[Sequence[Any]]
) -> Destination:
    """The columns that are written, with the types that DESCRIBE gives them."""
    types: dict[str, str] = {}
    kinds: dict[str, str] = {}
    for row in described:
        types[row[0]], kinds[row[0]] = row[1], row[2]
    if columns is None:
        columns = [name for name in types if kinds[name] not in NOT_BY_DEFAULT]
    for name in columns:
        if name not in types:
            raise ProgrammingError(f"writer: table {table} has no column {name}; it has {', '.join(types)}")
        if kinds[name] in COMPUTED:
            raise ProgrammingError(f"writer: column {name} of table {table} is {kinds[name]}: it takes no values")
    return Destination(database, table, list(columns), [types[name] for name in columns])


#: Asked of buffers that survive: what engine a table has, and its settings.
ENGINE_STATEMENT = (
    "SELECT engine, engine_full FROM system.tables WHERE database = {database:String} AND name = {table:String}"
)


def deduplication_warning(table: str, engine: str, engine_full: str) -> str | None:
    """What to tell whoever writes from a buffer that survives into a table that doesn't know repeated batches."""
    window = _WINDOW.search(engine_full)
    if window is not None and int(window.group(1)) > 0:
        return None
    if engine.startswith(("Replicated", "Shared")) and window is None:
        return None
    if not engine.endswith("MergeTree"):
        return (
            f"table {table} has the engine {engine}, which does not recognise a batch that is sent twice: rows of "
            "which the answer was lost, or that a dead process left, may be stored twice"
        )
    return (
        f"table {table} has no deduplication window: rows of which the answer was lost, or that a dead process left, "
        f"may be stored twice. ALTER TABLE {table} MODIFY SETTING non_replicated_deduplication_window = 1000 gives it one"
    )


def batch_settings(client: Any, batch: _core.OutgoingBatch, settings: Mapping[str, Any]) -> dict[str, Any]:
    """What goes along with a batch. A batch is large and waits for its end: the server has nothing to gather."""
    sent: dict[str, Any] = {"async_insert": 0, "insert_deduplicate": 1}
    sent.update(own_session(client))
    if any("JSON" in name for name in batch.type_names):
        sent["input_format_binary_read_json_as_string"] = 1
    if batch.rows > _ONE_BLOCK_ROWS:
        # Cut into several blocks, a part of the batch might be stored and the rest refused.
        sent.update(max_insert_block_size=batch.rows, min_insert_block_size_rows=batch.rows, min_insert_block_size_bytes=0)
    sent.update(settings)
    sent["insert_deduplication_token"] = batch.id
    return sent


def is_about_structure(code: int | None, message: str) -> bool:
    """Whether the table has changed since the rows were written."""
    return code in STRUCTURE_CODES or (code == 117 and _HEADER_MISMATCH in message)


def converting_target(batch: _core.OutgoingBatch, now: Destination) -> str | None:
    """What stands behind INSERT INTO when the table's types have changed: rows are read as they were written, and
    converted by ClickHouse; a value that does not fit the new type is refused, not cut. None where the values that the
    program gave may be other ones by now: of 0.5, an Int32 has kept 0.
    """
    if not all(map(_keeps_all, map(get_from_name, batch.type_names), map(get_from_name, now.types))):
        return None
    structure = ", ".join(
        f"{quote_identifier(name)} {type_name}" for name, type_name in zip(batch.column_names, batch.type_names)
    )
    values = ", ".join(
        quote_identifier(name) if was == is_now else f"accurateCast({quote_identifier(name)}, {_text(is_now)})"
        for name, was, is_now in zip(batch.column_names, batch.type_names, now.types)
    )
    columns = ", ".join(quote_identifier(name) for name in batch.column_names)
    return f"{full_name(batch.database, batch.table)} ({columns}) SELECT {values} FROM input({_text(structure)})"


def _keeps_all(was: ClickHouseType, now: ClickHouseType) -> bool:
    """Whether any value that was encoded for one type is, when it has been converted, what the other would have made of
    it; or is refused.
    """
    was, now = _of_values(was), _of_values(now)
    if now.nullable and not was.nullable and was.base_type in _TAKE_NONE:
        return False
    if was.base_type in _INTEGERS and now.base_type in _INTEGERS:
        return True
    if was.base_type.startswith("Enum") and now.base_type.startswith("Enum"):
        return set(was.arguments) <= set(now.arguments)
    if was.base_type == "Decimal" and now.base_type == "Decimal":
        return was.arguments[1:] == now.arguments[1:]
    if was.base_type != now.base_type:
        return (was.base_type, now.base_type) == ("Date", "Date32")
    if was.base_type in ("Array", "Map") or was.base_type == "Tuple" and was.element_names == now.element_names:
        elements = was.element_types, now.element_types
        return len(elements[0]) == len(elements[1]) and all(map(_keeps_all, *elements))
    return was.arguments == now.arguments


def _of_values(type_: ClickHouseType) -> ClickHouseType:
    """What a SimpleAggregateFunction holds; any other type itself."""
    is_aggregate = type_.base_type == "SimpleAggregateFunction"
    return type_.element_type or type_ if is_aggregate else type_


_INTEGERS = frozenset(f"{sign}{bits}" for sign in ("Int", "UInt") for bits in (8, 16, 32, 64, 128, 256))
#: For which None is a value, false or zeros.
_TAKE_NONE = frozenset(("Bool", "UUID", "IPv6", "JSON", "Dynamic"))


def _text(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def code_and_message(error: BaseException) -> tuple[int | None, str]:
    """What a failed attempt says: ClickHouse's code, if ClickHouse answered, and its words."""
    message = str(error)
    found = _EXCEPTION.search(message)
    # Errors of others (a token_provider's, for one) have a `code` that means something else.
    code = error.code if isinstance(error, Error) else None
    if code is None and found:
        code = int(found.group(1))
    text = (found.group(0) if found else message) or repr(error)
    # What can't be encoded can't be told to the core.
    return code, text.encode(errors="backslashreplace").decode()
