//! Columns that a Native block sends with another type than the table has. ClickHouse casts them; here only the casts
//! that can't change a value or fail are made.

use super::outcome::NotParsedReason;
use crate::column::Column;
use crate::types::{DataType, TupleType};

/// Returns the values as the table's type has them.
pub(super) fn convert(values: Column, sent: &DataType, wanted: &DataType) -> Result<Column, NotParsedReason> {
    use DataType::*;
    match (sent.plain(), wanted.plain()) {
        (sent, wanted) if sent == wanted => Ok(values),
        // Dictionaries are gone already.
        (LowCardinality(sent), wanted) => convert(values, sent, wanted),
        (sent, LowCardinality(wanted)) => convert(values, sent, wanted),
        (Nullable(sent), Nullable(wanted)) => match values {
            Column::Nullable { nulls, inner } => {
                Ok(Column::Nullable { nulls, inner: Box::new(convert(*inner, sent, wanted)?) })
            }
            _ => Err(NotParsedReason::Value),
        },
        (Nullable(sent), wanted) => match values {
            Column::Nullable { nulls, inner } if nulls.iter().all(|is_null| *is_null == 0) => {
                convert(*inner, sent, wanted)
            }
            _ => Err(NotParsedReason::Null),
        },
        (sent, Nullable(wanted)) => {
            let inner = convert(values, sent, wanted)?;
            Ok(Column::Nullable { nulls: vec![0; inner.rows()], inner: Box::new(inner) })
        }
        (Array(sent), Array(wanted)) => convert_lists(values, |inner| convert(inner, sent, wanted)),
        (Map(sent_key, sent_value), Map(wanted_key, wanted_value)) => convert_lists(values, |pairs| {
            convert_elements(pairs, [(&**sent_key, &**wanted_key), (&**sent_value, &**wanted_value)].into_iter())
        }),
        (Tuple(sent), Tuple(wanted)) if elements_correspond(sent, wanted) => {
            convert_elements(values, sent.elements.iter().zip(&wanted.elements))
        }
        // A time's zone only says how it is shown.
        (DateTime { .. }, DateTime { .. }) => Ok(values),
        (DateTime64 { precision: sent, .. }, DateTime64 { precision: wanted, .. }) if sent == wanted => Ok(values),
        (sent, wanted) => widen(values, sent, wanted),
    }
}

/// Says whether elements correspond by their place. Elements of other names would be matched by their names.
fn elements_correspond(sent: &TupleType, wanted: &TupleType) -> bool {
    sent.elements.len() == wanted.elements.len() && (sent.names.is_none() || sent.names == wanted.names)
}

fn convert_lists(
    values: Column,
    convert_inner: impl FnOnce(Column) -> Result<Column, NotParsedReason>,
) -> Result<Column, NotParsedReason> {
    match values {
        Column::Array { offsets, inner } => Ok(Column::Array { offsets, inner: Box::new(convert_inner(*inner)?) }),
        _ => Err(NotParsedReason::Value),
    }
}

fn convert_elements<'t>(
    values: Column,
    types: impl Iterator<Item = (&'t DataType, &'t DataType)>,
) -> Result<Column, NotParsedReason> {
    let Column::Tuple { elements } = values else { return Err(NotParsedReason::Value) };
    let elements = elements.into_iter().zip(types).map(|(element, (sent, wanted))| convert(element, sent, wanted));
    Ok(Column::Tuple { elements: elements.collect::<Result<_, _>>()? })
}

struct Integer {
    width: usize,
    signed: bool,
}

/// Turns integers into wider ones that have room for all their values.
fn widen(values: Column, sent: &DataType, wanted: &DataType) -> Result<Column, NotParsedReason> {
    let (Some(from), Some(to)) = (integer(sent), integer(wanted)) else { return Err(NotParsedReason::Value) };
    let Column::Fixed { data, .. } = values else { return Err(NotParsedReason::Value) };
    if to.width <= from.width || (from.signed && !to.signed) {
        return Err(NotParsedReason::Value);
    }
    let mut wide = Vec::with_capacity(data.len() / from.width * to.width);
    for value in data.chunks_exact(from.width) {
        let is_negative = from.signed && value[from.width - 1] & 0x80 != 0;
        wide.extend_from_slice(value);
        wide.resize(wide.len() + to.width - from.width, if is_negative { 0xFF } else { 0 });
    }
    Ok(Column::Fixed { width: to.width, data: wide })
}

fn integer(data_type: &DataType) -> Option<Integer> {
    use DataType::*;
    let signed = match data_type {
        UInt8 | UInt16 | UInt32 | UInt64 | UInt128 | UInt256 => false,
        Int8 | Int16 | Int32 | Int64 | Int128 | Int256 => true,
        _ => return None,
    };
    Some(Integer { width: data_type.fixed_width()?, signed })
}
