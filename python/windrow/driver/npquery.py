"""Results as NumPy arrays."""

from windrow._shared.results import NumpyResult

__all__ = ["NumpyResult"]
