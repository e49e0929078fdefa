"""The packages that are only needed for some results, imported when the first of those is asked for."""

from __future__ import annotations

import importlib
from types import ModuleType

from windrow._shared.errors import NotSupportedError


def numpy() -> ModuleType:
    """NumPy, or NotSupportedError that says how to install it."""
    return _extra("numpy", "numpy", "NumPy")


def pandas() -> ModuleType:
    """pandas 2 or later, or NotSupportedError that says how to install it."""
    found = _extra("pandas", "pandas", "pandas")
    if int(found.__version__.split(".")[0]) < 2:
        raise NotSupportedError(f"pandas 2.0 or later is needed, found {found.__version__}")
    return found


def pyarrow() -> ModuleType:
    """PyArrow, or NotSupportedError that says how to install it."""
    return _extra("pyarrow", "arrow", "PyArrow")


def polars() -> ModuleType:
    """Polars, or NotSupportedError that says how to install it."""
    return _extra("polars", "polars", "Polars")


def pyarrow_or_none() -> ModuleType | None:
    """PyArrow where it only makes something faster."""
    try:
        return importlib.import_module("pyarrow")
    except ImportError:
        return None


def _extra(module: str, extra: str, name: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ImportError:
        text = f"{name} package is not installed: pip install 'windrow[{extra}]'"
        raise NotSupportedError(text) from None
