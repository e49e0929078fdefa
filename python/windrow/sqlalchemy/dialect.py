"""The dialect: how it connects, what it says of itself, and what it finds in a database.

It speaks through `windrow.dbapi`. Statements take effect one by one: there are no transactions, so that commit and
rollback do nothing. Settings make ClickHouse answer as SQL would where it has a choice.
"""

from __future__ import annotations

import re
from types import ModuleType
from typing import Any

from sqlalchemy import exc, text
from sqlalchemy.engine import default, reflection
from sqlalchemy.engine.interfaces import BindTyping
from sqlalchemy.engine.reflection import ReflectionDefaults
from sqlalchemy.schema import Index, Table

from windrow import dbapi
from windrow._shared.binding import bind
from windrow.dbapi.cursor import Cursor
from windrow.sqlalchemy.compiler import DDLCompiler, Preparer, SQLCompiler, TypeCompiler
from windrow.sqlalchemy.types import found_type
from windrow.sqlalchemy.values import COLSPECS

#: What SQL means by it. Users who may not set one of them, and servers that have no such setting, do without.
SETTINGS = {
    "aggregate_functions_null_for_empty": 1,
    "cast_keep_nullable": 1,
    "enable_time_time64_type": 1,
    "except_default_mode": "DISTINCT",
    "intersect_default_mode": "DISTINCT",
    "join_use_nulls": 1,
    "mutations_sync": 1,
    "prefer_column_name_to_alias": 1,
    "union_default_mode": "DISTINCT",
}
VIEWS = "('View', 'LiveView', 'WindowView')"
TABLE_ARGUMENTS = ("engine", "order_by", "partition_by", "primary_key", "sample_by", "ttl", "settings")


class QuietCursor(Cursor):
    """A cursor that has no result after a statement that gives none, as PEP 249 wants it and SQLAlchemy needs it."""

    @property
    def description(self) -> Any:
        """None where there are no columns."""
        return super().description or None

    def execute(self, operation: str, parameters: Any = None, *arguments: Any, **named: Any) -> None:
        """As the cursor's, without the counters that it takes for a result."""
        super().execute(operation, parameters, *arguments, **named)
        sent = bind(operation, parameters, self.client.server_tz).statement
        if sent.is_command or sent.is_insert:
            self._start()
            self._rowcount = -1


class QuietConnection(dbapi.Connection):
    """A connection with such cursors."""

    def cursor(self) -> Cursor:
        """One of them."""
        return QuietCursor(self.client)


class WindrowDialect(default.DefaultDialect):
    """`windrow://user:password@host:port/database?option=value`; options are those of get_client, and settings."""

    name = "windrow"
    driver = "http"
    default_paramstyle = "pyformat"
    statement_compiler = SQLCompiler
    ddl_compiler = DDLCompiler
    type_compiler_cls = TypeCompiler
    preparer = Preparer  # type: ignore[assignment]
    colspecs = COLSPECS
    bind_typing = BindTyping.RENDER_CASTS
    max_identifier_length = 127
    construct_arguments = [(Table, dict.fromkeys(TABLE_ARGUMENTS)), (Index, {"type": None})]

    supports_statement_cache = True
    supports_native_boolean = True
    supports_native_decimal = True
    supports_native_uuid = True
    supports_native_enum = False
    supports_multivalues_insert = True
    use_insertmanyvalues = True
    use_insertmanyvalues_wo_returning = True
    insertmanyvalues_page_size = 10_000
    insertmanyvalues_max_parameters = 1_000_000
    supports_comments = True
    inline_comments = True
    supports_schemas = True
    supports_views = True
    supports_alter = False
    supports_sequences = False
    supports_default_values = False
    supports_default_metavalue = False
    supports_empty_insert = False
    supports_sane_rowcount = False
    supports_sane_multi_rowcount = False
    postfetch_lastrowid = False
    preexecute_autoincrement_sequences = False
    requires_name_normalize = False
    div_is_floordiv = False
    tuple_in_values = False

    @classmethod
    def import_dbapi(cls) -> ModuleType:
        """PEP 249 over the synchronous client."""
        return dbapi

    def create_connect_args(self, url: Any) -> Any:
        """The parts of the URL as arguments; what stands behind its question mark goes to the client, too."""
        return (), {**url.translate_connect_args(), **url.query}

    def connect(self, *arguments: Any, **named: Any) -> Any:
        """A connection that answers as SQL would."""
        made = QuietConnection(*arguments, **named)
        for name, value in SETTINGS.items():
            known = made.client.server_settings.get(name)
            if known is not None and known.readonly != 1 and made.client.get_client_setting(name) is None:
                made.client.set_client_setting(name, value)
        return made

    def do_execute(self, cursor: Any, statement: str, parameters: Any, context: Any = None) -> None:
        """With `settings` of the execution options."""
        settings = context.execution_options.get("settings") if context is not None else None
        cursor.execute(statement, parameters, settings=settings)

    def do_execute_no_params(self, cursor: Any, statement: str, context: Any = None) -> None:
        """The text as it is: nothing in it is doubled."""
        cursor.execute(statement, pyformat_encoded=False)

    def do_ping(self, dbapi_connection: Any) -> bool:
        """Whether the server answers."""
        answers: bool = dbapi_connection.client.ping()
        return answers

    def is_disconnect(self, e: Any, connection: Any, cursor: Any) -> bool:
        """Never: the client makes a new connection by itself when one is lost."""
        return False

    def _get_server_version_info(self, connection: Any) -> tuple[int, ...]:
        version = connection.connection.dbapi_connection.client.server_version or ""
        return tuple(map(int, re.findall(r"\d+", version)))

    def _get_default_schema_name(self, connection: Any) -> str:
        name: str = connection.exec_driver_sql("SELECT currentDatabase()").scalar()
        return name

    # What there is

    def _names(self, connection: Any, query: str, **parameters: Any) -> list[str]:
        return [row[0] for row in connection.execute(text(query), parameters)]

    def _in(self, schema: str | None) -> str:
        name: str | None = schema or self.default_schema_name
        return name or "default"

    @reflection.cache
    def get_schema_names(self, connection: Any, **kw: Any) -> list[str]:
        """The databases."""
        return self._names(connection, "SELECT name FROM system.databases ORDER BY name")

    @reflection.cache
    def get_table_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        """Tables of every engine, without views."""
        query = "SELECT name FROM system.tables WHERE database = :schema AND NOT is_temporary"
        query += f" AND engine NOT IN {VIEWS} AND engine != 'MaterializedView' AND name NOT LIKE '.inner%' ORDER BY name"
        return self._names(connection, query, schema=self._in(schema))

    @reflection.cache
    def get_view_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        """Views that store nothing."""
        query = f"SELECT name FROM system.tables WHERE database = :schema AND engine IN {VIEWS} ORDER BY name"
        return self._names(connection, query, schema=self._in(schema))

    @reflection.cache
    def get_materialized_view_names(self, connection: Any, schema: str | None = None, **kw: Any) -> list[str]:
        """Views that store."""
        query = "SELECT name FROM system.tables WHERE database = :schema AND engine = 'MaterializedView' ORDER BY name"
        return self._names(connection, query, schema=self._in(schema))

    @reflection.cache
    def has_table(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> bool:
        """Whether there is a table or a view of that name."""
        return self._table(connection, "1", table_name, schema) is not None

    @reflection.cache
    def has_schema(self, connection: Any, schema_name: str, **kw: Any) -> bool:
        """Whether there is a database of that name."""
        return schema_name in self.get_schema_names(connection, **kw)

    def has_index(self, *arguments: Any, **named: Any) -> bool:
        """There are none of the kind that is asked for."""
        return False

    def _table(self, connection: Any, columns: str, name: str, schema: str | None) -> Any:
        query = f"SELECT {columns} FROM system.tables WHERE database = :schema AND name = :name"
        return connection.execute(text(query), {"schema": self._in(schema), "name": name}).first()

    def _found(self, connection: Any, columns: str, name: str, schema: str | None) -> Any:
        row = self._table(connection, columns, name, schema)
        if row is None:
            raise exc.NoSuchTableError(f"{schema}.{name}" if schema else name)
        return row

    @reflection.cache
    def get_columns(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        """Names, types, defaults, comments."""
        self._found(connection, "1", table_name, schema)
        query = "SELECT name, type, default_kind, default_expression, comment FROM system.columns"
        query += " WHERE database = :schema AND table = :name ORDER BY position"
        rows = connection.execute(text(query), {"schema": self._in(schema), "name": table_name})
        return [self._column(*row) for row in rows]

    def _column(self, name: str, type_name: str, kind: str, expression: str, comment: str) -> dict[str, Any]:
        found, may_be_null = found_type(type_name)
        column: dict[str, Any] = {
            "name": name,
            "type": found,
            "nullable": may_be_null,
            "default": expression if kind == "DEFAULT" else None,
            "comment": comment or None,
        }
        if kind in ("MATERIALIZED", "ALIAS"):
            column["computed"] = {"sqltext": expression, "persisted": kind == "MATERIALIZED"}
        return column

    @reflection.cache
    def get_view_definition(self, connection: Any, view_name: str, schema: str | None = None, **kw: Any) -> str:
        """The view's SELECT."""
        definition: str = self._found(connection, "as_select", view_name, schema)[0]
        if not definition:
            raise exc.NoSuchTableError(f"{view_name} is no view")
        return definition

    @reflection.cache
    def get_table_comment(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        """The table's comment."""
        return {"text": self._found(connection, "comment", table_name, schema)[0] or None}

    @reflection.cache
    def get_table_options(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        """The engine, and the keys that the table has, as arguments for Table."""
        names = ("engine", "sorting_key", "partition_key", "sampling_key")
        row = self._found(connection, ", ".join(names), table_name, schema)
        options = dict(zip(("engine", "order_by", "partition_by", "sample_by"), row, strict=True))
        return {f"windrow_{name}": f"({value})" if name != "engine" else value for name, value in options.items() if value}

    def _nothing(self, empty: Any, connection: Any, table_name: str, schema: str | None) -> Any:
        self._found(connection, "1", table_name, schema)
        return empty()

    def get_pk_constraint(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        """None: ClickHouse's primary key is an order, and rows of equal keys are as good as others."""
        return self._nothing(ReflectionDefaults.pk_constraint, connection, table_name, schema)

    def get_foreign_keys(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        """None."""
        return self._nothing(ReflectionDefaults.foreign_keys, connection, table_name, schema)

    def get_indexes(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        """None."""
        return self._nothing(ReflectionDefaults.indexes, connection, table_name, schema)

    def get_unique_constraints(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        """None."""
        return self._nothing(ReflectionDefaults.unique_constraints, connection, table_name, schema)

    def get_check_constraints(self, connection: Any, table_name: str, schema: str | None = None, **kw: Any) -> Any:
        """None: ClickHouse tells them in SHOW CREATE TABLE alone."""
        return self._nothing(ReflectionDefaults.check_constraints, connection, table_name, schema)
