"""The exceptions of this package; the tree is PEP 249's.

>>> from windrow.exceptions import DatabaseError, OperationalError
>>> issubclass(OperationalError, DatabaseError)
True
"""

from windrow._shared.errors import (
    AppendError,
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
    "AppendError",
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
