//! The ClickHouse type as which payloads for a column of DuckDB are read.
//!
//! A type without counterpart is read as text and cast by DuckDB, if DuckDB has a cast that refuses what it
//! can't store. `docs/duckdb.md` has the same table.

use windrow_columns::{DataType, EnumValue, TupleType};

use super::duck::DuckType;

/// Returns the ClickHouse type for a type of DuckDB.
///
/// # Errors
/// Fails where there is none; the error is a text for the user.
pub fn clickhouse_type(duckdb: &str, nullable: bool) -> Result<DataType, String> {
    let duck = DuckType::parse(duckdb).ok_or_else(|| not_read(duckdb))?;
    of_nullability(&duck, nullable).ok_or_else(|| not_read(duckdb))
}

fn not_read(duckdb: &str) -> String {
    format!("values of DuckDB's type {duckdb} can't be inserted in ClickHouse's formats")
}

/// Returns the type for a column that may be NULL. ClickHouse has no `Nullable(Array(...))`: such a column
/// takes no NULL from payloads.
fn of_nullability(duck: &DuckType, nullable: bool) -> Option<DataType> {
    let of = of(duck)?;
    let may_be_null = !matches!(of, DataType::Array(_) | DataType::Map(..) | DataType::Tuple(_));
    Some(if nullable && may_be_null { DataType::Nullable(Box::new(of)) } else { of })
}

fn of(duck: &DuckType) -> Option<DataType> {
    Some(match duck {
        DuckType::Plain(name) => plain(name)?,
        DuckType::Decimal { precision, scale } => DataType::Decimal { precision: *precision, scale: *scale },
        DuckType::Enum(names) => of_enum(names),
        DuckType::List(of) | DuckType::Array(of, _) => DataType::Array(Box::new(of_nullability(of, true)?)),
        DuckType::Struct(fields) => {
            let elements = fields.iter().map(|(_, of)| of_nullability(of, true)).collect::<Option<_>>()?;
            DataType::Tuple(TupleType { names: Some(fields.iter().map(|(name, _)| name.clone()).collect()), elements })
        }
        DuckType::Map(key, value) => {
            DataType::Map(Box::new(of_nullability(key, false)?), Box::new(of_nullability(value, true)?))
        }
    })
}

fn plain(name: &str) -> Option<DataType> {
    let utc = || Some("UTC".to_owned());
    Some(match name {
        "BOOLEAN" => DataType::Bool,
        "TINYINT" => DataType::Int8,
        "SMALLINT" => DataType::Int16,
        "INTEGER" => DataType::Int32,
        "BIGINT" => DataType::Int64,
        "HUGEINT" => DataType::Int128,
        "UTINYINT" => DataType::UInt8,
        "USMALLINT" => DataType::UInt16,
        "UINTEGER" => DataType::UInt32,
        "UBIGINT" => DataType::UInt64,
        "UHUGEINT" => DataType::UInt128,
        "FLOAT" => DataType::Float32,
        "DOUBLE" => DataType::Float64,
        "VARCHAR" | "BLOB" | "JSON" => DataType::String,
        // As texts, which DuckDB casts.
        "INTERVAL" | "BIT" | "BIGNUM" | "TIME WITH TIME ZONE" => DataType::String,
        "UUID" => DataType::Uuid,
        "DATE" => DataType::Date32,
        "TIME" => DataType::Time64 { precision: 6 },
        "TIME_NS" => DataType::Time64 { precision: 9 },
        "TIMESTAMP" => DataType::DateTime64 { precision: 6, timezone: None },
        "TIMESTAMP_S" => DataType::DateTime64 { precision: 0, timezone: None },
        "TIMESTAMP_MS" => DataType::DateTime64 { precision: 3, timezone: None },
        "TIMESTAMP_NS" => DataType::DateTime64 { precision: 9, timezone: None },
        "TIMESTAMP WITH TIME ZONE" => DataType::DateTime64 { precision: 6, timezone: utc() },
        _ => return None,
    })
}

/// The most names of an Enum8. Numbers of an Enum are those of DuckDB plus [`FIRST_OF_ENUM`].
pub(crate) const MAX_ENUM8: usize = 127;
pub(crate) const MAX_ENUM16: usize = 32_767;
/// The number of an Enum's first name, in inserts and in results. ClickHouse gives it to the first name of an
/// Enum that comes without numbers.
pub(crate) const FIRST_OF_ENUM: u16 = 1;

pub(crate) fn of_enum(names: &[String]) -> DataType {
    let numbered =
        names.iter().zip(FIRST_OF_ENUM as i16..).map(|(name, value)| EnumValue { name: name.clone(), value });
    match names.len() {
        ..=MAX_ENUM8 => DataType::Enum8(numbered.collect()),
        count if count <= MAX_ENUM16 => DataType::Enum16(numbered.collect()),
        _ => DataType::String,
    }
}
