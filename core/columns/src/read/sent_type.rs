//! Types that a payload names itself. ClickHouse refuses some that can be parsed here: zones that don't exist, names
//! given twice, keys that no Map may have.

use super::outcome::NotParsedReason;
use crate::types::DataType;

/// Reads a type that ClickHouse surely takes.
pub(super) fn parse(text: &str) -> Result<DataType, NotParsedReason> {
    DataType::parse(text).ok().filter(is_surely_valid).ok_or(NotParsedReason::Value)
}

/// Reads a type for a column of type `known`: that one in any spelling, or another that ClickHouse surely
/// takes.
pub(super) fn parse_for(known: &DataType, text: &str) -> Result<DataType, NotParsedReason> {
    match DataType::parse(text) {
        Ok(sent) if sent == *known || is_surely_valid(&sent) => Ok(sent),
        _ => Err(NotParsedReason::Value),
    }
}

fn is_surely_valid(data_type: &DataType) -> bool {
    use DataType::*;
    match data_type {
        DateTime { timezone } | DateTime64 { timezone, .. } => timezone.as_ref().is_none_or(|zone| zone == "UTC"),
        Nullable(inner) => !matches!(**inner, Tuple(_)) && is_surely_valid(inner),
        LowCardinality(inner) => match &**inner {
            Nullable(inner) => matches!(**inner, String | FixedString(_)),
            inner => matches!(inner, String | FixedString(_)),
        },
        Array(inner) => is_surely_valid(inner),
        Map(key, value) => is_surely_a_key(key) && is_surely_valid(value),
        Tuple(tuple) => tuple.names.is_none() && tuple.elements.iter().all(is_surely_valid),
        Enum8(_) | Enum16(_) | Variant(_) | Custom(_) => false,
        _ => true,
    }
}

fn is_surely_a_key(data_type: &DataType) -> bool {
    match data_type {
        DataType::LowCardinality(inner) => matches!(**inner, DataType::String),
        key => {
            matches!(key, DataType::String | DataType::UInt64 | DataType::UInt32 | DataType::Int64 | DataType::Int32)
        }
    }
}
