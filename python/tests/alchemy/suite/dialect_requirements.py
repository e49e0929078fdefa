"""What ClickHouse can and can't do of what SQLAlchemy's tests of dialects ask for, with the reason beside each."""

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

#: Names of requirements of SQLAlchemy's suite.
CANT = {
    "autoincrement_insert": "no column counts by itself",
    "autoincrement_without_sequence": "no column counts by itself",
    "identity_columns": "no column counts by itself",
    "implements_get_lastrowid": "no column counts by itself",
    "sequences": "there are none",
    "insert_returning": "no statement that writes gives rows",
    "update_returning": "no statement that writes gives rows",
    "delete_returning": "no statement that writes gives rows",
    "empty_inserts": "an INSERT has values",
    "sane_rowcount": "a mutation doesn't say how many rows it changed",
    "sane_multi_rowcount": "a mutation doesn't say how many rows it changed",
    "ctes_on_dml": "WITH stands in front of SELECT alone",
    "ctes_with_update_delete": "WITH stands in front of SELECT alone",
    "update_from": "an UPDATE looks at one table",
    "delete_from": "a DELETE looks at one table",
    "savepoints": "there are no transactions",
    "two_phase_transactions": "there are no transactions",
    "isolation_level": "there are no transactions",
    "autocommit": "there are no transactions",
    "duplicate_key_raises_integrity_error": "keys are an order: rows of equal keys stay",
    "primary_key_constraint_reflection": "keys are an order, no constraint",
    "reflects_pk_names": "keys are an order, no constraint",
    "foreign_keys": "there are none",
    "foreign_key_constraint_reflection": "there are none",
    "self_referential_foreign_keys": "there are none",
    "unique_constraint_reflection": "nothing is unique",
    "index_reflection": "indices skip data; SQLAlchemy's say where rows are",
    "check_constraint_reflection": "SHOW CREATE TABLE alone knows them",
    "inline_check_constraint_reflection": "a CHECK has a name and stands behind the columns",
    "temporary_tables": "they belong to a session of HTTP, and no list of tables has them",
    "temp_table_reflection": "they belong to a session of HTTP, and no list of tables has them",
    "temp_table_names": "they belong to a session of HTTP, and no list of tables has them",
    "has_temp_table": "they belong to a session of HTTP, and no list of tables has them",
    "datetime_historic": "DateTime64 begins with 1900",
    "date_historic": "Date32 begins with 1900",
    "time_timezone": "a Time has no zone",
    "datetime_interval": "SQLAlchemy's Interval is a moment since 1970 here, and not a span that SQL computes with",
    "json_type": "JSON is an object and gives no path as SQLAlchemy writes it",
    "order_by_collation": "COLLATE names locales of ICU in a place of its own",
    "column_collation_reflection": "a column has no collation",
    "table_value_constructor": "VALUES is a table function with a structure",
    "tuple_in_w_empty": "an empty set of tuples has no type to compare with",
    "fetch_percent": "there is no FETCH of per cent",
}
CAN = ("reflect_table_options",)


class Requirements(SuiteRequirements):
    """All that CANT doesn't name and SuiteRequirements leaves open, and what CAN names."""


for _name, _reason in CANT.items():
    setattr(Requirements, _name, property(lambda self, reason=_reason: exclusions.skip_if(lambda: True, reason)))
for _name in CAN:
    setattr(Requirements, _name, property(lambda self: exclusions.open()))
