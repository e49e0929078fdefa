//! The columns of each answer. Their names and types are Flight SQL's.

use std::sync::Arc;

use arrow_schema::{DataType, Field, Schema, SchemaRef, UnionFields, UnionMode};

fn required(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, false)
}

fn optional(name: &str, data_type: DataType) -> Field {
    Field::new(name, data_type, true)
}

fn layout(fields: Vec<Field>) -> SchemaRef {
    Arc::new(Schema::new(fields))
}

pub(crate) fn catalogs() -> SchemaRef {
    layout(vec![required("catalog_name", DataType::Utf8)])
}

pub(crate) fn db_schemas() -> SchemaRef {
    layout(vec![optional("catalog_name", DataType::Utf8), required("db_schema_name", DataType::Utf8)])
}

pub(crate) fn table_types() -> SchemaRef {
    layout(vec![required("table_type", DataType::Utf8)])
}

pub(crate) fn tables_layout(with_schemas: bool) -> SchemaRef {
    let mut fields = vec![
        optional("catalog_name", DataType::Utf8),
        optional("db_schema_name", DataType::Utf8),
        required("table_name", DataType::Utf8),
        required("table_type", DataType::Utf8),
    ];
    if with_schemas {
        fields.push(required("table_schema", DataType::Binary));
    }
    layout(fields)
}

pub(crate) fn primary_keys() -> SchemaRef {
    layout(vec![
        optional("catalog_name", DataType::Utf8),
        optional("db_schema_name", DataType::Utf8),
        required("table_name", DataType::Utf8),
        required("column_name", DataType::Utf8),
        optional("key_name", DataType::Utf8),
        required("key_sequence", DataType::Int32),
    ])
}

pub(crate) fn foreign_keys() -> SchemaRef {
    layout(vec![
        optional("pk_catalog_name", DataType::Utf8),
        optional("pk_db_schema_name", DataType::Utf8),
        required("pk_table_name", DataType::Utf8),
        required("pk_column_name", DataType::Utf8),
        optional("fk_catalog_name", DataType::Utf8),
        optional("fk_db_schema_name", DataType::Utf8),
        required("fk_table_name", DataType::Utf8),
        required("fk_column_name", DataType::Utf8),
        required("key_sequence", DataType::Int32),
        optional("fk_key_name", DataType::Utf8),
        optional("pk_key_name", DataType::Utf8),
        required("update_rule", DataType::UInt8),
        required("delete_rule", DataType::UInt8),
    ])
}

pub(crate) fn xdbc_type_info() -> SchemaRef {
    layout(vec![
        required("type_name", DataType::Utf8),
        required("data_type", DataType::Int32),
        optional("column_size", DataType::Int32),
        optional("literal_prefix", DataType::Utf8),
        optional("literal_suffix", DataType::Utf8),
        optional("create_params", DataType::List(required("item", DataType::Utf8).into())),
        required("nullable", DataType::Int32),
        required("case_sensitive", DataType::Boolean),
        required("searchable", DataType::Int32),
        optional("unsigned_attribute", DataType::Boolean),
        required("fixed_prec_scale", DataType::Boolean),
        optional("auto_increment", DataType::Boolean),
        optional("local_type_name", DataType::Utf8),
        optional("minimum_scale", DataType::Int32),
        optional("maximum_scale", DataType::Int32),
        required("sql_data_type", DataType::Int32),
        optional("datetime_subcode", DataType::Int32),
        optional("num_prec_radix", DataType::Int32),
        optional("interval_precision", DataType::Int32),
    ])
}

/// Returns the types that an answer about the service may have: a text, a Boolean, a number, flags, texts, or
/// a map of numbers to numbers.
pub(crate) fn info_values() -> UnionFields {
    let numbers = DataType::List(optional("$data$", DataType::Int32).into());
    let entries = DataType::Struct(vec![required("key", DataType::Int32), optional("value", numbers)].into());
    let fields = [
        required("string_value", DataType::Utf8),
        required("bool_value", DataType::Boolean),
        required("bigint_value", DataType::Int64),
        required("int32_bitmask", DataType::Int32),
        required("string_list", DataType::List(optional("item", DataType::Utf8).into())),
        required("int32_to_int32_list_map", DataType::Map(required("entries", entries).into(), false)),
    ];
    (0..).zip(fields.map(Arc::new)).collect()
}

pub(crate) fn sql_info_layout() -> SchemaRef {
    layout(vec![
        required("info_name", DataType::UInt32),
        required("value", DataType::Union(info_values(), UnionMode::Dense)),
    ])
}
