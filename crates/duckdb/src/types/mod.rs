//! DuckDB's types and ClickHouse's.

use windrow_block::DataType;

/// Why a value can't be stored as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotHeld {
    pub column: String,
    pub why: String,
}

pub(crate) fn clickhouse_type(duckdb: &str, nullable: bool) -> Result<DataType, String> {
    let plain = match duckdb {
        "BOOLEAN" => DataType::Bool,
        "TINYINT" => DataType::Int8,
        "SMALLINT" => DataType::Int16,
        "INTEGER" => DataType::Int32,
        "BIGINT" => DataType::Int64,
        "UTINYINT" => DataType::UInt8,
        "USMALLINT" => DataType::UInt16,
        "UINTEGER" => DataType::UInt32,
        "UBIGINT" => DataType::UInt64,
        "FLOAT" => DataType::Float32,
        "DOUBLE" => DataType::Float64,
        "VARCHAR" => DataType::String,
        other => return Err(format!("DuckDB's type {other} is not read")),
    };
    Ok(if nullable { DataType::Nullable(Box::new(plain)) } else { plain })
}
