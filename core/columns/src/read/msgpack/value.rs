use super::super::address;
use super::super::binary::BinaryInput;
use super::super::scalar::{push_fixed_string, push_string};
use super::item::{read_item, Item};
use super::NotParsedReason;
use crate::column::Column;
use crate::settings::ReadSettings;
use crate::types::DataType;

/// ClickHouse's number for the extension that is a UUID.
const UUID_EXTENSION: u8 = 2;

/// Appends an item to a column of a type.
#[inline]
pub(super) fn read(
    input: &mut BinaryInput<'_>,
    item: Item<'_>,
    data_type: &DataType,
    column: &mut Column,
    settings: &ReadSettings,
) -> Result<(), NotParsedReason> {
    match (data_type.plain(), column) {
        (DataType::LowCardinality(inner), column) => read(input, item, inner, column, settings),
        (DataType::Nullable(inner), Column::Nullable { nulls, inner: values }) => {
            if matches!(item, Item::Nil) {
                input.fill(values.zero_bytes())?;
                nulls.push(1);
                values.push_zero();
                return Ok(());
            }
            nulls.push(0);
            read(input, item, inner, values, settings)
        }
        // Within a list or tuple, NULL is the zero of a type that can't hold it.
        (plain, column) if matches!(item, Item::Nil) => {
            if !settings.null_as_default || matches!(plain, DataType::Variant(_)) {
                return Err(NotParsedReason::Null);
            }
            input.fill(column.zero_bytes())?;
            column.push_zero();
            Ok(())
        }
        (plain, Column::Fixed { width, data }) => push_fixed(input, item, plain, *width, data),
        (DataType::String, Column::Strings { rows, data }) => match item {
            Item::Text(bytes) | Item::Binary(bytes) => {
                push_string(bytes, rows, data);
                Ok(())
            }
            _ => Err(NotParsedReason::Value),
        },
        (plain, column) => read_nested(input, item, plain, column, settings),
    }
}

/// Reads a nested value. The depth is that of the column's type, which is bounded. Every item takes a byte at
/// least, so a count that is made up comes to the payload's end soon.
fn read_nested(
    input: &mut BinaryInput<'_>,
    item: Item<'_>,
    data_type: &DataType,
    column: &mut Column,
    settings: &ReadSettings,
) -> Result<(), NotParsedReason> {
    match (item, data_type, column) {
        (Item::List(count), DataType::Array(inner), Column::Array { offsets, inner: values }) => {
            for _ in 0..count {
                let item = read_item(input)?;
                read(input, item, inner, values, settings)?;
            }
            offsets.push(values.rows() as u64);
            Ok(())
        }
        (Item::Map(count), DataType::Map(key, value), Column::Array { offsets, inner }) => {
            let Column::Tuple { elements } = &mut **inner else { return Err(NotParsedReason::Value) };
            for _ in 0..count {
                for (part, values) in [key, value].into_iter().zip(elements.iter_mut()) {
                    let item = read_item(input)?;
                    read(input, item, part, values, settings)?;
                }
            }
            offsets.push(offsets.last().copied().unwrap_or(0) + count as u64);
            Ok(())
        }
        (Item::List(count), DataType::Tuple(tuple), Column::Tuple { elements }) if count == elements.len() => {
            for (part, values) in tuple.elements.iter().zip(elements) {
                let item = read_item(input)?;
                read(input, item, part, values, settings)?;
            }
            Ok(())
        }
        _ => Err(NotParsedReason::Value),
    }
}

fn push_fixed(
    input: &mut BinaryInput<'_>,
    item: Item<'_>,
    data_type: &DataType,
    width: usize,
    data: &mut Vec<u8>,
) -> Result<(), NotParsedReason> {
    match item {
        Item::Unsigned(value) => push_integer(i128::from(value), data_type, width, data),
        Item::Signed(value) => push_integer(i128::from(value), data_type, width, data),
        Item::Bool(value) => push_integer(i128::from(value), data_type, width, data),
        Item::Float32(bytes) if *data_type == DataType::Float32 => {
            data.extend_from_slice(&bytes);
            Ok(())
        }
        Item::Float64(bytes) if *data_type == DataType::Float64 => {
            data.extend_from_slice(&bytes);
            Ok(())
        }
        Item::Text(bytes) | Item::Binary(bytes) if matches!(data_type, DataType::FixedString(_)) => {
            input.fill(width.saturating_sub(bytes.len()))?;
            push_fixed_string(bytes, width, data)
        }
        Item::Text(bytes) if *data_type == DataType::Uuid => {
            data.extend_from_slice(&address::uuid(bytes).ok_or(NotParsedReason::Value)?);
            Ok(())
        }
        Item::Binary(bytes) if is_written_as_bytes(data_type, width) && bytes.len() == width => {
            data.extend_from_slice(bytes);
            Ok(())
        }
        Item::Extension { kind: UUID_EXTENSION, bytes } if *data_type == DataType::Uuid && bytes.len() == width => {
            data.extend(bytes[..8].iter().rev().chain(bytes[8..].iter().rev()));
            Ok(())
        }
        _ => Err(NotParsedReason::Value),
    }
}

/// Says whether a type is too wide for the format's own integers; its values are then written as they lie in
/// memory.
fn is_written_as_bytes(data_type: &DataType, width: usize) -> bool {
    use DataType::*;
    match data_type {
        UInt128 | UInt256 | Int128 | Int256 | Uuid | Ipv6 => true,
        Decimal { .. } => width > 8,
        _ => false,
    }
}

fn push_integer(value: i128, data_type: &DataType, width: usize, data: &mut Vec<u8>) -> Result<(), NotParsedReason> {
    use DataType::*;
    let bits = 8 * width as u32;
    let range = match data_type {
        Bool => 0..=1,
        UInt8 | UInt16 | UInt32 | UInt64 | Date | DateTime { .. } | Ipv4 => 0..=(1i128 << bits) - 1,
        Int8 | Int16 | Int32 | Int64 | Date32 | DateTime64 { .. } | Enum8(_) | Enum16(_) => signed_range(bits),
        Decimal { .. } if width <= 8 => signed_range(bits),
        _ => return Err(NotParsedReason::Value),
    };
    if !range.contains(&value) {
        return Err(NotParsedReason::Value);
    }
    data.extend_from_slice(&value.to_le_bytes()[..width]);
    Ok(())
}

fn signed_range(bits: u32) -> std::ops::RangeInclusive<i128> {
    -(1 << (bits - 1))..=(1 << (bits - 1)) - 1
}
