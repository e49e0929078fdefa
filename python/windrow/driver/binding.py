"""Parameters of queries, and names in SQL."""

from windrow._shared.binding import bind_query, finalize_query
from windrow._shared.identifiers import quote_identifier
from windrow._shared.literals import DT64Param, parameter_text, query_literal

format_query_value = query_literal
format_bind_value = parameter_text

__all__ = ["DT64Param", "bind_query", "finalize_query", "format_bind_value", "format_query_value", "quote_identifier"]
