"""What ClickHouse writes in another way than SQLAlchemy's default: names, expressions, UPDATE and DELETE, CREATE TABLE."""

from __future__ import annotations

from typing import Any

from sqlalchemy import exc
from sqlalchemy.sql import compiler
from sqlalchemy.sql.compiler import RESERVED_WORDS
from sqlalchemy.sql.selectable import CompoundSelect
from sqlalchemy.types import Numeric, String

from windrow.sqlalchemy.types import nullable

_MORE_RESERVED = "anti any array asof div except final format global interval mod prewhere sample semi settings ttl with".split()

_END_OF_UNION = "\0 end of union \0"


class Preparer(compiler.IdentifierPreparer):
    """Names in backticks, where they need quotes."""

    reserved_words = RESERVED_WORDS | set(_MORE_RESERVED)

    def __init__(self, dialect: Any, **options: Any) -> None:
        super().__init__(dialect, **{**options, "initial_quote": "`", "escape_quote": "`"})

    def _escape_identifier(self, value: str) -> str:
        return super()._escape_identifier(value.replace("\\", "\\\\"))


class SQLCompiler(compiler.SQLCompiler):
    """Statements."""

    def render_literal_value(self, value: Any, type_: Any) -> str:
        """A backslash stands for itself, also within a list or in what a type of the application writes."""
        return super().render_literal_value(value, type_).replace("\\", "\\\\")

    def visit_empty_set_expr(self, element_types: Any, **_: Any) -> str:
        """A SELECT without rows."""
        return f"SELECT {', '.join('NULL' for _ in element_types or [None])} WHERE false"

    def limit_clause(self, select: Any, **kw: Any) -> str:
        """LIMIT and OFFSET, each for itself: a LIMIT below zero counts from the end in ClickHouse."""
        text = ""
        if select._limit_clause is not None:
            text += f"\n LIMIT {self.process(select._limit_clause, **kw)}"
        if select._offset_clause is not None:
            text += f"\n OFFSET {self.process(select._offset_clause, **kw)}"
        return text

    def group_by_clause(self, select: Any, **kw: Any) -> str:
        """Marks where a UNION's own clauses begin."""
        text: str = super().group_by_clause(select, **kw)
        return _END_OF_UNION + text if isinstance(select, CompoundSelect) else text

    def visit_compound_select(self, cs: Any, *arguments: Any, **kw: Any) -> str:
        """In a SELECT of its own if it has an order or a limit, which would be the last SELECT's in ClickHouse."""
        text = super().visit_compound_select(cs, *arguments, **kw)
        inside, _, clauses = text.partition(_END_OF_UNION)
        return f"SELECT * FROM ({inside}){clauses}" if clauses.strip(" )") else inside + clauses

    def render_bind_cast(self, type_: Any, dbapi_type: Any, sqltext: str) -> str:
        """The value's type where ClickHouse would take it for a text or a float; an INSERT knows what its columns are."""
        if self.isinsert or (isinstance(type_, Numeric) and type_.precision is None):
            return sqltext
        return f"CAST({sqltext} AS {nullable(self.dialect.type_compiler_instance.process(type_))})"

    def visit_floordiv_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """`/` is never whole in ClickHouse."""
        return f"floor({self.process(binary.left, **kw)} / {self.process(binary.right, **kw)})"

    def _bits(self, name: str, binary: Any, kw: dict[str, Any]) -> str:
        return f"{name}({self.process(binary.left, **kw)}, {self.process(binary.right, **kw)})"

    def visit_bitwise_and_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """Functions: there are no signs for bits."""
        return self._bits("bitAnd", binary, kw)

    def visit_bitwise_or_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """As bitAnd."""
        return self._bits("bitOr", binary, kw)

    def visit_bitwise_xor_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """As bitAnd."""
        return self._bits("bitXor", binary, kw)

    def visit_bitwise_lshift_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """As bitAnd."""
        return self._bits("bitShiftLeft", binary, kw)

    def visit_bitwise_rshift_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """As bitAnd."""
        return self._bits("bitShiftRight", binary, kw)

    def visit_bitwise_not_op_unary_operator(self, element: Any, operator: Any, **kw: Any) -> str:
        """As bitAnd."""
        return f"bitNot({self.process(element.element, **kw)})"

    def visit_is_distinct_from_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """By way of <=>, which takes NULL for a value."""
        return f"NOT ({self.process(binary.left, **kw)} <=> {self.process(binary.right, **kw)})"

    def visit_is_not_distinct_from_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """<=>."""
        return f"({self.process(binary.left, **kw)} <=> {self.process(binary.right, **kw)})"

    def visit_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """A function; flags stand in the pattern."""
        flags = binary.modifiers["flags"]
        pattern = self.process(binary.right, **kw)
        if flags is not None:
            pattern = f"concat('(?{flags})', {pattern})"
        return f"match({self.process(binary.left, **kw)}, {pattern})"

    def visit_not_regexp_match_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """Its opposite."""
        return f"NOT {self.visit_regexp_match_op_binary(binary, operator, **kw)}"

    def visit_regexp_replace_op_binary(self, binary: Any, operator: Any, **kw: Any) -> str:
        """Every match, as in ClickHouse."""
        if binary.modifiers["flags"] is not None:
            raise exc.CompileError("regexp_replace takes no flags here: write (?i) and the like into the pattern")
        pattern, replacement = binary.right.clauses
        words = (binary.left, pattern, replacement)
        return f"replaceRegexpAll({', '.join(self.process(word, **kw) for word in words)})"

    def visit_now_func(self, fn: Any, **kw: Any) -> str:
        """With its digits."""
        return "now64(6)"

    def visit_current_timestamp_func(self, fn: Any, **kw: Any) -> str:
        """The same."""
        return "now64(6)"

    def visit_true(self, expr: Any, **kw: Any) -> str:
        """A value of type Bool."""
        return "true"

    def visit_false(self, expr: Any, **kw: Any) -> str:
        """A value of type Bool."""
        return "false"

    def for_update_clause(self, select: Any, **kw: Any) -> str:
        """There are no locks."""
        return ""

    def visit_update(self, update_stmt: Any, visiting_cte: Any = None, **kw: Any) -> str:
        """A mutation, which the dialect's settings wait for."""
        text = super().visit_update(update_stmt, visiting_cte=visiting_cte, **kw)
        target, _, rest = text.removeprefix("UPDATE ").partition(" SET ")
        return f"ALTER TABLE {target} UPDATE {rest}" + ("" if update_stmt._where_criteria else " WHERE true")

    def visit_delete(self, delete_stmt: Any, visiting_cte: Any = None, **kw: Any) -> str:
        """A lightweight DELETE, or TRUNCATE where all rows go."""
        text = super().visit_delete(delete_stmt, visiting_cte=visiting_cte, **kw)
        return text if delete_stmt._where_criteria else text.replace("DELETE FROM", "TRUNCATE TABLE", 1)

    def update_from_clause(self, *_: Any, **__: Any) -> str:
        """An UPDATE looks at one table."""
        raise exc.CompileError("ClickHouse updates a table by itself: bring the other table into a subquery")

    def delete_extra_from_clause(self, *_: Any, **__: Any) -> str:
        """And so does a DELETE."""
        raise exc.CompileError("ClickHouse deletes from a table by itself: bring the other table into a subquery")


class DDLCompiler(compiler.DDLCompiler):
    """CREATE TABLE with its engine; what ClickHouse has no word for is left out or refused."""

    def get_column_specification(self, column: Any, **kw: Any) -> str:
        """Name, type, default, comment."""
        kind = self.dialect.type_compiler_instance.process(column.type, type_expression=column)
        words = [self.preparer.format_column(column), nullable(kind) if column.nullable else kind]
        if column.computed is not None:
            words.append(self.process(column.computed))
        elif column.server_default is not None:
            words.append(f"DEFAULT {self.get_column_default_string(column)}")
        if column.comment is not None:
            words.append(f"COMMENT {self._text(column.comment)}")
        return " ".join(words)

    def visit_computed_column(self, generated: Any, **kw: Any) -> str:
        """Stored, or made when it is asked for."""
        expression = self.sql_compiler.process(generated.sqltext, include_table=False, literal_binds=True)
        return f"{'ALIAS' if generated.persisted is False else 'MATERIALIZED'} {expression}"

    def create_table_constraints(self, table: Any, _include_foreign_key_constraints: Any = None, **kw: Any) -> str:
        """CHECKs that have names. ClickHouse has no foreign keys and nothing that is unique."""
        checks = [item for item in table.constraints if item.__visit_name__ == "check_constraint" and item.name]
        return ", \n\t".join(self.process(check) for check in checks)

    def visit_check_constraint(self, constraint: Any, **kw: Any) -> str:
        """Without brackets around."""
        expression = self.sql_compiler.process(constraint.sqltext, include_table=False, literal_binds=True)
        return f"CONSTRAINT {self.preparer.format_constraint(constraint)} CHECK {expression}"

    def post_create_table(self, table: Any) -> str:
        """ENGINE and what belongs to it; the primary key is the order where nothing else is."""
        options = table.dialect_options["windrow"]
        engine = options["engine"] or "MergeTree"
        words = [f"\nENGINE = {engine}"]
        is_merge_tree = "MergeTree" in engine.partition("(")[0]
        for name in ("partition_by", "primary_key", "order_by", "sample_by", "ttl"):
            value = options[name]
            if value is None and name == "order_by" and is_merge_tree and not options["primary_key"]:
                value = [column for column in table.primary_key.columns] or "tuple()"
            if value is not None:
                words.append(f"{name.replace('_', ' ').upper()} {self._expressions(value)}")
        if options["settings"]:
            pairs = options["settings"].items()
            words.append("SETTINGS " + ", ".join(f"{name} = {self._setting(value)}" for name, value in pairs))
        if table.comment is not None:
            words.append(f"COMMENT {self._text(table.comment)}")
        return "\n".join(words)

    def _expressions(self, given: Any) -> str:
        if isinstance(given, str):
            return given
        if not isinstance(given, (list, tuple)):
            given = [given]
        texts = [
            item if isinstance(item, str) else self.sql_compiler.process(item, include_table=False, literal_binds=True)
            for item in given
        ]
        return texts[0] if len(texts) == 1 else f"({', '.join(texts)})"

    def _setting(self, value: Any) -> str:
        return self._text(value) if isinstance(value, str) else str(int(value) if isinstance(value, bool) else value)

    def _text(self, value: str) -> str:
        return self.sql_compiler.render_literal_value(value, String())

    def visit_set_table_comment(self, create: Any, **kw: Any) -> str:
        """A change of the table."""
        table = self.preparer.format_table(create.element)
        return f"ALTER TABLE {table} MODIFY COMMENT {self._text(create.element.comment)}"

    def visit_drop_table_comment(self, drop: Any, **kw: Any) -> str:
        """An empty one."""
        return f"ALTER TABLE {self.preparer.format_table(drop.element)} MODIFY COMMENT ''"

    def visit_set_column_comment(self, create: Any, **kw: Any) -> str:
        """A change of the table."""
        table, column = self.preparer.format_table(create.element.table), self.preparer.format_column(create.element)
        return f"ALTER TABLE {table} COMMENT COLUMN {column} {self._text(create.element.comment)}"

    def visit_create_index(
        self, create: Any, include_schema: bool = False, include_table_schema: bool = True, **kw: Any
    ) -> str:
        """A data-skipping index, of the type minmax unless `windrow_type` says otherwise."""
        index = create.element
        if index.unique:
            raise exc.CompileError(f"The index {index.name} can't be unique: ClickHouse doesn't compare rows with others")
        expressions = [self.sql_compiler.process(item, include_table=False, literal_binds=True) for item in index.expressions]
        kind = index.dialect_options["windrow"]["type"] or "minmax"
        name = self._prepared_index_name(index)
        return f"ALTER TABLE {self.preparer.format_table(index.table)} ADD INDEX {name} ({', '.join(expressions)}) TYPE {kind}"

    def visit_drop_index(self, drop: Any, **kw: Any) -> str:
        """A change of the table."""
        index = drop.element
        return f"ALTER TABLE {self.preparer.format_table(index.table)} DROP INDEX {self._prepared_index_name(index)}"

    def visit_create_schema(self, create: Any, **kw: Any) -> str:
        """A schema is a database."""
        return f"CREATE DATABASE {'IF NOT EXISTS ' if create.if_not_exists else ''}{self._schema(create)}"

    def visit_drop_schema(self, drop: Any, **kw: Any) -> str:
        """It goes with its tables."""
        return f"DROP DATABASE {'IF EXISTS ' if drop.if_exists else ''}{self._schema(drop)}"

    def _schema(self, ddl: Any) -> str:
        return self.preparer.format_schema(ddl.element)


class TypeCompiler(compiler.GenericTypeCompiler):
    """Names of types."""

    def visit_clickhouse(self, type_: Any, **kw: Any) -> str:
        """Those of this package."""
        name: str = type_.clickhouse_name()
        return name

    def visit_SMALLINT(self, type_: Any, **kw: Any) -> str:
        return "Int16"

    def visit_INTEGER(self, type_: Any, **kw: Any) -> str:
        return "Int32"

    def visit_BIGINT(self, type_: Any, **kw: Any) -> str:
        return "Int64"

    def visit_FLOAT(self, type_: Any, **kw: Any) -> str:
        return "Float64"

    visit_DOUBLE = visit_DOUBLE_PRECISION = visit_FLOAT

    def visit_REAL(self, type_: Any, **kw: Any) -> str:
        return "Float32"

    def visit_NUMERIC(self, type_: Any, **kw: Any) -> str:
        precision = 38 if type_.precision is None else type_.precision
        return f"Decimal({precision}, {min(precision, 10) if type_.scale is None else type_.scale})"

    visit_DECIMAL = visit_NUMERIC

    def visit_VARCHAR(self, type_: Any, **kw: Any) -> str:
        return "String"

    visit_CHAR = visit_NCHAR = visit_NVARCHAR = visit_TEXT = visit_CLOB = visit_BLOB = visit_VARCHAR
    visit_BINARY = visit_VARBINARY = visit_large_binary = visit_JSON = visit_VARCHAR

    def visit_BOOLEAN(self, type_: Any, **kw: Any) -> str:
        return "Bool"

    def visit_DATE(self, type_: Any, **kw: Any) -> str:
        return "Date32"

    def visit_DATETIME(self, type_: Any, **kw: Any) -> str:
        return "DateTime64(6, 'UTC')" if type_.timezone else "DateTime64(6)"

    visit_TIMESTAMP = visit_DATETIME

    def visit_TIME(self, type_: Any, **kw: Any) -> str:
        return "Time64(6)"

    def visit_uuid(self, type_: Any, **kw: Any) -> str:
        return "UUID"

    visit_UUID = visit_uuid

    def visit_ARRAY(self, type_: Any, **kw: Any) -> str:
        item = self.process(type_.item_type, **kw)
        for _ in range(type_.dimensions or 1):
            item = f"Array({item})"
        return item
