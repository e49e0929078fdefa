"""The package's build backend: maturin, after windrow/_sync is made from windrow/_async.

pip and build call these functions (PEP 517 and 660, named in pyproject.toml). All but the first are maturin's own.
"""

from typing import Any

import maturin
from async_to_sync import write
from maturin import (
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]


def build_wheel(*arguments: Any, **named: Any) -> str:
    write()
    return maturin.build_wheel(*arguments, **named)


def build_sdist(*arguments: Any, **named: Any) -> str:
    write()
    return maturin.build_sdist(*arguments, **named)


def build_editable(*arguments: Any, **named: Any) -> str:
    write()
    return maturin.build_editable(*arguments, **named)
