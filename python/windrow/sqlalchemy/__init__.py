"""A dialect for SQLAlchemy 2: `create_engine("windrow://user:password@host:8123/database")`.

    engine = sqlalchemy.create_engine("windrow://default@localhost:8123/default")
    events = sqlalchemy.Table(
        "events", sqlalchemy.MetaData(),
        sqlalchemy.Column("id", types.UInt64, primary_key=True),
        sqlalchemy.Column("what", sqlalchemy.String, nullable=False),
        windrow_engine="MergeTree", windrow_order_by="id",
    )

Nothing else of the package needs SQLAlchemy; `pip install 'windrow[sqlalchemy]'` brings it.
"""

from windrow.sqlalchemy import types
from windrow.sqlalchemy.dialect import WindrowDialect

__all__ = ["WindrowDialect", "types"]
