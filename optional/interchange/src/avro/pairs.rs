//! The Avro types that are read into each of ClickHouse's types. ClickHouse takes numbers as they are,
//! whatever meaning a logical type gives them, so only pairs whose units agree are read.

use windrow_columns::DataType;

use super::schema::{Kind, Logical, Type};

pub(super) fn is_read(from: &Type, wanted: &DataType) -> bool {
    use DataType as T;
    let wanted = match wanted {
        T::LowCardinality(inner) => return is_read(from, inner),
        T::Nullable(inner) => inner,
        other => other,
    };
    match (&from.kind, from.logical) {
        (Kind::Nullable { inner, .. }, _) => is_read(inner, wanted),
        (Kind::Bool, None) => matches!(wanted, T::Bool),
        (Kind::Int, None) => is_number(wanted) || matches!(wanted, T::DateTime { .. } | T::Ipv4),
        (Kind::Long, None) => is_number(wanted) || matches!(wanted, T::DateTime64 { .. }),
        (Kind::Float | Kind::Double, None) => matches!(wanted, T::Float32 | T::Float64),
        (Kind::Int, Some(Logical::Date)) => matches!(wanted, T::Date | T::Date32),
        (Kind::Long, Some(Logical::Timestamp { power })) => {
            matches!(wanted, T::DateTime64 { precision, .. } if u32::from(*precision) == power)
        }
        (Kind::Bytes | Kind::Fixed(_), Some(Logical::Decimal { precision, scale })) => {
            matches!(wanted, T::Decimal { precision: p, scale: s } if *p == precision && *s == scale)
        }
        (Kind::String, _) => matches!(wanted, T::String | T::FixedString(_) | T::Uuid),
        (Kind::Bytes, None) => matches!(wanted, T::String | T::FixedString(_)),
        (Kind::Fixed(width), None) => match wanted {
            T::FixedString(wanted) => wanted == width,
            T::Ipv6 | T::UInt128 | T::Int128 => *width == 16,
            T::UInt256 | T::Int256 => *width == 32,
            _ => false,
        },
        (Kind::Enum(_), None) => matches!(wanted, T::Enum8(_) | T::Enum16(_) | T::String),
        (Kind::Array(inner), None) => matches!(wanted, T::Array(wanted) if is_read(inner, wanted)),
        (Kind::Map(inner), None) => {
            matches!(wanted, T::Map(key, value) if is_text(key) && is_read(inner, value))
        }
        (Kind::Record(fields), None) => {
            let T::Tuple(tuple) = wanted else { return false };
            let found = |index: usize, wanted: &DataType| {
                let numbered = (index + 1).to_string();
                let name = tuple.names.as_ref().map_or(&numbered, |names| &names[index]);
                fields.iter().any(|field| field.name == *name && is_read(&field.data_type, wanted))
            };
            fields.len() == tuple.elements.len()
                && tuple.elements.iter().enumerate().all(|(index, wanted)| found(index, wanted))
        }
        _ => false,
    }
}

fn is_text(data_type: &DataType) -> bool {
    match data_type {
        DataType::LowCardinality(inner) => is_text(inner),
        other => matches!(other, DataType::String),
    }
}

fn is_number(data_type: &DataType) -> bool {
    use DataType::*;
    matches!(data_type, UInt8 | UInt16 | UInt32 | UInt64 | Int8 | Int16 | Int32 | Int64 | Float32 | Float64)
}
