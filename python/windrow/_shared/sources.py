"""Data that comes in columns: which objects are the columns of an insert."""

from __future__ import annotations

from typing import Any

from windrow._shared.arrow_tables import ExactColumn, is_arrow_table
from windrow._shared.contexts import InsertContext


def columns_of(data: Any, context: InsertContext) -> list[Any] | None:
    """The columns of the data; None for data in rows."""
    if is_arrow_table(data):
        described = zip(data.columns, context.column_names, context.type_names, strict=True)
        return [ExactColumn(column, name, type_name) for column, name, type_name in described]
    if hasattr(data, "iloc") and hasattr(data, "columns"):  # pandas
        return [data.iloc[:, number] for number in range(len(data.columns))]
    if hasattr(data, "get_columns"):  # polars
        return list(data.get_columns())
    names = getattr(getattr(data, "dtype", None), "names", None)
    if names is not None:  # a structured NumPy array: by name where the names are the table's, else in order
        wanted = context.column_names if set(context.column_names) <= set(names) else names
        return [data[name] for name in wanted]
    if context.column_oriented:
        return list(data)
    if hasattr(data, "dtype") and getattr(data, "ndim", 1) == 2 and data.dtype != object:
        return [data[:, number] for number in range(data.shape[1])]
    return None
