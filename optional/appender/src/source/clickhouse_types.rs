//! The Arrow types that the texts of a CSV file are read as, by ClickHouse's names of the table's types.

use arrow_schema::{DataType, TimeUnit};

/// The Arrow type, and whether an empty field is NULL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Read {
    pub(super) data_type: DataType,
    pub(super) nullable: bool,
}

/// Returns how texts of a type are read. An unknown type goes as the text it is: the gateway reads it, or
/// refuses it by the column's name.
pub(super) fn read_as(clickhouse: &str) -> Read {
    let name = inside(clickhouse, "LowCardinality").unwrap_or(clickhouse);
    let (name, nullable) = match inside(name, "Nullable") {
        Some(name) => (name, true),
        None => (name, false),
    };
    Read { data_type: plain(name).unwrap_or(DataType::Utf8), nullable }
}

fn plain(name: &str) -> Option<DataType> {
    Some(match name {
        "Bool" => DataType::Boolean,
        "Int8" => DataType::Int8,
        "Int16" => DataType::Int16,
        "Int32" => DataType::Int32,
        "Int64" => DataType::Int64,
        "UInt8" => DataType::UInt8,
        "UInt16" => DataType::UInt16,
        "UInt32" => DataType::UInt32,
        "UInt64" => DataType::UInt64,
        "Float32" => DataType::Float32,
        "Float64" => DataType::Float64,
        "Date" | "Date32" => DataType::Date32,
        "DateTime" => DataType::Timestamp(TimeUnit::Second, None),
        _ => return with_arguments(name),
    })
}

fn with_arguments(name: &str) -> Option<DataType> {
    let (family, arguments) = name.strip_suffix(')')?.split_once('(')?;
    let mut arguments = arguments.split(',').map(str::trim);
    match family {
        "Decimal" => {
            let (precision, scale) = (arguments.next()?.parse().ok()?, arguments.next()?.parse().ok()?);
            Some(if precision <= 38 { DataType::Decimal128(precision, scale) } else { decimal256(precision, scale)? })
        }
        "DateTime" => timestamp(TimeUnit::Second, arguments.next()),
        "DateTime64" => {
            let unit = match arguments.next()?.parse::<u8>().ok()? {
                0 => TimeUnit::Second,
                1..=3 => TimeUnit::Millisecond,
                4..=6 => TimeUnit::Microsecond,
                7..=9 => TimeUnit::Nanosecond,
                _ => return None,
            };
            timestamp(unit, arguments.next())
        }
        _ => None,
    }
}

fn decimal256(precision: u8, scale: i8) -> Option<DataType> {
    (precision <= 76).then_some(DataType::Decimal256(precision, scale))
}

/// Returns the Arrow type of a time. A time in another zone than UTC is left to the gateway, which knows the
/// zone's rules.
fn timestamp(unit: TimeUnit, zone: Option<&str>) -> Option<DataType> {
    match zone {
        None => Some(DataType::Timestamp(unit, None)),
        Some("'UTC'" | "'Etc/UTC'") => Some(DataType::Timestamp(unit, Some("+00:00".into()))),
        Some(_) => None,
    }
}

fn inside<'a>(name: &'a str, family: &str) -> Option<&'a str> {
    name.strip_prefix(family)?.strip_prefix('(')?.strip_suffix(')')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_types() {
        let utc = || Some("+00:00".into());
        for (name, data_type, nullable) in [
            ("Int64", DataType::Int64, false),
            ("Nullable(Int64)", DataType::Int64, true),
            ("LowCardinality(Nullable(String))", DataType::Utf8, true),
            ("Decimal(18, 4)", DataType::Decimal128(18, 4), false),
            ("Decimal(50, 4)", DataType::Decimal256(50, 4), false),
            ("DateTime64(6)", DataType::Timestamp(TimeUnit::Microsecond, None), false),
            ("DateTime64(3, 'UTC')", DataType::Timestamp(TimeUnit::Millisecond, utc()), false),
            ("DateTime('Europe/Berlin')", DataType::Utf8, false),
            ("UUID", DataType::Utf8, false),
            ("Array(Int64)", DataType::Utf8, false),
            ("Decimal(77, 4)", DataType::Utf8, false),
            ("Decimal(", DataType::Utf8, false),
            ("", DataType::Utf8, false),
        ] {
            assert_eq!(read_as(name), Read { data_type, nullable }, "{name}");
        }
    }
}
