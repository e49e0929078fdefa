"""The exceptions; see windrow.exceptions."""

from windrow._shared.errors import (
    ClickHouseError,
    DatabaseError,
    DataError,
    Error,
    IntegrityError,
    InterfaceError,
    InternalError,
    NotSupportedError,
    OperationalError,
    ProgrammingError,
    StreamClosedError,
    StreamCompleteException,
    StreamFailureError,
    Warning,
)

__all__ = [
    "ClickHouseError",
    "DataError",
    "DatabaseError",
    "Error",
    "IntegrityError",
    "InterfaceError",
    "InternalError",
    "NotSupportedError",
    "OperationalError",
    "ProgrammingError",
    "StreamClosedError",
    "StreamCompleteException",
    "StreamFailureError",
    "Warning",
]
