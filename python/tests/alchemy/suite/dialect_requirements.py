"""What ClickHouse can and can't do of what SQLAlchemy's tests of dialects ask for, with the reason beside each."""

from sqlalchemy.testing import exclusions
from sqlalchemy.testing.requirements import SuiteRequirements

#: Names of requirements of SQLAlchemy's suite, by the reason why they are not met.
CANT = {
    "no column counts by itself": """
        autoincrement_insert autoincrement_without_sequence identity_columns implements_get_lastrowid sequences
        dbapi_lastrowid emulated_lastrowid emulated_lastrowid_even_with_sequences identity_columns_standard
    """,
    "no statement that writes gives rows": "insert_returning update_returning delete_returning",
    "an INSERT has values": "empty_inserts",
    "a mutation doesn't say how many rows it changed": "sane_rowcount sane_multi_rowcount",
    "WITH stands in front of SELECT alone": "ctes_on_dml ctes_with_update_delete",
    "an UPDATE looks at one table": "update_from",
    "a DELETE looks at one table": "delete_from",
    "there are no transactions": """
        savepoints two_phase_transactions isolation_level autocommit skip_autocommit_rollback
    """,
    "keys are an order: rows of equal keys stay": "duplicate_key_raises_integrity_error",
    "keys are an order, no constraint": "primary_key_constraint_reflection reflects_pk_names",
    "nothing is unique": """
        unique_constraint_reflection unique_constraints_reflect_as_index unique_index_reflect_as_unique_constraints
    """,
    "indices skip data; SQLAlchemy's say where rows are": """
        index_reflection index_ddl_if_exists index_reflects_included_columns indexes_check_column_order
        indexes_with_expressions reflect_indexes_with_ascdesc_as_expression reflect_indexes_with_expressions
    """,
    "SHOW CREATE TABLE alone knows them": "check_constraint_reflection constraint_comment_reflection",
    "a CHECK has a name and stands behind the columns": "inline_check_constraint_reflection",
    "they belong to a session of HTTP, and no list of tables has them": """
        temporary_tables temp_table_reflection temp_table_names has_temp_table create_temp_table_as
        temp_table_comment_reflection temporary_views
    """,
    "DateTime64 begins with 1900": "datetime_historic datetime_timezone_historic",
    "Date32 begins with 1900": "date_historic",
    "a Time has no zone": "time_timezone",
    "SQLAlchemy's Interval is a moment since 1970 here, and not a span that SQL computes with": """
        datetime_interval
    """,
    "JSON is an object and gives no path as SQLAlchemy writes it": """
        json_type json_deserializer_binary legacy_unconditional_json_extract
    """,
    "COLLATE names locales of ICU in a place of its own": "order_by_collation",
    "a column has no collation": "column_collation_reflection",
    "VALUES is a table function with a structure": "table_value_constructor",
    "an empty set of tuples has no type to compare with": "tuple_in_w_empty",
    "one has an engine or a target, which SQLAlchemy's statement doesn't name": """
        materialized_views materialized_views_reflect_pk
    """,
    "a schema is made by CREATE DATABASE, and the test writes CREATE SCHEMA": "schema_create_delete",
    "there is no FETCH of per cent": "fetch_percent",
    "foreign keys: there are none": """
        foreign_keys foreign_key_constraint_reflection self_referential_foreign_keys cross_schema_fk_reflection
        deferrable_fks fk_constraint_option_reflection_ondelete_noaction
        fk_constraint_option_reflection_ondelete_restrict fk_constraint_option_reflection_onupdate_restrict
        foreign_key_constraint_name_reflection foreign_key_constraint_option_reflection_ondelete
        foreign_key_constraint_option_reflection_onupdate foreign_keys_reflect_as_index non_updating_cascade
        repeated_column_foreign_keys repeated_remote_col_foreign_keys
    """,
    "the dialect is synchronous": "async_dialect",
    "a session's database is part of its URL": "default_schema_name_switch",
    "FETCH needs an ORDER BY": "fetch_no_order_by",
    "DISTINCT ON compiles, by PostgreSQL's rules alone in SQLAlchemy's test": "supports_distinct_on",
    "a RANGE of a window is counted in whole numbers": "window_range_numeric window_range_non_numeric",
    "a table has columns": "reflect_tables_no_columns",
    "String is the one type of texts": "nvarchar_types",
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
    create_table_as aggregate_order_by numeric_received_as_decimal_untyped datetime_implicit_bound
    time_implicit_bound date_implicit_bound timestamp_microseconds_implicit_bound date_coerces_from_datetime
    boolean_col_expressions order_by_label_with_expression table_ddl_if_exists float_or_double_precision_behaves_generically
""".split()


class Requirements(SuiteRequirements):
    """All that CANT doesn't name and SuiteRequirements leaves open, and what CAN names."""


for _reason, _names in CANT.items():
    for _name in _names.split():
        setattr(Requirements, _name, property(lambda self, reason=_reason: exclusions.skip_if(lambda: True, reason)))
for _name in CAN:
    setattr(Requirements, _name, property(lambda self: exclusions.open()))
