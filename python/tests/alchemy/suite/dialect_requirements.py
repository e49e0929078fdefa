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
    "materialized_views": "one has an engine or a target, which SQLAlchemy's statement doesn't name",
    "schema_create_delete": "a schema is made by CREATE DATABASE, and the test writes CREATE SCHEMA",
    "fetch_percent": "there is no FETCH of per cent",
}
#: Left closed by SuiteRequirements, since not every database can.
CAN = """
    array_type binary_comparisons binary_literals comment_reflection comment_reflection_full_unicode computed_columns
    computed_columns_default_persisted computed_columns_reflect_persisted computed_columns_stored computed_columns_virtual
    create_or_replace_view ctes ctes_with_values date datetime datetime_literals datetime_microseconds datetime_timezone
    duplicate_names_in_cursor_description except_ expression_server_defaults fetch_expression
    fetch_first fetch_null_from_numeric fetch_offset_with_options fetch_ties implicit_default_schema
    infinity_floats insert_from_select intersect like_escapes mod_operator_as_percent_sign
    multivalues_inserts nullable_booleans nullsordering offset percent_schema_names precision_generic_float_type
    precision_numerics_enotation_large precision_numerics_enotation_small precision_numerics_general
    precision_numerics_many_significant_digits precision_numerics_retains_significant_digits
    cast_precision_numerics_many_significant_digits reflect_table_options regexp_match regexp_replace
    schema_reflection schemas server_defaults sql_expression_limit_offset standalone_binds
    supports_bitwise_and supports_bitwise_not supports_bitwise_or supports_bitwise_shift supports_bitwise_xor
    supports_is_distinct_from symbol_names_w_double_quote time time_microseconds timestamp_microseconds
    tuple_in unicode_ddl update_where_target_in_subquery uuid_data_type view_column_reflection view_reflection views
    window_functions window_range unbounded_varchar standalone_null_binds_whereclause
    create_table_as aggregate_order_by recursive_fk_cascade numeric_received_as_decimal_untyped datetime_implicit_bound
    time_implicit_bound date_implicit_bound timestamp_microseconds_implicit_bound date_coerces_from_datetime ad_hoc_engines
""".split()


class Requirements(SuiteRequirements):
    """All that CANT doesn't name and SuiteRequirements leaves open, and what CAN names."""


for _name, _reason in CANT.items():
    setattr(Requirements, _name, property(lambda self, reason=_reason: exclusions.skip_if(lambda: True, reason)))
for _name in CAN:
    setattr(Requirements, _name, property(lambda self: exclusions.open()))
