"""What ClickHouse says of inserts and commands."""

from windrow._shared.summary import QuerySummary

__all__ = ["QuerySummary"]
