//! Scalars in ClickHouse's binary layout, which RowBinary and Native share.

use windrow_columns::wire::write_varint;

use crate::results::text::{rendered_text, wide};
use crate::results::values::{Column, Values};
use crate::types::{FIRST_OF_ENUM, MAX_ENUM8};

pub(crate) fn string(out: &mut Vec<u8>, text: &[u8]) {
    write_varint(out, text.len() as u64);
    out.extend_from_slice(text);
}

/// Writes one value that is not NULL and contains no others.
pub(crate) fn scalar(out: &mut Vec<u8>, values: &Values, row: usize) {
    match values {
        Values::Nothing | Values::Array { .. } | Values::Map { .. } | Values::Tuple { .. } => {}
        Values::Bool(array) => out.push(u8::from(array.value(row))),
        Values::Int8(array) => out.extend_from_slice(&array.value(row).to_le_bytes()),
        Values::Int16(array) => out.extend_from_slice(&array.value(row).to_le_bytes()),
        Values::Int32(array) => out.extend_from_slice(&array.value(row).to_le_bytes()),
        Values::Int64(array) => out.extend_from_slice(&array.value(row).to_le_bytes()),
        Values::UInt8(array) => out.extend_from_slice(&array.value(row).to_le_bytes()),
        Values::UInt16(array) => out.extend_from_slice(&array.value(row).to_le_bytes()),
        Values::UInt32(array) => out.extend_from_slice(&array.value(row).to_le_bytes()),
        Values::UInt64(array) => out.extend_from_slice(&array.value(row).to_le_bytes()),
        Values::Float32(array) => out.extend_from_slice(&array.value(row).to_le_bytes()),
        Values::Float64(array) => out.extend_from_slice(&array.value(row).to_le_bytes()),
        Values::Int128(array) | Values::UInt128(array) => out.extend_from_slice(&wide(array.value(row)).to_le_bytes()),
        Values::Decimal { array, precision, .. } => {
            out.extend_from_slice(&array.value(row).to_le_bytes()[..decimal_width(*precision)]);
        }
        Values::String(strings) => string(out, strings.bytes(row)),
        Values::FixedString(array) => out.extend_from_slice(array.value(row)),
        Values::Date(array) => out.extend_from_slice(&array.value(row).to_le_bytes()),
        Values::Time { ticks, .. } | Values::Moment { ticks, .. } => out.extend_from_slice(&ticks[row].to_le_bytes()),
        Values::Uuid(array) => {
            // Two halves, each little-endian.
            let bytes = array.value(row);
            out.extend(bytes[..8].iter().rev());
            out.extend(bytes[8..].iter().rev());
        }
        Values::Enum { numbers, names } => match names.len() <= MAX_ENUM8 {
            true => out.push((numbers[row] + FIRST_OF_ENUM) as u8),
            false => out.extend_from_slice(&(numbers[row] + FIRST_OF_ENUM).to_le_bytes()),
        },
        Values::Interval(_) | Values::TimeWithZone(_) | Values::Bits(_) => string(out, &rendered_text(values, row)),
    }
}

/// Writes the default that stands in the place of a scalar's NULL.
pub(crate) fn default(out: &mut Vec<u8>, values: &Values) {
    let width = match values {
        Values::Nothing | Values::Bool(_) | Values::Int8(_) | Values::UInt8(_) => 1,
        Values::Int16(_) | Values::UInt16(_) => 2,
        Values::Int32(_) | Values::UInt32(_) | Values::Float32(_) | Values::Date(_) => 4,
        Values::Int64(_) | Values::UInt64(_) | Values::Float64(_) | Values::Time { .. } | Values::Moment { .. } => 8,
        Values::Int128(_) | Values::UInt128(_) | Values::Uuid(_) => 16,
        Values::Decimal { precision, .. } => decimal_width(*precision),
        Values::FixedString(array) => usize::try_from(array.value_length()).unwrap_or(0),
        Values::Enum { names, .. } => 1 + usize::from(names.len() > MAX_ENUM8),
        // Of a string, its length.
        Values::String(_) | Values::Interval(_) | Values::TimeWithZone(_) | Values::Bits(_) => 1,
        Values::Array { .. } | Values::Map { .. } | Values::Tuple { .. } => 0,
    };
    out.resize(out.len() + width, 0);
}

fn decimal_width(precision: u8) -> usize {
    match precision {
        0..=9 => 4,
        10..=18 => 8,
        _ => 16,
    }
}

/// Writes one value in RowBinary.
pub(crate) fn value(out: &mut Vec<u8>, column: &Column, row: usize) {
    let is_null = column.is_null(row);
    if column.nullable {
        out.push(u8::from(is_null));
        if is_null {
            return;
        }
    }
    match &column.values {
        Values::Array { offsets, element } => {
            let range = if is_null { 0..0 } else { offsets.range(row) };
            write_varint(out, range.len() as u64);
            range.for_each(|item| value(out, element, item));
        }
        Values::Map { offsets, key, value: mapped } => {
            let range = if is_null { 0..0 } else { offsets.range(row) };
            write_varint(out, range.len() as u64);
            for item in range {
                value(out, key, item);
                value(out, mapped, item);
            }
        }
        Values::Tuple { elements, .. } => elements.iter().for_each(|element| value(out, element, row)),
        values if is_null => default(out, values),
        values => scalar(out, values, row),
    }
}
