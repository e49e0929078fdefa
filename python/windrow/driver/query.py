"""Contexts and results of queries."""

from windrow._shared.contexts import QueryContext, TzMode, TzSource
from windrow._shared.results import QueryResult

__all__ = ["QueryContext", "QueryResult", "TzMode", "TzSource"]
