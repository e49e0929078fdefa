"""How values of SQLAlchemy's types become what ClickHouse takes, and back, where the client's own values differ."""

from __future__ import annotations

import datetime as dt
import decimal
from collections.abc import Callable
from typing import Any

from sqlalchemy import func
from sqlalchemy import types as sql

from windrow.sqlalchemy.types import Other

Processor = Callable[[Any], Any] | None


def _quoted(dialect: Any, written: Callable[[Any], Any]) -> Processor:
    """The text of a value as SQLAlchemy quotes a String; the compiler doubles backslashes."""
    quote: Callable[[str], str] = sql.String().literal_processor(dialect)
    return lambda value: quote(str(written(value)))


class DateTime(sql.DateTime):
    """With all its digits. One with a zone is in UTC in the table."""

    render_bind_cast = True

    def bind_processor(self, dialect: Any) -> Processor:
        """As text: what SQL would otherwise get has no microseconds."""

        def written(value: Any) -> Any:
            if not isinstance(value, dt.date):
                return value
            if not isinstance(value, dt.datetime):
                return value.isoformat()
            if value.tzinfo is not None:
                value = value.astimezone(dt.timezone.utc).replace(tzinfo=None)
            return value.isoformat(" ", "microseconds")

        return written

    def literal_processor(self, dialect: Any) -> Processor:
        """The same in quotes."""
        return _quoted(dialect, self.bind_processor(dialect))  # type: ignore[arg-type]

    def result_processor(self, dialect: Any, coltype: Any) -> Processor:
        """In UTC, or without a zone."""
        zone = dt.timezone.utc if self.timezone else None

        def read(value: Any) -> Any:
            if not isinstance(value, dt.datetime):
                return value
            return value.replace(tzinfo=zone) if value.tzinfo is None or zone is None else value.astimezone(zone)

        return read


class Time(sql.Time):
    """A time of day; the client has spans of time for it."""

    render_bind_cast = True

    def result_processor(self, dialect: Any, coltype: Any) -> Processor:
        """The span since midnight as a time."""
        return lambda value: (dt.datetime.min + value).time() if isinstance(value, dt.timedelta) else value

    def literal_processor(self, dialect: Any) -> Processor:
        """In quotes."""
        return lambda value: f"'{value.isoformat()}'"


class Date(sql.Date):
    """A date; of a moment its day."""

    render_bind_cast = True

    def bind_processor(self, dialect: Any) -> Processor:
        """As a date, whatever it came with."""
        return lambda value: value.date() if isinstance(value, dt.datetime) else value

    def literal_processor(self, dialect: Any) -> Processor:
        """In quotes."""
        return lambda value: f"'{value.isoformat()[:10]}'"


class LargeBinary(sql.LargeBinary):
    """Bytes, in a String: read in hexadecimal digits, since the client reads Strings as text."""

    def bind_processor(self, dialect: Any) -> Processor:
        """As bytes, which the client escapes."""
        return lambda value: None if value is None else bytes(value)

    def literal_processor(self, dialect: Any) -> Processor:
        """With every byte escaped."""
        return lambda value: "unhex('" + bytes(value).hex() + "')"

    def column_expression(self, colexpr: Any) -> Any:
        """What is asked for."""
        return func.hex(colexpr, type_=colexpr.type)

    def result_processor(self, dialect: Any, coltype: Any) -> Processor:
        """From the digits."""
        return lambda value: None if value is None else bytes.fromhex(value)


class Numeric(sql.Numeric[Any]):
    """Decimal; what is computed of it may come as a float."""

    render_bind_cast = True

    def bind_processor(self, dialect: Any) -> Processor:
        """With all its digits, which a number without quotes would not keep in an expression."""
        typed = self.precision is not None
        return lambda value: str(value) if typed and isinstance(value, decimal.Decimal) else value

    def result_processor(self, dialect: Any, coltype: Any) -> Processor:
        """As the type says: Decimal, or float."""
        if not self.asdecimal:
            return lambda value: None if value is None else float(value)
        return lambda value: value if value is None or isinstance(value, decimal.Decimal) else decimal.Decimal(str(value))


class Uuid(sql.Uuid[Any]):
    """UUID."""

    def bind_processor(self, dialect: Any) -> Processor:
        """As text."""
        return lambda value: None if value is None else str(value)

    def literal_processor(self, dialect: Any) -> Processor:
        """In quotes."""
        return _quoted(dialect, str)

    def result_processor(self, dialect: Any, coltype: Any) -> Processor:
        """The client's UUID, or text for `as_uuid=False`."""
        return None if self.as_uuid else lambda value: None if value is None else str(value)


class Array(sql.ARRAY[Any]):
    """A list, whose dicts are what the type of its items says."""

    def bind_processor(self, dialect: Any) -> Processor:
        """Item by item, where the type has something to say of them."""
        write = self.item_type.bind_processor(dialect) if isinstance(self.item_type, Other) else None
        return write and (lambda value: [write(item) for item in value] if isinstance(value, list) else value)


COLSPECS: dict[type[sql.TypeEngine[Any]], type[sql.TypeEngine[Any]]] = {
    sql.ARRAY: Array,
    sql.DateTime: DateTime,
    sql.Time: Time,
    sql.Date: Date,
    sql.LargeBinary: LargeBinary,
    sql.Numeric: Numeric,
    sql.Float: sql.Float,
    sql.Uuid: Uuid,
}
