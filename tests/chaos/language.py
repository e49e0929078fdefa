"""The questions of the count, in each database's own words."""

from __future__ import annotations

from chaos.kinds import CHECKED, COLUMNS, DUCKDB_COLUMNS, MANY, PLAIN, POSTGRES_COLUMNS, TABLES, Table


class ClickHouse:
    tables = TABLES

    def create(self, table: Table) -> list[str]:
        return [f"CREATE TABLE {name} ({COLUMNS}{table.constraint}) {self.engine(table)}" for name in table.names()]

    def engine(self, table: Table) -> str:
        return f"ENGINE = MergeTree {table.clauses}"

    def source(self, table: Table) -> str:
        return table.name if table.copies == 1 else f"merge(currentDatabase(), '^{table.name}_[0-9]+$')"

    def altered(self, table: Table) -> str:
        """How many rows are not what was sent."""
        text = "concat('w', toString(writer), '-', toString(number), '-', toString(row))"
        return f"SELECT count() FROM {self.source(table)} WHERE text != {text}"

    def found(self, table: Table, first: int, last: int) -> str:
        """By writer and insert: how many rows, how many different ones, and the place of the first, in two numbers."""
        place = "min((_block_number, _block_offset))" if table.ordered else "(0, 0)"
        return (
            f"SELECT writer, number, count(), uniqExact(row), tupleElement({place} AS place, 1), place.2 "
            f"FROM {self.source(table)} WHERE writer BETWEEN {first} AND {last} GROUP BY writer, number FORMAT TSV"
        )


class Spread(ClickHouse):
    tables = (MANY,)


class Replicated(ClickHouse):
    def engine(self, table: Table) -> str:
        return f"ENGINE = ReplicatedMergeTree('/chaos/{table.name}', '{{replica}}') {table.clauses}"


class DuckDb:
    # It has neither partitions nor windows of deduplication.
    tables = (PLAIN, CHECKED)

    def create(self, table: Table) -> list[str]:
        named, check = "CONSTRAINT sound CHECK ", ""
        if table.constraint:
            check = table.constraint.replace(named, "CHECK (") + ")"
        return [f"CREATE TABLE {table.name} ({DUCKDB_COLUMNS}{check})"]

    def altered(self, table: Table) -> str:
        text = "concat('w', writer, '-', number, '-', row)"
        return f"SELECT count(*) FROM {table.name} WHERE text != {text}"

    def found(self, table: Table, first: int, last: int) -> str:
        return (
            f"SELECT writer, number, count(*), count(DISTINCT row), min(rowid), 0 FROM {table.name} "
            f"WHERE writer BETWEEN {first} AND {last} GROUP BY writer, number FORMAT TSV"
        )


class PostgreSql(DuckDb):
    """Rows are numbered as they come: where they lie says nothing once room was given back."""

    def create(self, table: Table) -> list[str]:
        columns = POSTGRES_COLUMNS
        return [statement.replace(DUCKDB_COLUMNS, columns) for statement in super().create(table)]

    def found(self, table: Table, first: int, last: int) -> str:
        return super().found(table, first, last).replace("min(rowid)", "min(place)")
