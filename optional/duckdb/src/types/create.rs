//! The DuckDB type of a column that is made for Arrow's values.

use arrow_schema::{DataType as ArrowType, Field, IntervalUnit as ArrowInterval, TimeUnit};

use crate::table::quoted;

/// Returns the type for a CREATE TABLE from the schema of a stream.
///
/// # Errors
/// Fails where no type of DuckDB has all values of this one; the error is a text for the user.
pub fn duckdb_type_of_arrow(field: &Field) -> Result<String, String> {
    of_arrow(field, 0)
}

const MAX_DEPTH: usize = 64;

fn of_arrow(field: &Field, depth: usize) -> Result<String, String> {
    if depth > MAX_DEPTH {
        return Err(format!("Types are nested deeper than {MAX_DEPTH}"));
    }
    let extension = field.metadata().get("ARROW:extension:name").map_or("", String::as_str);
    let plain = match field.data_type() {
        _ if extension == "arrow.json" => "JSON",
        ArrowType::FixedSizeBinary(16) if extension == "arrow.uuid" => "UUID",
        ArrowType::Int8 if extension == "arrow.bool8" => "BOOLEAN",
        ArrowType::Boolean => "BOOLEAN",
        ArrowType::Int8 => "TINYINT",
        ArrowType::Int16 => "SMALLINT",
        ArrowType::Int32 | ArrowType::Null => "INTEGER",
        ArrowType::Int64 => "BIGINT",
        ArrowType::UInt8 => "UTINYINT",
        ArrowType::UInt16 => "USMALLINT",
        ArrowType::UInt32 => "UINTEGER",
        ArrowType::UInt64 => "UBIGINT",
        ArrowType::Float16 | ArrowType::Float32 => "FLOAT",
        ArrowType::Float64 => "DOUBLE",
        ArrowType::Utf8 | ArrowType::LargeUtf8 | ArrowType::Utf8View => "VARCHAR",
        ArrowType::Binary | ArrowType::LargeBinary | ArrowType::BinaryView | ArrowType::FixedSizeBinary(_) => "BLOB",
        ArrowType::Date32 => "DATE",
        ArrowType::Date64 => "TIMESTAMP_MS",
        ArrowType::Time32(_) | ArrowType::Time64(TimeUnit::Microsecond) => "TIME",
        ArrowType::Time64(_) => "TIME_NS",
        ArrowType::Timestamp(_, Some(_)) => "TIMESTAMP WITH TIME ZONE",
        ArrowType::Timestamp(TimeUnit::Second, None) => "TIMESTAMP_S",
        ArrowType::Timestamp(TimeUnit::Millisecond, None) => "TIMESTAMP_MS",
        ArrowType::Timestamp(TimeUnit::Microsecond, None) => "TIMESTAMP",
        ArrowType::Timestamp(TimeUnit::Nanosecond, None) => "TIMESTAMP_NS",
        ArrowType::Interval(ArrowInterval::MonthDayNano) | ArrowType::Duration(_) => "INTERVAL",
        ArrowType::Decimal32(precision, scale)
        | ArrowType::Decimal64(precision, scale)
        | ArrowType::Decimal128(precision, scale)
            if *scale >= 0 =>
        {
            return Ok(format!("DECIMAL({precision},{scale})"));
        }
        ArrowType::Dictionary(_, values) => {
            return of_arrow(&Field::new("", values.as_ref().clone(), true), depth + 1);
        }
        ArrowType::List(item) | ArrowType::LargeList(item) => return Ok(format!("{}[]", of_arrow(item, depth + 1)?)),
        ArrowType::FixedSizeList(item, length) => return Ok(format!("{}[{length}]", of_arrow(item, depth + 1)?)),
        ArrowType::Struct(fields) if !fields.is_empty() => {
            let field = |field: &Field| Ok(format!("{} {}", quoted(field.name()), of_arrow(field, depth + 1)?));
            let fields: Result<Vec<_>, String> = fields.iter().map(|of| field(of)).collect();
            return Ok(format!("STRUCT({})", fields?.join(", ")));
        }
        ArrowType::Map(entries, _) => {
            let ArrowType::Struct(pair) = entries.data_type() else { return Err(no_type(field)) };
            let [key, value] = pair.as_ref() else { return Err(no_type(field)) };
            return Ok(format!("MAP({}, {})", of_arrow(key, depth + 1)?, of_arrow(value, depth + 1)?));
        }
        _ => return Err(no_type(field)),
    };
    Ok(plain.to_owned())
}

fn no_type(field: &Field) -> String {
    format!("Column `{}`: DuckDB has no type for Arrow's {}", field.name(), field.data_type())
}
