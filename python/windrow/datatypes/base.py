"""What is known of a ClickHouse type from its name."""

from __future__ import annotations

from datetime import date, datetime, timedelta
from decimal import Decimal
from ipaddress import IPv4Address, IPv6Address
from uuid import UUID

from windrow._shared.typenames import as_clickhouse_spells, base_and_arguments, element_types

__all__ = ["ClickHouseType"]

_PYTHON_TYPES: dict[str, type] = {
    **{f"{sign}{width}": int for sign in ("Int", "UInt") for width in (8, 16, 32, 64, 128, 256)},
    **dict.fromkeys(("Float32", "Float64", "BFloat16"), float),
    **dict.fromkeys(("String", "FixedString", "Enum8", "Enum16"), str),
    **dict.fromkeys(("Date", "Date32"), date),
    **dict.fromkeys(("DateTime", "DateTime64"), datetime),
    **dict.fromkeys(("Time", "Time64"), timedelta),
    "Bool": bool,
    "Decimal": Decimal,
    "UUID": UUID,
    "IPv4": IPv4Address,
    "IPv6": IPv6Address,
    "Array": list,
    "Tuple": tuple,
    "Map": dict,
    "JSON": dict,
    "Variant": object,
    "Dynamic": object,
}


class ClickHouseType:
    """A type: `name` is its full name, `base_type` the name without wrappers and arguments.

    >>> found = ClickHouseType("Nullable(DateTime64(3, 'UTC'))")
    >>> found.base_type, found.arguments, found.nullable, found.low_card
    ('DateTime64', ('3', "'UTC'"), True, False)
    """

    __slots__ = ("arguments", "base_type", "low_card", "name", "nullable", "wrappers")

    def __init__(self, name: str) -> None:
        name = as_clickhouse_spells(name)
        self.low_card = name.startswith("LowCardinality(")
        self.nullable = name.startswith(("Nullable(", "LowCardinality(Nullable("))
        self.wrappers = ("LowCardinality",) * self.low_card + ("Nullable",) * self.nullable
        self.base_type, self.arguments = base_and_arguments(name)
        self.name = self._wrapped(self._spelled_out()) if self.base_type in ("Array", "Tuple", "JSON") else name

    @property
    def python_type(self) -> type | None:
        """The class that values have unless a format says otherwise."""
        return _PYTHON_TYPES.get(self.base_type)

    @property
    def element_types(self) -> tuple[ClickHouseType, ...]:
        """The types inside: of an Array's elements, of a Tuple's and a Nested's columns, of a Map's keys and values."""
        if self.base_type in ("Tuple", "Nested"):
            inner = element_types(f"{self.base_type}({', '.join(self.arguments)})")
            return tuple(ClickHouseType(name) for name in inner)
        if self.base_type in ("Array", "Map", "Variant"):
            return tuple(ClickHouseType(name) for name in self.arguments)
        if self.base_type == "SimpleAggregateFunction":
            return tuple(ClickHouseType(name) for name in self.arguments[1:])
        return ()

    @property
    def element_type(self) -> ClickHouseType | None:
        """The type of an Array's elements, or of what a SimpleAggregateFunction holds."""
        return self.element_types[0] if self.base_type in ("Array", "SimpleAggregateFunction") else None

    @property
    def element_names(self) -> tuple[str, ...]:
        """The names of a Tuple's or a Nested's columns, if they have names."""
        return tuple(name for name, _ in self._named_elements() if name)

    def _named_elements(self) -> list[tuple[str, str]]:
        """Each argument of a Tuple: the element's name, empty if it has none, and its type."""
        types = element_types(f"Tuple({', '.join(self.arguments)})") if self.base_type in ("Tuple", "Nested") else ()
        return [
            (argument[: len(argument) - len(found)].strip().strip("`"), found)
            for argument, found in zip(self.arguments, types, strict=True)
        ]

    def _spelled_out(self) -> str:
        """The names of elements always stand in backquotes."""
        if self.base_type == "Array":
            return f"Array({', '.join(ClickHouseType(name).name for name in self.arguments)})"
        if self.base_type == "JSON":
            return f"JSON({', '.join(map(_quoted_path, self.arguments))})" if self.arguments else "JSON"
        elements = [f"`{name}` {found}" if name else found for name, found in self._named_elements()]
        return f"Tuple({', '.join(elements)})"

    def _wrapped(self, name: str) -> str:
        for wrapper in reversed(self.wrappers):
            name = f"{wrapper}({name})"
        return name

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClickHouseType) and other.name == self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"ClickHouseType({self.name!r})"


def _quoted_path(argument: str) -> str:
    """`a.b UInt32` with the path in backquotes; limits and SKIP stay as they are."""
    path, separator, type_name = argument.partition(" ")
    if not separator or "=" in argument.partition("(")[0] or path.upper() == "SKIP" or path.startswith("`"):
        return argument
    return f"`{path}` {type_name}"
