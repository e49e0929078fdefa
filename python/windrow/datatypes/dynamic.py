"""Values of a Variant together with the type that they are meant to have."""

from __future__ import annotations

from typing import Any, NamedTuple

from windrow._shared.errors import DataError, InternalError
from windrow.datatypes.registry import get_from_name

__all__ = ["TypedVariant", "typed_variant"]


class TypedVariant(NamedTuple):
    """A value and the name of its alternative: what the read format `typed` gives, and what an insert takes."""

    value: Any
    type_name: str


def typed_variant(value: Any, type_name: str) -> TypedVariant:
    """Says which alternative of a Variant a value belongs to, where its Python type leaves it open.

    DataError for None, which needs no type, and for a name that is no type's.

    >>> typed_variant([1, 2], "Array(UInt32)")
    TypedVariant(value=[1, 2], type_name='Array(UInt32)')
    """
    if value is None:
        raise DataError("NULL has no type: write None itself into a Variant")
    try:
        alternative = get_from_name(type_name)
    except InternalError as unknown:
        raise DataError(f"{type_name!r} is no type of ClickHouse: write it as the column's Variant does") from unknown
    return TypedVariant(value, alternative.name)
