"""Contexts of inserts."""

from windrow._shared.contexts import InsertContext

__all__ = ["InsertContext"]
