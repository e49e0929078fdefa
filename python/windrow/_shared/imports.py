"""Packages that are only needed for some methods: imported when they are used, with an error that names what to
install.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from windrow._shared.errors import NotSupportedError

_EXTRAS = {"numpy": "numpy", "pandas": "pandas", "pyarrow": "arrow", "pyarrow.compute": "arrow", "polars": "polars"}


def needed(package: str) -> Any:
    """The package; NotSupportedError if it isn't installed."""
    try:
        return import_module(package)
    except ImportError as cause:
        raise NotSupportedError(
            f"{package} is not installed: pip install 'windrow[{_EXTRAS[package]}]'"
        ) from cause


def loaded(package: str) -> Any:
    """The package if it is installed, else None."""
    try:
        return import_module(package)
    except ImportError:
        return None
