"""ClickHouse's types by their names."""

from __future__ import annotations

from functools import lru_cache

from windrow._shared.errors import InternalError
from windrow._shared.formats import VALID_FORMATS
from windrow.datatypes.base import ClickHouseType

__all__ = ["get_from_name"]


@lru_cache(maxsize=4096)
def get_from_name(name: str) -> ClickHouseType:
    """The type of that name as ClickHouse spells it; the same object for a name. InternalError for no type's name.

    >>> get_from_name("LowCardinality(Nullable(String))").base_type
    'String'
    """
    found = ClickHouseType(name)
    if found.base_type not in VALID_FORMATS:
        raise InternalError(f"{found.base_type!r} is no type that is known here (in {name!r})")
    return found
