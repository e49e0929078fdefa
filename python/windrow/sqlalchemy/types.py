"""ClickHouse's types for tables of SQLAlchemy, and which type a column that is found in a database has.

SQLAlchemy's own types work, too: Integer is Int32, String is String, DateTime is DateTime64(6), Numeric(p, s) is
Decimal(p, s). Those here are for what SQLAlchemy has no name for. A column that may be NULL is Nullable(...) by its
`nullable`, which is SQLAlchemy's default: types are named without that.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlalchemy import types as sql

from windrow._shared.insert_sql import unquoted
from windrow._shared.literals import MapParam
from windrow._shared.typenames import as_clickhouse_spells, base_and_arguments, element_types

Writer = Callable[[Any], Any] | None

#: Inside of which there can be no NULL as a whole.
_NEVER_NULLABLE = ("Array", "Map", "Nested", "Tuple", "Variant", "Dynamic", "AggregateFunction", "SimpleAggregateFunction")


class Named(sql.TypeEngine[Any]):
    """A type that knows its name in ClickHouse."""

    __visit_name__ = "clickhouse"

    def clickhouse_name(self) -> str:
        """As it stands in CREATE TABLE."""
        return type(self).__name__


class Int8(Named, sql.SmallInteger):
    """-128 to 127."""


class Int16(Named, sql.SmallInteger):
    """16 bits."""


class Int32(Named, sql.Integer):
    """32 bits."""


class Int64(Named, sql.BigInteger):
    """64 bits."""


class Int128(Named, sql.BigInteger):
    """128 bits."""


class Int256(Named, sql.BigInteger):
    """256 bits."""


class UInt8(Named, sql.SmallInteger):
    """0 to 255."""


class UInt16(Named, sql.Integer):
    """16 bits without a sign."""


class UInt32(Named, sql.BigInteger):
    """32 bits without a sign."""


class UInt64(Named, sql.BigInteger):
    """64 bits without a sign."""


class UInt128(Named, sql.BigInteger):
    """128 bits without a sign."""


class UInt256(Named, sql.BigInteger):
    """256 bits without a sign."""


class Float32(Named, sql.Float[float]):
    """Four bytes."""


class Float64(Named, sql.Float[float]):
    """Eight bytes."""


class Other(Named, sql.UserDefinedType[Any]):
    """Any type, by its full name: `Other("Map(String, UInt64)")`. Values are what the client gives and takes.

    >>> Other("LowCardinality(String)").clickhouse_name()
    'LowCardinality(String)'
    """

    cache_ok = True

    def __init__(self, name: str) -> None:
        self.name = as_clickhouse_spells(name)

    def clickhouse_name(self) -> str:
        """The name it was made with."""
        return self.name

    def get_col_spec(self, **_: Any) -> str:
        """For SQLAlchemy's own compiler of types."""
        return self.name

    def bind_processor(self, dialect: Any) -> Writer:
        """A dict is a Map, a Tuple or a document by the type; by itself it would be a document."""
        return writer_of(self.name)


def writer_of(name: str) -> Writer:
    """What turns the dicts in a value of that type into maps and tuples; None where there are none.

    >>> writer_of("Array(Tuple(a UInt8, b String))")([{"b": "x", "a": 1}])
    [(1, 'x')]
    """
    base, arguments = base_and_arguments(name)
    if base == "Map":
        key, value = (writer_of(argument) or _same for argument in arguments)
        return lambda given: (
            MapParam({key(name): value(item) for name, item in given.items()}) if isinstance(given, dict) else given
        )
    if base in ("Array", "Nested"):
        item = writer_of(arguments[0] if base == "Array" else f"Tuple({', '.join(arguments)})")
        return item and (lambda given: [item(part) for part in given] if isinstance(given, list) else given)
    return _tuple_writer(name, arguments) if base == "Tuple" else None


def _tuple_writer(name: str, arguments: tuple[str, ...]) -> Writer:
    kinds = element_types(name)
    names = [
        unquoted(argument.removesuffix(kind).strip()) for argument, kind in zip(arguments, kinds, strict=True)
    ]
    elements = [writer_of(kind) or _same for kind in kinds]

    def write(given: Any) -> Any:
        if isinstance(given, dict) and set(given) == set(names):
            given = tuple(given[name] for name in names)
        if isinstance(given, tuple) and len(given) == len(elements):
            return tuple(element(part) for element, part in zip(elements, given, strict=True))
        return given

    return write


def _same(value: Any) -> Any:
    return value


_FOUND: dict[str, type[sql.TypeEngine[Any]]] = {
    **{
        kind.__name__: kind
        for kind in (Int8, Int16, Int32, Int64, Int128, Int256, UInt8, UInt16, UInt32, UInt64, UInt128, UInt256)
    },
    "Float32": Float32,
    "Float64": Float64,
    "Bool": sql.Boolean,
    "String": sql.String,
    "UUID": sql.Uuid,
    "Date": sql.Date,
    "Date32": sql.Date,
}


def found_type(name: str) -> tuple[sql.TypeEngine[Any], bool]:
    """The type of a column that ClickHouse calls so, and whether it may be NULL.

    >>> found_type("Nullable(Decimal(10, 2))")
    (Numeric(precision=10, scale=2), True)
    """
    if name.startswith("Nullable("):
        return found_type(name[len("Nullable(") : -1])[0], True
    base, arguments = base_and_arguments(name)
    may_be_null = name.startswith("LowCardinality(Nullable(") or base in ("Dynamic", "Variant")
    if name.startswith("LowCardinality("):
        return Other(name.replace("Nullable(", "", 1)[:-1] if may_be_null else name), may_be_null
    if base == "Decimal":
        return sql.Numeric(int(arguments[0]), int(arguments[1])), False
    if base == "Array" and not arguments[0].startswith("Array(") and writer_of(arguments[0]) is None:
        return sql.ARRAY(found_type(arguments[0])[0]), False
    if base in ("DateTime", "DateTime64"):
        return sql.DateTime(timezone=bool(arguments) and arguments[-1].startswith("'")), False
    kind = _FOUND.get(base) if not arguments else None
    return (Other(name) if kind is None else kind()), may_be_null


def nullable(name: str) -> str:
    """The name of the type with NULL beside its values.

    >>> nullable("LowCardinality(String)"), nullable("Array(String)")
    ('LowCardinality(Nullable(String))', 'Array(String)')
    """
    if name.startswith(("Nullable(", "LowCardinality(Nullable(")) or name.partition("(")[0] in _NEVER_NULLABLE:
        return name
    if name.startswith("LowCardinality("):
        return f"LowCardinality(Nullable({name[len('LowCardinality(') : -1]}))"
    return f"Nullable({name})"
